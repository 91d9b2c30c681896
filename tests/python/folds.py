"""Numbers of the Python package, beside math.fsum, Python's integers and NumPy."""
import math
from fractions import Fraction

import numpy as np

import allfold
from ranks import FLOATS, INTEGERS, ok, parts, refused, size, values


def check_floats():
    for dtype in FLOATS:
        whole = values(dtype)
        x, exact = parts(whole), whole.astype(float)
        total = math.fsum(exact)
        found = {
            "sum": (allfold.sum(x), total),
            "min": (allfold.min(x), exact.min()), "max": (allfold.max(x), exact.max()),
            "argmin": (allfold.argmin(x), int(whole.argmin())), "argmax": (allfold.argmax(x), int(whole.argmax())),
            "norm1": (allfold.norm(x, 1), math.fsum(abs(exact))), "norminf": (allfold.norm(x, math.inf), abs(exact).max())}
        ok(all(type(a) in (int, float) and a == b for a, b in found.values()), f"{dtype}: exact folds", found)
        near = {"mean": (allfold.mean(x, axis=0), total / whole.size), "norm": (allfold.norm(x), math.sqrt(math.fsum(exact**2))),
                "prod": (allfold.prod(parts(whole[:40])), math.prod(exact[:40])),
                "logsumexp": (allfold.logsumexp(x), exact.max() + math.log(math.fsum(np.exp(exact - exact.max())))),
                "fast": (allfold.sum(x, level="fast"), total), "variance": (allfold.variance(x, ddof=1), exact.var(ddof=1)),
                "std": (allfold.std(x, axis=0), exact.std())}
        ok(all(math.isclose(a, b, rel_tol=1e-12) for a, b in near.values()), f"{dtype}: the others", near)


def check_integers():
    for dtype in INTEGERS:
        whole = values(dtype)
        x, exact = parts(whole), [int(element) for element in whole]
        found = {"sum": (allfold.sum(x), sum(exact)), "max": (allfold.max(x), max(exact)),
                 "norm1": (allfold.norm(x, 1), sum(map(abs, exact))), "argmin": (allfold.argmin(x), int(whole.argmin()))}
        ok(all(type(a) is int and a == b for a, b in found.values()), f"{dtype}: exact integers", found)
    big = np.full(4, 2**63, np.uint64)
    refused("an integer sum that 64 bits cannot hold", (allfold.IntegerOverflowError, OverflowError), ["36893488147419103232" if size == 1 else "uint64"],
            lambda: allfold.sum(big))


def check_dtype():
    whole = values("float32")
    x, total = parts(whole), math.fsum(values("float32").astype(float))
    found = [allfold.sum(x, dtype=kind) for kind in (np.float16, "float32", float)]
    ok(all(a == kind(total) and type(a) is kind for a, kind in zip(found, (np.float16, np.float32, np.float64))),
       "dtype: rounded once, NumPy's scalar", found)
    integers = parts(np.arange(100, dtype=np.int32))
    found = allfold.sum(integers, dtype=np.int64)
    ok(type(found) is np.int64 and found == 4950, "dtype of integers", repr(found))
    refused("a sum that its dtype cannot hold", (OverflowError,), ["int8", "4950"], lambda: allfold.sum(integers, dtype="int8"))
    found = allfold.std(x, dtype=np.float32), allfold.variance(integers), allfold.softmax(parts(np.zeros(8)))
    ok(type(found[0]) is np.float32 and found[1] == 833.25, "std with a dtype, and options of one fold only", found[:2])
    refused("an integer dtype of a mean", (ValueError,), ["int64", "49.5"], lambda: allfold.mean(integers, dtype=int))
    refused("an unknown dtype", (ValueError,), ["complex128"], lambda: allfold.sum(x, dtype=complex))


def check_nan():
    whole = values("float64")
    whole[[70, 500]] = np.nan
    x = parts(whole)
    found = [allfold.max(x), allfold.argmax(x), allfold.max(x, nan_policy="omit"), allfold.argmax(x, nan_policy="omit")]
    ok(math.isnan(found[0]) and found[1:] == [70, np.nanmax(whole), int(np.nanargmax(whole))], "NaN: propagate and omit", found)
    refused("NaN: raise", (allfold.NoValueError, ValueError), ["NaN"], lambda: allfold.min(x, nan_policy="raise"))
    refused("an unknown policy", (ValueError,), ["'propagate'", "'ignore'"], lambda: allfold.min(x, nan_policy="ignore"))


def check_stats():
    whole = values("float32")
    found, exact = allfold.stats(parts(whole)), whole.astype(float)
    ok((found.count, found.nan_count, found.sum, found.min, found.max, found.argmin, found.argmax, found.norm1, found.norminf)
       == (whole.size, 0, math.fsum(exact), exact.min(), exact.max(), whole.argmin(), whole.argmax(), math.fsum(abs(exact)),
           abs(exact).max())
       and math.isclose(found.mean, exact.mean()) and math.isclose(found.variance, exact.var())
       and math.isclose(found.norm2, np.linalg.norm(exact)), "stats", found)
    found = allfold.stats(parts(whole), dtype="float16")
    ok(all(type(getattr(found, name)) is np.float16 for name in ("sum", "mean", "max", "norm2")) and found.sum == np.float16(math.fsum(exact))
       and type(found.count) is type(found.argmax) is int, "stats with a dtype", found)
    refused("stats in integers", (ValueError,), ["int8", "floating-point"], lambda: allfold.stats(whole, dtype="int8"))
    refused("an integer variance along an axis", (ValueError,), ["int8"], lambda: allfold.variance(whole, axis=0, keepdims=True, ddof=1, dtype="int8"))
    ok(math.isclose(allfold.softmax([0.0, 0.0])[0], 0.5 / size), "its ddof is not left for a softmax")
    refused("a negative ddof", (ValueError,), ["ddof", "-1"], lambda: allfold.stats(whole, ddof=-1))
    found = allfold.stats(whole[:0])
    ok((found.count, found.sum, found.mean, found.min, found.argmax) == (0, 0, None, None, None), "stats of nothing", found)
    ok(allfold.sum(whole[:0]) == 0 and allfold.prod([]) == 1, "sum and product of nothing")
    refused("the least of nothing", (allfold.NoValueError, ValueError), [], lambda: allfold.min(whole[:0]))


def check_dot():
    for dtype in ("float32", "float64", "int16", "uint64", "bool"):
        x, y = values(dtype, 500, 1), values(dtype, 500, 2)
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist()))
        if abs(exact) >= 2**63 and dtype not in FLOATS:
            refused(f"dot of {dtype} beyond 64 bits", (OverflowError,), [], lambda: allfold.dot(parts(x), parts(y)))
            continue
        found = allfold.dot(parts(x), parts(y))
        ok(found == (float(exact) if dtype in FLOATS else exact), f"dot, {dtype}", (found, exact))
    x = parts(np.float32([1, 2, 3, 4]))
    ok(allfold.dot(x, x, dtype=np.float32) == 30 and allfold.dot(x, x, level="fast") == allfold.norm(x)**2, "dot of an array with itself")
    one = np.ones(3)
    refused("dot of two lengths", (ValueError,), ["(3,)", "(2,)"], lambda: allfold.dot(one, one[:2]))
    refused("dot of matrices", (ValueError,), ["ravel"], lambda: allfold.dot(np.ones((2, 2)), np.ones((2, 2))))
    refused("dot of two types", (ValueError,), ["f64", "f32"], lambda: allfold.dot(one, one.astype(np.float32)))


def check_compare():
    for dtype in ("float32", "float64", "int16", "uint64", "bool"):
        x = values(dtype, 500, 1)
        y = x.copy()
        y[[7, 444]] = x[[8, 445]] if dtype != "bool" else ~x[[7, 444]]
        found = allfold.compare(parts(x), parts(y), rtol=0.5)
        a, b = ([Fraction(v) for v in z.tolist()] for z in (x, y))
        apart = [float(abs(p - q)) for p, q in zip(a, b)]
        ok((found.count, found.different, found.max_abs) == (500, sum(p != q for p, q in zip(a, b)), max(apart))
           and found.max_abs_index == apart.index(max(apart)) and found.mean_difference == float(sum(p - q for p, q in zip(a, b)) / 500)
           and found.max_abs_a == x[found.max_abs_index] and (found.max_ulp is None) == (dtype not in FLOATS)
           and found.within == (found.outside == 0), f"compare, {dtype}", found)
    x = parts(np.float32([1, 2, np.nan, 4]))
    ok(allfold.compare(x, x.astype(np.float64), equal_nan=True).within and not allfold.compare(x, x).within, "compare of an array with itself")
    one = np.ones((2, 3))
    refused("compare of two shapes", (ValueError,), ["(2, 3)", "(3, 2)"], lambda: allfold.compare(one, one.T))
    refused("compare of two kinds", (ValueError,), ["f64", "int64"], lambda: allfold.compare(one, one.astype(np.int64)))
    refused("a tolerance that is no number", (ValueError,), ["rtol: expected a number", "None"], lambda: allfold.compare(one, one, rtol=None))
    refused("a negative tolerance", (ValueError,), ["-1"], lambda: allfold.compare(one, one, atol=-1))


def check_softmax():
    whole = (np.random.default_rng(2).standard_normal(500) * 4).astype(np.float32)
    x, exact = parts(whole), whole.astype(float)
    terms = np.exp(exact - exact.max())
    expected, logarithm = parts(terms / math.fsum(terms)), parts(exact - exact.max() - math.log(math.fsum(terms)))
    found = allfold.softmax(x)
    ok(found.dtype == np.float32 and found.shape == x.shape and np.allclose(found, expected, rtol=1e-6, atol=0), "softmax", found)
    found = allfold.log_softmax(x, dtype=np.float64)
    ok(found.dtype == np.float64 and np.allclose(found, logarithm, rtol=1e-12), "log_softmax in float64", found)
    out = x.copy()
    ok(allfold.softmax(out, out=out) is out and np.allclose(out, expected, rtol=1e-6, atol=0), "in place", out)
    matrix = np.zeros((2, 3))
    found = allfold.softmax(matrix, axis=None)
    ok(found.shape == (2, 3) and found[0, 0] == found[1, 2], "of all elements of a matrix", found)
    ok(allfold.softmax(np.arange(3), level="fast").dtype == np.float64, "of integers: float64")


def check():
    check_floats()
    check_integers()
    check_dtype()
    check_nan()
    check_stats()
    check_dot()
    check_compare()
    check_softmax()
