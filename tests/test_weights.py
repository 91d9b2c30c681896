#!/usr/bin/env python3
"""The program's --weights: arrays that broadcast, weights of a dimension, cosines of latitudes, over formats, chunks, slices, missing and packed values, against
rational numbers; and what is refused. Calls of the library: test_axes.py."""
import fractions
import math
import os

import numpy as np

import cli
import tap
from format_files import Cdf

try:
    import h5py
except ImportError:
    h5py = None

SHAPE = (5, 19, 24)
MISSING = -999


def due(fold, x, w):
    pairs = [(fractions.Fraction(v), fractions.Fraction(u)) for v, u in zip(x, w)]
    total, first, second = (sum((u * v ** k for v, u in pairs), fractions.Fraction(0)) for k in range(3))
    if fold == "sum":
        return first.numerator / first.denominator
    if total == 0:
        return math.nan
    ratio = first / total if fold == "mean" else (second * total - first * first) / total ** 2
    if fold == "std" and ratio:
        shift = 2 * (200 + ratio.denominator.bit_length())
        ratio = fractions.Fraction(2 * math.isqrt((ratio.numerator << shift) // ratio.denominator) + 1, 2 << shift // 2)
    return ratio.numerator / ratio.denominator


def cosine(degrees):
    """Of a number of degrees, by Taylor's series of rational numbers: far more digits than a double has."""
    third = sum(fractions.Fraction((-1) ** k * 4, (2 * k + 1)) * (4 * fractions.Fraction(1, 5) ** (2 * k + 1) - fractions.Fraction(1, 239) ** (2 * k + 1))
                for k in range(40))  # pi, after Machin
    t = fractions.Fraction(degrees) * third / 180
    t, term, total = fractions.Fraction(round(t * 2 ** 200), 2 ** 200), fractions.Fraction(1), fractions.Fraction(0)
    for k in range(40):
        total += term
        term = fractions.Fraction(round(-term * t * t / ((2 * k + 1) * (2 * k + 2)) * 2 ** 200), 2 ** 200)
    return 0.0 if abs(total) < fractions.Fraction(1, 2 ** 120) else total.numerator / total.denominator


class Array:
    """An array of a file, its elements as they are folded, and which of them are there."""

    def __init__(self, name, x, there=None, lat=None):
        self.name, self.x, self.lat = name, x.astype(object), lat
        self.there = np.ones(x.shape, bool) if there is None else there


def arrays(folder):
    random = np.random.default_rng(61)
    x = (280 + 20 * random.standard_normal(SHAPE)).astype(np.float32)
    lat = np.linspace(-90, 90, SHAPE[1]).astype(np.float32)
    there = random.random(SHAPE) > 0.2
    np.save(folder.name("x.npy"), x)
    np.save(folder.name("f.npy"), np.asfortranarray(x.astype(np.float64)))
    np.save(folder.name("i.npy"), (x * 50).astype(np.int16))
    yield Array("x.npy", x)
    yield Array("f.npy", x)
    yield Array("i.npy", (x * 50).astype(np.int16).astype(int))
    for name, kept in (("whole", np.ones(SHAPE, bool)), ("holes", there)):
        cdf = Cdf(2, [("record", 0), ("time", SHAPE[0]), ("lat", SHAPE[1]), ("lon", SHAPE[2])])
        cdf.add("lat", [2], lat)
        cdf.add("t", [1, 2, 3], np.where(kept, x, np.float32(MISSING)), _FillValue=np.float32(MISSING))
        cdf.write(folder.name(name + ".nc"))
        yield Array(name + ".nc:t", x, kept, lat)
    packed = np.where(there, (x * 100 - 27000).round(), MISSING).astype(np.int16)
    scale, offset = fractions.Fraction(0.01), fractions.Fraction(270.0)
    values = np.array([float(int(v) * scale + offset) for v in packed.ravel()]).reshape(SHAPE)
    if h5py is None:
        return
    with h5py.File(folder.name("c.h5"), "w") as file:
        for name in ("time", "lat", "lon"):
            file[name] = lat if name == "lat" else np.arange(SHAPE[0 if name == "time" else 2])
            file[name].make_scale(name)
        for name, stored, chunks in (("t", np.where(there, x, np.float32(MISSING)), (2, 7, 10)), ("p", packed, (5, 1, 3))):
            file.create_dataset(name, data=stored, chunks=chunks, compression="gzip").attrs["_FillValue"] = stored.dtype.type(MISSING)
            for i, dimension in enumerate(("time", "lat", "lon")):
                file[name].dims[i].attach_scale(file[dimension])
        file["p"].attrs["scale_factor"], file["p"].attrs["add_offset"] = 0.01, 270.0
    yield Array("c.h5:t", x, there, lat)
    yield Array("c.h5:p", values, packed != MISSING, lat)


def calls(folder):
    """(array, words, shape of the weights in that of the array, part of the array, axes)"""
    random = np.random.default_rng(62)
    whole, part = (slice(None),) * 3, (slice(1, 4), slice(3, 11), slice(None))
    given = {"plane": random.random(SHAPE[1:]), "time": random.random((SHAPE[0], 1, 1)).astype(np.float32), "all": random.random(SHAPE) * 2.0 ** random.integers(-40, 40, SHAPE),
             "one": np.array(3), "rows": random.integers(0, 9, (1, SHAPE[1], 1))}
    for name, w in given.items():
        np.save(folder.name(f"w-{name}.npy"), w)
    np.save(folder.name("lat.npy"), given["rows"].ravel())
    np.save(folder.name("days.npy"), given["time"].ravel())
    for i, array in enumerate(arrays(folder)):
        names = list(given)[i % 2::2] if array.lat is None else ["plane"]
        for k, name in enumerate(names):
            yield array, ["--weights=" + folder.name(f"w-{name}.npy")], given[name], whole, [(1, 2), (0,), None, (0, 2)][(i + k) % 4]
        yield array, ["--weights=1=" + folder.name("lat.npy")], given["rows"], whole, [(1,), (0, 1, 2)][i % 2]
        if array.lat is not None:
            cosines = np.array([cosine(float(v)) for v in array.lat]).reshape(-1, 1)
            yield array, ["--weights=cos:lat"], cosines, whole, (1, 2)
            yield array, ["--weights=cos:lat"], cosines, whole, None
            yield array, ["--weights=cos:lat", "--slice=time=1:4,lat=3:11"], cosines[3:11], part, [(1, 2), None, (0, 1)][i % 3]
            yield array, ["--weights=time=" + folder.name("days.npy")], given["time"], whole, (0,)


def wrong_of(process, fold, call, folder, output):
    array, _, w, part, axes = call
    if process.returncode != 0:
        return cli.shown(process)
    x, there = array.x[part], array.there[part]
    folded = (0, 1, 2) if axes is None else axes
    kept = [d for d in range(3) if d not in folded]
    rows = [np.broadcast_to(of, x.shape).transpose(kept + list(folded)).reshape(math.prod(x.shape[d] for d in kept), -1) for of in (x, there, w)]
    report = cli.json.loads(process.stdout)
    got = [report["value"]] if axes is None else np.load(folder.name(output)).ravel()
    if axes is None and array.lat is not None and report.get("missing", 0) != int((~there).sum()):
        return f"{report.get('missing')} missing, expected {int((~there).sum())}"
    for r in range(0, len(got), max(1, len(got) // 40)):
        one, is_there, weights = (of[r] for of in rows)
        want = due(fold, [v for v, yes in zip(one, is_there) if yes], [u.item() for u, yes in zip(weights, is_there) if yes])
        if got[r] != want and not (want != want and (got[r] is None or got[r] != got[r])):
            return f"{cli.shown(process)[:300]}: row {r}: {got[r]!r}, expected {want!r}"
    return ""


def values(folder, backend):
    launches, all_calls = [], []
    for i, call in enumerate(calls(folder)):
        array, words, _, _, axes = call
        fold = ("mean", "std", "sum", "variance")[i % 4]
        output = [] if axes is None else ["--axis=" + ",".join(map(str, axes)), "-o", folder.name(f"out{i}.npy")]
        small = ["--staging=4096"] if i % 3 else []
        launches.append((1 + (i % 5 == 2), [fold, "--json", f"--backend={backend}", *words, *small, folder.name(array.name), *output]))
        all_calls.append((fold, call, f"out{i}.npy"))
    wrong = [wrong_of(process, fold, call, folder, output) for process, (fold, call, output) in zip(cli.each(launches), all_calls)]
    tap.ok(not any(wrong), f"{len(launches)} weighted folds of files, {backend}", "\n".join(filter(None, wrong)))


def wide_means(folder):
    """The means over latitudes and longitudes are those of a mean in long doubles, as xarray's of float128, to a unit in the last place."""
    if np.finfo(np.longdouble).nmant < 63:
        return
    x, lat = np.load(folder.name("x.npy")), np.linspace(-90, 90, SHAPE[1]).astype(np.float32)
    w = np.cos(np.deg2rad(lat.astype(np.longdouble)))[:, None]
    due_means = (x.astype(np.longdouble) * w).sum((1, 2)) / (w.sum() * SHAPE[2])
    words = ["mean", "--backend=cpu", "--axis=lat,lon", "--weights=cos:lat", folder.name("whole.nc:t"), "-o", folder.name("wide.npy")]
    process = cli.each([(2, words)])[0]
    means = np.load(folder.name("wide.npy")) if process.returncode == 0 else np.zeros(1)
    tap.ok(means.shape == due_means.shape and (np.abs(means - due_means) <= np.spacing(means)).all(), "weighted means are those in long doubles",
           f"{cli.shown(process)}\n{means}\n{due_means}")


def refusals(folder):
    x, nc = folder.name("x.npy"), folder.name("whole.nc:t")
    bad = np.ones((1, SHAPE[1], 1))
    for name, value in (("negative", -0.5), ("nan", math.nan), ("infinite", math.inf)):
        bad[0, 7] = value
        np.save(folder.name(name + ".npy"), bad)
    np.save(folder.name("big.npy"), np.full(SHAPE[2], 2 ** 53 + 1))
    np.save(folder.name("long.npy"), np.ones(SHAPE[1], np.int64))
    np.save(folder.name("x64.npy"), np.ones(SHAPE, np.int64))
    cdf = Cdf(2, [("record", 0), ("lat", 3)])
    cdf.add("lat", [1], np.array([0, 60, 95], np.float32))
    cdf.add("t", [1], np.ones(3, np.float32))
    cdf.write(folder.name("pole.nc"))
    name = folder.name
    for i in range(2):
        cdf = Cdf(2, [("record", 0), ("time", 2), ("lat", 3)])
        cdf.add("lat", [2], np.array([0, 30 + i, 60], np.float32))
        cdf.add("t", [1, 2], np.ones((2, 3), np.float32))
        cdf.write(name(f"other-{i}.nc"))
    others = [name(f"other-{i}.nc:t") for i in range(2)]
    process = cli.alone("max", "--axis=time", *others, "-o", name("o.nc"))
    tap.ok(process.returncode == 0 and "lat is left out: it is not the same in all files" in process.stderr, "a coordinate that joined files do not share", cli.shown(process))
    expected = [([f"--weights={name('negative.npy')}", x], 1, "(0, 7, 0)"), ([f"--weights={name('nan.npy')}", x], 1, "finite"),
                ([f"--weights={name('infinite.npy')}", "--axis=1", x], 1, "index 7"), ([f"--weights={name('long.npy')}", x], 2, "does not broadcast"),
                ([f"--weights=0={name('long.npy')}", x], 2, "expected one dimension of 5"), ([f"--weights={name('none.npy')}", x], 1, "none.npy"),
                ([f"--weights={name('big.npy')}", x], 1, "exact in f64"), ([f"--weights=1={name('long.npy')}", name("x64.npy")], 1, "int64"),
                (["--weights=cos:lat", x], 2, "dimension"), (["--weights=cos:lon", nc], 1, "coordinate variable"),
                (["--weights=cos:lat", *others], 1, "lat is not the same in all files"),
                (["--weights=cos:lat", name("pole.nc:t")], 1, "lat[2] is 95 degrees"),
                (["--weights=" + name("long.npy"), "--axis=0", "-o", name("long.npy"), x], 2, "--output would replace the weights"),
                (["--weights=gen:uniform?n=2^61&dtype=int8", "gen:uniform?n=2^61&dtype=int8"], 1, "no memory for 2305843009213693952"),
                (["--weights=cos:lat", "--checkpoint=" + name("c"), nc], 2, "no --checkpoint"), (["--weights=cos:lat", "-o", name("o.npy"), nc], 2, "axis")]
    found = cli.each([(1 + i % 2, ["mean", "--backend=cpu", *words]) for i, (words, _, _) in enumerate(expected)]
                     + [(1, ["sum", "-q", "--backend=cpu", f"--weights={name('negative.npy')}", x]), (1, ["std", "--ddof=1", "--weights=cos:lat", nc]),
                        (1, ["max", "--weights=cos:lat", nc]), (1, ["variance", "--nan=omit", "--weights=cos:lat", nc])])
    wrong = [why for process, (_, status, word) in zip(found, expected) if (why := cli.refused(process, status, word))]
    wrong += [cli.shown(found[-4])] * (found[-4].returncode != 0)
    wrong += [why for process, status, word in zip(found[-3:], (2, 2, 2), ("ddof", "weights", "no --nan")) if (why := cli.refused(process, status, word))]
    tap.ok(not wrong, "what weights do not go with, and which are refused", "\n".join(wrong))


def main():
    cli.ignore_leaks()
    for backend in cli.backends():
        with cli.Folder() as folder:
            values(folder, backend)
            if backend == "cpu":
                wide_means(folder)
                refusals(folder)
    tap.done()


main()
