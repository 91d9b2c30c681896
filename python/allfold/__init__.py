"""allfold: folds (sums, extremes, norms, statistics), order statistics and softmax of arrays that are spread over MPI ranks, on GPUs and CPUs.

Each rank passes its part of one global array, which is the concatenation of the parts in rank order. Every rank gets the same
result, to the bit:

    from mpi4py import MPI
    import allfold, numpy

    x = numpy.random.default_rng(MPI.COMM_WORLD.rank).standard_normal(10**6)
    allfold.sum(x)                            # over all ranks of MPI.COMM_WORLD
    allfold.sum(x, comm=MPI.COMM_SELF)        # of this rank's part only

Functions are collective over comm: all its ranks must call them, in the same order. They take arrays of NumPy and what it can
convert, and PyTorch's, CuPy's and JAX's, in host or device memory. Errors are subclasses of allfold.Error, raised on every rank.
See docs/python.md, docs/numerics.md.
"""
from . import begin, foreach
from ._compare import Comparison, compare
from ._context import Context
from ._errors import (ArgumentError, DeviceError, Error, InputError, InputOutputError, IntegerOverflowError, MPIError, NoValueError,
                      OutOfMemoryError, StoppedError, UnsupportedError)
from ._functions import (Stats, argmax, argmin, dot, log_softmax, logsumexp, max, mean, min, norm, prod, softmax, stats, std, sum, variance)
from ._files import Array, File, open
from ._log_probs import LogProbs, log_probs, log_probs_gradient
from ._mpi import lib as _lib
from ._order import Histogram, TopK, histogram, median, quantile, topk

__version__ = "0.2.0"
library_version: str = _lib.allfold_version().decode()  #: of the C library that was found
library_path: str = _lib._name  #: and where

__all__ = ["ArgumentError", "Array", "Comparison", "Context", "DeviceError", "Error", "File", "Histogram", "InputError", "InputOutputError", "IntegerOverflowError",
           "LogProbs", "MPIError", "NoValueError", "OutOfMemoryError", "Stats", "StoppedError", "TopK", "UnsupportedError", "argmax", "argmin", "begin", "compare",
           "dot", "foreach", "histogram", "library_path", "library_version", "log_probs", "log_probs_gradient", "log_softmax", "logsumexp", "max", "mean",
           "median", "min", "norm", "open", "prod", "quantile", "softmax", "stats", "std", "sum", "topk", "variance"]
