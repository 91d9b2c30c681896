#!/usr/bin/env python3
"""Dot products against rational numbers: at level exact to the bit, at level fast within its bound, of every element type, at
several numbers of ranks, from host and device memory and in shards, on every backend and on devices that stand in for GPUs."""
import math
import os
import struct
import tempfile

import numpy as np

import cli
import tap

TYPE_NUMBER = {name: 1 + i for i, name in enumerate(cli.TYPES)}  # in the order of ALLFOLD_TYPES; 0 is no type
LEAST = {"f16": -24, "bf16": -133, "f32": -149, "f64": -1074}  # exponents of the smallest and above the largest number
MOST = {"f16": 16, "bf16": 128, "f32": 128, "f64": 1024}
DIGITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
SCALE = 1074  # finite numbers are integers in units of 2^-SCALE, products in those of 2^-(2 * SCALE)


def integer(x):
    numerator, denominator = x.as_integer_ratio()
    return (numerator << SCALE) // denominator


def rounded(product, dtype):
    """product * 2^-(2 * SCALE), not 0, to the nearest number of a floating-point type, ties to even."""
    magnitude = abs(product)
    last = max(magnitude.bit_length() - DIGITS[dtype], LEAST[dtype] + 2 * SCALE)  # the bit that the rounded number ends with
    kept, rest = magnitude >> last, magnitude & ((1 << last) - 1)
    kept += rest << 1 > 1 << last or (rest << 1 == 1 << last and kept & 1)
    try:
        value = math.ldexp(kept, last - 2 * SCALE)
    except OverflowError:
        value = math.inf
    value = math.inf if value >= 2.0 ** (MOST[dtype] - 1) * 2 else value
    return -value if product < 0 else value


def is_negative(x):
    return math.copysign(1, x) < 0


def oracle(x, y, target):
    """The dot product of Python's numbers, rounded once to the target type; of integers, if that is None, an integer."""
    if x and isinstance(x[0], int):
        total = sum(a * b for a, b in zip(x, y))
        return total if target is None else rounded(total << 2 * SCALE, target) if total else 0.0
    if not all(map(math.isfinite, x)) or not all(map(math.isfinite, y)):
        special = {a * b for a, b in zip(x, y) if not (math.isfinite(a) and math.isfinite(b))}
        return special.pop() if len(special) == 1 else math.nan
    total = sum(integer(a) * integer(b) for a, b in zip(x, y))
    if total:
        return rounded(total, target or "f64")
    return -0.0 if x and all((a == 0 or b == 0) and is_negative(a) != is_negative(b) for a, b in zip(x, y)) else 0.0


def bound(x, y, dtype, due):
    """How far level fast may lie off."""
    magnitudes, n = sum(abs(integer(a) * integer(b)) for a, b in zip(x, y)), len(x)
    size = magnitudes / (1 << 2 * SCALE)
    return math.ulp(due) + (n * n * 2.0**-106 * size + n * 2.0**-1074 if dtype == "f64" else 4e-15 * size)


def held(dtype, values):
    """values as the type holds them, and as Python's numbers."""
    with np.errstate(over="ignore"):
        x = cli.exact(dtype, np.asarray(values, np.float64)) if dtype in cli.FLOATS else np.array(values, dtype)
    return x, [float(v) for v in x] if dtype in cli.FLOATS else [int(v) for v in x]


class Cases:
    """Pairs of arrays, with what is due: a number, and how far from it the result may be; or a status."""

    def __init__(self):
        self.list = []

    def add(self, name, dtype, x, y, level="exact", target=None):
        (x, a), (y, b) = held(dtype, x), held(dtype, y)
        due, off = oracle(a, b, target), 0.0
        if dtype not in cli.FLOATS and target is None:
            kind = np.iinfo(np.int64 if dtype in cli.SIGNED else np.uint64)
            due = due if kind.min <= due <= kind.max else "integer overflow"
        elif level == "fast" and dtype in cli.FLOATS and math.isfinite(due):
            off = bound(a, b, dtype, due)
        self.list.append(((name, dtype, level, target), x, y, due, off))

    def write(self, path):
        with open(path, "wb") as file:
            for (_, dtype, level, target), x, y, _, _ in self.list:
                file.write(struct.pack("<IIIIQddQ", level == "fast", TYPE_NUMBER[dtype], TYPE_NUMBER[target] if target else 0, 0, x.size, 0, 0, 0))
                for z in (x, y):
                    file.write((cli.bf16_bits(z) if dtype == "bf16" else z).tobytes())


def exponents(random, least, most, n):
    return random.choice([-1.0, 1.0], n) * np.ldexp(1 + random.random(n), random.integers(least, most, n))


def random_pair(random, dtype, kind, n):
    least, most = LEAST[dtype], MOST[dtype]
    if kind == "normal":
        return random.standard_normal(n), random.standard_normal(n)
    if kind == "all exponents":
        return exponents(random, least, most, n), exponents(random, least, most, n)
    if kind == "underflow":  # products around the smallest number, and far below it
        return exponents(random, least // 2 - 30, least // 2 + 60, n), exponents(random, max(least, least // 2 - 200), least // 2 + 1, n)
    if kind == "overflow":  # products beyond the largest number, which cancel but for one
        x, y = exponents(random, most - 9, most, n), exponents(random, most - 9, most, n)
        order = random.permutation(2 * n + 1)
        return np.r_[x, x, 1.0][order], np.r_[y, -y, exponents(random, least, most, 1)][order]
    if kind == "cancelling":  # pairs of all sizes, and one product that is left, in the end or far below
        x, y = exponents(random, least, most, n), exponents(random, least, most, n)
        order = random.permutation(2 * n + 1)
        return np.r_[x, y, exponents(random, least, most, 1)][order], np.r_[y, -x, exponents(random, least, most, 1)][order]
    if kind == "halfway":  # the sum ends between two numbers, or a little beside
        one = 1 + random.integers(0, 2**9) * 2.0 ** (1 - DIGITS[dtype])
        tail = float(random.integers(-1, 2)) * math.ldexp(1.0, max(least, -300))
        return np.array([one, 2.0 ** -(DIGITS[dtype] // 2), tail]), np.array([1.0, 2.0 ** -(DIGITS[dtype] - DIGITS[dtype] // 2), 0.5])
    if kind == "special":
        x, y = random.standard_normal(n), random.standard_normal(n)
        for _ in range(int(random.integers(1, 3))):
            x[random.integers(0, n)] = random.choice([math.nan, math.inf, -math.inf, 0.0])
            y[random.integers(0, n)] = random.choice([math.inf, -math.inf, 0.0])
        return x, y
    return random.choice([-0.0, 0.0], n, p=[0.9, 0.1]), random.choice([-0.0, 0.0, 1.0, 7.0], n, p=[0.02, 0.02, 0.5, 0.46])


KINDS = ["normal", "all exponents", "underflow", "overflow", "cancelling", "halfway", "special", "zeros"]


def small_cases(count):
    cases = Cases()
    random = np.random.default_rng(40)
    for number in range(count):
        dtype = ("f32", "f64", "bf16", "f16")[number % 4]
        kind = KINDS[number // 4 % len(KINDS)]
        n = int(random.choice([1, 2, 3, 7, 16, 33, 100, 300, 700]))
        cases.add(f"{kind} {number}", dtype, *random_pair(random, dtype, kind, n),
                  target=(None, None, "f32", "bf16", "f16")[number // 32 % 5] if kind != "zeros" else None)
        if kind in ("normal", "special", "zeros"):
            cases.add(f"{kind} {number}", dtype, *random_pair(random, dtype, kind, n), level="fast")
    for exponent in range(-1060, -940, 10):  # the products cancel, but for their rounding errors, of which doubles hold a part only
        x, y = np.ldexp(1 + random.random(300), exponent + 500), 1 + random.random(300)
        y *= 2.0**-500
        cases.add(f"rounding errors at 2^{exponent}", "f64", np.r_[x, np.ldexp(x * y, 500)], np.r_[y, np.full(300, -(2.0**-500))])
    for dtype in cli.SIGNED + cli.UNSIGNED:
        info = np.iinfo(dtype)
        x, y = (random.integers(info.min, info.max, 700, dtype, endpoint=True) for _ in range(2))
        for level in ("exact", "fast"):
            for target in (None, "f64", "f32"):
                cases.add("integers", dtype, x, y, level, target)
            cases.add("small integers", dtype, x // np.array(97, dtype), y // np.array(89, dtype), level)
            cases.add("beyond 127 bits", dtype, [info.min or info.max] * 7, [info.min or info.max] * 7, level)
            cases.add("beyond 127 bits", dtype, [info.min or info.max] * 7, [info.min or info.max] * 7, level, "f64")
    for dtype in cli.FLOATS:
        for level in ("exact", "fast"):
            cases.add("nothing", dtype, [], [], level)
    return cases


def large_cases():
    """Arrays of many blocks and shards, some of whose products no window holds."""
    cases = Cases()
    random = np.random.default_rng(41)
    for dtype in cli.FLOATS:
        n = 150001
        for level in ("exact", "fast"):
            cases.add("many normal", dtype, random.standard_normal(n), random.standard_normal(n), level)
        for kind in ("all exponents", "underflow", "overflow", "cancelling"):
            cases.add(f"many, {kind}", dtype, *random_pair(random, dtype, kind, n // 5))
        large = math.ldexp(2 - 2.0 ** (1 - DIGITS[dtype]), 7)
        x = np.full(n, large)
        x[::4] = math.ldexp(1.0, max(LEAST[dtype], -140))
        cases.add("full words", dtype, x, x)
    return cases


def value_of(line):
    return line if " " in line else float.fromhex(line) if "x" in line or "n" in line else int(line)


def right(value, due, off):
    if isinstance(value, float) and isinstance(due, float):
        return value == due and is_negative(value) == is_negative(due) or math.isnan(value) and math.isnan(due) or abs(value - due) <= off
    return type(value) is type(due) and value == due


def check(run, cases, path):
    cli.check_operands("dot products", run, path, len(cases.list), lambda lines: [
        f"{key}: {line}, not {due.hex() if isinstance(due, float) else due}"
        for (key, _, _, due, off), line in zip(cases.list, lines) if not right(value_of(line), due, off)])


def main():
    cli.ignore_leaks()
    with tempfile.TemporaryDirectory() as folder:
        small, large = os.path.join(folder, "small"), os.path.join(folder, "large")
        few, many = small_cases(800), large_cases()
        few.write(small)
        many.write(large)
        for run in cli.operand_runs(((1, 0), (2, 4096), (3, 0))):
            check(run, few, small)
            if run[0] != "standin":
                check(run, many, large)
    tap.done()


main()
