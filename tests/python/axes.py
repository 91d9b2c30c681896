"""Folds and softmax along axes, beside NumPy, with each dimension cut into the ranks' parts."""
import functools
import math

import numpy as np

import allfold
from allfold import _arrays, _axes
from ranks import MPI, gather, ok, parts, rank, refused, size

SHAPE = (6, 5, 4)
WHOLE = (np.random.default_rng(3).standard_normal(SHAPE) * 4).astype(np.float32)


def part(whole, cut):
    """This rank's part along a dimension."""
    return np.ascontiguousarray(np.moveaxis(parts(np.moveaxis(whole, cut, 0)), 0, cut))


def exact_sum(whole, axis, keepdims=False):
    return np.apply_over_axes(lambda x, one: np.apply_along_axis(math.fsum, one, x), whole.astype(float), axis) if keepdims else \
        np.squeeze(exact_sum(whole, axis, True), axis)


def cases():
    """(axis, cut): all axes with all cuts that the ranks may make, which for one rank are all."""
    for axis in (0, 1, -1, (0, 1), (1, 2), 2):
        axes = sorted(one % 3 for one in (axis if isinstance(axis, tuple) else (axis,)))
        for cut in range(3):
            first = 0 if cut < axes[0] else axes[0] if cut <= axes[-1] else axes[-1] + 1
            if size == 1 or cut == first:
                yield axis, cut


def check_folds():
    wrong = []
    for axis, cut in cases():
        x, along = part(WHOLE, cut), {"axis": axis, "cut": cut}
        axes = axis if isinstance(axis, tuple) else (axis,)
        expected = {"sum": exact_sum(WHOLE, axes), "max": WHOLE.max(axis).astype(float), "mean": WHOLE.astype(float).mean(axis),
                    "logsumexp": np.log(np.exp(WHOLE.astype(float)).sum(axis)), "prod": WHOLE.astype(float).prod(axis),
                    "variance": WHOLE.astype(float).var(axis), "std": WHOLE.astype(float).std(axis)}
        found = {name: getattr(allfold, name)(x, **along) for name in expected}
        kept = allfold.sum(x, keepdims=True, **along)
        wrong += [(axis, cut, name) for name in expected if found[name].dtype != float or not np.allclose(found[name], expected[name], rtol=1e-13)]
        wrong += [(axis, cut, "bits")] * (not np.array_equal(found["sum"], expected["sum"]))
        wrong += [(axis, cut, "keepdims")] * (kept.shape != WHOLE.sum(axis, keepdims=True).shape or not np.array_equal(kept.ravel(), found["sum"].ravel()))
        wrong += [(axis, cut, "norm")] * (not np.allclose(allfold.norm(x, 1, **along), abs(WHOLE.astype(float)).sum(axis), rtol=1e-14))
        if len(axes) == 1:
            index = allfold.argmin(x, **along)
            wrong += [(axis, cut, "argmin")] * (index.dtype != np.int64 or not np.array_equal(index, WHOLE.argmin(axis)))
    ok(not wrong, "folds along axes, for every dimension that ranks can cut", wrong)


def check_results():
    x = part(WHOLE, 0)
    own = allfold.sum(x, 1, own=True)
    ok(np.array_equal(own, parts(exact_sum(WHOLE, (1,)))), "own results alone", own)
    shares, all_sums = gather(allfold.sum(part(WHOLE, 1), 1, cut=1, own=True)), exact_sum(WHOLE, (1,))
    ok(np.array_equal(np.concatenate(shares), all_sums.ravel()) and max(map(len, shares)) - min(map(len, shares)) <= 1, "shares of results", shares)
    found = allfold.stats(part(WHOLE, 1), 1, cut=1, ddof=1)
    exact = WHOLE.astype(float)
    ok(np.allclose(found.variance, exact.var(1, ddof=1)) and np.array_equal(found.argmax, WHOLE.argmax(1)) and found.count.tolist() == [[5] * 4] * 6
       and np.array_equal(found.sum, exact_sum(WHOLE, (1,))), "stats along an axis", found)
    integers = part(np.arange(24, dtype=np.int32).reshape(4, 6), 0)
    found = allfold.sum(integers, 0)
    ok(found.dtype == np.int64 and found.tolist() == [36, 40, 44, 48, 52, 56], "exact integers", found)
    ok(allfold.sum(x, 1, dtype=np.float16).dtype == np.float16, "dtype")
    whole = WHOLE.copy()
    whole[1, 2, 3] = np.nan
    found = allfold.max(part(whole, 0), -1, nan_policy="omit")
    ok(np.array_equal(found, np.nanmax(whole, -1)), "NaN left out", found)
    ok(allfold.stats([1.0, 3.0] if rank == 0 else np.empty(0), ddof=1).variance == 2, "ddof of all elements")


def check_all_axes():
    """With keepdims or own a fold of all elements gives arrays, of the types that it has along some axes."""
    wrong = []
    for whole in (WHOLE, WHOLE > 0, (abs(WHOLE) * 9).astype(np.uint8)):
        for name in ("sum", "prod", "mean", "max", "argmin", "norm", "logsumexp", "stats", "variance", "std"):
            fold, x = getattr(allfold, name), parts(whole)
            number, kept, own, rows = (vars(found) if name == "stats" else {name: found} for found in (
                fold(x), fold(x, keepdims=True), fold(x.ravel(), axis=0, own=True), fold(x, axis=-1)))
            for key in number:
                wrong += [(key, kept[key])] * (kept[key].dtype != rows[key].dtype or kept[key].tolist() != [[[number[key]]]])
                wrong += [(key, own[key])] * (own[key].dtype != rows[key].dtype or own[key].tolist() != [number[key]] * (rank == 0))
    ok(not wrong, "all axes, with keepdims and with own", wrong)
    x = parts(WHOLE)
    ok(allfold.sum(x, (0, 1, 2)) == allfold.sum(x) and allfold.sum(x, keepdims=True, dtype=np.float16).dtype == np.float16, "and without, and with dtype")


def check_integer_dtype():
    x = parts(np.arange(24).reshape(4, 6))
    found = [allfold.sum(x, 0, dtype=np.int8), allfold.max(abs(x), -1, dtype="uint16"), allfold.norm(x, 1, 0, dtype=np.uint64),
             allfold.stats(x, 0).norm1, allfold.sum(x, dtype=np.int16, keepdims=True)]
    ok([a.dtype.name for a in found] == ["int8", "uint16", "uint64", "uint64", "int16"] and found[0].tolist() == [36, 40, 44, 48, 52, 56]
       and found[1].tolist() == [5, 11, 17, 23] and found[2].tolist() == found[3].tolist() == found[0].tolist() and found[4].tolist() == [[276]],
       "an integer dtype along axes", found)
    big, signs = parts(np.full((size, 2), 2**63, np.uint64)), parts(np.array([[-1, 1]] * size))
    for name, words, call in (
            ("results that their dtype cannot hold", ["int8: a result is 360", "127"], lambda: allfold.sum(x * 10, 0, dtype="int8")),
            ("beyond int64", ["int64: a result is 9223372036854775808"], lambda: allfold.max(big, 0, dtype=np.int64)),
            ("below 0", [f"uint64: a result is {-size}"], lambda: allfold.sum(signs, 0, dtype=np.uint64)),
            ("and one rank's own", ["int8: a result is 1230"] + [f"rank {size - 1} "] * (size > 2), lambda: allfold.sum(x * (1 + 9 * (x > 17)), 1, own=True, dtype="int8"))):
        refused(name, (OverflowError,), words, call)


def check_layouts():
    """Arrays with gaps and in other orders give what their copies give; where three strides say where the elements are, they are not copied."""
    wide, wrong, used = part(np.random.default_rng(5).standard_normal((24, 7, 8)), 0), [], []
    for name, x in (("planes", wide[::2]), ("rows", wide[:, 1:4]), ("every third row", wide[:, ::3]), ("columns", wide[:, :, 1:6]), ("gaps", wide[..., ::3]),
                    ("transposed", np.asfortranarray(wide)), ("backwards", wide[:, ::-1]), ("repeated", np.broadcast_to(wide[:, :1], (len(wide), 3, 8)))):
        for axis in (0, 1, 2, (0, 1), (1, 2), (0, 1, 2)):
            dense = np.ascontiguousarray(x)
            wrong += [(name, axis, fold.__name__) for fold in (allfold.sum, allfold.norm, allfold.max, allfold.argmin)
                      if not np.array_equal(fold(x, axis=axis, keepdims=True), fold(dense, axis=axis, keepdims=True))]
            rows = _axes.rows_of(x, axis, 0, size)
            if _arrays.elements_apart(x, functools.partial(_axes.places_of, rows, size))[0].address == x.ctypes.data:
                used.append((name, axis))
    ok(not wrong, "other layouts", wrong)
    ok(len(wide) < 4 or used == [("planes", 0), ("planes", 1), ("planes", (1, 2)), ("rows", 0), ("rows", 1), ("rows", (1, 2)), ("every third row", 1), ("columns", 1),
                ("columns", 2), ("columns", (0, 1)), ("gaps", 2)] + [("gaps", (0, 1))] * (size == 1), "of which these are not copied", used)


def check_softmax():
    wrong = []
    for axis, cut in cases():
        x = part(WHOLE, cut)
        terms = np.exp(WHOLE.astype(float) - WHOLE.max(axis, keepdims=True))
        expected = part(terms / terms.sum(axis, keepdims=True), cut)
        found, out = allfold.softmax(x, axis, cut=cut), np.empty(x.shape)
        allfold.log_softmax(x, axis, out, cut=cut)
        wrong += [(axis, cut)] * (found.dtype != np.float32 or not np.allclose(found, expected, rtol=1e-5) or not np.allclose(np.exp(out), expected))
    ok(not wrong, "softmax along axes", wrong)
    rows = np.float32([[0, 0], [1, 1]])
    ok(allfold.softmax(rows).tolist() == [[0.5, 0.5]] * 2, "of rows by default")


def check_refusals():
    x = part(WHOLE, 0)
    for name, words, call in (
            ("axes that are not neighbours", ["neighbouring"], lambda: allfold.sum(x, (0, 2))),
            ("an axis that is not there", ["axis 3", "3 dimensions"], lambda: allfold.sum(x, 3)),
            ("an axis twice", ["twice"], lambda: allfold.sum(x, (1, -2))),
            ("a cut that is not there", ["cut 5"], lambda: allfold.sum(x, 1, cut=5)),
            ("no axis", ["axis ()", "None"], lambda: allfold.sum(x, ())),
            ("an integer dtype of means", ["int64", "float64"], lambda: allfold.mean(x, 1, dtype=int)),
            ("an integer dtype of statistics", ["floating-point"], lambda: allfold.stats(x, 1, dtype=int)),
            ("what one rank cannot take", ["complex64"], lambda: allfold.sum(x.astype(complex).astype("c8") if rank == size - 1 else x, 1)),
            ("the least of an empty axis", [], lambda: allfold.min(x[:, :0], 1))):
        refused(name, (ValueError,), words, call)
    if size > 1:
        for axis in (2, None):
            refused("parts that do not follow one another", (ValueError,), ["cut 1", "first dimension"], lambda: allfold.sum(x, axis, cut=1))
    with_self = allfold.sum(WHOLE, 2, comm=MPI.COMM_SELF, cut=1) if MPI is not None else allfold.sum(WHOLE, 2, cut=1)
    ok(np.array_equal(with_self, exact_sum(WHOLE, (2,))), "one rank cuts nothing")


def check():
    check_folds()
    check_results()
    check_all_axes()
    check_integer_dtype()
    check_layouts()
    check_softmax()
    check_refusals()
