"""The exceptions: a class for each status of the C library, derived from the built-in exception that fits."""
from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """What allfold refuses, and what failed. The text is the C library's: the rank and host on which it happened, what was
    expected, what was found. Collective calls raise the same error on every rank."""

    status = 0  #: allfold_status of the C library


class ArgumentError(Error, ValueError):
    """A call or an option that is not valid, or ranks whose calls differ."""

    status = 1


class InputError(Error, ValueError):
    """A damaged or unsuitable file."""

    status = 2


class NoValueError(Error, ValueError):
    """The fold has no value here: min of nothing, NaN under nan_policy='raise'."""

    status = 3


class IntegerOverflowError(Error, OverflowError):
    """An integer result that 64 bits, or the dtype asked for, cannot hold."""

    status = 4


class UnsupportedError(Error, NotImplementedError):
    """Not in this build of the library, or not on this machine."""

    status = 5


class OutOfMemoryError(Error, MemoryError):
    """Host or device memory ran out."""

    status = 6


class InputOutputError(Error, OSError):
    """The system refused to read or write."""

    status = 7


class DeviceError(Error, RuntimeError):
    """CUDA failed."""

    status = 8


class MPIError(Error, RuntimeError):
    """MPI failed: the communicator must not be used further."""

    status = 9


class StoppedError(Error, RuntimeError):
    """The program was asked to stop by a signal, and has."""

    status = 10


BY_STATUS: Dict[int, Type[Error]] = {kind.status: kind for kind in Error.__subclasses__()}
for _kind in (Error, *BY_STATUS.values()):
    _kind.__module__ = "allfold"  # as tracebacks and pickles name them
