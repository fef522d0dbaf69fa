"""Which functions are watched: names as torch 2.13.0's libraries have them."""

from __future__ import annotations

import pytest

from torchbench_dbg.trace.classify import Category, categorize

CORE = [
    "_Z20THPEngine_initModuleP7_object",
    "_ZL22THPEngine_run_backwardP7_objectS0_S0_",
    "_ZN2at6native10ConvParamsIlE12view1d_as_2dEv",
    "_ZN2at6native7cpublas4gemmENS0_13TransposeTypeES2_lllN3c107complexIdEEPKS5_lS7_lS5_PS5_l",
    "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE",
    "_ZN5torch8autograd4NodeclEOSt6vectorIN2at6TensorESaIS4_EE",
    "_ZN8pybind1112cpp_function10dispatcherEP7_objectPKS2_mS2_",
    "_ZNK2at10TensorBase10contiguousEN3c1012MemoryFormatE",
    "_ZN3c1012function_refIFSt10shared_ptrINS_10TensorTypeEERKS3_EE11callback_fnIZN5torch3jitL24guardDifferentiableGraph"
    "EPNSA_4NodeEEUlS5_E_EES3_lS5_",
    # A clone made by the compiler is the whole function, not a part of it.
    "_ZNK3c1014DispatchKeySet21highestPriorityTypeIdEv.isra.0",
]
NOISE = [
    "_ZNSt6vectorIN2at6TensorESaIS1_EE12emplace_backIJEEERS1_DpOT_.isra.0",
    "_ZN2at11NoTF32GuardD1Ev",
    "_ZN2at11QTensorImplD0Ev",
    "_ZN2at6native10ConvParamsIN3c106SymIntEED2Ev",
    "_ZN9__gnu_cxx6__stoaIddcJEEET0_PFT_PKT1_PPS3_DpT2_EPKcS5_PmS9_",
    "_ZN8pybind116detail10map_casterISt13unordered_mapIN3c106DeviceES4_St4hashIS4_ESt8equal_toIS4_ESaISt4pairIKS4_S4_EEE"
    "S4_S4_E4castISD_EENS_6handleEOT_NS_19return_value_policyESG_.isra.0",
]
THIRD_PARTY = [
    "_ZN4dnnl4impl10balance211IiiEEvT_T0_S3_RS2_S4_",
    "_ZThn104_N4dnnl4impl3cpu3x6412_GLOBAL__N_113kernel_stat_tILNS2_9cpu_isa_tE560EED0Ev",
    "_ZN6fbgemm10BCSRMatrixIaLi1ELi4EE2CBE",
    "_ZN3fmt3v1212format_errorD0Ev",
    "_ZGVZN3c1010Dispatcher9singletonEvE1s",
    "_ZN2at12_GLOBAL__N_122wrapper_CPU_add_TensorERKNS_6TensorES3_RKN3c106ScalarE.cold",
    "InitializeInjection.cold",
    "dnnl_primitive_execute.cold",
    "_GLOBAL__sub_I_ADInplaceOrViewType_0.cpp",
    "dnnl_alg_kind2str",
    "mkl_barrier_wait",
    "frame_dummy",
]
BLAS = ["cblas_sgemm", "cblas_dgemv", "sgemm_", "dgesdd_", "cblas_sgemm_batch", "dnnl_primitive_execute"]
BLAS += ["dnnl_sgemm", "DftiComputeForward", "DftiComputeBackward", "mkl_sparse_d_mv"]


@pytest.mark.parametrize(
    ("symbol", "category"),
    [(symbol, Category.CORE) for symbol in CORE]
    + [(symbol, Category.NOISE) for symbol in NOISE]
    + [(symbol, Category.THIRD_PARTY) for symbol in THIRD_PARTY]
    + [(symbol, Category.BLAS) for symbol in BLAS],
)
def test_category(symbol: str, category: Category) -> None:
    assert categorize(symbol.encode(), plain_names_are_core=False) == category


@pytest.mark.parametrize("symbol", ["_init", "_fini", "frame_dummy", "_GLOBAL__sub_I_mine.cpp", "mine.cold"])
def test_what_the_compiler_adds_is_not_an_extensions_own(symbol: str) -> None:
    assert categorize(symbol.encode(), plain_names_are_core=True) == Category.THIRD_PARTY


@pytest.mark.parametrize("symbol", ["PyInit__C", "THPVariable_Wrap", "aoti_torch_empty"])
def test_plain_names_of_torch_count_everywhere(symbol: str) -> None:
    assert categorize(symbol.encode(), plain_names_are_core=False) == Category.CORE


def test_plain_names_are_an_extensions_own() -> None:
    assert categorize(b"my_kernel", plain_names_are_core=True) == Category.CORE
    assert categorize(b"my_kernel", plain_names_are_core=False) == Category.THIRD_PARTY
