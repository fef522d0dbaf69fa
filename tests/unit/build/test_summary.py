"""Features that cmake has turned off."""

from __future__ import annotations

from torchbench_dbg.build.summary import Summary
from torchbench_dbg.build.variables import Variable

OUTPUT = """\
-- Could NOT find CUDA (missing: CUDA_NVCC_EXECUTABLE)
-- Looking for pthread.h - found
--   Not compiling with MKL-DNN. Suppress this warning with -DUSE_MKLDNN=OFF
-- ******** Summary ********
--   BUILD_TEST            : OFF
--   USE_CUDA              : 0
--   USE_MKLDNN            : OFF
--   USE_NUMPY             : ON
--   USE_XNNPACK           : OFF
--   USE_GLOO              : OFF
"""


def test_what_was_wanted_and_is_off() -> None:
    summary = Summary()
    for line in OUTPUT.splitlines():
        summary.listen(line)
    values = {"USE_CUDA": "1", "USE_MKLDNN": "ON", "USE_NUMPY": "1", "USE_XNNPACK": "0", "USE_GLOO": "yes", "CC": "1"}
    variables = [Variable(name=name, value=value, origin="--set") for name, value in values.items()]
    assert summary.turned_off(variables) == {
        "USE_CUDA": "Could NOT find CUDA (missing: CUDA_NVCC_EXECUTABLE)",
        "USE_MKLDNN": "Not compiling with MKL-DNN. Suppress this warning with -DUSE_MKLDNN=OFF",
        "USE_GLOO": "it gave no reason",
    }
