"""The smallest torch that is built as the real one is."""

from torch import version
from torch._C import add as add

__version__ = version.__version__
