"""Which functions are watched: decided once a library, from mangled names, when its index is made."""

from __future__ import annotations

import enum
import re


class Category(enum.IntEnum):
    """Whether a function gets a probe."""

    THIRD_PARTY = 0  # never: other projects' code that is linked in, and parts of functions
    CORE = 1  # always: torch's own code
    NOISE = 2  # with --all: std::, destructors, reference counts
    BLAS = 3  # always: public entries of BLAS, LAPACK, FFT, oneDNN


# Nested names (_ZN…) begin with their outermost namespace; the number before it is its length.
_THIRD_PARTY = (
    b"4dnnl|6fbgemm|6asmjit|5Xbyak|6google8protobuf|10onnx_torch|4onnx|4gloo|10tensorpipe|3fmt|8nlohmann"
    b"|9libkineto|7dynolog|6ittapi|4mkldnn|7cpuinfo|3ska|7miniz|7httplib|11moodycamel|15gloo_transport|7openssl"
    b"|19typed_zero_pad_blk|3xnn|6kineto|5flatb|11flatbuffers"
)
_THIRD_PARTY_NAME = re.compile(
    rb"_Z+(?:N[VKRO]*|ThN?\w*?_N[VK]*|T[vhc]\w*?N[VK]*)?(?:" + _THIRD_PARTY + rb")|_GLOBAL__|_Z(?:TV|TI|TS|GV)"
    rb"|_Z41__static_initialization_and_destruction_0v"
)
_NOISE_NAME = re.compile(
    rb"_Z+N[VKRO]*(?:St|S[absiod]|9__gnu_cxx|10__cxxabiv1|8pybind116detail)"  # std:: and helpers of its kind
    rb"|_Z(?:NK?)?St|_Zn[wa]|_Zd[la]"
    rb"|_ZN?K?9__gnu_cxx|_ZSt"
)
_DESTRUCTOR = re.compile(rb"D[0-2]Ev$")
_BLAS_NAME = re.compile(
    rb"(?:cblas_)?[sdcz](?:gemm|gemv|axpy|dot[cu]?|ger[cu]?|scal|nrm2|trsm|syrk|copy|symm|getrf|getri|getrs|potrf|potri|potrs|"
    rb"geqrf|orgqr|ungqr|ormqr|unmqr|syevd?|heevd?|gesdd|gesvd|gels|gelsd|gelss|gelsy|geev|trtrs|sytrf|hetrf)\w{0,8}_?"
    rb"|Dfti(?:ComputeForward|ComputeBackward)|mkl_sparse_[sdcz]_(?:mm|mv|spmm\w*|add|trsv|trsm)"
    rb"|dnnl_(?:primitive_execute|sgemm|gemm_\w+)|gemm_(?:bf16|f16)\w*"
)
_PLAIN_TORCH_NAME = re.compile(rb"_?TH[PC]\w+|\w*torch\w*|PyInit_\w+|caffe2\w*|aten_\w+|aoti_\w+")
_PART = re.compile(rb"\.cold(?:\.\d+)?$|\.warm$|\.text_\w+$")


def categorize(symbol: bytes, *, plain_names_are_core: bool) -> int:
    """The category of a mangled name. `plain_names_are_core`: C names too (an extension's library)."""
    if _PART.search(symbol):
        return Category.THIRD_PARTY
    if not symbol.startswith(b"_Z"):
        if _BLAS_NAME.fullmatch(symbol):
            return Category.BLAS
        if symbol.startswith(b"_GLOBAL__") or symbol in _RUNTIME:
            return Category.THIRD_PARTY
        return Category.CORE if plain_names_are_core or _PLAIN_TORCH_NAME.fullmatch(symbol) else Category.THIRD_PARTY
    if _NOISE_NAME.match(symbol):
        return Category.NOISE
    if _THIRD_PARTY_NAME.match(symbol):
        return Category.THIRD_PARTY
    return Category.NOISE if _DESTRUCTOR.search(symbol) else Category.CORE


_RUNTIME = frozenset(
    b"_init _fini _start frame_dummy register_tm_clones deregister_tm_clones __do_global_dtors_aux".split()
)
