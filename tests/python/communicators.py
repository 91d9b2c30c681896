"""Communicators, contexts and their ends; errors that one rank alone meets."""
import gc
import sys
import threading
import time

import numpy as np

import allfold
from allfold import _context, _mpi
from ranks import MPI, gather, last, ok, raises, rank, refused, size, world

X = np.full(1000, rank + 1.0)
TOTAL = 500.0 * size * (size + 1)


def check_contexts():
    lines = []
    with allfold.Context(backend="cpu", threads=2, level="fast", exchange="mpi", staging_bytes=1 << 16, log=lines.append) as context:
        ok(allfold.sum(X, comm=context) == TOTAL and any("exchange mpi" in line for line in lines), "a context with options", lines)
        refused("a level beside a context", (ValueError,), ["level"], lambda: allfold.sum(X, comm=context, level="exact"))
    refused("a closed context", (ValueError,), ["closed"], lambda: allfold.sum(X, comm=context))
    context.close()
    for options, word in (({"level": "best"}, "'exact' or 'fast'"), ({"backend": "gpu"}, "'cpu'"), ({"threads": -1}, "threads"),
                          ({"threads": 2**40}, "threads"), ({"device_memory": -1}, "device_memory"), ({"staging_bytes": 0.5}, "integer")):
        refused(f"options: {options}", (ValueError,), [word], lambda: allfold.Context(**options))
    refused("no communicator", (ValueError,), ["communicator", "int"], lambda: allfold.sum(X, comm=5))
    kept = len(_context._open)
    found = [allfold.sum(X), allfold.sum(X, level="exact"), allfold.sum(X, comm=world), allfold.sum(X, level="fast")]
    ok(found == [TOTAL] * 4 and len(_context._open) <= kept + 1, "one context for each communicator and level", _context._kept)


def check_threads():
    """Calls of several threads wait for each other. One rank only: ranks would have to agree on the order of the threads."""
    found = []
    with allfold.Context(None if MPI is None else MPI.COMM_SELF) as context:
        def work(value):
            for _ in range(50):
                found.append(allfold.sum(np.full(300, value), comm=context) == 300 * value)
        threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ok(len(found) == 200 and all(found), "a context that threads share", found.count(False))


def check_threads_that_open():
    """Threads that use two communicators for the first time, in another order on each rank."""
    found, both = [], [world.Dup(), world.Dup()]
    threads = [threading.Thread(target=lambda comm=comm: found.append(allfold.sum(X, comm=comm)), daemon=True)
               for comm in (both if rank == 0 else both[::-1])]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join(20)
    ok(found == [TOTAL] * 2, "contexts that threads open", found)
    for comm in both:
        comm.Free()


class Odd:
    """NumPy meets this error when it asks for the elements, others when they ask for the shape."""

    def __init__(self, error):
        self.error = error

    def __array__(self, *ignored, **options):
        raise self.error

    @property
    def shape(self):
        raise self.error


class Lazy:
    """An array that folds another one when NumPy asks for it."""

    def __array__(self, *ignored, **options):
        return X / allfold.norm(X)


class Untold(Exception):
    def __str__(self):
        raise RuntimeError


def check_one_sided_errors():
    """An error that one rank's Python meets becomes every rank's, with the same text."""
    bad = X.astype(complex) if rank == last else X
    for name, call in {"sum": lambda: allfold.sum(bad), "stats": lambda: allfold.stats(bad),
                       "softmax": lambda: allfold.softmax(bad)}.items():
        words = ["complex128"] + ([f"rank {last} on "] if size > 1 else [])
        refused(f"{name}: what one rank cannot take", (ValueError,), words, call)
    first, matrix = rank != last, np.ones((2, 2))
    for name, words, call in (
            ("ragged lists", [], lambda: allfold.norm(X if first else [[1, 2], [3]], 1)),
            ("ord", ["[1]"], lambda: allfold.norm(X, 1 if first else [1])),
            ("cut", [], lambda: allfold.sum(X, cut=0 if first else np.arange(2))),
            ("own", [], lambda: allfold.sum(matrix, 0, own=True if first else np.arange(2))),
            ("keepdims", [], lambda: allfold.sum(matrix, 0, keepdims=True if first else np.arange(2))),
            ("a shape", ["of the test"], lambda: allfold.softmax(X if first else Odd(ValueError("of the test")))),
            ("surrogates", ["bad ?"], lambda: allfold.sum(X if first else Odd(ValueError("bad \udcff")))),
            ("an error without a text", ["Untold"], lambda: allfold.sum(X if first else Odd(Untold())))):
        refused(f"{name}, on one rank", (ValueError,), words, call)
    refused("a call within a call", (ValueError,), ["within another"], lambda: allfold.sum(Lazy()))
    with allfold.Context() as context:
        refused("a level beside a context, on one rank", (ValueError,), ["level 'fast'"],
                lambda: allfold.sum(X, comm=context, level=None if first else "fast"))
    try:
        allfold.sum(bad)
    except allfold.Error as error:
        ok(len(set(gather(str(error)))) == 1, "the same text on all", error)
    ok(allfold.sum(X) == TOTAL, "and the next call works")
    if size > 1:
        refused("ranks that make different calls", (ValueError,), ["different calls"],
                lambda: allfold.sum(X) if rank == 0 else allfold.max(X))


def check_communicators():
    ok(allfold.sum(X, comm=MPI.COMM_SELF) == 1000.0 * (rank + 1), "COMM_SELF: this rank's part")
    turned = world.Split(0, size - rank)
    sums = allfold.sum(X, comm=turned), allfold.argmax(X, comm=turned)
    ok(sums == (TOTAL, 0), "ranks in another order", sums)
    address = _mpi.handle_of(turned)
    turned.Free()
    ok(not any(address == key[0] for key in _context._kept), "a communicator that is freed takes its context with it", _context._kept)
    for at in range(3):  # handles are used again
        some = world.Split(rank % 2 if at % 2 else 0, rank)
        members = [other for other in range(size) if not at % 2 or other % 2 == rank % 2]
        found, duplicate = allfold.sum(X, comm=some), some.Dup()
        ok(found == sum(1000.0 * (other + 1) for other in members) == allfold.sum(X, comm=duplicate), f"communicators that come and go, {at}", found)
        some.Free()
        ok(allfold.sum(X, comm=duplicate) == found, "a duplicate stays")
        duplicate.Free()
    refused("COMM_NULL", (ValueError,), ["COMM_NULL"], lambda: allfold.sum(X, comm=MPI.COMM_NULL))
    if size > 1:
        half = world.Split(rank == 0, rank)
        bridge = half.Create_intercomm(0, world, 1 if rank == 0 else 0)
        refused("an intercommunicator", (ValueError,), ["intercommunicator"], lambda: allfold.sum(X, comm=bridge))
        bridge.Free()
        half.Free()


def check_other_mpi():
    """As if mpi4py had loaded another MPI library."""
    version, _mpi._same_library = _mpi.library_version, False
    _mpi.library_version = lambda: "MPI of the test"
    try:
        allfold.sum(X, comm=world)
        found = "no error"
    except ImportError as error:
        found = str(error)
    _mpi.library_version = version
    ok("MPI of the test" in found and MPI.Get_library_version()[:10] in found, "another MPI library is refused", found)
    ok(allfold.sum(X, comm=world) == TOTAL, "and this one is not")


def check():
    check_contexts()
    check_threads()
    check_one_sided_errors()
    if MPI is not None:
        check_communicators()
        check_threads_that_open()
        check_other_mpi()
    gc.collect()
