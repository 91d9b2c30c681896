"""Folds in two phases of the Python package: the values of those at once, and their errors."""
import math
import sys
import weakref

import numpy as np

import allfold
from allfold import begin
from ranks import last, ok, parts, raises, rank, size, values


def check_values():
    whole, other = values("float64"), values("float64", seed=2)
    x, y = parts(whole), parts(other)
    names = ("sum", "prod", "mean", "min", "max", "argmin", "argmax", "logsumexp", "stats", "norm", "variance", "std")
    begun = [getattr(begin, name)(x) for name in names] + [begin.norm(x, 1), begin.dot(x, y), begin.sum(x, dtype=np.float32)]
    due = [getattr(allfold, name)(x) for name in names] + [allfold.norm(x, 1), allfold.dot(x, y), allfold.sum(x, dtype=np.float32)]
    found = [request.result() for request in reversed(begun)][::-1]  # in another order than they were begun
    ok(found == due and [type(a) for a in found] == [type(a) for a in due] and found[0] == math.fsum(whole), "begun folds are those at once",
       (found, due))
    ok([request.result() for request in begun] == due, "a result can be asked for again")
    integers = parts(np.arange(1000, dtype=np.int32))
    first, second = begin.sum(integers), begin.stats(integers, ddof=1)
    ok((first.result(), second.result()) == (499500, allfold.stats(integers, ddof=1)), "integers, and options of one fold only")
    ok(type(begin.stats(x, dtype="float32").result().mean) is np.float32, "stats with a dtype")
    with allfold.Context(backend="cpu", level="fast") as context:
        ok(math.isclose(begin.sum(x, comm=context).result(), math.fsum(whole), abs_tol=1e-9), "in a context")


def check_errors():
    x = parts(values("float32"))
    bad = np.zeros(3, complex) if rank == last else x
    first, second = begin.sum(bad), begin.max(x)
    allfold.softmax(x)  # whose phase is not theirs
    found = [raises((allfold.ArgumentError,), ["complex128"] + ["in phase start"] * (size > 1), request.result) for request in (second, first, first)]
    ok(found == [True] * 3, "one rank cannot begin: all that share the exchange fail", found)
    found = [raises((allfold.ArgumentError,), [word], lambda: call().result()) for word, call in (
        ("dot of shapes", lambda: begin.dot(x, [1.0, 2.0])), ("norm with ord=3", lambda: begin.norm(x, 3)),
        ("ignore", lambda: begin.min(x, nan_policy="ignore")))]
    ok(found == [True] * 3, "wrong arguments are told by the result", found)
    request = begin.sum(np.full(4, 100, np.int8), dtype="int8")
    ok(raises((OverflowError,), ["int8"], request.result) is True, "a result that its dtype cannot hold")
    many = [begin.sum(x) for _ in range(16)]
    found = raises((allfold.ArgumentError,), ["16 folds"], lambda: begin.sum(x))
    ok(found is True and len({request.result() for request in many}) == 1, "sixteen at a time", found)
    with allfold.Context(backend="cpu") as context:
        request, dropped = begin.sum(x, comm=context), x.copy()
        begin.sum(dropped, comm=context)
        kept = weakref.ref(dropped)
        del dropped
        ok(kept() is not None, "the array of a request that is dropped is kept")
    ok(kept() is None, "until the context is closed")
    ok(raises((allfold.ArgumentError,), ["closed"], request.result) is True, "a context that was closed before the end")
    ok(begin.sum(x).result() == allfold.sum(x), "and then a fold that works")


def check_streams():
    """The end of a fold waits for its kernel, and not for what was started in the stream later."""
    import torch

    x = torch.arange(1000.0, device="cuda")
    begin.sum(x).result()
    torch.cuda._sleep(1)
    torch.cuda.synchronize()
    request, late = begin.sum(x), torch.cuda.Event()
    torch.cuda._sleep(10**9)  # clocks: half a second
    late.record()
    value, waited = request.result(), late.query()
    torch.cuda.synchronize()
    ok(value == 499500 * size and not waited, "an end does not wait for later work", (value, waited))


def check():
    check_values()
    check_errors()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        check_streams()
