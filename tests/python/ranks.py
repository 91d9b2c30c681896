"""What the checks of the Python package share: a communicator of all ranks (mpi4py's; without mpi4py one rank), checks on which
all ranks agree, arrays in parts. Rank 0 prints each verdict as a line of JSON, which tests/test_python.py reads."""
import json
import os
import sys

import numpy as np

import allfold

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take three quarters of each GPU's memory
if os.environ.get("ALLFOLD_TEST_WITHOUT_MPI4PY"):
    sys.modules["mpi4py"] = None  # an import of it fails
try:
    from mpi4py import MPI
    world, rank, size = MPI.COMM_WORLD, MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
except ImportError:
    MPI, world, rank, size = None, None, 0, 1
last = size - 1

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")


def gather(mine):
    return [mine] if size == 1 else world.allgather(mine)


def ok(condition, name, diagnostic=""):
    """A check that holds on all ranks."""
    found = gather((bool(condition), str(diagnostic)[:500]))
    if rank == 0:
        print(json.dumps([all(verdict for verdict, _ in found), name,
                          "\n".join(f"rank {at}: {text}" for at, (verdict, text) in enumerate(found) if not verdict)]), flush=True)


def raises(kinds, words, call):
    """Whether call() raises an error of all these classes, with these words in its text; or what it does."""
    try:
        return f"no error, but {call()!r}"
    except allfold.Error as error:
        right = all(isinstance(error, kind) for kind in kinds) and all(word in str(error) for word in words)
        return True if right else f"{type(error).__mro__}: {error}"


def refused(name, kinds, words, call):
    """A check that call() fails so on all ranks, with the same text."""
    found = raises(kinds, words, call)
    ok(found is True, name, found)


def parts(whole):
    """This rank's part of an array that all ranks have: unequal parts, of which rank 1's is empty."""
    lengths = [0 if at == 1 else 3 + at for at in range(size)]
    cuts = [len(whole) * sum(lengths[:at]) // sum(lengths) for at in range(size + 1)]
    return whole[cuts[rank]:cuts[rank + 1]]


def values(dtype, count=1000, seed=1):
    """The same on every rank."""
    generator = np.random.default_rng(seed)
    if dtype in FLOATS:
        return (generator.standard_normal(count) * 10.0 ** generator.integers(-3, 3, count)).astype(dtype)
    if dtype == "bool":
        return generator.integers(0, 2, count).astype(bool)
    limits = np.iinfo(dtype)
    return generator.integers(limits.min // count, limits.max // count, count, dtype=dtype, endpoint=True)
