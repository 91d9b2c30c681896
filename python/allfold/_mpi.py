"""MPI, through the library that liballfold is linked with: handles of communicators, a start if nobody else starts MPI, the end
of contexts with their communicator or with MPI. Works with mpi4py and without."""
from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from ctypes import byref, c_char_p, c_int, c_void_p
from typing import Any, Callable, Dict, List, NoReturn

from . import _library
from ._errors import ArgumentError

lib = _library.load()

THREAD_MULTIPLE = 3
OPEN_MPI = hasattr(lib, "ompi_mpi_comm_world")  # its handles are pointers, those of MPICH and its relatives ints
Handle = c_void_p if OPEN_MPI else c_int
if OPEN_MPI:
    WORLD, SELF = (ctypes.addressof(ctypes.c_char.in_dll(lib, f"ompi_mpi_comm_{name}")) for name in ("world", "self"))
else:
    WORLD, SELF = 0x44000000, 0x44000001  # of MPICH's ABI
_library.declare(lib, Handle)

Copy = ctypes.CFUNCTYPE(c_int, Handle, c_int, c_void_p, c_void_p, c_void_p, ctypes.POINTER(c_int))
Delete = ctypes.CFUNCTYPE(c_int, Handle, c_int, c_void_p, c_void_p)
lib.MPI_Comm_size.argtypes = lib.MPI_Comm_rank.argtypes = [Handle, c_void_p]
lib.MPI_Comm_test_inter.argtypes = [Handle, c_void_p]
lib.MPI_Abort.argtypes = [Handle, c_int]
lib.MPI_Comm_create_keyval.argtypes = [Copy, Delete, c_void_p, c_void_p]
lib.MPI_Comm_set_attr.argtypes = [Handle, c_int, c_void_p]
lib.MPI_Comm_delete_attr.argtypes = [Handle, c_int]


def _number(function: Any, *arguments: Any) -> int:
    value = c_int()
    function(*arguments, byref(value))
    return value.value


def is_initialized() -> bool:
    return bool(_number(lib.MPI_Initialized))


def is_finalized() -> bool:
    return bool(_number(lib.MPI_Finalized))


def library_version() -> str:
    """What MPI says of itself, on one line."""
    text, length = ctypes.create_string_buffer(8192), c_int()
    lib.MPI_Get_library_version(text, byref(length))
    return " ".join(text.value.decode(errors="replace").split())


def _check_same_library(mpi4py: Any) -> None:
    """mpi4py and liballfold must use one MPI library: a communicator of another one is an address that means nothing here."""
    theirs, ours = " ".join(mpi4py.Get_library_version().split("\0")[0].split()), library_version()
    if theirs != ours:
        raise ImportError(f"allfold: mpi4py and {lib._name} use different MPI libraries: expected one, found '{theirs[:80]}' "
                          f"and '{ours[:80]}'. Build mpi4py from source with this MPI, or allfold with mpi4py's")
    if mpi4py.Is_initialized() != is_initialized() or mpi4py._sizeof(mpi4py.Comm) != ctypes.sizeof(Handle):
        raise ImportError(f"allfold: mpi4py and {lib._name} have loaded two copies of one MPI library ({ours}): expected one. Look "
                          "at LD_LIBRARY_PATH")


_same_library = False


def handle_of(comm: Any) -> int:
    """The C handle of an mpi4py communicator; of None that of MPI_COMM_WORLD."""
    global _same_library
    if comm is None:
        return WORLD
    mpi4py = sys.modules.get("mpi4py.MPI")
    if mpi4py is None or not isinstance(comm, mpi4py.Comm):
        raise ArgumentError(f"comm: expected a communicator of mpi4py, an allfold.Context, or None for all ranks; found "
                            f"{type(comm).__name__}")
    if not _same_library:
        _check_same_library(mpi4py)
        _same_library = True
    if not comm:
        raise ArgumentError("comm: found MPI.COMM_NULL: expected a communicator that this rank belongs to")
    return Handle.from_address(mpi4py._addressof(comm)).value or 0


def check_intra(handle: int) -> None:
    if _number(lib.MPI_Comm_test_inter, handle):
        raise ArgumentError("comm: found an intercommunicator: expected an intracommunicator (Merge makes one)")


def size_of(handle: int) -> int:
    return _number(lib.MPI_Comm_size, handle)


def rank_of(handle: int) -> int:
    return _number(lib.MPI_Comm_rank, handle)


# ---- start and end

_beginning = threading.Lock()
_started_by_us = False
_keyval = c_int(-1)
_process = 0  # a child by fork must leave MPI alone
_freed: List[Callable[[int], None]] = []  # what to call when a communicator is freed
_watched: Dict[int, None] = {}  # communicators, in the order in which their first contexts were opened


def begin(freed: Callable[[int], None]) -> None:
    """Makes MPI usable. It is initialised here if nobody has done so; then it is also finalised here, at exit. freed is called
    with the handle of a watched communicator before it is freed, and with SELF before MPI is finalised."""
    with _beginning:
        if is_finalized():
            raise RuntimeError("allfold: MPI has been finalised: expected no further calls")
        if _keyval.value == -1:
            _begin(freed)


def _begin(freed: Callable[[int], None]) -> None:
    global _started_by_us, _process
    mpi4py = sys.modules.get("mpi4py.MPI")
    if mpi4py is not None:
        _check_same_library(mpi4py)
    if not is_initialized():
        if mpi4py is not None:
            raise RuntimeError("allfold: MPI is not initialised: expected MPI.Init() first, as mpi4py.rc.initialize is False")
        lib.MPI_Init_thread(None, None, THREAD_MULTIPLE, byref(c_int()))
        _started_by_us = True
    _process = os.getpid()
    _freed[:] = [freed]
    lib.MPI_Comm_create_keyval(_copy, _delete, byref(_keyval), None)
    watch(SELF)
    atexit.register(_end)
    _watch_exit()


def watch(handle: int) -> None:
    """From now on the caller of begin() is told before this communicator is freed."""
    if handle not in _watched:
        _watched[handle] = None
        lib.MPI_Comm_set_attr(handle, _keyval, None)


def _copied(comm: int, keyval: int, extra: int, value: int, copied: int, flag: Any) -> int:
    flag[0] = 0  # a duplicate is not watched
    return 0


def _deleted(comm: int, keyval: int, value: int, extra: int) -> int:
    if os.getpid() == _process:
        _watched.pop(comm or 0, None)
        for function in _freed:
            function(comm or 0)
    return 0


_copy, _delete = Copy(_copied), Delete(_deleted)  # MPI holds their addresses


_failure = 0  # the exit status of a program that has failed


def _fail(status: int) -> None:
    """If it is called by nobody, Python has left the program. Otherwise a program that goes on has shown or caught an exception."""
    global _failure
    if sys._getframe(1).f_back is None:
        _failure = status


class _Exit(SystemExit):
    """What sys.exit raises. If nobody catches it, Python deletes it after it has left the program."""

    def __del__(self) -> None:
        if self.code not in (None, 0):
            _fail(self.code if isinstance(self.code, int) else 1)


def _watch_exit() -> None:
    shown = sys.excepthook

    def show(*raised: Any) -> None:
        _fail(1)
        shown(*raised)

    def leave(status: Any = None) -> NoReturn:
        raise _Exit(status)

    sys.excepthook, sys.exit = show, leave


def _end() -> None:
    """At exit, before Python's end, after which MPI could no longer call _deleted. A rank that has failed leaves its contexts as they
    are, because the other ranks may not come to close theirs; of a job that was started here it is the end."""
    if os.getpid() != _process or is_finalized():
        return
    if _failure and not hasattr(sys, "ps1"):  # a session goes on after an exception
        _freed.clear()
        if _started_by_us and size_of(WORLD) > 1:
            sys.stderr.flush()
            lib.MPI_Abort(WORLD, _failure)
    for handle in list(_watched):
        lib.MPI_Comm_delete_attr(handle, _keyval)
    if _started_by_us:
        lib.MPI_Finalize()
