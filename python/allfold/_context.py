"""Contexts: one for each communicator and level, opened at the first call and kept; or the caller's own, with options."""
from __future__ import annotations

import ctypes
import operator
import threading
from ctypes import byref, c_void_p
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple

from . import _library, _mpi
from ._errors import BY_STATUS, ArgumentError, Error, OutOfMemoryError
from ._library import Array, Call, Log, LogProbsOutput, Options, Output, Outputs, Result, View, ViewNd
from ._mpi import lib
from ._types import FOLDS

_open: List["Context"] = []  # in the order of opening, in which they are closed: the same on all ranks of each
_kept: Dict[Tuple[Optional[int], Optional[str]], "Context"] = {}
_keeping: Dict[Tuple[int, str], threading.Lock] = {}  # one for each, held while it is opened


def choice(name: str, choices: Dict[str, int], word: Any) -> int:
    """The number of a word."""
    try:
        return choices[word]
    except (KeyError, TypeError):
        raise ArgumentError(f"{name}: expected {' or '.join(repr(known) for known in choices)}, found {word!r}") from None


def in_range(name: str, number: Any, largest: int, least: int = 0) -> int:
    """The number, which C's type can hold."""
    try:
        found = operator.index(number)
    except TypeError:
        raise ArgumentError(f"{name}: expected an integer, found {type(number).__name__}") from None
    if not least <= found <= largest:
        raise ArgumentError(f"{name}: expected {least} to {largest}, found {found}")
    return int(found)


def status_of(error: Exception) -> int:
    kind = error if isinstance(error, Error) else OutOfMemoryError() if isinstance(error, MemoryError) else ArgumentError()
    return kind.status


def text_of(error: Exception) -> bytes:
    """Its text as C's. The text is made by code of others, which may fail; a surrogate has no code in UTF-8."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return (text or type(error).__name__).replace("\0", "?").encode(errors="replace")


class _Turn(type(threading.RLock())):  # type: ignore[misc]
    """One call at a time. A call within another one of the same thread, as of an array that computes its elements, would wait for itself."""

    def __enter__(self) -> None:
        if self._is_owned():
            raise ArgumentError("a call within another one of the same context, as by an array's __array__ or a log: expected none. Make the array "
                                "before the call")
        self.acquire()


class Context:
    """Ranks, a device and options, for functions that get it as `comm`.

    >>> import allfold
    >>> with Context(backend="cpu", level="fast") as context:
    ...     allfold.sum([1.0, 2.0, 3.0], comm=context)
    6.0

    Opening and closing are collective over the communicator: None is MPI_COMM_WORLD. The communicator is duplicated. All options
    must be the same on all ranks:

    - backend: 'cuda', 'cpu', or 'auto': cuda if a device is visible, else cpu
    - device_memory: bytes of device memory that one rank may use; 0: three quarters of what is free
    - staging_bytes: bytes of a shard of data that streams; 0: chosen by the backend
    - threads: CPU threads of one rank; 0: the cores it may run on, shared with the ranks of its host
    - level: 'exact' or 'fast', see docs/numerics.md
    - exchange: 'auto', or 'mpi': ranks of one host do not use shared memory
    - log: called with lines of text about progress

    A context that is not closed is closed when MPI is finalised or Python ends. It serves one thread at a time; others wait.
    """

    def __init__(self, comm: Any = None, *, backend: str = "auto", device_memory: int = 0, staging_bytes: int = 0,
                 threads: int = 0, level: str = "exact", exchange: str = "auto",
                 log: Optional[Callable[[str], object]] = None) -> None:
        self.level = level
        self._log = Log() if log is None else Log(lambda user, line: (log(line.decode(errors="replace")), None)[1])
        options = Options(size=ctypes.sizeof(Options), backend=choice("backend", _library.BACKENDS, backend),
                          device_memory=in_range("device_memory", device_memory, 2**64 - 1),
                          staging_bytes=in_range("staging_bytes", staging_bytes, 2**64 - 1),
                          threads=in_range("threads", threads, 2**31 - 1),
                          level=choice("level", _library.LEVELS, level),
                          exchange=choice("exchange", _library.EXCHANGES, exchange), log=self._log)
        _mpi.begin(_freed)
        handle = _mpi.handle_of(comm)
        _mpi.check_intra(handle)
        self.rank, self.ranks = _mpi.rank_of(handle), _mpi.size_of(handle)
        self._open(handle, options)
        self.lock = _Turn()
        self.begun: Dict[int, Any] = {}  # the arrays of folds that were begun, by their numbers, until these are ended
        # one of each, used again by every call
        self.part, self.second, self.view, self.view_nd, self.result = Array(), Array(), View(), ViewNd(size=ctypes.sizeof(ViewNd)), Result()
        self.call, self.rows, self.rows_call, self.rows_output = Call(size=ctypes.sizeof(Call)), View(), Call(size=ctypes.sizeof(Call)), LogProbsOutput()
        room = (Output * max(map(lib.allfold_result_count, FOLDS.values())))()
        self.outputs, self.output_rows = Outputs(room, 0), list(room)
        self.part_ref, self.second_ref, self.view_ref, self.view_nd_ref, self.call_ref, self.result_ref, self.rows_ref, self.rows_call_ref, self.rows_output_ref, self.outputs_ref = map(
            ctypes.addressof, (self.part, self.second, self.view, self.view_nd, self.call, self.result, self.rows, self.rows_call, self.rows_output, self.outputs))

    def _open(self, comm: int, options: Options) -> None:
        opened, message = c_void_p(), ctypes.create_string_buffer(1024)
        status = lib.allfold_open(comm, byref(options), byref(opened), message, len(message))
        if status:
            raise BY_STATUS.get(status, Error)(message.value.decode(errors="replace"))
        self.handle: Optional[int] = opened.value
        _open.append(self)

    def __reduce__(self) -> Any:
        raise ArgumentError("a context cannot be copied or pickled, as it owns memory of the library: open another one")

    def close(self) -> None:
        """Frees the context. Collective. Calls with it are errors from then on; a second close does nothing."""
        with self.lock:
            handle, self.handle = self.handle, None
        if handle is not None:
            _open.remove(self)
            lib.allfold_close(handle)
            self.begun.clear()

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()

    # ---- for the functions

    def fail(self, error: Exception) -> NoReturn:
        """Raises an error that this rank met before it could call the library. The other ranks, which have called, are told."""
        self.check_open()
        raise self.error(lib.allfold_fail(self.handle, status_of(error), text_of(error))) from error

    def check_level(self, level: Any) -> None:
        """After an error all ranks raise it."""
        try:
            if choice("level", _library.LEVELS, level) != _library.LEVELS[self.level]:
                raise ArgumentError(f"level {level!r}: expected none, as the context has its own, {self.level!r}")
        except ArgumentError as error:
            with self.lock:
                self.fail(error)

    def check_open(self) -> None:
        if self.handle is None:
            raise ArgumentError("the context is closed: expected an open one")

    def error(self, status: int) -> Error:
        """What went wrong in the call that returned this status."""
        self.check_open()
        return BY_STATUS.get(status, Error)(lib.allfold_message(self.handle).decode(errors="replace"))


def context_of(comm: Any, level: Optional[str]) -> Context:
    """The context that serves these. The first call for a communicator and level opens it: collective."""
    if comm is None:
        context = _kept.get((None, level))
        if context is not None:
            return context
    elif isinstance(comm, Context):
        if level is not None:
            comm.check_level(level)
        return comm
    handle = None if comm is None else _mpi.handle_of(comm)
    return _kept.get((handle, level)) or _keep(comm, handle, level)


def _keep(comm: Any, handle: Optional[int], level: Optional[str]) -> Context:
    """Threads that open contexts of different communicators must not wait for each other: other ranks' may come in another order."""
    key = _mpi.WORLD if handle is None else handle, level or "exact"
    with _keeping.setdefault(key, threading.Lock()):
        context = _kept.get(key)
        if context is None:
            context = Context(comm, level=key[1])
            _mpi.watch(key[0])
        _kept[handle, level] = _kept[key] = context
    return context


def _freed(comm: int) -> None:
    """A communicator is about to be freed, or with SELF MPI to be finalised: closes what was opened for it."""
    keys = [key for key in _kept if comm in (key[0], _mpi.SELF)]
    ended = {id(context): context for context in [_kept.pop(key) for key in keys]}
    for context in list(_open):
        if comm == _mpi.SELF or id(context) in ended:
            context.close()
