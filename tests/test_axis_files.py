#!/usr/bin/env python3
"""Folds and softmax along an axis of a file (--axis) against NumPy, Python's fractions and math: every fold and element type over shapes
at random, axes, orders, formats of input and output, on 1, 2, 3 and 5 ranks, in long and in very short pieces."""
import itertools
import json
import math
import os
import sys
import zipfile
from fractions import Fraction

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

import cli
import tap
from cli import Folder, alone, ranks, refused, shown

STATISTICS = ["count", "nan_count", "sum", "mean", "variance", "min", "argmin", "max", "argmax", "norm1", "norm2", "norminf"]
DEVICE = ["--backend=auto"]  # for a part of the runs: a GPU takes most of their time to start
EXTENTS = [1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 64, 127]


def exact_row(fold, row, ddof=0):
    """The fold of a row of numbers without NaN, correctly rounded where that is possible."""
    real = row.dtype.kind == "f"
    values = [Fraction(float(v)) if real else int(v) for v in row]
    total = sum(values)
    if fold == "sum":
        return float(total) if real else total
    if fold == "mean":
        return float(Fraction(total, len(values)))
    if fold == "variance":
        mean = Fraction(total, len(values))
        return float(sum((v - mean) ** 2 for v in values) / (len(values) - ddof)) if len(values) > ddof else math.nan
    if fold == "std":
        return math.sqrt(exact_row("variance", row, ddof))
    if fold in ("norm1", "norminf"):
        found = (sum if fold == "norm1" else max)(abs(v) for v in values)
        return float(found) if real else found
    if fold == "norm2":
        return math.sqrt(sum(v * v for v in values))
    if fold == "prod":
        found = math.prod(values)
        return float(found) if real else found
    if fold == "logsumexp":
        largest = max(float(v) for v in values)
        return largest + math.log(math.fsum(math.exp(float(v) - largest) for v in values))
    return {"count": len, "nan_count": lambda row: 0, "min": min, "max": max, "argmin": np.argmin, "argmax": np.argmax}[fold](row)


def expected(fold, x, axes, ddof=0):
    """Along axes, by rows."""
    behind = [i for i in range(x.ndim) if i not in axes]
    rows = np.transpose(x, behind + list(axes)).reshape(math.prod(x.shape[i] for i in behind), -1 if x.size else 0)
    return [exact_row(fold, row, ddof) for row in rows], [x.shape[i] for i in behind]


def same(fold, found, rows, shape):
    """Whether an array holds these results in this shape."""
    if list(found.shape) != list(shape):
        return False
    close = {"norm2": 1e-15, "std": 1e-15, "logsumexp": 4e-15, "prod": 1e-14}.get(fold, 0)
    return all(a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= close * max(abs(b), 1e-3) for a, b in
               zip(found.reshape(-1).tolist(), rows))


def contents(name):
    with open(name, "rb") as file:
        return file.read()


class Case:
    """An input at random, and one command on it."""
    def __init__(self, folder, number, fold, dtype, **given):
        random = np.random.default_rng(1000 + number)
        dimensions = int(random.integers(1, 5))
        self.fold, self.dtype, self.number, self.folder = fold, dtype, number, folder
        self.shape = given.get("shape") or tuple(int(random.choice(EXTENTS[:10 if dimensions > 2 else None])) for _ in range(dimensions))
        self.axes = given.get("axes") or tuple(sorted(int(axis) for axis in random.permutation(len(self.shape))[:random.integers(1, 4)]))
        values = random.integers(0, 2, self.shape) if dtype == "bool" or fold == "prod" else random.integers(-90, 90, self.shape) \
            if dtype in cli.SIGNED else random.integers(0, 200, self.shape)
        if dtype in cli.FLOATS:
            values = random.standard_normal(self.shape) * 10.0 ** random.integers(-3, 3, self.shape)
        self.x = cli.exact(dtype, values)
        self.fortran = random.random() < 0.25 and dtype != "bf16"
        self.ddof = int(random.integers(0, 2)) if fold in ("stats", "variance", "std") else 0
        self.keep = random.random() < 0.25
        self.staging = given.get("staging", int(random.choice([0, 0, 64, 1000, 20000])))
        self.input = self.save()
        sign = len(self.shape) if random.random() < 0.5 else 0
        self.words = [fold, *self.input, "--axis=" + ",".join(str(a - sign) for a in self.axes), "--threads=2"]
        self.words += ["--keepdims"] * (self.keep and "softmax" not in fold) + [f"--ddof={self.ddof}"] * (self.ddof > 0)
        self.words += [f"--staging={self.staging}"] * (self.staging > 0)

    def save(self):
        name = f"x{self.number}"
        if self.dtype == "bf16":
            return [*self.folder.save(name, "bf16", self.x), "--shape=" + ",".join(map(str, self.shape))]
        if not self.fortran and self.number % 3 == 0 and self.dtype != "bool":  # big-endian, behind a header
            with open(self.folder.name(name), "wb") as file:
                file.write(b"header!")
                file.write(np.ascontiguousarray(self.x).tobytes())
            return [self.folder.name(name), "--offset=7", f"--dtype={self.dtype}", "--shape=" + ",".join(map(str, self.shape))]
        stored = self.x.astype(self.x.dtype.newbyteorder(">")) if self.number % 3 == 1 else self.x
        np.save(self.folder.name(name + ".npy"), np.asfortranarray(stored) if self.fortran else stored)
        return [self.folder.name(name + ".npy")]

    def output(self):
        ending = "npz" if self.fold == "stats" else "raw" if self.dtype == "bf16" and "softmax" in self.fold else "npy"
        return self.folder.name(f"y{self.number}.{ending}")

    def rows(self, fold):
        """Results in the order in which the output has them, and their shape."""
        rows, shape = expected(fold, self.x, self.axes, self.ddof)
        if fold in ("argmin", "argmax") and self.fortran and len(self.axes) > 1:  # the first index varies fastest
            rows, _ = expected(fold, self.x.T, tuple(sorted(self.x.ndim - 1 - a for a in self.axes)))
            rows = np.reshape(rows, shape[::-1]).T.reshape(-1).tolist()
        if self.keep:
            shape = [1 if i in self.axes else extent for i, extent in enumerate(self.shape)]
        return rows, shape

    def check_softmax(self):
        y = self.folder.load(os.path.basename(self.output()), self.dtype).reshape(self.shape)
        x = self.x.astype(np.longdouble)
        shifted = x - x.max(self.axes, keepdims=True)
        wanted = shifted - np.log(np.exp(shifted).sum(self.axes, keepdims=True))
        wanted = np.exp(wanted) if self.fold == "softmax" else wanted
        steps = {"f16": 2 ** -11, "bf16": 2 ** -8, "f32": 2 ** -23, "f64": 2 ** -52}[self.dtype]
        least = {"f16": 2 ** -24, "bf16": 1e-38, "f32": 1e-38}.get(self.dtype, 1e-300) + 1e-18 * (self.fold != "softmax")  # of the reference
        return bool(np.all(np.abs(y - wanted) <= 1.01 * steps * np.abs(wanted) + least))

    def holds(self, process):
        """Whether the output is right."""
        if process.returncode != 0 or cli.complaints(process):
            return False
        if "softmax" in self.fold:
            return self.check_softmax()
        found = np.load(self.output())
        if self.fold != "stats":
            return same(self.fold, found, *self.rows(self.fold)) and found.flags.f_contiguous >= self.fortran
        return sorted(found) == sorted(STATISTICS) and all(same(name, found[name], *self.rows(name)) for name in STATISTICS)


def check_random(folder):
    """Every fold and type, once each by one rank; every third by several. The bytes of the output depend on the input alone."""
    folds = [*cli.FOLDS, "softmax", "log-softmax"]
    some = np.random.default_rng(7)
    cases = []
    for number, fold in enumerate(itertools.chain(folds, folds, folds)):
        types = cli.FLOATS if "softmax" in fold else cli.TYPES
        cases.append(Case(folder, number, fold, types[int(some.integers(len(types)))]))
        cases[-1].words += DEVICE * (number < len(folds))
    runs = cli.each_alone([case.words + ["-o", case.output()] for case in cases])
    wrong = [f"{case.shape} {case.dtype} {'F' * case.fortran}\n{shown(run)}" for case, run in zip(cases, runs) if not case.holds(run)]
    tap.ok(not wrong, f"{len(cases)} arrays at random, one rank", "\n".join(wrong[:3]))
    again = [(count, case) for count in (2, 3, 5) for case in cases[count::9]]
    before = [contents(case.output()) for _, case in again]
    for _, case in again:
        os.remove(case.output())
    runs = cli.each((count, case.words + ["-o", case.output()]) for count, case in again)
    wrong = [f"{count} ranks: {case.shape} {case.dtype}\n{shown(run)}" for (count, case), run, due in zip(again, runs, before)
             if not case.holds(run) or contents(case.output()) != due]
    tap.ok(not wrong, f"{len(again)} of them on 2, 3 and 5 ranks: the same bytes", "\n".join(wrong[:3]))


def check_cuts(folder):
    """Shapes for which ranks cut each of the three dimensions, and for which rows are read whole, by columns and in segments."""
    shapes = {"outer": (64, 40, 3), "axis": (1, 20000, 3), "inner": (1, 20, 5000)}
    for number, (cut, shape) in enumerate(shapes.items()):
        x = np.random.default_rng(number).standard_normal(shape).astype(np.float32)
        name = folder.name(f"{cut}.npy")
        np.save(name, x)
        cases = list(itertools.product((1, 4), (4096, 4 << 20), ("mean", "argmax", "softmax")))
        outputs = [folder.name(f"{turn}.npy") for turn in range(len(cases))]
        runs = cli.each((count, [fold, name, "--axis=1", "-o", output, "--json", f"--staging={staging}", *DEVICE * ((number + turn) % 3 == 0)])
                        for turn, ((count, staging, fold), output) in enumerate(zip(cases, outputs)))
        for (count, staging, fold), output, process in zip(cases, outputs, runs):
            report = json.loads(process.stdout or "{}")
            right = report.get("cut") == ("outer" if count == 1 else cut)
            y = np.load(output) if process.returncode == 0 else np.zeros(0)
            if fold == "softmax":
                e = np.exp(x.astype(float) - x.max(1, keepdims=True))
                right = right and y.shape == shape and np.allclose(y, e / e.sum(1, keepdims=True), rtol=3e-7)
            else:
                right = right and same(fold, y, *expected(fold, x, (1,)))
            tap.ok(right, f"{fold} of {shape}, cut {cut}, {count} ranks, pieces of {staging} bytes", shown(process))
    x = np.random.default_rng(4).standard_normal((6, 50, 40, 30)).astype(np.float32)  # rows of several pieces, which are read in turn
    np.save(folder.name("apart.npy"), x)
    for axes, fold in itertools.product(((0, 2), (0, 2, 3), (1, 3)), ("sum", "argmin", "softmax")):
        words = [fold, folder.name("apart.npy"), "--axis=" + ",".join(map(str, axes)), "--staging=20000", "-o"]
        runs = cli.each((count, [*words, folder.name(f"{count}.npy"), *DEVICE * (fold == "sum")]) for count in (1, 3))
        right = contents(folder.name("1.npy")) == contents(folder.name("3.npy"))
        y, e = np.load(folder.name("1.npy")), np.exp(x.astype(float) - x.max(axes, keepdims=True))
        right = right and (same(fold, y, *expected(fold, x, axes)) if fold != "softmax" else np.allclose(y, e / e.sum(axes, keepdims=True), rtol=3e-7))
        tap.ok(right, f"{fold} of {x.shape} along axes {axes} that are not adjacent, 1 and 3 ranks", "\n".join(map(shown, runs)))
    x = np.random.default_rng(0).standard_normal((2, 300001))
    np.save(folder.name("long.npy"), x)
    process = alone("sum", folder.name("long.npy"), "--axis=0", "-o", folder.name("y.npz"))
    with zipfile.ZipFile(folder.name("y.npz")) as members:  # which compares the checksum of more than two pieces of a mebibyte
        tap.ok(process.returncode == 0 and members.testzip() is None and np.array_equal(np.load(members.open("sum.npy")), x.sum(0)),
               "a long member of an archive", shown(process))


def check_short(folder):
    """Axes shorter than there are ranks, of length 0, arrays without results, and ranks without columns; with checkpoints."""
    x, y = folder.name("x.npy"), folder.name("y.npy")
    for number, (shape, axis, count) in enumerate([((1, 1, 1), 1, 5), ((1, 3, 2), 1, 5), ((2, 2), 0, 5), ((4,), 0, 5), ((0, 3), 0, 2), ((0, 3), 1, 2),
                                                   ((3, 0, 2), 0, 1), ((1, 3), 0, 5), ((3, 4), 0, 7)]):
        for fold in ("sum", "softmax") if number > 4 else ("sum",):
            values = np.random.default_rng(number).standard_normal(shape)
            np.save(x, values)
            process = ranks(count, fold, x, f"--axis={axis}", "-o", y, f"--checkpoint={folder.name('ck')}", *DEVICE * (number % 4 == 3))
            found = np.load(y) if process.returncode == 0 else np.zeros(0)
            right = np.allclose(found, np.exp(values) / np.exp(values).sum(axis, keepdims=True), rtol=1e-14) and found.shape == shape \
                if fold == "softmax" else same("sum", found, *expected("sum", values, (axis,)))
            tap.ok(right and folder.files() == ["x.npy", "y.npy"], f"{fold} of {shape} along axis {axis} on {count} ranks", shown(process))
            for name in folder.files():
                os.remove(folder.name(name))
    x = np.zeros((2, 0, 2))
    np.save(folder.name("x.npy"), x)
    why = refused(alone("max", folder.name("x.npy"), "--axis=1", "-o", folder.name("z.npy")), 1, "result [0, :, 0]")
    tap.ok(not why and not os.path.exists(folder.name("z.npy")), "the maximum along an axis of length 0 is refused", why)


def check_chunks(folder):
    """HDF5 in chunks that the shape cuts, and that ranks and pieces would cut."""
    if h5py is None:
        tap.skip("h5py is not there")
        return
    some, wrong, launches = np.random.default_rng(3), [], []
    for number in range(25):
        dimensions = 1 + number % 4 if number < 19 else 3 + number % 2
        shape = tuple(int(v) for v in some.integers(1, [300, 60, 30, 14][dimensions - 1], dimensions))
        chunk = tuple(min(extent, int(v)) for extent, v in zip(shape, some.integers(1, 20, dimensions)))
        first = int(some.integers(dimensions))
        axes = tuple(range(first, min(first + 1 + number % 2, dimensions)))
        if number > 18:
            axes = (0, 2) if dimensions == 3 else ((0, 2, 3), (1, 3), (0, 2))[number % 3]
        if number == 18:  # a rank's part begins and ends within the last of three, and the one between has a single index
            shape, chunk, axes = (4, 1, 6), (1, 1, 2), (0, 1, 2)
        x = some.standard_normal(shape).astype(np.float32)
        with h5py.File(folder.name(f"{number}.h5"), "w") as file:
            file.create_dataset("x", data=x, chunks=chunk, compression="gzip" if number % 3 else None)
        fold = ("mean", "argmin", "softmax")[number % 3]
        words = [fold, folder.name(f"{number}.h5") + ":x", "--axis=" + ",".join(map(str, axes)), f"--staging={some.choice([100, 4000, 1 << 20])}"]
        launches.append((x, axes, fold, words + ["-o", folder.name(f"{number}.npy")]))
    runs = cli.each((1 if number < 14 else 3, words + DEVICE * (number % 4 == 0)) for number, (*_, words) in enumerate(launches))
    for (x, axes, fold, words), process in zip(launches, runs):
        y = np.load(words[-1]) if process.returncode == 0 else np.zeros(0)
        shifted = np.exp(x.astype(float) - x.max(axes, keepdims=True))
        right = same(fold, y, *expected(fold, x, axes)) if fold != "softmax" else \
            y.shape == x.shape and np.allclose(y, shifted / shifted.sum(axes, keepdims=True), rtol=3e-7)
        wrong += [] if right else [f"{x.shape}\n{shown(process)}"]
    tap.ok(not wrong, "datasets of HDF5 in chunks, on 1 and 3 ranks", "\n".join(wrong[:3]))
    x = some.standard_normal((20, 4, 30))
    with h5py.File(folder.name("x.h5"), "w") as file:
        file.create_dataset("x", data=x, chunks=(20, 4, 5))
    report = cli.report(ranks(3, "max", folder.name("x.h5"), "--axis=2", "--json"))
    tap.ok(report and report["cut"] == "axis" and report["results"]["max"] == x.max(2).tolist(), "ranks cut where chunks end", report)


def without_missing(fold, row, there):
    """The fold of the elements of a row that are there; of none what NumPy's functions for NaN say."""
    kept = row[there]
    if len(kept):
        if np.isinf(kept).any() and fold not in ("count", "nan_count"):
            found = {"min": np.min, "argmin": np.argmin, "argmax": np.argmax}.get(fold, lambda row: math.nan if fold in ("variance", "std") else math.inf)(kept)
        else:
            found = len(kept) if fold == "count" else exact_row(fold, kept[np.isfinite(kept)])
        return np.flatnonzero(there)[found] if fold in ("argmin", "argmax") else found
    return {"sum": 0, "prod": 1, "count": 0, "nan_count": 0, "argmin": -1, "argmax": -1, "logsumexp": -math.inf, "norm1": 0, "norm2": 0,
            "norminf": 0}.get(fold, math.nan)


def check_missing(folder):
    """Missing elements of HDF5 are left out row by row: chunked and not, packed and not, rows that have none, on 1 and 3 ranks."""
    if h5py is None:
        tap.skip("h5py is not there")
        return
    some, wrong, launches = np.random.default_rng(5), [], []
    for number, fold in enumerate([*cli.FOLDS, *cli.FOLDS]):
        kind = ("f4", "packed")[number // len(cli.FOLDS)] if fold in ("min", "max", "argmin", "logsumexp") else ("i2", "f4", "f8", "packed")[number % 4]
        shape = [(40, 30, 20), (1, 9000, 3), (3, 4, 2100), (900, 7)][(number + number // 4) % 4]
        x = some.integers(-9, 9, shape).astype("i2" if kind == "packed" else kind)
        there = some.random(shape) > 0.3
        there[..., 1] = there[(0,) * len(shape)] = False  # the rows of the former have nothing
        if kind == "f4" and fold != "prod":
            x[(0, slice(None), 0) if len(shape) == 3 else (slice(None), 0)] = np.inf if fold != "argmax" else -np.inf  # as in missing places
        name = folder.name(f"{number}.h5")
        with h5py.File(name, "w") as file:
            data = file.create_dataset("x", data=np.where(there, x, x.dtype.type(-99)), chunks=number % 3 == 0 or None)
            data.attrs["_FillValue"] = x.dtype.type(-99)
            if kind == "packed":
                data.attrs["scale_factor"], data.attrs["add_offset"] = 0.5, 3.0
        values = x * 0.5 + 3.0 if kind == "packed" else x
        axis = (0,) if len(shape) < 3 else (1,) if number % 5 else (0, 2)
        words = [fold, name, "--axis=" + ",".join(map(str, axis)), f"--staging={some.choice([200, 5000, 1 << 22])}", *["--output-type=f64"] * (kind == "i2" and fold == "stats")]
        launches.append((values, there, axis, fold, words + ["-o", folder.name(f"{number}." + ("npz" if fold == "stats" else "npy"))]))
    runs = cli.each((1 if number < len(launches) - 8 else 3, words + DEVICE * (number % 4 == 0)) for number, (*_, words) in enumerate(launches))
    for (values, there, axis, fold, words), process in zip(launches, runs):
        shape = [extent for i, extent in enumerate(values.shape) if i not in axis]
        rows = [np.moveaxis(a, axis, range(-len(axis), 0)).reshape(math.prod(shape), -1) for a in (values, there)]
        found = np.load(words[-1]) if process.returncode == 0 else {}
        for one in STATISTICS if fold == "stats" else [fold]:
            got = (found[one] if fold == "stats" else found) if len(found) else np.zeros(0)
            right = same(one, got, [without_missing(one, row, kept) for row, kept in zip(*rows)], shape)
            wrong += [] if right else [f"{one} of {values.shape} {values.dtype}\n{shown(process)}"]
    tap.ok(not wrong, f"{len(launches)} arrays with missing elements, on 1 and 3 ranks", "\n".join(wrong[:3]))
    x = some.integers(-30000, 30000, (50, 40)).astype("i2")
    with h5py.File(folder.name("p.h5"), "w") as file:
        data = file.create_dataset("x", data=x)
        data.attrs["_FillValue"], data.attrs["scale_factor"], data.attrs["add_offset"] = x[0, 0], 0.1, 1 / 3
    sums = [sum(int(v) for v in row[row != x[0, 0]]) * Fraction(0.1) + int((row != x[0, 0]).sum()) * Fraction(1 / 3) for row in x]
    reports = [cli.report(alone("sum", folder.name("p.h5"), "--axis=1", "--json", f"--sum={level}")) for level in ("exact", "fast")]
    tap.ok(all(report and report["results"]["sum"] == [float(total) for total in sums] for report in reports),
           "rows of packed integers: the exact sums of what they stand for", reports)
    why = refused(alone("min", folder.name("1.h5"), "--axis=1", "--missing=error", "-o", folder.name("y.npy")), 1, "are missing")
    tap.ok(not why, "--missing=error", why)
    with h5py.File(folder.name("i.h5"), "w") as file:
        file.create_dataset("x", data=np.array([[1, 2], [-9, -9]])).attrs["_FillValue"] = -9
    why = refused(alone("max", folder.name("i.h5"), "--axis=1"), 1, "result [1, :]: max of no elements", "floating-point")
    tap.ok(not why, "an integer row of nothing but missing elements has no maximum", why)
    report = cli.report(alone("max", folder.name("i.h5"), "--axis=1", "--output-type=f64", "--json"))
    tap.ok(report and report["results"]["max"][0] == 2.0 and "missing" not in report, "but NaN, if that is asked for", report)
    with h5py.File(folder.name("c.h5"), "w") as file:
        file.create_dataset("x", data=np.tile([[1, 2, 3], [-9, -9, 4]], (20, 1)), chunks=(4, 2)).attrs["_FillValue"] = -9
    words = [["softmax", "--output-type=f64"], ["sum", "--missing=error"]]
    runs = cli.each_alone([fold, folder.name(f"{name}.h5"), "--axis=1", more, "-o", folder.name(f"y{name}.npy")] for fold, more in words for name in "ic")
    why = "".join(refused(done, 1, "--missing=") for done in runs)
    tap.ok(not why, "softmax needs all, of arrays in chunks or not; --missing=error", why)
    with h5py.File(folder.name("z.h5"), "w") as file:
        file.create_dataset("x", shape=(13, 0), maxshape=(13, None), chunks=(3, 4))
    done = alone("sum", folder.name("z.h5"), "--axis=1", "--staging=64", "-o", folder.name("z.npy"))
    tap.ok(done.returncode == 0 and np.array_equal(np.load(folder.name("z.npy")), np.zeros(13)), "an array in chunks, of which there are none", shown(done))


def check_neutral(folder):
    """What stands in the place of a missing integer changes no result, however large or small the others are."""
    if h5py is None:
        tap.skip("h5py is not there")
        return
    cases = [("prod", "i8", [-3, 5]), ("logsumexp", "i2", [-9, -8])]
    for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        cases += [("min", kind, [high - 1, high]), ("max", kind, [low + 1, low])]
    for fold, kind, row in cases:
        with h5py.File(folder.name(f"{fold}-{kind}.h5"), "w") as file:
            file.create_dataset("x", data=np.array([[row[0], 7, row[1]]] * 2, kind)).attrs["_FillValue"] = np.dtype(kind).type(7)
    runs = cli.each_alone([[fold, folder.name(f"{fold}-{kind}.h5"), "--axis=1", "-o", folder.name(f"{fold}-{kind}.npy")] for fold, kind, _ in cases])
    for (fold, kind, row), process in zip(cases, runs):
        found = np.load(folder.name(f"{fold}-{kind}.npy")) if process.returncode == 0 else np.zeros(0)
        tap.ok(same(fold, found, [exact_row(fold, np.array(row, kind))] * 2, [2]), f"{fold} of {kind} {row} and a missing element", f"{found} {shown(process)}")


def check_interface(folder):
    """Results that are printed; what is refused, before any work and with nothing left behind."""
    x = np.arange(24.0).reshape(2, 3, 4)
    np.save(folder.name("x.npy"), x)
    name, listing = folder.name("x.npy"), folder.files()
    report = cli.report(ranks(2, "max", name, "--axis=0,1", "--json"))
    tap.ok(report and report["results"] == {"max": [20.0, 21.0, 22.0, 23.0]} and report["axis"] == [0, 1] and report["shape"] == [4],
           "a few results in the report", report)
    np.save(folder.name("none.npy"), np.zeros((2**40, 0)))
    report = cli.report(alone("softmax", folder.name("none.npy"), "--axis=1", "-o", folder.name("y.npy"), "--json"))
    tap.ok(report and report["shape"] == [2**40, 0] and np.load(folder.name("y.npy")).shape == (2**40, 0), "2^40 rows without elements", report)
    os.remove(folder.name("y.npy"))
    process = alone("argmin", name, "--axis=-1", "-q")
    tap.ok(process.stdout == "".join(f"{v:.1f} 0\n" for v in x.min(-1).reshape(-1)), "a few results, a line each", shown(process))
    process = alone("argmax", name, "--axis=1", "-o", folder.name("i.npy"), f"--values={folder.name('v.npy')}")
    tap.ok(process.returncode == 0 and np.array_equal(np.load(folder.name("i.npy")), x.argmax(1)) and np.load(folder.name("i.npy")).dtype == np.int64
           and np.array_equal(np.load(folder.name("v.npy")), x.max(1)), "indices and their elements", shown(process))
    flat = cli.report(alone("stats", name, "--ddof=1", "--json", f"--partial={folder.name('p')}"))
    merged = cli.report(alone("merge", folder.name("p"), "--ddof=1", "--json"))
    tap.ok(flat and merged and {key: flat["stats"][key]["text"] for key in flat["stats"]} == {key: merged["stats"][key]["text"] for key in flat["stats"]} and flat["stats"]["variance"]["value"] == x.var(ddof=1),
           "--ddof of a whole array, and of a merge", (flat, merged))
    for left in ("i.npy", "v.npy", "p"):
        os.remove(folder.name(left))
    np.array([[2 ** 62, 2 ** 62], [1, 1]], np.int64).tofile(folder.name("big"))
    report = cli.report(alone("sum", folder.name("big"), "--dtype=int64", "--shape=2,-1,1", "--axis=0", "--json"))
    tap.ok(report and report["results"] == {"sum": [[2 ** 62 + 1], [2 ** 62 + 1]]}, "one extent of --shape follows from the others", report)
    ones = np.ones((3, 2, 4), np.int64, order="F")
    ones[2, :, 1] = 2 ** 62
    np.save(folder.name("fortran.npy"), ones)
    output, listing = ["-o", folder.name("y.npy")], folder.files()
    for status, words, said in (
            (2, ["sum", name, "--axis=3"], ["an array of 3 dimensions (2x3x4)", "found '3'"]),
            (2, ["sum", "gen:ramp?n=9", "--axis=1"], ["1 dimension (9)", "--shape"]),
            (2, ["sum", name, "--axis=0", "--checkpoint=c"], ["-o FILE", "--checkpoint"]),
            (2, ["argmax", name, "--axis=0", *output, f"--values={folder.name('c.0')}", f"--checkpoint={folder.name('c')}"], ["would replace the values"]),
            (2, ["softmax", name, "--axis=0", "-o", folder.name("y.npz")], ["y.npz", ".npy"]),
            (2, ["argmax", name, "--axis=0", *output, f"--values={folder.name('y.npz')}"], ["y.npz", ".npy"]),
            (2, ["sum", name, "--axis=0,-3"], ["each axis once"]),
            (2, ["sum", name, "--axis=one"], ["'one'"]),
            (2, ["sum", name, "--axis=0,"], ["'0,'"]),
            (2, ["stats", name, "--axis=0", *output], [".npz", "y.npy"]),
            (2, ["argmax", name, "--axis=0", *output, f"--values={folder.name('y.npy')}"], ["--values would replace the output"]),
            (2, ["sum", name, "--axis=0", "-o", name], ["--output would replace the input"]),
            (2, ["sum", name, "--axis=0", f"--partial={folder.name('p')}"], ["--partial"]),
            (2, ["sum", "gen:normal?n=2e6", "--shape=2000,1000", "--axis=1"], ["-o FILE", "2000 results"]),
            (2, ["sum", "gen:normal?n=2e6", "--shape=2000,1001", "--axis=1", *output], ["2002000", "2000000"]),
            (2, ["sum", name, "--shape=24", "--axis=0"], ["no --shape"]),
            (1, ["sum", folder.name("big"), "--dtype=int64", "--shape=2,2", "--axis=1", *output], ["result [0, :]", "int64"]),
            (1, ["sum", folder.name("fortran.npy"), "--axis=1", "--threads=1", *output], ["result [2, :, 1]: the sum is 9223372036854775808"]),
            (1, ["prod", folder.name("fortran.npy"), "--axis=1", "--output-type=f64", *output], ["result [2, :, 1]: the product exceeds 64 bits"]),
            (2, ["sum", folder.name("big"), "--dtype=int64", "--shape=-1,3", "--axis=1", *output], ["multiple of the 3 elements", "found 4"]),
            (2, ["sum", folder.name("big"), "--dtype=int64", "--shape=-1,-1", "--axis=1", *output], ["one may be -1"]),
            (2, ["sum", folder.name("big"), "--dtype=int64", "--shape=-1,0", "--axis=1", *output], ["multiple of the 0 elements"]),
            (2, ["sum", name, "-o", "y.npy"], ["--axis"]),
            (2, ["sum", name, "--keepdims"], ["--axis"]),
            (2, ["sum", name, "--axis=1", "--ddof=1"], ["--ddof"]),
            (2, ["sum", name, "--axis=1", "--values=v"], ["--values"])):
        process = alone(*words)
        why = refused(process, status, *said)
        tap.ok(not why and folder.files() == listing, f"{' '.join(words[2:])} is refused", why or folder.files())


def main():
    cli.ignore_leaks()
    with Folder() as folder:
        check_random(folder)
    with Folder() as folder:
        check_cuts(folder)
    for check in (check_short, check_chunks, check_missing, check_neutral, check_interface):
        with Folder() as folder:
            check(folder)
    tap.done()


main()
