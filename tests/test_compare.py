#!/usr/bin/env python3
"""Comparisons of two arrays against rational numbers: every pair of element types, at several numbers of ranks, from host and device memory and
in shards, on every backend and on devices that stand in for GPUs; and the command: files of all formats, missing values, chunks, names in pairs,
places, statuses."""
import math
import os
import struct
import tempfile

import numpy as np

import cli
import tap
from format_files import Cdf, tensor, write_safetensors

try:
    import h5py
except ImportError:
    h5py = None

TYPE_NUMBER = {name: 1 + i for i, name in enumerate(cli.TYPES)}  # in the order of ALLFOLD_TYPES; 0 is no type
INTEGERS = [name for name in cli.TYPES if name not in cli.FLOATS]
SCALE = 1074  # finite numbers are integers in units of 2^-SCALE


# ---- what is due

def scaled(x):
    numerator, denominator = x.as_integer_ratio()
    return (numerator << SCALE) // denominator


def ratio(numerator, denominator):
    """Rounded once to a double."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def root(numerator, denominator):
    """The root of a rational number, rounded once: of 4^k times the number, with a bit for what is left."""
    if numerator == 0:
        return 0.0
    k = max(0, 70 - (numerator.bit_length() - denominator.bit_length()) // 2)
    whole, rest = divmod(numerator << 2 * k, denominator)
    found = math.isqrt(whole)
    return ratio(2 * found + (found * found != whole or rest != 0), 2 << k)


def narrower(a_type, b_type):
    if a_type not in cli.FLOATS or a_type != b_type and cli.BYTES[a_type] == cli.BYTES[b_type]:
        return None
    return min(a_type, b_type, key=cli.BYTES.get)


def step(dtype, x):
    """The place of a number among those of a type, to which it is rounded."""
    if dtype == "bf16":  # by way of an f32 that is rounded to odd
        nearest = np.float32(x)
        bits = int(nearest.view(np.uint32))
        if float(nearest) != x and not bits & 1:
            bits += 1 if (abs(float(nearest)) < abs(x)) else -1
        bits = bits + 0x7FFF + (bits >> 16 & 1) >> 16
        return -(bits & 0x7FFF) if bits >> 15 else bits
    held = np.array(x, np.float64).astype(cli.ULP_TYPES[dtype])
    bits, width = int(held.view(f"u{held.itemsize}")), 8 * held.itemsize
    return -(bits & (1 << width - 1) - 1) if bits >> width - 1 else bits


class Due:
    """What a comparison of two lists of Python's numbers must find."""

    def __init__(self, a_type, b_type, a, b, atol=0.0, rtol=0.0, equal_nan=False):
        self.real, self.units, self.atol, self.rtol, self.equal_nan = a_type in cli.FLOATS, narrower(a_type, b_type), atol, rtol, equal_nan
        self.different = self.nan_a = self.nan_b = self.nan_both = self.total = self.squares = 0
        self.infinite, self.outside, self.count = set(), [], len(a)
        self.largest = [(0 if i == 2 else 0.0, -1, 0, 0) for i in range(3)]
        with np.errstate(over="ignore"):
            for i, (x, y) in enumerate(zip(a, b)):
                if x != y:
                    self.take(i, x, y)
        self.finish()

    def take_nan(self, i, x, y):
        differs = not (x != x and y != y and self.equal_nan)
        self.nan_a += x != x and y == y
        self.nan_b += y != y and x == x
        self.nan_both += x != x and y != y
        self.different += differs
        self.outside += [i] if differs else []

    def take(self, i, x, y):
        if x != x or y != y:
            self.take_nan(i, x, y)
            return
        self.different += 1
        if self.real and (math.isinf(x) or math.isinf(y)):
            self.infinite.add(x - y)
            size, difference = abs(float(y)), math.inf
        else:
            d = scaled(x) - scaled(y) if self.real else x - y
            self.total += d
            self.squares += d * d
            size, difference = (abs(y), ratio(abs(d), 1 << SCALE)) if self.real else (float(abs(y)), float(abs(d)))
        if not difference <= self.atol + self.rtol * size or math.isinf(difference):
            self.outside.append(i)
        relative = math.inf if math.isinf(difference) or size == 0 else difference / size
        apart = abs(step(self.units, x) - step(self.units, y)) if self.units else 0
        for which, found in enumerate((difference, relative, apart)):
            if found > self.largest[which][0]:
                self.largest[which] = (found, i, x, y)

    def finish(self):
        numbers = self.count - self.nan_a - self.nan_b - self.nan_both
        one = 1 << SCALE if self.real else 1
        self.mean, self.rmse = math.nan, math.nan
        if self.infinite:
            self.mean, self.rmse = self.infinite.pop() if len(self.infinite) == 1 else math.nan, math.inf
        elif numbers:
            self.mean, self.rmse = ratio(self.total, one * numbers), root(self.squares, one * one * numbers)

    def line(self):
        def text(x):
            return str(x) if isinstance(x, int) else "+nan" if math.isnan(x) else x.hex()
        return [self.count, self.different, len(self.outside), self.nan_a, self.nan_b, self.nan_both,
                *(text(x) for largest in self.largest for x in largest), text(self.mean), text(self.rmse)]


# ---- arrays in memory

def held(dtype, values):
    """values as the type holds them, and as Python's numbers."""
    with np.errstate(over="ignore"):
        x = cli.exact(dtype, np.asarray(values, np.float64)) if dtype in cli.FLOATS else np.array(values, dtype)
    return x, [float(v) for v in x] if dtype in cli.FLOATS else [int(v) for v in x]


def element_bytes(dtype, x):
    return (cli.bf16_bits(x) if dtype == "bf16" else x).tobytes()


class Cases:
    def __init__(self):
        self.list = []

    def add(self, name, a_type, b_type, a, b, **rule):
        (x, a), (y, b) = held(a_type, a), held(b_type, b)
        due = Due(a_type, b_type, a, b, **rule)
        head = struct.pack("<IIIIQddQ", 0, TYPE_NUMBER[a_type], 0, TYPE_NUMBER[b_type], len(a), due.atol, due.rtol, due.equal_nan)
        self.list.append(((name, a_type, b_type, len(a)), head + element_bytes(a_type, x) + element_bytes(b_type, y), due))

    def write(self, path):
        with open(path, "wb") as file:
            for _, data, _ in self.list:
                file.write(data)


def reals(random, kind, n):
    if kind == "normal":
        return random.standard_normal(n), random.standard_normal(n)
    a = random.standard_normal(n)
    if kind == "near":
        return a, a * (1 + random.choice([0.0, 1e-3, 2.0**-22, 1e-15], n, p=[0.7, 0.1, 0.1, 0.1]))
    if kind == "far":
        return tuple(random.choice([-1.0, 1.0], n) * np.ldexp(1 + random.random(n), random.integers(-1074, 1024, n)) for _ in range(2))
    if kind == "spread":  # differences of up to some 110 bits from the first of a block to the last
        bits = random.integers(0, 40)
        return tuple(np.ldexp(random.standard_normal(n), random.integers(-bits, bits, n, endpoint=True)) for _ in range(2))
    if kind == "drift":
        a = np.arange(1, n + 1) * 0.001
        return a, a * 1.001
    if kind == "tiny":  # subnormal numbers of each type, and zeros of both signs
        return tuple(random.integers(-3, 4, n) * random.choice([2.0**-24, 2.0**-133, 2.0**-149, 2.0**-1074, -0.0], n) for _ in range(2))
    if kind == "huge":  # whose differences no double holds
        return tuple(random.choice([-1.0, 1.0], n) * random.choice([1.7e308, 3e38, 65504.0], n) for _ in range(2))
    b = a.copy()  # special
    for x in (a, b):
        x[random.integers(0, n, n // 3 + 1)] = random.choice([math.nan, math.inf, -math.inf, 0.0], n // 3 + 1)
    return (a, b) if kind == "special" else (a, a)


def whole_numbers(random, a_type, b_type, kind, n):
    low, high = (f(np.iinfo(np.uint8 if t == "bool" else t).__getattribute__(m) for t in (a_type, b_type))
                 for f, m in ((max, "min"), (min, "max")))
    high = 1 if "bool" in (a_type, b_type) else high
    if kind == "near":
        a = random.integers(low, high, n, np.uint64 if high > 2**63 else np.int64, endpoint=True)
        return a, np.where(random.random(n) < 0.9, a, low)
    limits = [(0, 1) if t == "bool" else (np.iinfo(t).min, np.iinfo(t).max) for t in (a_type, b_type)]
    if kind == "middle":  # mostly within 2^42
        limits = [(max(low, -(2**42) - 3), min(high, 2**42 + 3)) for low, high in limits]
    return tuple(random.integers(*limit, n, dtype=np.uint64 if limit[1] > 2**63 else np.int64, endpoint=True) for limit in limits)


def small_cases():
    cases, random = Cases(), np.random.default_rng(50)
    rules = [{}, {"atol": 0.5}, {"rtol": 1e-3}, {"atol": 1e-6, "rtol": 0.25, "equal_nan": True}]
    number = 0
    for a_type in cli.FLOATS:
        for b_type in cli.FLOATS:
            for kind in ("normal", "near", "far", "spread", "drift", "tiny", "huge", "special", "same"):
                for _ in range(4 if a_type == b_type else 1):
                    n = int(random.choice([1, 2, 5, 16, 33, 100, 300, 700]))
                    cases.add(kind, a_type, b_type, *reals(random, kind, n), **rules[number % 4])
                    number += 1
            cases.add("nothing", a_type, b_type, [], [])
    for a_type in INTEGERS:
        for b_type in INTEGERS:
            for kind in ("near", "middle", "any"):
                n = int(random.choice([1, 3, 64, 300]))
                cases.add(kind, a_type, b_type, *whole_numbers(random, a_type, b_type, kind, n), **rules[number % 4])
                number += 1
    cases.add("ties", "f64", "f64", [1, 0, 3, 0, 5, 0, 7], [0, 1, 2, 1, 6, 1, 8])
    cases.add("a rounding decides", "f64", "f64", [0.1, 2.0**60], [0.3, 1.0], atol=0.19999999999999998)
    few, fewer = np.zeros(3000), np.zeros(3000)
    few[[0, 2990]], fewer[[0, 2990]] = (5, 1.5), (1, 1)
    cases.add("equal zeros, of which infinity times |b| is NaN", "f32", "f32", few, fewer, rtol=math.inf)
    cases.add("zeros", "f32", "f32", [0.0, -0.0, 1e-45, 0.0], [-0.0, 0.0, 0.0, 1.0])
    cases.add("NaN alone", "f16", "f16", [math.nan] * 9, [math.nan] * 8 + [1.0])
    cases.add("the widest integers", "uint64", "int64", [2**64 - 1, 0, 2**63], [-(2**63), -1, -(2**63)])
    return cases


def large_cases():
    """Arrays of many blocks, shards and rounds, at sizes around their bounds: equal but for a few, and all different."""
    cases, random = Cases(), np.random.default_rng(51)
    for i, (n, dtype) in enumerate([(2047, "f32"), (2049, "f64"), (4096, "bf16"), (4097, "f16"), (65535, "f32"), (65537, "f64"), (150001, "f32"),
                                    (150001, "f64"), (140003, "int32"), (70001, "uint8"), (70001, "uint64")]):
        if dtype in cli.FLOATS:
            a = random.standard_normal(n)
            b = a * random.choice([1.0, 1.0 + 2.0**-9], n)
        else:
            a = random.integers(0, 100, n)
            b = a + (random.random(n) < 0.01)
        for where in (0, n // 2, n - 1, n - 7):
            last = a.copy()
            last[where] += 2
            cases.add(f"one at {where}", dtype, dtype, a, last)
        cases.add("many", dtype, dtype, a, b, rtol=2.0**-9)
        if dtype in cli.FLOATS:
            cases.add("all", dtype, dtype, a, random.standard_normal(n))
            a[random.integers(0, n, 9)] = math.nan
            cases.add("some NaN", dtype, dtype, a, b, equal_nan=i % 2 == 0)
    return cases


def check(run, cases, path):
    cli.check_operands("comparisons", run, path, len(cases.list), lambda lines: [
        f"{key}: {line}\nnot {' '.join(map(str, due.line()))}" for (key, _, due), line in zip(cases.list, lines) if not same(line, due)])


def number_of(word):
    word = str(word)
    return float.fromhex(word) if "x" in word or "n" in word else int(word)


def same(line, due):
    words, expected = line.split(), due.line()
    if len(words) != len(expected):
        return False
    pairs = [(number_of(word), number_of(one)) for word, one in zip(words, expected)]
    return all(x == y or x != x and y != y for x, y in pairs)


def memory():
    with tempfile.TemporaryDirectory() as folder:
        small, large = os.path.join(folder, "small"), os.path.join(folder, "large")
        few, many = small_cases(), large_cases()
        few.write(small)
        many.write(large)
        for run in cli.operand_runs(((1, 0), (2, 4096), (3, 0), (5, 4096))):
            if run[0] != "standin" or run[1] <= 2:
                check(run, few, small)
            if run[0] != "standin" or run[1] == 1:
                check(run, many, large)


# ---- the command

def json_wrong(process, status, due, a, missing=()):
    """What of a report is not as it should be. a: the first array, for places."""
    if process.returncode != status:
        return cli.shown(process)
    found = cli.json.loads(process.stdout)
    names = ["max_abs", "max_rel", "max_ulp"][:3 if due.units else 2]
    expected = {"different": due.different, "outside": len(due.outside), "nan_a": due.nan_a, "nan_b": due.nan_b, "nan_both": due.nan_both,
                "within": not due.outside, **dict(missing)}
    for name, (value, index, x, y) in zip(names, due.largest):
        place = [int(i) for i in np.unravel_index(index, a.shape)] if index >= 0 else None
        expected.update({name: value if math.isfinite(value) else None, name + "_index": index if index >= 0 else None, name + "_place": place,
                         name + "_a": x if index >= 0 and math.isfinite(x) else None, name + "_b": y if index >= 0 and math.isfinite(y) else None})
    for name, value in (("mean_difference", due.mean), ("rmse", due.rmse)):
        expected[name] = value if math.isfinite(value) else None
    wrong = {name: (found.get(name, "nothing"), value) for name, value in expected.items() if found.get(name, "nothing") != value}
    return f"{wrong}\n{cli.shown(process)}" if wrong else ""


def arrays():
    """A pair for files: of three dimensions, different here and there."""
    random = np.random.default_rng(52)
    a = random.integers(-900, 900, (7, 20, 30)).astype(np.float32)
    b = a.copy()
    b[random.random(a.shape) < 0.01] += 0.5
    b[6, 19, 29] = math.nan
    return a, b


def due_of(a, b, **rule):
    names = {np.dtype(value): key for key, value in cli.ULP_TYPES.items()}
    types = [names.get(x.dtype, x.dtype.name) for x in (a, b)]
    return Due(*types, *([v.item() for v in x.ravel()] for x in (a, b)), **rule)


def save_all(folder, a, b):
    """The pair in files of all formats; names by format, of the first and the second."""
    names = {}
    for which, x in (("a", a), ("b", b)):
        np.save(folder.name(which + ".npy"), x)
        np.save(folder.name(which + "64.npy"), x.astype(np.float64))
        np.savez(folder.name(which + ".npz"), x=x)
        np.savez_compressed(folder.name(which + "z.npz"), x=x)
        write_safetensors(folder.name(which + ".safetensors"), {"x": tensor("F32", x)})
        cdf = Cdf(5, [("record", 0), ("t", 7), ("y", 20), ("x", 30)])
        cdf.add("x", [1, 2, 3], x)
        cdf.write(folder.name(which + ".nc"))
        names[which] = [folder.name(which + end) for end in (".npy", "64.npy", ".npz", "z.npz", ".safetensors", ".nc")]
    return names


def formats(folder):
    a, b = arrays()
    names, due = save_all(folder, a, b), due_of(a, b)
    wide = due_of(a, b.astype(np.float64))
    launches, expected = [], []
    for i, first in enumerate(names["a"]):
        second = names["b"][(i + 1) % len(names["b"])]
        launches.append((1 + i % 3, ["compare", "--json", "--backend=cpu", "--staging=4096", first, second]))
        expected.append(wide if "64" in second else due)
    wrong = [json_wrong(process, 3, one, a) for process, one in zip(cli.each(launches), expected)]
    tap.ok(not any(wrong), "arrays of all formats", "\n".join(filter(None, wrong)))


def missing_values(folder):
    """Values that are missing in one array, or in both, at places that pieces and ranks cut."""
    a, b = arrays()
    random = np.random.default_rng(53)
    gone = [random.random(a.shape) < 0.1 for _ in range(2)]
    for name, x, holes in (("ma.nc", a, gone[0]), ("mb.nc", b, gone[1])):
        cdf = Cdf(5, [("record", 0), ("t", 7), ("y", 20), ("x", 30)])
        cdf.add("x", [1, 2, 3], np.where(holes, np.float32(1e30), x), _FillValue=np.float32(1e30))
        cdf.write(folder.name(name))
    np.save(folder.name("whole.npy"), b)
    for second, holes in (("mb.nc", gone[1]), ("whole.npy", np.zeros_like(gone[1]))):
        both = ~gone[0] & ~holes
        due = due_of(np.where(both, a, 0).astype(np.float32), np.where(both, b, 0).astype(np.float32))
        alone = int((gone[0] ^ holes).sum())
        numbers = int(both.sum()) - due.nan_a - due.nan_b - due.nan_both
        due.mean, due.rmse = ratio(due.total, numbers << SCALE), root(due.squares, numbers << 2 * SCALE)
        due.different += alone
        due.outside = sorted(set(due.outside) | set(np.flatnonzero(gone[0] ^ holes).tolist()))
        missing = {"missing_a": int((gone[0] & ~holes).sum()), "missing_b": int((holes & ~gone[0]).sum()), "missing_both": int((gone[0] & holes).sum()),
                   "count": a.size}
        words = ["compare", "--json", "--backend=cpu", "--staging=4096", "--first=50", folder.name("ma.nc"), folder.name(second)]
        for process in cli.each([(ranks, words) for ranks in (1, 3)]):
            wrong = json_wrong(process, 3, due, a, missing)
            places = [] if wrong else [place["index"] for place in cli.json.loads(process.stdout)["places"]]
            tap.ok(not wrong and places == due.outside[:50], f"missing values, {second}", f"{wrong}\n{places}\n{due.outside[:50]}")


def chunks(folder):
    """Arrays in chunks beside others: of the same chunks, of none, in rows that pieces have room for, in columns; and with missing values."""
    if h5py is None:
        tap.skip("h5py is not there")
        return
    a, b = arrays()
    gone = np.random.default_rng(54).random(a.shape) < 0.1
    shapes = [None, (3, 7, 8), (7, 1, 30), (1, 20, 7), (2, 2, 2)]
    np.save(folder.name("c.npy"), b)
    with h5py.File(folder.name("c.h5"), "w") as file:
        for i, shape in enumerate(shapes):
            more = {} if shape is None else {"chunks": shape, "compression": "gzip"}
            file.create_dataset(f"a{i}", data=a, **more)
            file.create_dataset(f"b{i}", data=b.astype(np.float64) if i == 3 else b, **more)
            file.create_dataset(f"m{i}", data=np.where(gone, np.float32(1e30), a), **more).attrs["_FillValue"] = np.float32(1e30)
    due, wide = due_of(a, b), due_of(a, b.astype(np.float64))
    there = due_of(np.where(gone, 0, a).astype(np.float32), np.where(gone, 0, b).astype(np.float32))
    there.different += int(gone.sum())
    there.outside = np.flatnonzero(gone | (a != b)).tolist()
    numbers = int((~gone).sum()) - there.nan_b
    there.mean, there.rmse = ratio(there.total, numbers << SCALE), root(there.squares, numbers << 2 * SCALE)
    files, more = {kind: [folder.name("c.h5:") + f"{kind}{i}" for i in range(5)] for kind in "abm"}, ["compare", "--json", "--backend=cpu", "--staging=4096"]
    tried = [(x, y, wide if y.endswith("b3") else due, {}) for i, x in enumerate(files["a"]) for y in (files["b"][i], files["b"][(i + 2) % 5])]
    tried += [(files["a"][1], folder.name("c.npy"), due, {}), (files["m"][1], files["b"][1], there, {"missing_a": int(gone.sum()), "missing_b": 0}),
              (files["m"][2], files["b"][4], there, {"missing_a": int(gone.sum()), "missing_both": 0})]
    done = cli.each([(1 + i % 3, [*more, *(["--first=30"] if "m" in x[-2:] else []), x, y]) for i, (x, y, *_) in enumerate(tried)])
    wrong = [json_wrong(process, 3, expected, a, missing) for process, (_, _, expected, missing) in zip(done, tried)]
    wrong += ["places: " + cli.shown(process) for process in done[-2:]
              if [place["index"] for place in cli.json.loads(process.stdout or '{"places": []}')["places"]] != there.outside[:30]]
    tap.ok(not any(wrong), "arrays in chunks", "\n".join(filter(None, wrong)))


def pairs_by_name(folder):
    a, b = arrays()
    write_safetensors(folder.name("p.safetensors"), {"x": tensor("F32", a), "same": tensor("F32", a), "old": tensor("F32", a), "s": tensor("F32", a[0])})
    write_safetensors(folder.name("q.safetensors"), {"same": tensor("F32", a), "x": tensor("F32", b), "new": tensor("F32", a), "s": tensor("F32", a)})
    words = ["compare", folder.name("p.safetensors:*"), folder.name("q.safetensors:*")]
    text, one, many = cli.each([(1, words), (1, ["compare", "--json", "--first=2"] + words[1:]), (3, ["compare", "--json", "--first=2"] + words[1:])])
    due = due_of(a, b)
    lines = text.stdout.splitlines()
    tap.ok(text.returncode == 3 and len(lines) == 5 and lines[0].startswith(f"x  outside: {len(due.outside)} of 4200 outside")
           and lines[1].startswith("same  within: 0 of 4200") and "not compared" in lines[2] and lines[3:] == ["old  only in the first",
                                                                                                    "new  only in the second"],
           "a line for each pair, and what only one has", cli.shown(text))
    reports = [cli.json.loads(process.stdout) if process.returncode == 3 else {} for process in (one, many)]
    tap.ok(reports[0].get("arrays") == reports[1].get("arrays") and reports[0].get("only_a") == ["old"] and reports[0]["only_b"] == ["new"]
           and [place["index"] for place in reports[0]["arrays"][0]["places"]] == due.outside[:2] and reports[0]["arrays"][2]["refused"]
           and not reports[0]["within"], "the same as JSON, on one rank and on three", cli.shown(one) + cli.shown(many))


def statuses(folder):
    a, b = arrays()
    np.save(folder.name("f.npy"), np.asfortranarray(a))
    np.save(folder.name("i.npy"), a.astype(np.int32))
    np.save(folder.name("short.npy"), a[:3])
    np.save(folder.name("damaged.npy"), b)
    with open(folder.name("damaged.npy"), "r+b") as file:
        file.truncate(4000)
    x, y, pattern = folder.name("a.npy"), folder.name("b.npy"), folder.name("p.safetensors:*")
    expected = [(0, [x, x]), (0, ["--atol=0.5", x, x]), (3, [x, y]), (3, ["--atol=1", x, y]),  # NaN in one
                (0, ["gen:normal?n=1e5&seed=1", "gen:normal?n=1e5&seed=1"]), (3, ["gen:normal?n=1e5&seed=1", "gen:normal?n=1e5&seed=2"])]
    refused = [(1, [x, folder.name("short.npy")], "shape"), (1, [x, folder.name("i.npy")], "floating-point"), (1, [x, folder.name("f.npy")], "order"),
               (1, [x, folder.name("none.npy")], "none.npy"), (1, [x, folder.name("damaged.npy")], "damaged.npy"), (1, [folder.name("none.npy"), x], "none.npy"),
               (2, [x], "A B"), (2, [], "A B"), (2, [x, x, x], "too"), (2, ["-o", "z.npy", x, y], "no --output"), (2, ["--first=1001", x, y], "1000"),
               (2, ["--atol=-1", x, y], "atol"), (2, ["--rtol=nan", x, y], "rtol"), (2, [pattern, x], "pattern"), (2, ["--axis=0", x, y], "no --axis")]
    found = cli.each([(1, ["compare", *words]) for _, words in expected] + [(1 + i % 2, ["compare", *words]) for i, (_, words, _) in enumerate(refused)])
    wrong = [cli.shown(process) for (status, _), process in zip(expected, found) if process.returncode != status]
    wrong += [why for (status, _, word), process in zip(refused, found[len(expected):]) if (why := cli.refused(process, status, word))]
    tap.ok(not wrong, "exit statuses and refusals", "\n".join(wrong))


def main():
    cli.ignore_leaks()
    memory()
    if "cpu" in os.environ.get("ALLFOLD_TEST_BACKENDS", "cpu"):
        with cli.Folder() as folder:
            formats(folder)
            missing_values(folder)
            chunks(folder)
            pairs_by_name(folder)
            statuses(folder)
    tap.done()


main()
