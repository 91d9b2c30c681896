#!/usr/bin/env python3
"""Folds at level exact against exact integers: thousands of seeded cases, at 1 to 16 ranks, in place and in shards, on every
backend; bits that are written down (exact_golden.txt); and partials that are kept in files and merged."""
import decimal
import json
import math
import os
import struct
import sys
import tempfile
import zlib
from fractions import Fraction

import numpy as np

import cli
import tap

FOLDS = cli.FOLDS + ["softmax", "log-softmax"]
TYPES = list(cli.TYPES)
GOLDEN_ONLY = bool(os.environ.get("ALLFOLD_TEST_GOLDEN_ONLY"))
PROGRAM = os.path.join(tap.BUILD, "tests", "programs", "exact_folds")
TYPE_NUMBER = {name: 1 + i for i, name in enumerate(TYPES)}  # in the order of ALLFOLD_TYPES; 0 is no type
LEAST = {"f16": -24, "bf16": -133, "f32": -149, "f64": -1074}  # exponents of the smallest and above the largest number
MOST = {"f16": 16, "bf16": 128, "f32": 128, "f64": 1024}
DIGITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}  # of the fraction, in bits
SCALE = 1200  # sums are kept as integers, in units of 2^-SCALE


def integers(x):
    """Finite doubles in units of 2^-SCALE: 53-bit integers, and the powers of two that they are to be multiplied by."""
    fractions, exponents = np.frexp(x)
    return np.ldexp(fractions, 53).astype(np.int64), exponents.astype(np.int64) - 53 + SCALE


def weighted_sum(values, exponents):
    """The sum of values * 2^exponents as one integer. Halves of the values of one exponent are added up in int64, without overflow."""
    order = np.argsort(exponents, kind="stable")
    values, exponents = values[order], exponents[order]
    starts = np.flatnonzero(np.r_[True, exponents[1:] != exponents[:-1]])
    high, low = (np.add.reduceat(half, starts) if values.size else [] for half in (values >> 31, values & (1 << 31) - 1))
    return sum((int(a) << 31) + int(b) << int(e) for a, b, e in zip(high, low, exponents[starts] if values.size else []))


def sum_of(x):
    """The sum of finite doubles, in units of 2^-SCALE."""
    return weighted_sum(*integers(x))


def squares_of(x):
    """The sum of their squares, in units of 2^(-2 * SCALE): of each (2^27 * high + low)^2."""
    values, exponents = integers(x)
    high, low = values >> 27, values & (1 << 27) - 1
    return sum(weighted_sum(part, 2 * exponents + more) for part, more in ((high * high, 54), (high * low, 28), (low * low, 0)))


def rounded(numerator, denominator, zero=0.0):
    """The double nearest to a fraction; infinite beyond."""
    if numerator == 0:
        return zero
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def root(square, scale, n=1):
    """The double nearest to the root of square * 2^-(2 * scale), divided by n."""
    more = 200 if n == 1 else 2400
    whole = math.isqrt((square << 2 * more) // n**2)
    inexact = whole**2 * n**2 != square << 2 * more
    return rounded(2 * whole + inexact, 2 << (scale + more))


def variance(x):
    """Of doubles: a rational number, rounded once; NaN if one of them is not finite."""
    if not np.isfinite(x).all():
        return math.nan
    return rounded(len(x) * squares_of(x) - sum_of(x) ** 2, len(x) ** 2 << 2 * SCALE)


def deviation(x):
    """The standard deviation of doubles: the root of that rational number, rounded once."""
    if not x.size:
        return "no value"
    if not np.isfinite(x).all():
        return math.nan
    return root(len(x) * squares_of(x) - sum_of(x) ** 2, SCALE, len(x))


def oracle(fold, x):
    """The exact fold of x, rounded once; of stats a tuple, as parse_stats gives. x is an array of doubles (any element
    type) or a list of Python's integers."""
    if fold == "std":
        return deviation(np.array(x, float))
    if fold == "stats":
        return (oracle("sum", x), oracle("mean", x), variance(x), oracle("norm1", x), oracle("norm2", x))
    if isinstance(x, list):
        total, length = sum(x), sum(map(abs, x))
        return {"sum": lambda: total, "norm1": lambda: length, "mean": lambda: rounded(total, len(x)),
                "norm2": lambda: root(sum(v * v for v in x), 0)}[fold]()
    if fold == "mean" and not x.size:
        return "no value"
    if np.isnan(x).any():
        return math.nan
    infinite = set(x[np.isinf(x)])
    if infinite:
        if fold in ("norm1", "norm2"):
            return math.inf
        return math.nan if len(infinite) > 1 else float(infinite.pop())
    zero = -0.0 if x.size and (x == 0).all() and np.signbit(x).all() else 0.0
    if fold == "sum":
        return rounded(sum_of(x), 1 << SCALE, zero)
    if fold == "mean":
        return rounded(sum_of(x), len(x) << SCALE, zero)
    if fold == "norm1":
        return rounded(sum_of(np.abs(x)), 1 << SCALE)
    return root(squares_of(x), SCALE)


def same(a, b):
    if isinstance(a, tuple):
        return all(map(same, a, b))
    if isinstance(a, str) or isinstance(b, str) or isinstance(a, int) or isinstance(b, int):
        return a == b and type(a) is type(b)
    return math.isnan(a) and math.isnan(b) or a == b and math.copysign(1, a) == math.copysign(1, b)


def parse(line):
    word = line.split(" ")[0] if line != "no value" else line
    if word == "no value":
        return word
    return float.fromhex(word) if "x" in word or "n" in word else int(word)


def parse_stats(line):
    """Sum, mean, variance, norm1 and norm2 of a line that has all fields of stats."""
    fields = line.split()
    return tuple(map(parse, fields[2:5] + fields[7:9]))


def held(dtype, values):
    """values as the type holds them, and as doubles or Python's integers."""
    with np.errstate(over="ignore"):
        x = cli.exact(dtype, np.asarray(values, np.float64)) if dtype in cli.FLOATS else np.array(values, dtype)
    return x, x.astype(np.float64) if dtype in cli.FLOATS else [int(v) for v in x]


class Cases:
    """Arrays to fold, by name, with what is due."""

    def __init__(self):
        self.list = []
        self.known = {}

    def add(self, name, fold, dtype, values, times=1):
        """values so many times over; the fold must be a sum."""
        x, numbers = held(dtype, values)
        key = (name, dtype, fold)
        due = oracle(fold, numbers) if times == 1 else rounded(sum_of(numbers) * times, 1 << SCALE)
        self.list.append((key, fold, dtype, np.tile(x, times), due))

    def add_exponential(self, name, fold, dtype, *orders):
        """The same values in one or more orders."""
        numbers = held(dtype, orders[0])[1]
        due = exponential_oracle(list(map(float, numbers))) if fold == "logsumexp" and len(numbers) < 1000 else None
        for values in orders:
            self.list.append(((name, dtype, fold), fold, dtype, held(dtype, values)[0], due))

    def every(self, step):
        part = Cases()
        part.list = self.list[::step]
        return part

    def write(self, path):
        with open(path, "wb") as file:
            for _, fold, dtype, x, _ in self.list:
                bits = cli.bf16_bits(x) if dtype == "bf16" else x
                file.write(struct.pack("<IIQ", FOLDS.index(fold), TYPE_NUMBER[dtype], x.size) + bits.tobytes())


def random_values(random, dtype, kind, n):
    least, most = LEAST[dtype], MOST[dtype]
    sign = random.choice([-1.0, 1.0], n)
    if kind == "normal":
        return random.standard_normal(n)
    if kind == "uniform":
        return random.random(n)
    if kind == "all exponents":
        return sign * np.ldexp(1 + random.random(n), random.integers(least, most, n))
    if kind == "few exponents":
        middle = random.integers(least, most)
        return sign * np.ldexp(1 + random.random(n), np.clip(middle + random.integers(-30, 31, n), least, most - 1))
    if kind == "subnormal":
        return sign * np.ldexp(random.integers(0, 2**9, n).astype(float), least)
    if kind == "cancelling":  # pairs, and one that is left
        x = np.ldexp(1 + random.random(n), random.integers(least, most, n)) * sign
        y = np.concatenate([x, -held(dtype, x)[0].astype(np.float64), [math.ldexp(1.0, int(random.integers(least, most)))]])
        return random.permutation(y)
    if kind == "halfway":  # ends exactly between two doubles, or a little beside
        top = int(random.integers(max(least + 60, -960), most - 2)) if dtype != "f16" else 15
        half = top - 53 if dtype != "f16" else -24
        parts = [math.ldexp(1.0, top), math.ldexp(float(random.integers(0, 2)), max(top - 52, least)), math.ldexp(1.0, max(half, least)),
                 math.ldexp(float(random.integers(-1, 2)), int(random.integers(least, max(half, least + 1))))]
        return random.permutation(np.array(parts * (1 + n % 3)))
    if kind == "huge":  # sums overflow on the way, and some in the end
        return sign * np.ldexp(2 - 2.0**-7 * random.integers(1, 4, n), most - 1)
    if kind == "special":
        x = random.standard_normal(n)
        x[random.integers(0, n)] = random.choice([math.nan, math.inf, -math.inf])
        x[random.integers(0, n)] = random.choice([math.inf, -math.inf, 1.0])
        return x
    return sign * 0.0


KINDS = ["normal", "uniform", "all exponents", "few exponents", "subnormal", "cancelling", "halfway", "huge", "special", "zeros"]


def random_cases(count):
    cases = Cases()
    random = np.random.default_rng(20)
    for number in range(count):
        dtype = ("f32", "f64", "bf16", "f16")[number % 4]
        kind = KINDS[number // 4 % len(KINDS)]
        n = int(random.choice([1, 2, 3, 7, 16, 33, 100, 300, 1000]))
        cases.add(f"{kind} {number}", ("sum", "mean", "norm1", "norm2", "stats", "std")[(number + number // 40) % 6], dtype,
                  random_values(random, dtype, kind, n))
    for dtype in cli.SIGNED + cli.UNSIGNED:
        info = np.iinfo(dtype)
        x = random.integers(info.min, info.max, 1000, dtype, endpoint=True)
        for fold in ("mean", "norm2"):
            cases.add("integers", fold, dtype, x)
        small = [int(v) // 2000 for v in x]
        cases.add("integers", "sum", dtype, small)
        cases.add("integers", "norm1", dtype, small)
    return cases


def large_cases():
    """Arrays of many blocks and shards; carries; NaN and infinities in every corner."""
    cases = Cases()
    random = np.random.default_rng(21)
    for dtype in ("f32", "f64", "bf16", "f16"):
        least, most = LEAST[dtype], MOST[dtype]
        top = math.ldexp(2 - 2.0**-7, most - 1)
        n = 150001
        for fold in ("sum", "norm2"):
            cases.add("many normal", fold, dtype, random.standard_normal(n))
            cases.add("many, all exponents", fold, dtype, random_values(random, dtype, "all exponents", n // 3))
        cases.add("many equal", "sum", dtype, np.full(10**6, 0.1))
        cases.add("largest only", "mean", dtype, np.full(n, top))
        cases.add("largest only", "norm2", dtype, np.full(n // 3, top))
        cases.add("smallest only", "mean", dtype, np.full(n, -math.ldexp(1.0, least)))
        cases.add("alternating, one left", "sum", dtype,
                  np.concatenate([np.tile([top, -top], n // 4), [math.ldexp(1.0, least)], np.tile([-top, top], n // 4)]))
        for place in (0, n // 2, n - 1):
            for special in (math.nan, math.inf, -math.inf):
                x = np.ones(n // 2 if place == 0 else n)
                x[min(place, x.size - 1)] = special
                cases.add(f"{special} at {place}", "sum", dtype, x)
        cases.add("nothing", "sum", dtype, [])
        cases.add("nothing", "mean", dtype, [])
        cases.add("minus zeros", "sum", dtype, np.full(70001, -0.0))
        cases.add("minus zeros and one zero", "sum", dtype, np.r_[np.full(70001, -0.0), 0.0, np.full(5, -0.0)])
        cases.add("outliers", "sum", dtype, np.where(random.random(n) < 1e-3, top / 4, random.standard_normal(n)))
    for dtype, digits in (("f32", 24), ("bf16", 8), ("f16", 11)):
        # 2047 of the largest and a small one, and back: around where the host stops to add terms as they are
        for gap in range(42 - digits - 6, 42 - digits + 7) if dtype != "f16" else (20, 24):
            large, small = 2.0**13 * (2 - 2.0 ** (1 - digits)), math.ldexp(1 + 2.0 ** (1 - digits), max(13 - gap, -14))
            for place in (0, 2047):
                x = np.full(4096, large)
                x[2048:] = -large
                x[[place, 2048 + place]] = small
                cases.add(f"span {gap}, {place}", "sum", dtype, x)
        # what no window holds, of one sign and as large as it can be in its bin, more often than a bin has room for
        top = math.ldexp(2 - 2.0 ** (1 - digits), 16 if dtype == "f32" else 0)
        x = np.concatenate([np.full(100001, top), np.full(20001, -top)])
        x[::7] = math.ldexp(1.0, LEAST[dtype])  # not a power of two: runs then add up to odd multiples of the unit
        x[4::7] = math.ldexp(2 - 2.0 ** (1 - digits), 1 if dtype == "f32" else -15)  # the bin's lowest bits
        cases.add("a bin's room", "sum", dtype, x)
    for dtype in ("f32", "f64", "bf16", "f16"):
        # squares around the widest spread that the host adds as they are; and elements so near that little is left of squares
        for spread in range(8, 26):
            exponents = np.maximum(random.integers(13 - spread, 14, 3001), -14 if dtype == "f16" else -1000)
            cases.add(f"spread {spread}", "stats", dtype, np.ldexp(1 + random.random(3001), exponents))
        cases.add("near", "stats", dtype, 1 + random.integers(0, 9, 70001) * 2.0**-DIGITS[dtype])
        cases.add("many, all exponents", "stats", dtype, random_values(random, dtype, "all exponents", 50001))
    # of one sign, what no window holds, for all threads of a GPU: their words are full when they are added up
    for fold in ("sum", "norm1"):
        cases.add("full words", fold, "f64", [4 - 2.0**-51, 2.0**-400], 1_700_000)
    for dtype, fold in (("f32", "norm2"), ("f64", "norm2"), ("f32", "stats"), ("f64", "stats")):
        x = np.full(150_000, 2.0**8 - 2.0**-15 if dtype == "f32" else 4 - 2.0**-51)
        x[::4] = 2.0**-140
        cases.add("full words", fold, dtype, x)
    cases.add("overflow on the way", "sum", "f64", [1e308, 1e308, -1e308, -1e308])
    cases.add("squares beyond the range", "norm2", "f64", [1e200, 1e-200, 3e200])
    cases.add("squares below the range", "norm2", "f64", [1e-200, 3e-300, 5e-324])
    return cases


def exponential_oracle(x):
    """logsumexp of x and how far from it the result may be: an ulp, n 2^-96, and 2^-53 if the maximum is negative."""
    if any(v != v for v in x):
        return math.nan, 0.0
    if not x or math.isinf(max(x)):
        return max(x, default=-math.inf), 0.0
    with decimal.localcontext() as context:
        context.prec, context.Emin, context.Emax = 60, decimal.MIN_EMIN, decimal.MAX_EMAX
        largest = decimal.Decimal(max(x))
        terms = sum((decimal.Decimal(v) - largest).exp() for v in x if v >= max(x) - 150)
        value = largest + terms.ln()
        return value, math.ulp(float(value)) + len(x) * 2.0**-96 + 2.0**-53 * (largest < 0)


def exponential_cases():
    """Arrays for logsumexp and softmax, and orders of them: their bits must be those of one rank of the CPU."""
    cases = Cases()
    random = np.random.default_rng(23)
    centres = {"f16": [0, 7, -60, 30000], "bf16": [0, -5.5, 500, 1e6], "f32": [0, -5.5, 16.7, 2040, -32760, 32770, 1e6, -3e9, 1e30],
               "f64": [0, -5.5, 16.7, -2050, -32600, 33000, 1e9, -1e15, 3e17, 1e19, -1e300]}
    for dtype, starts in centres.items():
        for number, centre in enumerate(starts):
            for spread in (0, 1, 40, 300):
                n = int(random.choice([1, 3, 17, 100, 401]))
                x = held(dtype, np.clip(centre + spread * random.standard_normal(n), -60000, 60000) if dtype == "f16"
                         else centre + spread * random.standard_normal(n))[0].astype(np.float64)
                if number == 0 and spread == 40:
                    x = np.append(x, [-np.inf, 60000.0 if dtype == "f16" else 1e9, -60000.0])
                if number == 1 and spread == 40:
                    x[random.integers(0, n)] = random.choice([-np.inf, np.inf, np.nan])
                cases.add_exponential(f"{centre} +- {spread}, {n}", "logsumexp", dtype, x, x[::-1], random.permutation(x))
                for fold in ("softmax", "log-softmax"):
                    cases.add_exponential(f"{centre} +- {spread}, {n}", fold, dtype, x)
        n = 150001
        x = random.standard_normal(n) * (1 if dtype == "f16" else 12)
        cases.add_exponential("long", "logsumexp", dtype, x, random.permutation(x))
        cases.add_exponential("long", "softmax", dtype, x)
        cases.add_exponential("nothing", "logsumexp", dtype, [])
        cases.add_exponential("near 0", "logsumexp", dtype, [-66.0, 0.0, -65.0, -67.0, -500.0], [-500.0, 0.0, -67.0, -66.0, -65.0])
        cases.add_exponential("only -inf", "logsumexp", dtype, [-np.inf, -np.inf])
    for dtype in ("int8", "uint64", "int64"):
        info = np.iinfo(dtype)
        for fold in ("logsumexp", "softmax"):
            cases.add_exponential("integers", fold, dtype, random.integers(info.min, info.max, 300, dtype, endpoint=True))
    return cases


def check_exponentials(cases, path):
    """One rank of the CPU: within the bound of the oracle, the same in every order. Keeps the bits as what is due."""
    done, lines = run(path, 1, "cpu", 0)
    wrong, known = [], {}
    for index, ((key, fold, dtype, x, due), line) in enumerate(zip(cases.list, lines)):
        name = (key[0], dtype, fold)
        if fold == "logsumexp":
            value = parse(line)
            if due is not None and not (same(value, due[0]) or due[1] > 0 and abs(decimal.Decimal(value) - due[0]) <= due[1]):
                wrong.append(f"{name}: {line}, not {due[0]}")
            if known.setdefault(name, line) != line:
                wrong.append(f"{name}: {line} in another order, not {known[name]}")
        cases.list[index] = (key, fold, dtype, x, line)
    tap.ok(len(lines) == len(cases.list) and not wrong, f"{len(lines)} sums of exponentials", "\n".join(wrong[:10]) + done.stderr[-500:])


def run(path, ranks, backend, staging):
    done = tap.run(ranks, PROGRAM, backend, staging, path)
    return done, done.stdout.splitlines()


def check(cases, path, ranks, backend, staging, title):
    name = f"{title}, {ranks} ranks, {backend}: {len(cases.list)} cases"
    if not tap.wanted(name):
        return
    done, lines = run(path, ranks, backend, staging)
    if done.returncode != 0 or len(lines) != len(cases.list):
        tap.ok(False, name, f"{len(lines)} results\n{done.stderr[-2000:]}")
        return
    wrong = [f"{key}: {line}, not {due.hex() if isinstance(due, float) else due}"
             for (key, _, _, _, due), line in zip(cases.list, lines)
             if (line != due if isinstance(due, str) and due != "no value"
                 else not same(parse_stats(line) if isinstance(due, tuple) else parse(line), due))]
    tap.ok(lines and not wrong, name, "\n".join(wrong[:10]) + f"\n{len(wrong)} wrong")


def check_golden(folder, backend):
    """The bits that are written down, by one rank each (by a device those of every fourth, and of every third if no other checks are made); every sixth by three ranks in small shards, too."""
    with open(os.path.join(tap.SOURCE, "tests", "exact_golden.txt"), encoding="ascii") as file:
        cases = [line.split() for line in file if not line.startswith("#")][::4 if backend != "cpu" else 3 if GOLDEN_ONLY else 1]
    options = ["--sum=exact", "--json", f"--backend={backend}"]

    def words(number, command, name):
        output = os.path.join(folder, f"golden{number}.raw")
        return [command, name, *options] + (["-o", output] if "softmax" in command else [])

    again = cases[::6]
    done = cli.each_alone(words(number, *case[:2]) for number, case in enumerate(cases))
    done += cli.each((3, words(len(cases) + number, *case[:2]) + ["--staging=4Ki"]) for number, case in enumerate(again))
    wrong = []
    for number, (process, (command, name, due)) in enumerate(zip(done, cases + again)):
        found = json.loads(process.stdout) if process.returncode == 0 else {"hex": cli.shown(process), "level": None}
        if "output" in found:
            with open(found["output"], "rb") as file:
                found["hex"] = f"{zlib.crc32(file.read()):#010x}"
        value = found["stats"]["variance"] if "stats" in found else found
        if value["hex"] != due or found["level"] != "exact":
            wrong.append(f"{command} {name}: {value['hex']}, not {due}")
    tap.ok(len(done) > 20 and not wrong, f"{len(done)} golden values, {backend}", "\n".join(wrong))


def check_ends(folder, backend):
    """What becomes of the real number at last: one rounding, to the format asked for; zeros; integers that int64 cannot hold. A device has
    a part in sums only, so level exact is enough there."""
    wrong = []
    levels = ([], ["--sum=fast"]) if backend == "cpu" else ([],)

    def values(command, x, *options):
        """A fold's value, or all of stats by name, as hexadecimal numbers."""
        path = os.path.join(folder, "end.npy")
        np.save(path, x)
        done = cli.alone(command, path, "--json", f"--backend={backend}", *options)
        found = json.loads(done.stdout) if done.returncode == 0 else {}
        return {name: one["hex"] for name, one in found.get("stats", {"value": found} if found else {}).items()} or {"value": cli.shown(done)}

    def value(command, x, *options, field="value"):
        return values(command, x, *options).get(field, "nothing")

    def expect(due, *arguments, **more):
        found = value(*arguments, **more)
        if found != due:
            wrong.append(f"{arguments} {more}: {found}, not {due}")

    expect("0x1.000002p+0", "sum", np.array([1, 2.0**-24, 2.0**-60]), "--output-type=f32")
    expect("0x1p+0", "sum", np.array([1, 2.0**-24]), "--output-type=f32")
    expect("0x1.0000000000001p+0", "norm2", np.array([1, 2.0**-26, 2.0**-53, 2.0**-500]))
    expect("0x1p+0", "norm2", np.array([1, 2.0**-26, 2.0**-53]))
    # a root below 2^-1022, which a rounding to 53 bits on the way would end wrong
    small = [float.fromhex(f"0x{digits}p-1022") for digits in 82 * ["0.01a94665d449f"] + ["0.50576c570ec36", "0.d8ab910b4d396"]]
    for options in levels:
        expect("0x0.e7933883111afp-1022", "norm2", np.array(small), *options)
    for zeros in ([-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0]):
        for field in ("min", "max"):
            for options in levels:
                expect("0x0p+0", "stats", np.array(zeros), *options, field=field)
    # three of the largest int64: 3 * 2^63 - 3, and as much below zero; 2^65 - 3 * 2^40 is half way between two f32
    largest, halfway = np.full(3, 2**63 - 1), np.array([2**63 - 1, 2**63 - 1, 2**63 - 1, 2**63 - 3 * 2**40 + 3, 1])
    for options in levels:
        expect("0x1.8p+64", "sum", largest, "--output-type=f64", *options)
        expect("-0x1.8p+64", "sum", -largest, "--output-type=f32", *options)
        expect("0x1.fffffep+64", "norm1", halfway, "--output-type=f32", *options)
        expect("inf", "sum", largest, "--output-type=f16", *options)
        expect("0x1.8p+64", "stats", largest, "--output-type=f32", *options, field="sum")
    # results of integers are rounded once at both levels: fractions of wide numbers, and roots of 130 bits and more
    random = np.random.default_rng(9)
    for x in (random.integers(-2**63, 2**63 - 1, 101), random.integers(2**63, 2**64 - 1, 77, dtype=np.uint64),
              random.integers(-128, 127, 1001, dtype=np.int8), np.array([2**31, 2**31 - 1, 5], dtype=np.uint32)):
        numbers = [int(number) for number in x]
        total, squares = sum(numbers), sum(number * number for number in numbers)
        dues = {"mean": rounded(total, len(x)), "norm2": root(squares, 0), "variance": rounded(len(x) * squares - total**2, len(x) ** 2),
                "std": root(len(x) * squares - total**2, 0, len(x))}
        for options in levels:
            found = {**values("stats", x, *options), "std": value("std", x, *options)}
            wrong += [f"{field} of {len(x)} {x.dtype} {options}: {found[field]}, not {due.hex()}" for field, due in dues.items()
                      if float.fromhex(found[field]) != due]
    tap.ok(not wrong, f"results are rounded once, {backend}", "\n".join(wrong))


def check_merge(folder, backend):
    """Folds of pieces, merged, have the bits of the whole; what cannot be merged is refused."""
    random = np.random.default_rng(22)
    options = ["-q", "--sum=exact", f"--backend={backend}"]
    pieces = [random_values(random, "f64", "few exponents", n) for n in (1000, 1, 0, 70000)]
    pieces[1][:] = np.nan
    for number, piece in enumerate(pieces):
        np.save(os.path.join(folder, f"{number}.npy"), piece)
    for command, more, chosen in (("sum", [], (0, 2, 3)), ("norm2", [], (3, 0)), ("stats", ["--nan=omit"], (0, 1, 3)),
                                  ("mean", ["--output-type=f32"], (3, 0)), ("logsumexp", [], (0, 3)), ("argmax", ["--nan=omit"], (3, 0))):
        options_of = [option for option in options if command != "argmax" or not option.startswith("--sum")]
        files = []
        for number in chosen:
            files.append(os.path.join(folder, f"{command}{number}.fold"))
            keep = ["--nan=propagate"] if command in ("stats", "argmax") else []
            done = cli.ranks(1 + number % 2, command, os.path.join(folder, f"{number}.npy"), *options_of, *keep,
                             f"--partial={files[-1]}")
            if done.returncode != 0:
                tap.ok(False, f"{command} --partial", cli.shown(done))
        np.save(os.path.join(folder, "whole.npy"), np.concatenate([pieces[number] for number in chosen]))
        whole = cli.alone(command, os.path.join(folder, "whole.npy"), *options_of, *more)
        merged = cli.alone("merge", "-q", *files, *more)
        tap.ok(whole.returncode == 0 and merged.stdout == whole.stdout, f"{command} of {len(chosen)} merged pieces, {backend}",
               cli.shown(whole) + cli.shown(merged))
    if backend != "cpu":
        return
    check_counts(folder)
    check_version_2(folder)
    first, other = os.path.join(folder, "sum0.fold"), os.path.join(folder, "norm23.fold")
    fast, single = os.path.join(folder, "fast.fold"), os.path.join(folder, "single.fold")
    cli.alone("sum", os.path.join(folder, "0.npy"), "--sum=fast", f"--partial={fast}")
    cli.alone("sum", "gen:ramp?n=10&dtype=f32", f"--partial={single}")
    with open(first, "rb") as file:
        data = bytearray(file.read())
    data[100] ^= 1
    with open(os.path.join(folder, "damaged.fold"), "wb") as file:
        file.write(data)
    for words, said in (([first, other], "found norm2"), ([first, fast], "found sum of f64, fast"), ([fast, first], "found sum of f64, exact"),
                        ([first, single], "found sum of f32"), ([os.path.join(folder, "damaged.fold")], "damaged"),
                        ([os.path.join(folder, "none.fold")], "no such file"), ([first, "--nan=omit"], "--nan")):
        done = cli.alone("merge", *words)
        fault = cli.refused(done, 2 if "--nan=omit" in words else 1, said)
        tap.ok(not fault, f"merge refuses: {said}", fault)


def check_counts(folder):
    """Partials of more elements than there are: eight times as many with each merge, or twice, as far as there is room for them."""
    merged, one = (os.path.join(folder, f"{name}.fold") for name in ("merged", "one"))
    for command, value, source, doublings, said in (
            ("logsumexp", repr(15.4999 * math.log(2)), "f64", 41, "at most 2^41 exponentials"), ("mean", "1.5", "f32", 62, "2^63 - 1")):
        cli.alone(command, "-q", f"gen:constant?n=1&dtype={source}&value={value}", "--backend=cpu", f"--partial={one}")
        for files in doublings // 3 * [8] + doublings % 3 * [2]:
            whole = cli.alone("merge", "-q", *files * [one], f"--partial={merged}")
            os.replace(merged, one)
        due = {"logsumexp": 41 * math.log(2) + float(value), "mean": 1.5}[command]
        more = cli.alone("merge", "-q", one, one)
        tap.ok(whole.returncode == 0 and math.isclose(float(whole.stdout.split()[0]), due, rel_tol=1e-15)
               and not cli.refused(more, 1, said), f"{command} of 2^{doublings} elements, and no more", cli.shown(whole) + cli.shown(more))


def partial_of_version_2(fold, level, x):
    """A partial of integers as files of version 2 have it."""
    def words(value, limbs):
        digits = [value >> 32 * i & 0xffffffff for i in range(limbs - 1)] + [value >> 32 * (limbs - 1)]
        return struct.pack(f"<{limbs + 4}q", *digits, 0, 0, 0, int(len(x) > 0))

    def wide(value, bits):
        return (value >> bits).to_bytes(16, "little", signed=True) + (value & (1 << bits) - 1).to_bytes(16, "little")

    numbers = [int(number) for number in x]
    total, magnitudes, squares = sum(numbers), sum(map(abs, numbers)), sum(number * number for number in numbers)
    sums = [total.to_bytes(16, "little", signed=True), magnitudes.to_bytes(16, "little"), wide(squares, 64)]
    ends = [(number if number < 2**63 else number - 2**64).to_bytes(8, "little", signed=True) + struct.pack("<QQQ", i, 0, 2**64 - 1)
            for number, i in ((min(numbers), x.argmin()), (max(numbers), x.argmax()))]
    if level == "exact":
        sums = [words(total, 7), words(magnitudes, 7), words(squares, 9)]
    moments = struct.pack("<dddQ", len(x), 0.5, 0.5, 7)  # of which nothing is taken
    stats = b"".join(sums + ends if level == "exact" else ends + sums + [moments])
    return {"sum": sums[0], "mean": sums[0], "norm1": sums[1], "norm2": sums[2], "stats": stats,
            "argmax": ends[1]}[fold]


def write_version(path, version, fold, level, x, partial):
    contents = struct.pack("<Q16s8s8sQQQ", version, fold.encode(), x.dtype.name.encode(), level.encode(), len(x), len(partial), len(x))
    data = b"allfoldP" + struct.pack("<Q", 2624) + contents + partial.ljust(2560, b"\0")
    checksum = 0xcbf29ce484222325
    for byte in data:
        checksum = (checksum ^ byte) * 0x100000001b3 % 2**64
    with open(path, "wb") as file:
        file.write(data + struct.pack("<Q", checksum))


def check_version_2(folder):
    """Partials of integers in files of version 2, merged with those of today, have the bits of the whole. Other versions are refused."""
    old, new, half, whole = (os.path.join(folder, name) for name in ("old.fold", "new.fold", "half.npy", "whole.npy"))
    wrong = []
    for x in (np.array([-2**63, 5, 2**63 - 1, -2**63, -9]), np.array([2**64 - 1, 7, 2**64 - 1, 2**64 - 1], dtype=np.uint64),
              np.array([-3, -128, -128, 127, -1], dtype=np.int8)):
        np.save(half, x[3:])
        np.save(whole, x)
        for level, fold in ((level, fold) for level in ("exact", "fast") for fold in ("sum", "mean", "norm1", "norm2", "stats", "argmax")):
            options = ["--output-type=f64"] if fold in ("sum", "norm1") else []
            words = ["-q"] + [f"--sum={level}"] * (fold != "argmax")
            write_version(old, 2, fold, "exact" if fold == "argmax" else level, x[:3], partial_of_version_2(fold, level, x[:3]))
            kept = cli.alone(fold, half, *words, *options, f"--partial={new}")
            merged, due = cli.alone("merge", "-q", old, new, *options), cli.alone(fold, whole, *words, *options)
            if kept.returncode != 0 or due.returncode != 0 or merged.stdout != due.stdout:
                wrong.append(f"{fold} of {x.dtype}, {level}: {cli.shown(merged)} not {cli.shown(due)}")
    tap.ok(not wrong, "partials of version 2 merge with those of today", "\n".join(wrong))
    write_version(old, 2, "sum", "exact", x[:3], partial_of_version_2("norm2", "exact", x[:3]))
    length = cli.refused(cli.alone("merge", old), 1, "expected a partial of version 4, found one of version 2 (sum of int8, exact, 104 bytes)")
    write_version(old, 1, "sum", "fast", x[:3], partial_of_version_2("sum", "fast", x[:3]))
    fault = length or cli.refused(cli.alone("merge", old), 1, "found one of version 1")
    write_version(old, 3, "logsumexp", "exact", x[:3], bytes(96))
    fault = fault or cli.refused(cli.alone("merge", old), 1, "found one of version 3 (logsumexp of int8, exact, 96 bytes)")
    tap.ok(not fault, "partials of another version, of other terms, or of another length, are refused", fault)
    write_version(old, 3, "sum", "exact", x[:3], partial_of_version_2("sum", "fast", x[:3]))
    read = cli.alone("merge", "-q", old)
    tap.ok(read.stdout.split() == [str(int(x[:3].sum(dtype=int)))], "a partial of version 3 is read", cli.shown(read))


def check_all(folder, backends):
    small, large = os.path.join(folder, "small"), os.path.join(folder, "large")
    random, many = random_cases(4000), large_cases()
    many.write(large)
    powers, exponents = os.path.join(folder, "exponentials"), exponential_cases()
    exponents.write(powers)
    check_exponentials(exponents, powers)
    only = set(map(int, os.environ.get("ALLFOLD_TEST_RANKS", "").split()))

    def chosen(cases):
        return [case for case in cases if not only or case[0] in only]

    for backend in backends:
        check_merge(folder, backend)
        for ranks, step in chosen(((1, 1), (2, 2), (3, 1), (5, 3), (16, 11))[:5 if backend == "cpu" else 3]):  # ranks that share cores are slow
            part = random.every(step)
            part.write(small)
            check(part, small, ranks, backend, 0 if ranks % 2 else 256, "small arrays")
        for ranks, staging in chosen(((1, 256), (2, 0), (3, 256), (16, 0)) if backend == "cpu" else ((1, 0), (1, 256), (3, 0))):
            check(exponents, powers, ranks, backend, staging, "exponentials")
        for ranks, staging in chosen(((1, 0), (3, 4096), (7, 4096))[:3 if backend == "cpu" else 2]):
            check(many, large, ranks, backend, staging, "long arrays")


def main():
    """ALLFOLD_TEST_GOLDEN_ONLY: a part of the bits that are written down and results of few elements, in seconds."""
    cli.ignore_leaks()
    with tempfile.TemporaryDirectory() as folder:
        backends = list(cli.backends())
        for backend in backends:
            check_golden(folder, backend)
            check_ends(folder, backend)
        if not GOLDEN_ONLY:
            check_all(folder, backends)
    tap.done()


main()
