"""Folds and softmax along axes, beside NumPy, with each dimension cut into the ranks' parts."""
import math

import numpy as np

import allfold
from allfold import _arrays
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
    for axis in (0, 1, -1, (0, 1), (1, 2), (0, 2), (-1, 0), 2):
        axes = sorted(one % 3 for one in (axis if isinstance(axis, tuple) else (axis,)))
        for cut in range(3):
            yield axis, cut


def places(fold, x, axes):
    """argmin or argmax along axes: the index in C order over these."""
    axes = sorted(axis % x.ndim for axis in axes)
    return fold(np.moveaxis(x, axes, range(-len(axes), 0)).reshape([n for i, n in enumerate(x.shape) if i not in axes] + [-1]), -1)


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
        index = allfold.argmin(x, **along)
        wrong += [(axis, cut, "argmin")] * (index.dtype != np.int64 or not np.array_equal(index, places(np.argmin, WHOLE, axes)))
    ok(not wrong, "folds along axes, for every dimension that ranks can cut", wrong)


class Series:
    """As pandas has it: NumPy makes an array of it, and get takes a key."""

    def __array__(self, *ignored, **options):
        return np.arange(1.0, 5.0)

    def get(self, key):
        raise KeyError(key)


def check_weights():
    wrong, random = [], np.random.default_rng(8)
    for w in (random.random(SHAPE), random.random((5, 1)).astype(np.float32), np.float32(0.5), random.integers(1, 9, (6, 1, 4))):
        whole = np.broadcast_to(w, SHAPE).astype(float)
        for axis, cut in cases():
            x, along = part(WHOLE, cut), {"axis": axis, "cut": cut, "weights": part(whole, cut)}
            mean = np.average(WHOLE.astype(float), axis, whole)
            squares = (WHOLE - np.expand_dims(mean, axis)) ** 2
            expected = {"mean": mean, "sum": (WHOLE * whole).sum(axis), "variance": np.average(squares, axis, whole)}
            wrong += [(axis, cut, name) for name in expected if not np.allclose(getattr(allfold, name)(x, **along), expected[name], rtol=1e-11)]
        along = {"weights": part(whole, 0)}
        wrong += [w.shape] * (not math.isclose(allfold.std(part(WHOLE, 0), **along) ** 2, allfold.variance(part(WHOLE, 0), **along), rel_tol=1e-14))
    ok(not wrong, "weights along axes and of all elements", wrong)
    refused("weights of another shape", (ValueError,), ["broadcasts"], lambda: allfold.mean(part(WHOLE, 0), weights=np.ones(7)))
    ok(allfold.mean(part(WHOLE, 0), weights=Series()) == allfold.mean(part(WHOLE, 0), weights=[1, 2, 3, 4]), "weights of which NumPy makes an array")
    ok(math.isnan(allfold.mean(part(WHOLE, 0)[:0], weights=-1.0)), "of no elements no weight is read")
    refused("a negative weight", (ValueError,), ["weight [:, :, :] is -1"], lambda: allfold.mean(part(WHOLE, 0), weights=-1.0))


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
    """Arrays with gaps and in other orders give what their copies give, and are not copied."""
    wide, wrong, copied = part(np.random.default_rng(5).standard_normal((24, 7, 8)), 0), [], []
    for name, x in (("planes", wide[::2]), ("rows", wide[:, 1:4]), ("every third row", wide[:, ::3]), ("columns", wide[:, :, 1:6]), ("gaps", wide[..., ::3]),
                    ("transposed", np.asfortranarray(wide)), ("backwards", wide[:, ::-1]), ("repeated", np.broadcast_to(wide[:, :1], (len(wide), 3, 8))),
                    ("another order", wide.transpose(0, 2, 1)), ("all of it", wide[::-1].transpose(0, 2, 1)[:, 1::3, ::-2])):
        for axis in (0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2)):
            dense = np.ascontiguousarray(x)
            wrong += [(name, axis, fold.__name__) for fold in (allfold.sum, allfold.norm, allfold.max, allfold.argmin)
                      if not np.array_equal(fold(x, axis=axis, keepdims=True), fold(dense, axis=axis, keepdims=True))]
        copied += [name] * (_arrays.elements_apart(x)[0][0] != x.ctypes.data)
    ok(not wrong, "other layouts", wrong)
    ok(not copied, "which are not copied", copied)


def check_dimensions():
    """Up to five dimensions, any of them folded, cut and ordered in memory, of 0 and 1 elements, too: every fold gives what NumPy does of a copy."""
    random, wrong = np.random.default_rng(8), []
    for _ in range(80):
        shape = tuple(int(random.choice([0, 1, 1, 2, 3, 4, 5, 7, 9], p=[0.02] + [0.1225] * 8)) for _ in range(random.integers(2, 6)))
        axes = tuple(int(axis) for axis in random.permutation(len(shape))[:random.integers(1, len(shape) + 1)])
        cut, order = int(random.integers(len(shape))) * (len(axes) < len(shape)), random.permutation(len(shape))
        whole = random.integers(-40, 40, shape).astype(random.choice(["f4", "f8", "i2", "u1"]))
        x = np.moveaxis(parts(np.moveaxis(whole, cut, 0)), 0, cut)
        x = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
        x = x[tuple(slice(None, None, -1) if random.random() < 0.2 else slice(None) for _ in shape)]
        exact = np.concatenate(gather(np.ascontiguousarray(np.moveaxis(x, cut, 0))))
        exact, along = np.moveaxis(exact, 0, cut).astype(float), {"axis": tuple(axis - len(shape) * (random.random() < 0.5) for axis in axes), "cut": cut}
        level = str(random.choice(["exact", "fast"]))
        found = {"sum": (allfold.sum(x, level=level, **along), exact.sum(axes)), "norm": (allfold.norm(x, 1, **along), abs(exact).sum(axes)),
                 "norm2": (allfold.norm(x, **along), np.sqrt((exact ** 2).sum(axes)))}
        if exact.size > 0:
            own = gather(allfold.mean(x, own=True, **along))
            found.update({"max": (allfold.max(x, **along), exact.max(axes)), "argmin": (allfold.argmin(x, **along), places(np.argmin, exact, axes)),
                          "stats": (allfold.stats(x, **along).variance, exact.var(axes)), "argmax": (allfold.stats(x, **along).argmax, places(np.argmax, exact, axes)),
                          "own": (np.concatenate([one if cut in axes else np.moveaxis(one, cut - sum(axis < cut for axis in axes), 0) for one in own]),
                                  exact.mean(axes).ravel() if cut in axes else np.moveaxis(exact, cut, 0).mean(tuple(axis + (axis < cut) for axis in axes)))})
            terms = np.exp(exact - exact.max(axes, keepdims=True))
            mine = gather(allfold.softmax(np.ascontiguousarray(x), level=level, dtype="f8", **along))
            found["softmax"] = np.concatenate([np.moveaxis(one, cut, 0) for one in mine]), np.moveaxis(terms / terms.sum(axes, keepdims=True), cut, 0)
        wrong += [(shape, axes, cut, order, level, name, got, want) for name, (got, want) in found.items()
                  if not np.allclose(np.asarray(got), want, rtol=1e-12 if level == "exact" else 1e-6, atol=1e-300) or (len(axes) < len(shape) and np.shape(got) != np.shape(want))]
    ok(not wrong, "any axes of up to five dimensions", wrong[:3])


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
            ("an axis that is not there", ["axis 3", "3 dimensions"], lambda: allfold.sum(x, 3)),
            ("an axis twice", ["twice"], lambda: allfold.sum(x, (1, -2))),
            ("a cut that is not there", ["cut 5"], lambda: allfold.sum(x, 1, cut=5)),
            ("axes in a list", ["axis: expected an integer or a tuple of them, found list"], lambda: allfold.sum(x, [0, 1])),
            ("a cut that is no integer", ["cut: expected an integer, found float"], lambda: allfold.softmax(x, cut=1.0)),
            ("no axis", ["axis ()", "None"], lambda: allfold.sum(x, ())),
            ("an integer dtype of means", ["int64", "float64"], lambda: allfold.mean(x, 1, dtype=int)),
            ("an integer dtype of statistics", ["floating-point"], lambda: allfold.stats(x, 1, dtype=int)),
            ("what one rank cannot take", ["complex64"], lambda: allfold.sum(x.astype(complex).astype("c8") if rank == size - 1 else x, 1)),
            ("the least of an empty axis", [], lambda: allfold.min(x[:, :0], 1))):
        refused(name, (ValueError,), words, call)
    if size > 1:
        for axis in ((0, 1, 2), None):
            refused("parts that do not follow one another", (ValueError,), ["cut 1", "first dimension"], lambda: allfold.sum(x, axis, cut=1))
    with_self = allfold.sum(WHOLE, 2, comm=MPI.COMM_SELF, cut=1) if MPI is not None else allfold.sum(WHOLE, 2, cut=1)
    ok(np.array_equal(with_self, exact_sum(WHOLE, (2,))), "one rank cuts nothing")


def check():
    check_folds()
    check_weights()
    check_results()
    check_all_axes()
    check_integer_dtype()
    check_layouts()
    check_dimensions()
    check_softmax()
    check_refusals()
