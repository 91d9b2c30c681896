#!/usr/bin/env python3
"""Folds and softmax along axes (tests/programs/axis_folds.c) against NumPy, math.fsum and long double: every fold, element type, cut, level
and NaN policy over shapes, strides and splits at random, from host and device memory, on several ranks; at level exact the
same bits on all of them."""
import fractions
import itertools
import math
import os
import sys

import numpy as np

import cli
import tap
from axis_reference import FLOATS, TYPES, check_fold, check_softmax, integers, root, rounded, stored, values_of
from cli import FOLDS

PROGRAM = os.environ.get("ALLFOLD_AXIS_FOLDS", os.path.join(tap.BUILD, "tests", "programs", "axis_folds"))
OTHER_NAN = np.array([0x7ff8000020000000], "u8").view("f8")[0]  # of which f32 has its last bit
NAMES = ["count", "nan_count", "sum", "mean", "variance", "min", "max", "norm1", "norm2", "norminf"]
CUTS = ["outer", "axis", "inner"]
HOST, DEVICE, PINNED, MIXED = 0, 1, 2, 4
EXTENTS = [0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 64, 127, 257]
FIELDS = ["softmax", "fold", "type", "to", "outer", "length", "inner", "outer_stride", "axis_stride", "cut", "split", "nan", "ddof",
          "logarithm", "fast", "memory", "at", "elements", "small", "rank", "axes", "begin"]
RANK = 5


class Case:
    """One call: its fields, the array, and the box as an array of Python's own."""
    def __init__(self, random, **given):
        pick = lambda items: items[random.integers(len(items))]  # noqa: E731
        self.dtype = given.get("dtype") or pick(TYPES[1:])
        shape = given.get("shape") or (pick(EXTENTS[:14]), pick(EXTENTS), pick(EXTENTS[:14]) if random.random() < 0.6 else 1)
        self.outer, self.length, self.inner = shape
        gaps = given.get("gaps", random.random() < 0.4)
        self.axis_stride = max(self.inner, 1) + (int(random.integers(0, 4)) if gaps else 0)
        self.outer_stride = max(self.length, 1) * self.axis_stride + (int(random.integers(0, 9)) if gaps else 0)
        if gaps and random.random() < 0.3:  # the axis outside
            self.outer_stride = max(self.inner, 1) + int(random.integers(0, 3))
            self.axis_stride = max(self.outer, 1) * self.outer_stride + int(random.integers(0, 3))
        self.elements = (max(self.outer, 1) - 1) * self.outer_stride + (max(self.length, 1) - 1) * self.axis_stride + self.inner
        self.softmax = given.get("softmax", int(random.random() < 0.3))
        self.fold = FOLDS.index(given["fold"]) if "fold" in given else int(random.integers(len(FOLDS)))
        self.name = FOLDS[self.fold]
        self.cut = CUTS.index(given["cut"]) if "cut" in given else int(random.integers(3))
        self.split, self.memory = int(random.integers(4)), given.get("memory", int(random.integers(3)))
        self.fast = given.get("fast", int(random.random() < 0.3))
        self.logarithm, self.nan, self.ddof = self.softmax * given.get("logarithm", int(random.random() < 0.3)), 0, 0
        self.to = TYPES.index(pick(FLOATS)) if self.softmax or random.random() < 0.15 else 0
        if "to" in given:
            self.to = TYPES.index(given["to"])
        if not self.softmax and self.name in ("min", "max", "argmin", "argmax", "stats", "variance", "std"):
            self.nan = given.get("nan", int(random.integers(3)) if random.random() < 0.5 else 0)
        if not self.softmax and self.name in ("stats", "variance", "std"):
            self.ddof = given.get("ddof", int(random.integers(3)))
        self.type = TYPES.index(self.dtype)
        self.small = self.rank = self.axes = self.begin = 0
        self.extents, self.strides = (), ()
        self.array = given["array"] if "array" in given else self.numbers(random)
        self.x = np.lib.stride_tricks.as_strided(
            values_of(self.array, self.dtype), shape,
            tuple(s * values_of(self.array, self.dtype).itemsize for s in (self.outer_stride, self.axis_stride, 1)))

    def numbers(self, random):
        kind = np.dtype(stored(self.dtype))
        if self.dtype not in FLOATS:
            limits = np.iinfo(kind) if kind.kind != "b" else None
            if limits is None:
                return random.integers(0, 2, self.elements).astype(kind)
            small = random.random() < 0.7 or kind.itemsize < 8
            return random.integers(limits.min // (1 << 20) if small and kind.itemsize > 4 else limits.min,
                                   limits.max // (1 << 20) if small and kind.itemsize > 4 else limits.max, self.elements, dtype=kind)
        spread = random.random()
        x = random.standard_normal(self.elements) * (np.exp2(random.integers(-14, 13, self.elements)) if spread < 0.4 else 1.0)
        if self.dtype in ("f32", "f64", "bf16") and spread < 0.15 and not self.softmax:
            x = x * np.exp2(random.integers(-60, 50, self.elements).astype(float))
        if random.random() < 0.25 and self.elements > 0:
            x[random.integers(0, self.elements, 1 + self.elements // 50)] = random.choice([np.nan, OTHER_NAN, np.inf, -np.inf, -0.0])
        return cli.bf16_bits(x) if self.dtype == "bf16" else x.astype(kind)

    def line(self, at):
        self.at = at
        fill = (0,) * (RANK - self.rank)
        return " ".join(map(str, [*(getattr(self, field) for field in FIELDS), *self.extents, *fill, *self.strides, *fill, *self.weights_line()]))

    def weights_line(self):
        return (0,) * (3 + RANK)

    def data(self):
        return self.array.tobytes()

    def check(self, found):
        return (check_softmax if self.softmax else check_fold)(self, found)

    def apart(self, y):
        """The elements of a view in an array of all."""
        return np.lib.stride_tricks.as_strided(y, self.x.shape, tuple(s * y.itemsize for s in (self.outer_stride, self.axis_stride, 1)))

    def result_name(self, r):
        """Where an error says that result r is. None: ranks do not meet the first place first."""
        return None if self.cut == CUTS.index("inner") else f"[{r // self.inner}, :, {r % self.inner}]"

    def __str__(self):
        what = ("log-" if self.logarithm else "") + "softmax" if self.softmax else self.name
        return (f"{what} {self.dtype} to {TYPES[self.to]} {self.outer}x{self.length}x{self.inner} strides {self.outer_stride},"
                f"{self.axis_stride} cut {dict(enumerate(CUTS)).get(self.cut, self.cut)} split {self.split} nan {self.nan} ddof {self.ddof} fast {self.fast} "
                f"memory {self.memory}")

    def outputs(self):
        """Of each output the name, the type, and whether indices follow."""
        if self.softmax:
            return [("y", np.dtype(stored(TYPES[self.to])), False)]
        names = NAMES if self.name == "stats" else [self.name]
        return [(name, self.result_type(name), name in ("argmin", "argmax") or (len(names) > 1 and name in ("min", "max")))
                for name in names]

    def result_type(self, name):
        if name in ("count", "nan_count"):
            return np.dtype("u8")
        if self.to:
            return np.dtype(stored(TYPES[self.to]))
        if self.dtype in FLOATS or name in ("mean", "variance", "std", "norm2", "logsumexp"):
            return np.dtype("f8")
        return np.dtype("i8" if self.dtype.startswith("int") and name not in ("norm1", "norminf") else "u8")


class Spread(Case):
    """A call along any dimensions of several, which lie in memory in any order, with gaps, backwards, or repeated."""
    def __init__(self, random, **given):
        rank = int(random.integers(2, RANK + 1))
        self.folded = given.get("axes") or sorted(int(d) for d in random.permutation(rank)[:random.integers(1, rank + 1)])
        extents = given.get("extents") or [int(random.choice([1, 2, 3, 4, 5, 7, 11])) if random.random() < 0.98 else 0 for _ in range(rank)]
        if rank <= 3 and "extents" not in given and random.random() < 0.3: # tiles that are transposed, and runs of wide elements
            extents[:2] = random.permutation([34, int(random.choice([8, 12, 65]))]).tolist()
        self.kept = [d for d in range(len(extents)) if d not in self.folded]
        results, length = (math.prod(extents[d] for d in of) for of in (self.kept, self.folded))
        super().__init__(random, shape=(results, length, 1), gaps=False, **given)
        self.rank, self.axes, self.extents = len(extents), sum(1 << d for d in self.folded), extents
        self.cut, self.small = int(random.integers(self.rank)), given.get("small", int(random.random() < 0.7))
        self.strides, reach = [0] * self.rank, 1
        for d in random.permutation(self.rank) if random.random() < 0.7 else reversed(range(self.rank)):
            self.strides[d] = reach + int(random.integers(0, 3)) * int(random.random() < 0.2)
            if not self.softmax and random.random() < 0.05:
                self.strides[d] = 0
            reach += max(extents[d] - 1, 0) * self.strides[d]
            if random.random() < 0.15:
                self.begin += max(extents[d] - 1, 0) * self.strides[d]
                self.strides[d] *= -1
        self.elements = reach
        self.array = self.numbers(random)
        self.x = self.apart(values_of(self.array, self.dtype))

    def apart(self, y):
        strided = np.lib.stride_tricks.as_strided(y[self.begin:], self.extents, tuple(s * y.itemsize for s in self.strides))
        return strided.transpose(self.kept + self.folded).reshape(self.outer, self.length, 1)

    def result_name(self, r):
        if self.cut in self.kept and math.prod(self.extents[d] for d in self.kept if d < self.cut) != 1:
            return None
        place = dict(zip(self.kept, np.unravel_index(r, [self.extents[d] for d in self.kept]))) if self.kept else {}
        return "[" + ", ".join(str(place.get(d, ":")) for d in range(self.rank)) + "]"

    def __str__(self):
        return f"{super().__str__()} of {self.extents} strides {self.strides} axes {self.folded} dimension {self.cut}{', short pieces' * self.small}"


class Weighted(Spread):
    """The same with weights, which broadcast along some dimensions. wrong: one of them is not taken."""
    def __init__(self, random, wrong=False, **given):
        fold = given.pop("fold", None) or str(random.choice(["sum", "mean", "variance", "std"]))
        super().__init__(random, fold=fold, softmax=0, nan=0, ddof=0, to=str(random.choice(["f64", "f64", "f32", "bf16", "f16"])), **given)
        own = [extent if random.random() < 0.6 else 1 for extent in self.extents]
        w = random.random(own) * np.exp2(random.integers(-9, 9, own)) * (random.random(own) > 0.1)
        if fold == "sum":
            w -= 0.3
        self.wrong = wrong and w.size > 0 and not 0 in self.extents
        if self.wrong:
            w.ravel()[w.size // 2] = random.choice([-1, np.nan, np.inf] if fold != "sum" else [np.nan])
        self.w = w.astype(random.choice([np.float32, np.float64]))
        self.refused = self.dtype in ("int64", "uint64") or self.wrong and fold != "sum"

    def weights_line(self):
        strides = [stride // self.w.itemsize if extent > 1 else 0 for stride, extent in zip(self.w.strides, self.w.shape)]
        self.gap = bytes(-(self.at + self.array.nbytes) % 8)
        return [TYPES.index({4: "f32", 8: "f64"}[self.w.itemsize]), self.at + self.array.nbytes + len(self.gap), self.w.size, *strides,
                *(0,) * (RANK - self.rank)]

    def data(self):
        return self.array.tobytes() + self.gap + self.w.tobytes() + bytes(-self.w.nbytes % 8)

    def due(self, x, w):
        finite = [(v, u) for v, u in zip(x, w) if math.isfinite(v) and math.isfinite(u)]
        products = [v * u for v, u in zip(x, w) if not (math.isfinite(v) and math.isfinite(u))]
        (x, x_unit), (w, w_unit) = integers([v for v, _ in finite]), integers([u for _, u in finite])
        total, first, second = (fractions.Fraction(sum(u * v ** k for v, u in zip(x, w)), w_unit * x_unit ** k) for k in range(3))
        if self.name != "sum" and total == 0 or products and self.name in ("variance", "std"):
            return math.nan
        if products:
            return sum(products)
        if self.name in ("sum", "mean"):
            return rounded(fractions.Fraction(first) / (1 if self.name == "sum" else total), TYPES[self.to])
        variance = (second * total - first * first) / total ** 2
        return rounded(root(fractions.Fraction(variance)) if self.name == "std" else fractions.Fraction(variance), TYPES[self.to])

    def check(self, found):
        status, message, blob = found
        if self.refused or status != 0:
            place = "weights: expected elements" if self.dtype in ("int64", "uint64") else "weight ["
            return None if self.refused and status != 0 and place in message else f"status {status} ({message})"
        got = values_of(np.frombuffer(blob, stored(TYPES[self.to])), TYPES[self.to])
        weights = np.broadcast_to(self.w, self.extents).transpose(self.kept + self.folded).reshape(self.outer, self.length)
        for r in range(self.outer):
            x, w = ([float(v) for v in of] for of in (self.x[r, :, 0], weights[r]))
            want = self.due(x, w)
            if not (float(got[r]) == want or want != want and got[r] != got[r]):
                return f"row {r}: {got[r]!r}, expected {want!r}"
        return None


def results(folder, name, cases, ranks, backend, env):
    """Runs the cases; of each (status, message, bytes). None without such a backend; nothing after a check of that name that fails."""
    lines, at = [], 0
    with open(folder.name("data"), "wb") as data:
        for case in cases:
            lines.append(case.line(at))
            at += data.write(case.data())
    with open(folder.name("cases"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    done = tap.run(ranks, PROGRAM, backend, folder.name("cases"), folder.name("data"), folder.name("out"), env=env)
    if done.stdout.startswith("1..0"):
        return None
    told = [line.split(" ", 1) for line in done.stdout.splitlines()]
    if done.returncode != 0 or len(told) != len(cases):
        tap.ok(False, name, f"{len(told)} calls\n{cases[len(told)] if len(told) < len(cases) else ''}\n{done.stderr}")
        return []
    with open(folder.name("out"), "rb") as file:
        blob, found, position = file.read(), [], 0
    for case, (status, message) in zip(cases, told):
        size = 0
        if status == "0":
            count = case.elements if case.softmax else case.outer * case.inner
            size = sum(count * (dtype.itemsize + 8 * indexed) for _, dtype, indexed in case.outputs())
        found.append((int(status), message, blob[position:position + size]))
        position += size
    return found


def bits_of(case, found):
    """What is promised to be the same on all ranks: of softmax not the sign and payload of a NaN."""
    status, _, blob = found
    if case.softmax:
        y = values_of(np.frombuffer(blob, stored(TYPES[case.to])), TYPES[case.to]).copy()
        y[np.isnan(y)] = math.nan
        blob = y.tobytes()
    return status, blob


def check(folder, what, cases, ranks, backend, before=None, env=None):
    name = f"{what}: {len(cases)} calls on {ranks} ranks, {backend}"
    if not tap.wanted(name):
        return []
    found = results(folder, name, cases, ranks, backend, env)
    if not found:
        if found is None:
            tap.skip(f"no {backend} here")
        return found
    # what was found before has been checked
    faults = [f"{case}: {fault}" for case, now, then in zip(cases, found, before or itertools.repeat(None))
              for fault in [now != then and case.check(now)] if fault]
    if before:
        faults += [f"{case}: other bits than before" for case, now, then in zip(cases, found, before)
                   if not case.fast and case.name != "prod" and bits_of(case, now) != bits_of(case, then)]
    tap.ok(not faults, name, "\n".join(faults[:8]))
    return found


def planned(random):
    """Every fold and type with every cut, and long rows, long columns, empty axes, overflow."""
    for fold, dtype in itertools.product(FOLDS, TYPES[1:]):
        yield Case(random, fold=fold, dtype=dtype, softmax=0, shape=(3, 37, 5), fast=0)
    for fold, cut in itertools.product(FOLDS, CUTS):
        yield Case(random, fold=fold, cut=cut, softmax=0, shape=(4, 33, 6), dtype="f32", fast=0, to="none")
    for shape, cut in itertools.product([(1, 70000, 1), (2, 20011, 3), (1, 9000, 40), (300, 3, 1), (1, 1, 1), (0, 5, 2), (5, 0, 2), (5, 2, 0)], CUTS):
        for softmax in (0, 1):
            yield Case(random, fold="sum", cut=cut, softmax=softmax, shape=shape, dtype="f32", fast=0, gaps=False)
    yield Case(random, fold="argmin", dtype="f16", to="f16", softmax=0, shape=(3, 37, 5), memory=DEVICE)  # an odd number of short results
    for softmax, rows, dtype in ((0, 10007, "f64"), (1, 30011, "f32")):  # several batches of what ranks exchange
        yield Case(random, fold="sum", cut="axis", softmax=softmax, shape=(rows, 2, 1), dtype=dtype, fast=0, gaps=False, memory=DEVICE)
    for dtype, fast in itertools.product(FLOATS, (0, 1)):  # rows that are aligned wherever two or three ranks cut them
        for shape in ((5, 288, 1), (2, 12288 + 5 * (dtype == "f32"), 1)):
            yield Case(random, cut="axis", softmax=1, shape=shape, dtype=dtype, to=dtype, fast=fast, gaps=False, memory=DEVICE)
    late = random.standard_normal((8, 40960))  # rows whose largest element is late: not at all, by little, far, very far; NaN; after -inf
    late[1, 30000], late[2, 40959], late[3, 20000:20003], late[4, 39000], late[5, :20000], late[6, 40000], late[7, 40000] = 25, 60, 4000, np.nan, -np.inf, 78, 87
    for dtype, logarithm in itertools.product(("f32", "f16", "bf16"), (0, 1)):
        array = cli.bf16_bits(late.ravel()) if dtype == "bf16" else late.ravel().astype(stored(dtype))
        yield Case(random, softmax=1, logarithm=logarithm, cut="outer", shape=(8, 40960, 1), dtype=dtype, to=dtype, fast=1, gaps=False, memory=DEVICE, array=array)
    equal = random.integers(-2, 3, (4, 5000)) * 1.0  # of equal elements the first, also of those that are far apart; zeros of both signs; NaN
    equal[1, 4000], equal[2, :1500], equal[3] = np.nan, 0, np.concatenate([np.full(3000, -0.0), np.zeros(2000)])
    for dtype, fold, nan in itertools.product(("f32", "f64"), ("argmin", "argmax"), (0, 1)):
        yield Case(random, fold=fold, softmax=0, cut="outer", shape=(4, 5000, 1), dtype=dtype, to="none", nan=nan, gaps=False, array=equal.ravel().astype(stored(dtype)))
    for fold, cut, softmax in (("sum", "axis", 0), ("argmax", "axis", 0), ("stats", "inner", 0), ("sum", "axis", 1), ("sum", "outer", 1)):
        yield Case(random, fold=fold, cut=cut, softmax=softmax, shape=(4, 137, 6), dtype="f32", memory=MIXED)
    large = np.full(24, 1 << 62, np.int64)
    large[:10] = 1
    for cut in CUTS:
        yield Case(random, fold="sum", cut=cut, softmax=0, shape=(3, 4, 2), dtype="int64", array=large, gaps=False, to="none")
        yield Case(random, fold="stats", cut=cut, softmax=0, shape=(3, 1, 2), dtype="int64", array=large, gaps=False, to="none", ddof=1)


def wide_columns(random):
    """Columns side by side, of more elements than a CPU takes at a time. Some are too spread for the windows of an exact sum, some are
    zeros of one sign, some have an infinity or grow late. Then more columns than it takes at a time, also for softmax."""
    shape = (1, 517, 37)
    for fold, dtype in (("sum", "f32"), ("sum", "f64"), ("norm2", "f32"), ("norm1", "bf16"), ("max", "f16"), ("sum", "int64")):
        x = random.standard_normal(shape)
        x[0, :, 1::8] *= np.exp2(random.integers(-60, 60, (517, 5)))
        x[0, :, 2::8], x[0, :, 3::8] = -0.0, 0.0
        x[0, random.integers(0, 517), 4::8] = np.inf
        x[0, 500, 5::8], x[0, :4, 6::16] = 1e30, -0.0
        with np.errstate(all="ignore"):
            array = cli.bf16_bits(x.ravel()) if dtype == "bf16" else (x.ravel() * (1 if dtype in FLOATS else 99)).astype(stored(dtype))
        for fast in (0, 1) if fold == "sum" else (0,):
            yield Case(random, fold=fold, dtype=dtype, softmax=0, shape=shape, gaps=False, to="none", array=array, fast=fast)
    for dtype, columns, length in (("f32", 2100, 13), ("f64", 2100, 20), ("f16", 1100, 15), ("int8", 1100, 9)):
        yield Case(random, fold="sum", dtype=dtype, softmax=0, shape=(1, length, columns), to="none", fast=0)
    for dtype, fold, length, inner in (("bf16", "sum", 705, 600), ("f16", "max", 704, 602), ("int16", "argmin", 717, 600), ("int8", "argmax", 705, 1200), ("uint8", "sum", 719, 1204)):
        yield Case(random, fold=fold, dtype=dtype, softmax=0, shape=(2, length, inner), gaps=False, to="none", memory=DEVICE)  # columns that share words
    for dtype, logarithm in itertools.product(FLOATS, (0, 1)):
        yield Case(random, softmax=1, logarithm=logarithm, cut="outer", shape=(1, 525 if logarithm else 37, 700 - 600 * logarithm), dtype=dtype, to=dtype, gaps=False)
    for i, (dtype, logarithm) in enumerate(itertools.product(FLOATS, (0, 1))):  # as long as a GPU keeps, longer, and side by side in vectors or in words
        shape = ((2, 768, 40), (1, 1537, 34), (3, 255, 8), (1, 1536, 20), (1, 1536, 19), (1, 20, 9000), (5, 1530, 6), (1, 4100, 4))[i]
        yield Case(random, softmax=1, logarithm=logarithm, cut="outer", shape=shape, dtype=dtype, to=dtype, memory=DEVICE, fast=i // 2 % 2)


def lines(random):
    """Columns of more elements than a lane takes, and rows of few and of many: from narrow to wide, of one sign, of many zeros, near the
    smallest and the largest numbers. Exact sums of some need no limbs, those of others all."""
    for trial in range(60):
        length = int(random.choice([1, 2, 3, 7, 8, 16, 63, 64, 65, 255, 256, 257, 600, 2047, 2048, 2049, 2600]))
        count = int(random.integers(1, 1 + min(140, 30000 // length)))
        dtype, fold = str(random.choice(["f32", "f32", "f64", "f16"])), str(random.choice(["sum", "mean", "norm1", "max", "norm2"]))
        case = Case(random, fold=fold, dtype=dtype, softmax=0, shape=((count, length, 1), (1, length, count))[trial % 2], to="none",
                    fast=int(trial % 4 == 3), nan=0)
        spread, offset = {"f16": (9, -8), "f32": (60, -120), "f64": (400, -1000)}[dtype]
        x = random.standard_normal(case.elements) if trial % 3 else random.random(case.elements)
        x = np.ldexp(x, random.integers(-1, 2, x.size) * int(random.integers(spread)) + int(random.choice([0, 0, offset])))
        x[random.random(x.size) < random.choice([0, 0, 0.9, 1])] = random.choice([0.0, -0.0, -0.0])
        x[random.integers(0, x.size, int(random.choice([0, 0, 3])))] = random.choice([np.nan, np.inf, -np.inf])
        with np.errstate(over="ignore"):
            case.array[:] = x
        yield case
    # a sum that is rounded before it is divided shows in one mean of some thirty
    yield Case(random, fold="mean", dtype="f64", softmax=0, shape=(1, 100, 300), to="none", fast=0, array=random.standard_normal(30000), gaps=False)


def short_rows(random):
    """Rows and columns of which a GPU's block takes many. Some are too spread for the accumulators of an exact sum, some are zeros of one sign,
    some have NaN or infinities."""
    for shape in ((700, 4, 1), (131, 33, 1), (1, 5, 300), (37, 12, 6), (9, 260, 1)):
        for fold, dtype, to in (("sum", "f32", "none"), ("sum", "f64", "f32"), ("mean", "f32", "f16"), ("norm1", "bf16", "bf16"), ("argmax", "f32", "none"),
                                ("min", "f16", "none"), ("sum", "int8", "none"), ("norm1", "int64", "none"), ("stats", "f32", "none"), ("std", "bf16", "f32")):
            x = random.standard_normal(shape)
            for part in (x[1::6], x[:, :, 1::6]):
                part *= np.exp2(random.integers(-60, 60, part.shape))
            x[2::6], x[:, :, 2::6], x[3::6, 0], x[4::6, -1], x[5::6, 1::2] = -0.0, -0.0, np.nan, np.inf, -np.inf
            with np.errstate(all="ignore"):
                x = x.ravel() if dtype in FLOATS else np.nan_to_num(x.ravel(), posinf=1, neginf=-1) % 60
                array = cli.bf16_bits(x) if dtype == "bf16" else x.astype(stored(dtype))
            yield Case(random, fold=fold, dtype=dtype, softmax=0, shape=shape, gaps=False, to=to, array=array, fast=0, nan=0)


def long_rows(random):
    """Rows of more elements than single doubles add without rounding, in 16 bits and f32, and long rows and columns that are split. Some sums are too spread for
    accumulators, or those of their tiles for single doubles."""
    for fold, dtype, shape in (("sum", "bf16", (26, 65560, 1)), ("stats", "f32", (26, 65544, 1)), ("norm1", "f32", (3, 70000, 1)), ("sum", "f32", (1, 90, 600)), ("sum", "f32", (7, 4101, 1)), ("sum", "f32", (1, 4500, 66)),
                               ("sum", "bf16", (1, 9001, 66)), ("mean", "f16", (2, 18003, 5)), ("norm2", "f32", (1, 20000, 3)), ("norm1", "f64", (3, 40000, 1))):
        x = random.standard_normal(shape)
        if dtype == "f32":
            for part in (x[2::4], x[:, :, 2::4]):
                part *= np.exp2(random.integers(-30, 30, part.shape))
        x[:, 5, ::150] = 1e30 if dtype != "f16" else np.inf
        x[:, 6, 4::150] = np.nan
        if shape[0] > 1:
            x[1, 7] = -np.inf
        array = cli.bf16_bits(x.ravel()) if dtype == "bf16" else x.ravel().astype(stored(dtype))
        yield Case(random, fold=fold, dtype=dtype, softmax=0, shape=shape, gaps=False, to="none", array=array, fast=0, nan=0, ddof=0)


def ties(random):
    """Variances of which many lie in the middle of two doubles, before they are rounded: the divisor is a power of two."""
    for dtype, fold, length in itertools.product(("f16", "bf16", "f32"), ("variance", "std", "stats"), (64, 256)):
        x = random.standard_normal(40 * length)
        array = cli.bf16_bits(x) if dtype == "bf16" else x.astype(stored(dtype))
        yield Case(random, fold=fold, dtype=dtype, softmax=0, shape=(40, length, 1), gaps=False, to="none", array=array, fast=0, nan=0, ddof=0)


def near_zero(random):
    """logsumexp of rows and columns whose maximum is 0 or next to it, and whose other terms are tiny: alone, behind, before and among others, and
    on ranks of their own. What the lower ones do to a sum in f64 depends on what else a tile holds."""
    tops, inf = [0.0, -0.0, 5e-324, 1e-300, 1e-30, 1e-5], math.inf
    others = [(-inf, -inf), (-1e4, -inf), (-744.0, -inf), (-744.3, -1e4), (-708.5, -1e300), (-700.0, -1e4), (-80.0, -inf), (-1500.0, -1500.0),
              (-730.0, -80.0), (-3000.0, -2040.0), (-690.0, -1400.0), (-740.0, -745.0), (-20.0, -745.0)]
    rows = np.array([[lower, lower, least, top, least, lower, lower] for top in tops for lower, least in others])
    for x in (rows, rows[:, 3:5]):
        for shape, dtype, cut, fast in itertools.product((x.shape + (1,), (1,) + x.T.shape), ("f64", "f32"), CUTS, (0, 1)):
            with np.errstate(all="ignore"):
                array = np.ascontiguousarray(x if shape[2] == 1 else x.T).ravel().astype(stored(dtype))
            yield Case(random, fold="logsumexp", dtype=dtype, softmax=0, shape=shape, gaps=False, to="none", cut=cut, fast=fast, array=array)


def long_spread(random):
    """More elements than a piece has, in two parts of each dimension."""
    for fold, axes in (("mean", [0, 2]), ("std", [0, 1, 3]), ("variance", [0, 1, 2, 3])):
        yield Weighted(random, fold=fold, axes=axes, extents=[3, 13, 20, 60], dtype="f32", small=0)
    for fold, axes, softmax in (("sum", [0, 2], 0), ("argmax", [0, 2], 0), ("stats", [1, 3], 0), ("sum", [0, 2, 3], 1), ("mean", [0, 2, 3], 0)):
        yield Spread(random, fold=fold, softmax=softmax, axes=axes, extents=[7, 13, 90, 60], dtype="f32", to="f32" if softmax else "none", fast=0, nan=0,
                     small=0)


def check_threads(folder, random):
    """Few and many units of columns and rows: the same bits by one thread and by three, whose stacks are small."""
    cases = [Case(random, fold=fold, softmax=softmax, shape=shape, dtype="f64", fast=0, gaps=False, to="f64" if softmax else "none")
             for shape in ((2, 9000, 9), (13, 40, 130), (1, 140000, 1)) for fold, softmax in (("sum", 0), ("max", 0), ("sum", 1))]
    before = None
    for threads, stack in (("1", "8m"), ("3", "128k")):
        before = check(folder, f"by {threads} threads with stacks of {stack}", cases, 1, "cpu", before,
                       {"OMP_NUM_THREADS": threads, "OMP_STACKSIZE": stack})


def main():
    """ALLFOLD_TEST_CASES: how many calls at random of each kind; ALLFOLD_TEST_EVERY=N: of the others one in N."""
    seed = int(os.environ.get("ALLFOLD_TEST_SEED", "1"))
    count = int(os.environ.get("ALLFOLD_TEST_CASES", "150"))
    for backend in os.environ.get("ALLFOLD_TEST_BACKENDS", "cpu cuda").split():
        random = np.random.default_rng(seed)
        cases = [*planned(random), *wide_columns(random), *lines(random), *short_rows(random), *long_rows(random), *ties(random), *near_zero(random)]
        cases = cases[::int(os.environ.get("ALLFOLD_TEST_EVERY", "1"))] + [Case(random) for _ in range(count)] + [Spread(random) for _ in range(count)] + list(long_spread(random))
        cases += [Weighted(random, wrong=i % 7 == 6) for i in range(count)]
        before = None
        with cli.Folder() as folder:
            for ranks in cli.rank_counts(backend):
                found = check(folder, "folds and softmax along axes", cases, ranks, backend, before)
                if found is None:
                    break
                before = before or found
            if backend == "cpu":
                check_threads(folder, random)
    tap.done()


if __name__ == "__main__":
    sys.exit(main())
