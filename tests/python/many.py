"""Folds of several arrays of the Python package: the values of each alone, or of all joined, and their errors."""
import math

import numpy as np

import allfold
from allfold import foreach
from ranks import gather, last, ok, parts, rank, refused, size, values

NAMES = ("sum", "prod", "mean", "min", "max", "argmin", "argmax", "norm", "logsumexp", "variance", "std")


def check_values():
    wholes = [values("float64", count, seed) for seed, count in enumerate((7, 40, 3000))]
    arrays = [parts(whole) for whole in wholes]
    found = {name: getattr(foreach, name)(arrays) for name in NAMES}
    due = {name: [getattr(allfold, name)(x) for x in arrays] for name in NAMES}
    ok(found == due and type(found["argmax"][0]) is int, "foreach gives the values of each array", (found, due))
    # joined, array by array: the last rank has all
    joined = np.concatenate([part for k in range(len(arrays)) for part in gather(arrays[k])])[:None if rank == last else 0]
    found = {name: getattr(foreach, name)(arrays, total=True) for name in NAMES if name != "prod"}
    due = {name: getattr(allfold, name)(joined) for name in found}
    ok(found == due, "total: one value, of all joined", (found, due))
    ok(foreach.norm(iter(arrays), 1) == [allfold.norm(x, 1) for x in arrays] and foreach.sum([]) == [], "any iterable, and none")
    found = foreach.sum(x / allfold.norm(x) for x in arrays)
    ok(found == [allfold.sum(x / allfold.norm(x)) for x in arrays], "a generator that folds arrays itself", found)
    found = foreach.max([parts(np.arange(20, dtype=np.int16)), parts(np.full(20, 2**63, np.uint64)), parts(np.float32([1.5] * 20)), [True] * 3])
    ok(found == [19, 2**63, 1.5, 1] and [type(x) for x in found] == [int, int, float, int], "arrays of several types", found)
    found = foreach.std(arrays, ddof=1, dtype="float32"), foreach.min([[math.nan, 2.0], [1.0]], nan_policy="omit")
    ok([type(x) for x in found[0]] == [np.float32] * 3 and found[1] == [2.0, 1.0] and foreach.std(arrays[:1]) == [allfold.std(arrays[0])],
       "options of one call only", found)
    flipped = [np.arange(12.0).reshape(3, 4).T, np.arange(12.0).reshape(3, 4)[:, ::2]]
    ok(foreach.argmax(flipped) == [11, 5] and foreach.sum(flipped) == [66 * size, 30 * size], "arrays in other orders, and with gaps")
    with allfold.Context(backend="cpu", level="fast") as context:
        found = foreach.norm(arrays, comm=context)
        ok(found == [allfold.norm(x, comm=context) for x in arrays], "on the CPU at level fast: those of each, too", found)


def check_errors():
    x = parts(values("float32"))
    error = (allfold.ArgumentError, ValueError)
    refused("one rank has a wrong array", error, ["complex128"], lambda: foreach.sum([x, np.zeros(3, complex) if rank == last else x]))
    refused("a total of two types", error, ["array 1 of 2", "f32"], lambda: foreach.sum([x, [1]], total=True))
    refused("arrays that one rank cannot make", error, ["division"], lambda: foreach.sum((1 / 0 for _ in "x") if rank == last else [x]))
    refused("an array in place of several", error, ["several arrays"], lambda: foreach.sum(x))
    refused("a total of nothing", error, ["at least one"], lambda: foreach.sum([], total=True))
    refused("norm with ord=3", error, ["ord=3"], lambda: foreach.norm([x], 3))
    refused("min of nothing", (allfold.NoValueError,), ["array 1 of 2"], lambda: foreach.min([[1.0], []]))
    refused("a dtype that cannot hold a result", (OverflowError,), ["int8"], lambda: foreach.sum([[1], [300]], dtype="int8"))
    if size > 1:
        refused("ranks with other numbers of arrays", error, ["different calls"], lambda: foreach.sum([x] * (2 if rank == last else 300)))
    ok(foreach.sum([x, x]) == [allfold.sum(x)] * 2, "and then a call that works")


def check_torch(device):
    import torch

    wholes = [values("float32", count, count) for count in (1, 1000, 300001)]
    tensors = [torch.from_numpy(parts(whole)).to(device) for whole in wholes] + [torch.arange(8, device=device), torch.ones(3, 3, device=device).half()]
    ok(foreach.norm(tensors) == [allfold.norm(x) for x in tensors], f"PyTorch, {device}: norms", foreach.norm(tensors))
    mixed = [tensors[1], np.arange(5.0), torch.arange(6.0), tensors[2].reshape(-1)[1:]]
    ok(foreach.sum(mixed) == [allfold.sum(x) for x in mixed], f"PyTorch, {device}, beside other memory", foreach.sum(mixed))
    refused("PyTorch: a tensor that requires its gradient", (ValueError,), ["detach"], lambda: foreach.sum([torch.zeros(3, requires_grad=True)]))


def check():
    check_values()
    check_errors()
    try:
        import torch
    except ImportError:
        return
    check_torch("cpu")
    if torch.cuda.is_available():
        check_torch("cuda")
