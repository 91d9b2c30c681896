"""What folds and softmax along axes must give: NumPy, math.fsum, fractions and long double, for the calls of test_axes.py."""
import fractions
import math
import sys

import numpy as np

import cli

TYPES = ["none", "f16", "bf16", "f32", "f64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
FLOATS = ("f16", "bf16", "f32", "f64")
FORMATS = {"f16": (11, -14, 65504.0), "bf16": (8, -126, float.fromhex("0x1.fep127")), "f32": (24, -126, float.fromhex("0x1.fffffep127")),
           "f64": (53, -1022, sys.float_info.max)}


def stored(dtype):
    return np.uint16 if dtype == "bf16" else np.dtype({"f16": "f2", "f32": "f4", "f64": "f8"}.get(dtype, dtype))


def values_of(bits, dtype):
    return cli.bf16_values(bits) if dtype == "bf16" else bits


def rounded(number, to):
    """A rational number to a floating-point type, once, as a double."""
    precision, least, largest = FORMATS[to]
    exponent = abs(number.numerator).bit_length() - number.denominator.bit_length()
    exponent -= abs(number) < fractions.Fraction(2) ** exponent
    unit = fractions.Fraction(2) ** (max(exponent, least) - precision + 1)
    found = round(number / unit) * unit
    return float(found) if abs(found) <= largest else math.copysign(math.inf, found)


def integers(row):
    """Finite numbers as integers, and the power of two by which they are multiplied: sums of fractions take ten times as long."""
    ratios = [v.as_integer_ratio() for v in row]
    unit = max((below for _, below in ratios), default=1)
    return [above * (unit // below) for above, below in ratios], unit


class NoValue(Exception):
    pass


def fsum(row):
    if row and all(v == 0 and math.copysign(1, v) < 0 for v in row):
        return -0.0
    try:
        return math.fsum(row)
    except (OverflowError, ValueError):
        return float(np.sum(row))


def has_exact_mean(case):
    """Whether the reference of a mean is rounded once: it takes long. That of variance and std, too."""
    return case.dtype in FLOATS and not case.fast and case.length <= 300


def root(x):
    """Of a fraction, as one that is rounded to the same numbers."""
    found = fractions.Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
    if found * found == x:  # it may lie halfway between two numbers
        return found
    shift = 2 * (200 + x.denominator.bit_length())
    return fractions.Fraction(2 * math.isqrt((x.numerator << shift) // x.denominator) + 1, 2 << shift // 2)


def exact_variance(case, row):
    """As a fraction, of finite numbers."""
    n, (x, unit) = len(row), integers(row)
    return fractions.Fraction(n * sum(v * v for v in x) - sum(x) ** 2, unit * unit * n * (n - case.ddof))


def one(case, name, row):
    """The reference of one number of a row of doubles or Python's integers, and the index."""
    floating, n = case.dtype in FLOATS, len(row)
    nans = [i for i, v in enumerate(row) if v != v]
    if name in ("min", "max", "argmin", "argmax"):
        if nans and case.nan == 2 or n == 0 or (case.nan == 1 and len(nans) == n):
            raise NoValue
        if nans and case.nan == 0:
            return math.nan, nans[0]
        best = (min if "min" in name else max)(v for v in row if v == v)
        return best, row.index(best)
    if name in ("variance", "std"):
        kept = [v for v in row if v == v]
        if nans and case.nan == 2 or n == 0 or (case.nan == 1 and not kept):
            raise NoValue
        if nans and case.nan == 0:
            return math.nan, None
        found = statistic(case, "variance", kept)[0]
        if name == "std" and has_exact_mean(case) and math.isfinite(found):
            return rounded(root(exact_variance(case, kept)), "f64"), None
        return (found if name == "variance" else math.sqrt(found)), None
    if name == "mean":
        if n == 0:
            raise NoValue
        if has_exact_mean(case) and all(map(math.isfinite, row)):
            x, unit = integers(row)
            return float(fractions.Fraction(sum(x), unit * n)), None
        return (fsum(row) / n if floating else sum(row) / n), None
    if name == "sum":
        return (fsum(row) if floating else sum(row)), None
    if name == "prod":
        return (float(np.prod(np.array(row, np.longdouble))) if floating else math.prod(row)), None
    if name == "norm1":
        return (fsum([abs(v) for v in row]) if floating else sum(map(abs, row))), None
    if name == "norm2":
        with np.errstate(all="ignore"):
            return float(np.sqrt(np.sum(np.array(row, np.longdouble) ** 2))), None
    if name == "norminf":
        return (math.nan if nans else max(map(abs, row), default=0)), None
    if name == "logsumexp":
        if n == 0:
            return -math.inf, None
        with np.errstate(all="ignore"):
            wide = np.sort(np.array(row, float).astype(np.longdouble))
            top = wide[-1]  # whose term is 1
            return (top + np.log1p(np.sum(np.exp(wide[:-1] - top))) if np.isfinite(top) else top), None
    raise KeyError(name)


def statistic(case, name, row):
    nans = sum(v != v for v in row)
    if case.nan == 2 and nans:
        raise NoValue
    if name in ("count", "nan_count"):
        return (len(row) if name == "count" else nans), None
    if nans and case.nan == 0:
        return math.nan, next(i for i, v in enumerate(row) if v != v)
    kept = [v for v in row if v == v]
    if name in ("min", "max"):
        if not kept:
            if case.dtype in FLOATS or case.to:
                return math.nan, -1
            raise NoValue
        best = (min if name == "min" else max)(kept)
        return best, row.index(best)
    if name == "variance":
        if len(kept) <= case.ddof or not all(map(math.isfinite, kept)):
            return math.nan, None
        if has_exact_mean(case):
            return rounded(exact_variance(case, kept), "f64"), None
        wide = np.array(kept, np.longdouble)
        return float(np.sum((wide - wide.mean()) ** 2) / (len(kept) - case.ddof)), None
    if name == "mean" and not kept:
        return math.nan, None
    return one(case, name, kept)


def quick_logsumexp(case, want):
    """What logsumexp of f32 and 16-bit elements may be off at level fast."""
    return 2.0 ** -23 * max(1.0, abs(float(want))) if case.fast and case.dtype in ("f32", "f16", "bf16") else 0.0


def close_logsumexp(case, want, got):
    """Within an ulp, what terms that are forgotten amount to, and 2^-53 if the logarithm of the sum has the other sign; f32 at level fast."""
    if not np.isfinite(want):
        return got == want
    allowed = quick_logsumexp(case, want) + np.longdouble(math.ulp(float(want))) * 1.001 + case.length * np.longdouble(2.0 ** -1022 if case.fast else 2.0 ** -96)
    return abs(np.longdouble(got) - want) <= allowed + 2.0 ** -53 * (case.x.max(axis=1) < 0).any()


def close(case, name, want, got, to):
    """Whether got is what it must be: exact sums to the bit, others within the documented errors."""
    if name == "logsumexp" and not to and not math.isnan(want):
        return close_logsumexp(case, want, got)
    want, got = float(want), float(got)
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) == math.isnan(got)
    if to:
        with np.errstate(all="ignore"):
            want = float(cli.bf16_values(cli.bf16_bits(np.array([want])))[0]) if to == "bf16" else float(np.array(want).astype(stored(to)))
    if want == got:
        return name != "sum" or case.dtype not in FLOATS or math.copysign(1, want) == math.copysign(1, got)
    exact = name in ("min", "max", "argmin", "argmax", "norminf") or (not case.fast and name in ("sum", "norm1")) \
        or (name in ("mean", "variance", "std") and has_exact_mean(case))
    if exact and not to:
        return False
    step = {"": 2.0 ** -52, "f64": 2.0 ** -52, "f32": 2.0 ** -23, "f16": 2.0 ** -10, "bf16": 2.0 ** -7}[to]
    scale = abs(want)
    roundings = case.length / 64 if case.fast else 0  # of the additions of a lane, few of which err in the same direction
    if case.fast and name in ("sum", "mean", "variance", "std", "logsumexp"):
        scale = max(scale, float(np.max(np.abs(case.x[np.isfinite(case.x)].astype(float)), initial=0.0)) ** (2 if name == "variance" else 1))
    if name in ("prod", "variance", "std", "norm2", "logsumexp"):
        quick = quick_logsumexp(case, want) + 1e-15 if name == "logsumexp" else 0
        return abs(want - got) <= (8 + roundings) * step * scale + (5e-324 if not to else 1e-7) + quick
    return abs(want - got) <= (4 + roundings) * step * scale + (0 if not to else 6e-8)


def check_fold(case, found):
    """An error text, or None."""
    rows = [[v.item() for v in case.x[o, :, i]] if case.dtype not in FLOATS else [float(v) for v in case.x[o, :, i]]
            for o in range(case.outer) for i in range(case.inner)]
    if case.dtype == "bool":
        rows = [[int(v) for v in row] for row in rows]
    position, refuse = 0, False
    status, message, blob = found
    to = TYPES[case.to] if case.to else ""
    for name, dtype, indexed in case.outputs():
        try:
            wanted = [(statistic if case.name == "stats" else one)(case, name, row) for row in rows]
        except NoValue:
            refuse = True
            break
        least, most = -math.inf, math.inf
        if dtype.kind in "iu" and not to and "count" not in name:
            least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        elif name == "prod" and case.dtype not in FLOATS:  # an integer product has 64 bits at any result type
            least, most = 1 - (1 << 64), (1 << 64) - 1
        beyond = [r for r, (value, _) in enumerate(wanted) if not least <= value <= most] if math.isfinite(most) else []
        if beyond:
            refuse = True
            if case.name != "stats" and case.result_name(beyond[0]) is not None and f"result {case.result_name(beyond[0])}" not in message:
                return f"no place {beyond[0]} in: {message}"
            break
        if status != 0:
            continue
        got = np.frombuffer(blob, dtype, len(rows), position)
        position += dtype.itemsize * len(rows)
        got = values_of(got, "bf16") if to == "bf16" and name not in ("count", "nan_count") else got
        for r, (value, index) in enumerate(wanted):
            same = int(got[r]) == value if dtype.kind in "iu" and (not to or "count" in name) else close(case, name, value, got[r], to)
            if not same:
                return f"{name} of row {r}: {got[r]!r}, expected {value!r}"
        if indexed:
            places = np.frombuffer(blob, "i8", len(rows), position)
            position += 8 * len(rows)
            for r, (_, index) in enumerate(wanted):
                if index is not None and places[r] != index:
                    return f"index of {name} of row {r}: {places[r]}, expected {index}"
    if refuse != (status != 0):
        return f"status {status} ({message}), expected {'an error' if refuse else 'none'}"
    return None if refuse or position == len(blob) else f"{len(blob)} bytes of results, expected {position}"


def check_softmax(case, found):
    status, message, blob = found
    if status != 0:
        return message
    kind = TYPES[case.to]
    y = values_of(np.frombuffer(blob, stored(kind)), kind)
    if case.outer * case.length * case.inner == 0:
        return None if not y.any() else "written without elements"
    strided, places = case.apart(y), case.apart(np.arange(case.elements))
    outside = np.ones(case.elements, bool)
    outside[places.ravel()] = False
    if y[outside].any():
        return "written between the elements"
    with np.errstate(all="ignore"):
        wide = (case.x.astype(float) if case.dtype in ("int64", "uint64") else case.x).astype(np.longdouble)
        shifted = wide - wide.max(axis=1, keepdims=True)
        terms = np.exp(shifted)
        want = shifted - np.log(terms.sum(axis=1, keepdims=True)) if case.logarithm else terms / terms.sum(axis=1, keepdims=True)
        step = {"f64": 2.0 ** -52, "f32": 2.0 ** -23, "f16": 2.0 ** -10, "bf16": 2.0 ** -7}[kind]
        least = {"f64": 5e-324, "f32": 1.5e-45, "f16": 6e-8, "bf16": 1e-40}[kind] + case.logarithm * 1e-18  # of the reference
        got = strided.astype(np.longdouble)
        infinite = {"f16": 65504.0}.get(kind, math.inf)
        good = (np.abs(got - want) <= 2.5 * step * np.abs(want) + 2 * least) | (got == want) | (np.isnan(got) & np.isnan(want)) \
            | (np.isinf(got) & (np.abs(want) >= infinite))
        nan_rows = np.isnan(wide).any(axis=1, keepdims=True) | (wide.max(axis=1, keepdims=True) == np.inf) \
            | (wide.max(axis=1, keepdims=True) == -np.inf)
        good = np.where(nan_rows, np.isnan(got), good)
    if good.all():
        return None
    at = tuple(np.argwhere(~good)[0])
    return f"y{list(map(int, at))} is {strided[at]!r}, expected {want[at]!r}"
