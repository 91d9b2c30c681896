"""Order statistics of the Python package, beside NumPy on sorted data and fractions: every type, method and hostile order, sizes around those at
which the way changes."""
import bisect
import math
from fractions import Fraction

import numpy as np

import allfold
from ranks import FLOATS, INTEGERS, ok, parts, refused, size, values

METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
QS = (0.0, 0.001, 0.25, 1 / 3, 0.5, 0.75, 0.99, 1 - 2**-53, 1.0)
WHOLE, STREAM = 1 << 17, 150_000  # elements that are kept without a sample; enough to need one
HARD = ("float32", "float64", "int8", "uint64")  # types that are sorted in many orders; tests/test_order.c has the others


def between(a, b, t):
    """(1 - t) a + t b, rounded once."""
    if a == b or t == 0:
        return float(a)
    if math.isinf(a) or math.isinf(b):
        return float(a) + float(b)
    return float((1 - t) * Fraction(a) + t * Fraction(b))


def due(ordered, q, method):
    place = Fraction(q) * (len(ordered) - 1)
    low, t = int(place), place - int(place)
    a, b = ordered[low].item(), ordered[min(low + 1, len(ordered) - 1)].item()
    if method == "linear":
        return between(a, b, t)
    if method == "midpoint":
        return between(a, b, Fraction(1, 2) if t else 0)
    up = t > 0 if method == "higher" else method == "nearest" and (t > Fraction(1, 2) or (t == Fraction(1, 2) and low % 2 == 1))
    return b if up else a


def same(a, b):
    return a == b or (a != a and b != b)


def orders(dtype, n):
    """Arrays that are hard for a sample, a bracket or a pivot."""
    whole = values(dtype, n, 7)
    if dtype == "bool":
        return {"random": whole, "all equal": np.ones(n, bool)}
    ordered, one = np.sort(whole), np.full(n, whole[0])
    bits = np.full(n, 12345 % 100, f"u{whole.itemsize}")
    apart = (bits + np.arange(n, dtype=bits.dtype) % 2).view(whole.dtype)
    two = np.where(np.arange(n) % 3 == 0, whole[0], whole[1 % n])
    heavy = np.where(np.arange(n) % 2 == 0, whole[0], whole)
    return {"random": whole, "sorted": ordered, "reversed": ordered[::-1], "organ pipe": np.concatenate([ordered[::2], ordered[1::2][::-1]]),
            "all equal": one, "two values": two, "one bit apart": apart, "half equal": heavy.astype(whole.dtype),
            "one of all": np.concatenate([one[1:], ordered[-1:]])}


def check_quantiles():
    for dtype in FLOATS + INTEGERS:
        wrong = []
        for n in (1, 2, 3, 100, WHOLE, WHOLE + 1, STREAM) if dtype in HARD else (2, 100, STREAM):
            for name, whole in orders(dtype, n).items() if n == 100 or (n == STREAM and dtype in HARD) else [("random", values(dtype, n, n))]:
                ordered, x = np.sort(whole), parts(np.ascontiguousarray(whole))
                for method in METHODS if name == "random" else METHODS[:1]:
                    for q, found in zip(QS, allfold.quantile(x, QS, method=method).tolist()):
                        if not same(found, due(ordered, q, method)):
                            wrong.append((name, n, method, q, found, due(ordered, q, method)))
        ok(not wrong, f"{dtype}: quantiles of every method and order", wrong[:3])


def check_numbers():
    whole = values("float64", 1000)
    found = allfold.quantile(parts(whole), 0.5), allfold.median(parts(whole)), allfold.quantile(parts(whole), [[0.25, 0.5]])
    ok(found[0] == found[1] == float(np.median(whole)) and found[2].shape == (1, 2), "median, and the shape of q", found)
    large = np.array([2**63 - 1, 2**63 - 3], np.int64)
    found = [allfold.quantile(large[:0] if size > 1 and parts(np.arange(size)).size == 0 else parts(large), 0.5, method=m) for m in ("linear", "lower")]
    ok(found == [float(2**63 - 2), 2**63 - 3] and type(found[1]) is int, "integers that f64 does not hold", found)
    many = np.linspace(0, 1, 1001)
    x = values("float32", STREAM, 5)
    high = np.array([3, 2**63 + 1025, 2**64 - 1], np.uint64)
    found = allfold.quantile(parts(high), [0, 0.5, 1], method="lower")
    ok(found.dtype == np.uint64 and found.tolist() == high.tolist(), "integers beyond 2^63 stay integers", found)
    found = [allfold.quantile(x, [0, 1], method="nearest").dtype for x in (np.array([3, 5], np.uint64), np.array([3, 5], np.int8))]
    ok(found == [np.uint64, np.int64], "types of quantiles do not depend on the values", found)
    found = allfold.quantile(parts(x), many)
    ok(all(a == due(np.sort(x), q, "linear") for a, q in zip(found.tolist()[::50], many[::50])), "a thousand at once")
    tiny = np.array([5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.0, -0.0, 1e-310])
    wrong = [q for q in (0.1, 0.3, 5e-324, 0.6, 0.9) if allfold.quantile(parts(tiny), q) != due(np.sort(tiny), q, "linear")]
    ok(not wrong, "subnormals, zeros of both signs and the largest numbers", wrong)
    infinite = np.array([-np.inf, -np.inf, 1.0, np.inf, np.inf])
    found = allfold.quantile(parts(infinite), [0, 0.3, 0.6, 1]).tolist()
    ok(found == [-np.inf, -np.inf, np.inf, np.inf] and math.isnan(allfold.quantile(parts(np.array([-np.inf, np.inf])), 0.5)), "infinities", found)


def check_nan():
    for n in (100, STREAM):
        whole = values("float32", n, 3)
        whole[::10] = np.nan
        whole[5] = np.uint32(0xFFC00001).view(np.float32)  # of negative sign
        x, ordered = parts(whole), np.sort(whole[~np.isnan(whole)])
        found = allfold.median(x), allfold.quantile(x, [0.2, 0.5, 1], nan_policy="omit").tolist()
        ok(math.isnan(found[0]) and found[1] == [due(ordered, q, "linear") for q in (0.2, 0.5, 1)], f"{n}: NaN: propagate and omit", found)
        top, low = allfold.topk(x, n // 10 + 30), allfold.topk(x, 20, largest=False)
        nans = np.flatnonzero(np.isnan(whole))
        ok(top.indices[:len(nans)].tolist() == nans.tolist() and low.values.tolist() == ordered[:20].tolist(), f"{n}: NaN is the largest")
        ok(allfold.topk(x, 20, nan_policy="omit").values.tolist() == ordered[::-1][:20].tolist(), f"{n}: topk omits NaN")
        found = allfold.histogram(x, bins=7, range=(-1, 1))
        ok(found.nan == len(nans) and found.hist.tolist() == np.histogram(ordered, 7, (-1, 1))[0].tolist()
           and found.below + found.above + found.nan + found.hist.sum() == n, f"{n}: a histogram counts NaN", found)
    refused("NaN: raise", (allfold.NoValueError, ValueError), ["NaN"], lambda: allfold.quantile(x, 0.5, nan_policy="raise"))
    long, alone = np.full(STREAM, np.nan), np.full(1000, np.nan)
    ok(math.isnan(allfold.median(parts(long))) and math.isnan(allfold.median(parts(alone))) and allfold.topk(parts(long), 3).indices.tolist() == [0, 1, 2]
       and allfold.histogram(parts(long), 3).nan == STREAM, "all NaN")
    refused("all NaN, left out", (allfold.NoValueError,), ["1000", "left out"], lambda: allfold.median(parts(alone), nan_policy="omit"))
    refused("the median of nothing", (allfold.NoValueError,), ["empty"], lambda: allfold.median(alone[:0]))


def top_due(whole, k, largest):
    """Indices, ties in their order."""
    if whole.dtype == bool:
        whole = whole.astype(np.uint8)
    keys = whole if not largest else -whole if whole.dtype.kind == "f" else ~whole
    return np.argsort(keys, kind="stable")[:k]


def check_topk():
    for dtype in FLOATS + INTEGERS:
        wrong = []
        for n in (1, 100, STREAM) if dtype in HARD else (100,):
            for name, whole in orders(dtype, n).items():
                for k, largest in ((min(n, 50), True), (min(n, 2000), False)) + (((n // 3, True),) if name == "half equal" else ()):
                    found = allfold.topk(parts(np.ascontiguousarray(whole)), k, largest=largest)
                    indices = top_due(whole, k, largest)
                    if found.indices.tolist() != indices.tolist() or found.values.tobytes() != whole[indices].tobytes():
                        wrong.append((name, n, k, largest, found.indices[:5], indices[:5]))
        ok(not wrong, f"{dtype}: topk of every order", wrong[:3])
    zeros = np.array([0.0, -0.0, 1.0, -0.0, 0.0])
    found = allfold.topk(parts(zeros), 4)
    ok(found.indices.tolist() == [2, 0, 1, 3] and np.signbit(found.values).tolist() == [False, False, True, True], "zeros of both signs are equal", found)
    refused("k beyond the elements", (allfold.NoValueError,), ["k is 9", "5"], lambda: allfold.topk(parts(zeros), 9))
    refused("k beyond 2^20", (ValueError,), ["k", "1048576"], lambda: allfold.topk(parts(zeros), 2**20 + 1))
    found = allfold.topk(parts(zeros), 0)
    ok(found.values.size == 0, "k of 0", found)


def bins_due(numbers, edges):
    """How many of sorted numbers are in each bin: Python compares integers and floats exactly."""
    counts = [bisect.bisect_left(numbers, b) - bisect.bisect_left(numbers, a) for a, b in zip(edges, edges[1:])]
    return counts[:-1] + [bisect.bisect_right(numbers, edges[-1]) - bisect.bisect_left(numbers, edges[-2])]


def edges_due(numbers, bins, limits):
    """NumPy's, which refuses bins narrower than the steps of f64 from version 2 on; from the least to the largest number, which are inside."""
    least, most = limits or (float(numbers[0]), float(numbers[-1]))
    if limits is None:
        least, most = np.nextafter(least, -np.inf) if least > numbers[0] else least, np.nextafter(most, np.inf) if most < numbers[-1] else most
    return np.linspace(*((least - 0.5, most + 0.5) if least == most else (least, most)), bins + 1).tolist()


def check_histograms():
    for dtype in FLOATS + INTEGERS:
        wrong = []
        for n in (1, 100, STREAM) if dtype in HARD else (100,):
            whole = values(dtype, n, 11)
            exact = whole.astype(np.uint8) if dtype == "bool" else whole
            numbers = sorted(exact.tolist())
            inner = float(numbers[n // 4]), float(numbers[3 * n // 4])
            for bins, limits in ((1, None), (10, None), (256, inner), (5000, (-1e-3, 5e3)), (np.array([0.0, 1, 1, 2, 100, np.inf]), None),
                                 (np.unique(np.array(numbers[::max(1, n // 40)] + [1e6, 2e6], np.float64)), None)):
                found = allfold.histogram(parts(whole), bins, limits)
                edges = found.bin_edges.tolist()
                right = np.ndim(bins) or edges_due(numbers, bins, limits)
                if found.hist.tolist() != bins_due(numbers, edges) or (np.ndim(bins) == 0 and right != edges) \
                        or (np.ndim(bins) == 0 and limits is None and found.below + found.above):
                    wrong.append((n, bins, limits, found.hist[:5], bins_due(numbers, edges)[:5], edges[:3]))
        ok(not wrong, f"{dtype}: histograms", wrong[:3])
    whole, wrong = values("float64", STREAM, 12), []
    for count in (700, 5000, 60000):  # as many counters as several ranks exchange in more ways than one
        edges = np.sort(values("float64", count, 13))
        for _ in range(5):
            found = allfold.histogram(parts(whole), edges)
            if found.hist.tolist() != np.histogram(whole, edges)[0].tolist() or found.below != np.count_nonzero(whole < edges[0]):
                wrong.append((count, found.hist[:5], found.below))
    ok(not wrong, "many bins between given edges", wrong[:3])
    near = np.array([-1e-30, 0.0, -0.0, 1e-30, 0.1, 0.3, 0.3 - 2**-54, 1.0, 4.0, -4.0, np.nextafter(4, 5)])
    found = allfold.histogram(parts(near), 80, (-4, 4))
    ok(found.hist[39] == 1 and found.hist[40] == 4 and found.hist[-1] == 1 and found.above == 1, "elements beside an edge", found.hist.tolist())
    refused("an edge that falls", (ValueError,), ["edge 1"], lambda: allfold.histogram(parts(near), [1.0, 0.5]))
    refused("a range that is not finite", (ValueError,), ["range"], lambda: allfold.histogram(parts(near), 5, (0, math.inf)))
    refused("bins that f64 cannot tell apart", (ValueError,), ["close together"], lambda: allfold.histogram(parts(near), 7, (0, 11 * 5e-324)))
    for what, far, limits in (("a range", near, (-1.7e308, 1.7e308)), ("numbers", np.array([-1.7e308, 0.0, 1.7e308]), None)):
        refused(f"{what} further apart than the largest f64", (ValueError,), ["difference is finite"], lambda: allfold.histogram(parts(far), 5, limits))
    for number in (2**53 + 3, -2**53 - 3, 2**63 - 1, -2**63, 2**63 + 1025, 2**64 - 1):
        whole = np.full(3, number, np.int64 if number < 2**63 else np.uint64)
        found = allfold.histogram(parts(whole), 2)
        ok(found.hist.sum() == 3, f"{number}, which is no f64, is between its edges", found)
    found = allfold.histogram(near[:0], 3)
    ok(found.hist.tolist() == [0, 0, 0] and found.bin_edges.tolist() == np.histogram([], 3)[1].tolist(), "a histogram of nothing", found)


def check_refusals():
    x = parts(np.arange(10.0))
    refused("q beyond 1", (ValueError,), ["q is 1.5", "0 to 1"], lambda: allfold.quantile(x, 1.5))
    refused("q that is NaN", (ValueError,), ["q is nan"], lambda: allfold.quantile(x, math.nan))
    refused("no q", (ValueError,), ["1 to 65536"], lambda: allfold.quantile(x, []))
    masked = np.ma.array([0.25, 0.5], mask=[False, True])
    for what, call in (("q", lambda: allfold.quantile(x, masked)), ("bins", lambda: allfold.histogram(x, masked)), ("weights", lambda: allfold.mean(x, weights=masked[1:])),
                       ("weights", lambda: allfold.sum(x, weights=1j))):
        refused(f"{what} that are masked, or complex", (ValueError,), [what, "real numbers without a mask"], call)
    refused("an unknown method", (ValueError,), ["'linear'", "'best'"], lambda: allfold.quantile(x, 0.5, method="best"))
    refused("half a range", (ValueError,), ["range", "first edge and the last"], lambda: allfold.histogram(x, 3, range=(1,)))
    refused("a range beside edges", (ValueError,), ["range", "array of edges"], lambda: allfold.histogram(x, [0, 1], range=(0, 1)))
    refused("an axis", (ValueError,), ["axis 0", "all elements"], lambda: allfold.median(x, axis=0))
    if size > 1:
        from ranks import rank
        refused("ranks that ask for different quantiles", (ValueError,), ["different calls"], lambda: allfold.quantile(x, 0.1 * rank))


def check():
    check_quantiles()
    check_numbers()
    check_nan()
    check_topk()
    check_histograms()
    check_refusals()
