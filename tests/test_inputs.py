#!/usr/bin/env python3
"""Several inputs, joined in the order given, or each array of a file for itself; names of dimensions, and places. docs/formats.md."""
import math
import os
import shutil
import subprocess

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None
try:
    from scipy.io import netcdf_file
except ImportError:
    netcdf_file = None

import cli
import tap
from format_files import Cdf, tensor, write_safetensors

RANDOM = np.random.default_rng(20261123)


def integers(dtype, shape):
    """Halves that tell places apart."""
    return np.full(shape, b"x") if dtype == "S1" else (RANDOM.integers(-100, 100, shape) * 1.5).astype(dtype)


def test_inputs(folder):
    """Several INPUTs are joined in the order given, along the first axis."""
    parts = [np.arange(12.0).reshape(3, 4), 100 - np.arange(8.0).reshape(2, 4), np.ones((1, 4))]
    for name, x in zip("abc", parts):
        np.save(folder.name(f"{name}.npy"), x)
    np.savez(folder.name("p.npz"), w=parts[0], v=parts[1])
    np.save(folder.name("other.npy"), np.ones((2, 5)))
    a, b, c = (folder.name(f"{name}.npy") for name in "abc")
    whole = np.concatenate([parts[1], parts[0], parts[2]])
    argmax, sums, again, mixed = cli.each_alone([["argmin", "--json", b, a, c], ["sum", "--axis=0", "-o", folder.name("s.npy"), b, folder.name("[ac].npy")],
                                                 ["sum", "-q", c, c], ["max", "-q", folder.name("p.npz:v"), a, folder.name("p.npz:w"), "--count=9", "--offset=1"]])
    found = cli.report(argmax)
    tap.ok(found and found["index"] == whole.argmin() and found["count"] == whole.size and found["input"] == f"{b} and 2 more", "argmin of three inputs", found)
    tap.ok(sums.returncode == 0 and np.array_equal(np.load(folder.name("s.npy")), whole.sum(0)), "a file and a pattern, along an axis", cli.shown(sums))
    tap.ok((again.stdout, mixed.stdout) == ("8.0\n", "99.0\n"), "one file twice; arrays of an archive, and a part of all", cli.shown(again) + cli.shown(mixed))
    several = cli.ranks(3, "softmax", b, a, "-o", folder.name("y.npy"))
    y = np.exp(whole[:5] - whole.max())
    tap.ok(several.returncode == 0 and np.allclose(np.load(folder.name("y.npy")), y / y.sum(), rtol=1e-14), "softmax of two inputs on 3 ranks", cli.shown(several))
    cases = [([a, folder.name("other.npy")], 1, "other.npy", "f64 3x4 so far", "found f64 2x5"), ([a, folder.name("absent.npy")], 1, "absent.npy", "cannot find"),
             ([a, "gen:normal?n=4"], 1, "to be joined, found others (generated)"), ([a, b, f"--partial={b}"], 2, "replace the input"), ([a, "-"], 2, "found '-'")]
    for (words, status, *said), done in zip(cases, cli.each_alone([["sum", *words] for words, *_ in cases])):
        fault = cli.refused(done, status, *said)
        tap.ok(not fault, f"refused: {said[-1]}", fault)


def test_all_arrays(folder):
    """'FILE:*': each array of a file for itself, and all as one."""
    tensors = {f"layer.{i}.weight": integers("<f4", (40 + i, 30)) for i in range(3)}
    tensors.update({"layer.0.bias": integers("<f4", (7,)), "empty": np.zeros((0, 3), "<f4")})
    name = folder.name("m.safetensors")
    write_safetensors(name, {"odd": ("F8_E4M3", [3], b"abc"), **{key: tensor("F32", x) for key, x in tensors.items()}})
    np.savez(folder.name("t.npz"), **{"a": np.arange(4.0), "text": np.array(["x"]), "d[0]": np.ones((2, 3)), "d0": np.zeros(1)})
    cdf = Cdf(1, [("time", 0), ("x", 5)], 3)
    cdf.add("t", (0, 1), np.arange(15, dtype="i2").reshape(3, 5), _FillValue=np.array([14], "i2"), scale_factor=np.array([0.5]))
    cdf.add("words", (1,), integers("S1", (5,)))
    cdf.add("x", (1,), np.arange(5.0))
    cdf.write(folder.name("c.nc"))
    weights = [tensors[f"layer.{i}.weight"] for i in range(3)]
    commands = {"each": ["sum", f"{name}:*"], "some": ["argmax", "-q", f"{name}:*.weight"], "exact": ["sum", "-q", folder.name("t.npz:d[0]")],
                "files": ["sum", f"{folder.name('[c].nc')}:*", folder.name("t.npz:[ad]*")], "json": ["stats", "--json", f"{folder.name('c.nc')}:*"],
                "total": ["argmin", "--json", "--total", f"{name}:*.weight"], "plain": ["sum", "-q", "--total", folder.name("t.npz:a"), f"{folder.name('c.nc')}:?"],
                "listed": ["info", "-q", f"{name}:*.weight"]}
    runs = dict(zip(commands, cli.each_alone(commands.values())))
    sums = [f"{key} = {float(x.sum(dtype=float))!r}" for key, x in tensors.items()]
    tap.ok(runs["each"].stdout.splitlines() == sums and "m.safetensors:odd: left out: " in runs["each"].stderr and runs["each"].stderr.count("\n") == 1,
           "a line each, and one on standard error", cli.shown(runs["each"]))
    several = cli.ranks(3, "sum", f"{name}:*")
    tap.ok(several.stdout == runs["each"].stdout and len(cli.told(several)) == 1, "the same on 3 ranks", cli.shown(several))
    tap.ok(runs["some"].stdout.splitlines() == [f"{float(x.max())!r} {x.argmax()}" for x in weights], "a part of the names", cli.shown(runs["some"]))
    tap.ok(runs["exact"].stdout == "6.0\n", "an array of that very name comes first", cli.shown(runs["exact"]))
    lines = [f"{folder.name('c.nc')}:t = 45.5  (1 missing)", f"{folder.name('c.nc')}:x = 10.0", f"{folder.name('t.npz')}:a = 6.0",
             f"{folder.name('t.npz')}:d[0] = 6.0", f"{folder.name('t.npz')}:d0 = 0.0"]
    tap.ok(runs["files"].stdout.splitlines() == lines and "c.nc:words: left out: " in runs["files"].stderr, "several files", cli.shown(runs["files"]))
    found = cli.report(runs["json"])
    tap.ok(found and [(one["name"], one["dtype"], one["count"], one.get("missing"), one["stats"]["sum"]["value"]) for one in found["arrays"]]
           == [("t", "f64", 15, 1, 45.5), ("x", "f64", 5, None, 10.0)] and found["level"] == "exact" and found["bytes_per_second"] > 0, "stats in JSON", found)
    whole = np.concatenate([x.ravel() for x in weights])
    found = cli.report(runs["total"])
    tap.ok(found and (found["value"], found["index"], found["count"], found["input"]) == (whole.min(), whole.argmin(), whole.size, f"{name}:*.weight"),
           "--total: one value, as of all joined", found)
    several = cli.report(cli.ranks(2, "norm2", "--json", "--total", f"{name}:*.weight", f"--partial={folder.name('p')}"))
    merged, alone = cli.each_alone([["merge", "-q", folder.name("p")], ["norm2", "-q", "--total", f"{name}:*.weight"]])
    tap.ok(several and merged.stdout == alone.stdout == f"{several['text']}\n" and several["value"] == math.sqrt(math.fsum(whole.astype(float) ** 2)),
           "on 2 ranks, with a partial", (several, cli.shown(merged)))
    tap.ok(runs["plain"].stdout == "61.5\n" and runs["listed"].stdout.splitlines() == [f"layer.{i}.weight" for i in range(3)],
           "packed elements and others; names that info lists", cli.shown(runs["plain"]) + cli.shown(runs["listed"]))
    cases = [(["max", f"{name}:*"], 1, "m.safetensors:empty: max of an empty array"), (["sum", f"{name}:z*"], 2, "found 'z*', which matches none; it holds odd (F8_E4M3 3)"),
             (["sum", folder.name("c.nc:w*")], 1, "expected arrays of numbers, found none"), (["sum", "--axis=0", f"{name}:*"], 2, "found '*', which means several; it holds"),
             (["sum", "--total", f"{name}:l*", folder.name("t.npz:a")], 1, "t.npz:a: expected arrays of one type for --total, f32 so far, found f64"),
             (["sum", "--total", "--axis=0", folder.name("t.npz:a")], 2, "expected no --axis"), (["softmax", "-o", folder.name("y"), f"{name}:*"], 2, "found '*'"),
             (["sum", f"{name}:*", "--count=3"], 2, "expected no --count"), (["sum", f"{name}:*", f"--checkpoint={folder.name('ck')}"], 2, "one array"),
             (["sum", f"{name}:*", f"--partial={folder.name('q')}"], 2, "expected --total"), (["sum", f"{name}:l*", "--total", f"--partial={name}"], 1, "which is not replaced")]
    for (words, status, said), done in zip(cases, cli.each_alone([words for words, *_ in cases])):
        lines = [line for line in cli.complaints(done) if " left out: " not in line]
        tap.ok(done.returncode == status and not done.stdout and len(lines) == 1 and said in lines[0] and not os.path.exists(folder.name("q")), f"refused: {said}", cli.shown(done))


def test_names(folder):
    """Dimensions are called by their names, and indices are told as places."""
    x = np.arange(60, dtype="f4").reshape(3, 4, 5)
    x[1, 2, 3] = np.nan
    cdf = Cdf(1, [("time", 0), ("lat", 4), ("1", 5)], 3)  # a name that looks like a number comes first
    cdf.add("t", (0, 1, 2), x)
    cdf.add("m", (0, 1, 2), np.arange(60, dtype="i2").reshape(3, 4, 5), _FillValue=np.array([17], "i2"))
    cdf.write(folder.name("n.nc"))
    np.save(folder.name("f.npy"), np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)))
    t, m, f = (folder.name(name) for name in ("n.nc:t", "n.nc:m", "f.npy"))
    commands = [["sum", "--axis=lat,1", "--json", m], ["sum", "--axis=time", "--json", m], ["argmax", m], ["argmin", "--json", f], ["argmax", f],
                ["max", "--json", m], ["stats", "--json", f], ["argmax", "--count=20", m], ["argmax", "--total", m, m], ["argmax", "-q", m]]
    rows, times, text, first, fortran, value, stats, part, total, quiet = cli.each_alone(commands)
    kept = np.where(np.arange(60) == 17, 0, np.arange(60)).reshape(3, 4, 5)
    tap.ok(cli.report(rows)["results"]["sum"] == kept.sum((1, 2)).tolist() and cli.report(rows)["axis"] == [1, 2]
           and cli.report(times)["results"]["sum"] == kept.sum(0).tolist(), "--axis with names", cli.shown(rows) + cli.shown(times))
    tap.ok("argmax = 59 at index 59, (time, lat, 1) = (2, 3, 4)  (" in text.stdout and "at index 23, (1, 2, 3)  (" in fortran.stdout
           and "at index 19  (" in part.stdout and "at index 59  (" in total.stdout and quiet.stdout == "59 59\n", "places beside indices, of arrays that have any",
           "".join(map(cli.shown, (text, fortran, part, total, quiet))))
    found = cli.report(stats)["stats"]
    tap.ok(cli.report(first)["place"] == [0, 0, 0] and found["max"]["place"] == [1, 2, 3] and "place" not in found["sum"] and "place" not in cli.report(value),
           "places in JSON", (cli.shown(first), found))
    cases = [(["argmin", "--nan=error", t], 1, "the first at index 33, (time, lat, 1) = (1, 2, 3), and"), (["std", "--nan=error", t], 1, "(1, 2, 3)"),
             (["sum", "--missing=error", m], 1, "at index 17, (time, lat, 1) = (0, 3, 2): "), (["sum", "--axis=lat,lon", m], 2, "name (time, lat, 1)"),
             (["sum", "--axis=lat", f], 2, "expected a number, or several"), (["sum", "--axis=time,0", m], 2, "each axis once"),
             (["sum", "--axis=lat,", m], 2, "found 'lat,'"), (["sum", "--axis=time", m, "--shape=60", "--count=60"], 2, "expected a number, or several")]
    for (words, status, said), done in zip(cases, cli.each_alone([words for words, *_ in cases])):
        fault = cli.refused(done, status, said)
        tap.ok(not fault, f"refused: {said}", fault)


def of_dimension(random, dimension, extent, names):
    """A slice of a dimension as the program and as Python writes it, ends beyond the dimension included."""
    name = random.choice([str(dimension), str(dimension - len(names)), names[dimension]])
    first, end = (None if random.random() < 0.25 else int(random.integers(-extent - 2, extent + 3)) for _ in range(2))
    if first is not None and -extent <= first < extent and random.random() < 0.2:
        return f"{name}={first}", slice(first, first + 1 or None)
    return f"{name}={'' if first is None else first}:{'' if end is None else end}", slice(first, end)


def write_chunks(path, x, names, chunk, **attributes):
    """An HDF5 file with a dataset x in chunks, whose dimensions have names."""
    with h5py.File(path, "w") as file:
        data = file.create_dataset("x", x.shape, x.dtype, chunks=chunk, compression="gzip", shuffle=True, maxshape=tuple(None for n in x.shape))
        data[...] = x
        data.attrs.update(attributes)
        for i, dimension in enumerate(names):
            scale = file.create_dataset(dimension, data=np.zeros(x.shape[i]))
            scale.make_scale(dimension)
            data.dims[i].attach_scale(scale)


def inputs(folder, random, number, x, names):
    """x in a file of one format or another: the words that name it, whether the file names the dimensions, and its order."""
    kind = number % 11
    name = folder.name(f"s{number}")
    if kind < 2:
        np.save(f"{name}.npy", np.asfortranarray(x) if kind else x)
        return [f"{name}.npy"], False, "F" if np.load(f"{name}.npy", mmap_mode="r").flags.fnc else "C"
    if kind == 2:
        x.tofile(name)
        return [name, f"--dtype={x.dtype.name}", f"--shape={','.join(map(str, x.shape))}"], False, "C"
    if kind < 5:
        (np.savez if kind == 3 else np.savez_compressed)(f"{name}.npz", x=x.astype(x.dtype.newbyteorder(">")))
        return [f"{name}.npz:x"], False, "C"
    if kind == 5:
        write_safetensors(f"{name}.safetensors", {"x": tensor({"f8": "F64", "i2": "I16"}[x.dtype.str[1:]], x)})
        return [f"{name}.safetensors:x"], False, "C"
    if kind < 8:
        records = kind == 6
        cdf = Cdf(5, [(names[0], 0), *zip(names[1:], x.shape[1:])] if records else [("unused", 0), *zip(names, x.shape)], len(x) if records else 2)
        cdf.add("x", tuple(range(not records, x.ndim + (not records))), x)
        cdf.add("y", (0,), np.zeros(len(x) if records else 2))
        cdf.write(f"{name}.nc")
        return [f"{name}.nc:x"], True, "C"
    if kind == 8 or h5py is None:
        parts = np.split(x, sorted(random.integers(0, len(x) + 1, random.integers(0, 4)).tolist()))
        for i, part in enumerate(parts):
            np.save(f"{name}-{i}.npy", part)
        return [f"{name}-*.npy"], False, "C"
    cuts = sorted(random.integers(0, len(x) + 1, random.integers(1, 4)).tolist()) if kind == 10 else []
    for i, part in enumerate(np.split(x, cuts)):
        chunk = tuple(int(random.integers(1, n + 1)) for n in x.shape)
        write_chunks(f"{name}-{i}.h5", part if i % 2 else part.astype(x.dtype.newbyteorder(">")), names, chunk)
    return [f"{name}-*.h5:x"], True, "C"


def test_slices(folder):
    """--slice: NumPy's results of a box of an array, whatever its format, in long and short pieces, on one rank and several."""
    random = np.random.default_rng(30)
    launches, checks = [], []
    for number in range(44):
        x = integers(["<f8", "<i2"][number // 11 % 2], random.choice([1, 2, 3, 5, 8, 17, 40], random.integers(1, 5)))
        names = [f"d{i}" for i in range(x.ndim)]
        words, named, order = inputs(folder, random, number, x, names)
        some = random.permutation(x.ndim)[:random.integers(1, x.ndim + 1)].tolist()
        cut = {i: of_dimension(random, i, x.shape[i], names if named else [str(k) for k in range(x.ndim)]) for i in some}
        y = x[tuple(cut[i][1] if i in cut else slice(None) for i in range(x.ndim))]
        words += [f"--slice={','.join(cut[i][0] for i in some)}", f"--staging={random.choice([64, 4096, 4 << 20])}", "--backend=cpu"]
        axis, output = int(random.integers(x.ndim)), folder.name(f"r{number}")
        what = number % 3
        fold = "argmax" if what == 0 and y.size else "sum"
        launches.append((3 if number % 9 == 0 else 1, [fold, "--json", *words] if what == 0 else ["sum", *words, f"--axis={axis}", "-o", f"{output}.npy"] if what == 1
                         else ["softmax", *words, "--output-type=f64", "-o", f"{output}.npy"]))
        checks.append((what, y, order, axis, f"{output}.npy", cut, x))
    wrong = []
    for (what, y, order, axis, output, cut, x), (count, words), done in zip(checks, launches, cli.each(launches)):
        if done.returncode != 0:
            wrong.append(cli.shown(done))
        elif what == 0:
            found = cli.report(done)
            flat = y.ravel(order)
            ends = [[start, max(start, stop)] for start, stop, _ in ((cut[i][1] if i in cut else slice(None)).indices(n) for i, n in enumerate(x.shape))]
            right = found["input_shape"] == list(y.shape) and found["count"] == y.size and found["slice"] == ends
            right = right and (found["value"] == flat.sum() if "index" not in found else found["index"] == flat.argmax()
                               and found["place"] == [int(i) for i in np.unravel_index(flat.argmax(), y.shape, order)])
            wrong += [] if right else [cli.shown(done)]
        else:
            terms = np.exp(y - y.max(initial=0).astype(float))
            expected = y.sum(axis, dtype=float) if what == 1 else terms / terms.sum()
            if not (np.load(output).shape == expected.shape and np.allclose(np.load(output), expected, rtol=1e-13, atol=0)):
                wrong.append(cli.shown(done))
    tap.ok(not wrong, f"{len(launches)} slices of all formats", "\n".join(wrong[:3]))


def test_encoded_slices(folder):
    """Slices of packed elements, some of them missing, of generated ones, and with other options; and what is no slice."""
    x = np.arange(60, dtype="i2").reshape(3, 4, 5)
    cdf = Cdf(1, [("time", 0), ("lat", 4), ("lon", 5)], 3)
    cdf.add("t", (0, 1, 2), x, _FillValue=np.array([27], "i2"), scale_factor=np.array([0.5]))
    cdf.add("other", (0,), np.zeros(3, "i4"))
    cdf.write(folder.name("e.nc"))
    np.save(folder.name("e.npy"), x)
    t, plain = folder.name("e.nc:t"), folder.name("e.npy")
    with open(folder.name("sparse"), "wb") as file:  # a terabyte, of which nothing is read but what is needed
        for row in range(0, 1 << 17, 1 << 10):
            file.seek((row << 20 | 5) * 8)
            file.write(np.array([row + 1.0, -1, 1]).tobytes())
        file.truncate(1 << 40)
    generated = ["sum", "-q", "gen:ramp?n=1000&dtype=int32"]
    commands = [["sum", "--json", "--slice=time=1:,lat=:2", t], ["argmin", "--json", "--missing=keep", "--slice=lat=-3:,lon=2", t],
                ["mean", "--axis=lat,lon", "--json", "--slice=time=1", t], ["sum", "--missing=error", "--slice=time=1:2", t],
                ["sum", "-q", "--slice=0=3:6", "--count=10", "--offset=20", plain], ["sum", "-q", "--shape=6,10", "--slice=1=1:3,0=-2:", "--count=60", plain],
                ["sum", "-q", "--slice=1=5:7", "--dtype=f64", f"--shape={1 << 17},{1 << 20}", folder.name("sparse")],
                generated, [*generated, "--shape=10,100", "--slice=0=2:4,1=10:20"], ["sum", "--slice=time=1:2,lon=-1", t], ["info", "--slice=time=1:,lon=-1", t],
                ["info", "--json", "--slice=0=:2", plain]]
    runs = cli.each_alone(commands)
    kept = np.where(x == 27, 0, x)
    found = cli.report(runs[0])
    tap.ok(found and (found["value"], found["count"], found["missing"]) == (kept[1:, :2].sum() * 0.5, 20, 1), "packed elements, one of them missing", cli.shown(runs[0]))
    found = cli.report(runs[1])
    tap.ok(found and found["value"] == x[0, 1, 2] * 0.5 and found["place"] == [0, 0, 0] and found["slice"] == [[0, 3], [1, 4], [2, 3]], "places count within the slice", found)
    tap.ok(cli.report(runs[2])["results"]["mean"] == [kept[1].sum() / 19 * 0.5], "rows of a slice", cli.shown(runs[2]))
    fault = cli.refused(runs[3], 1, "at index 7, (time, lat, lon) = (0, 1, 2)")
    tap.ok(not fault, "the place of a missing element", fault)
    tap.ok((runs[4].stdout, runs[5].stdout) == ("72\n", f"{x.reshape(6, 10)[-2:, 1:3].sum()}\n"), "of part of an array, and of another shape", "".join(map(cli.shown, runs[4:6])))
    tap.ok(runs[6].stdout == f"{float(sum(range(0, 1 << 17, 1 << 10)))}\n", "nothing else is read", cli.shown(runs[6]))
    tap.ok((runs[7].stdout, runs[8].stdout) == ("499500\n", f"{sum(row * 100 + i for row in (2, 3) for i in range(10, 20))}\n"), "of generated elements", cli.shown(runs[8]))
    tap.ok("from " in runs[9].stdout and "e.nc:t[1:2, :, 4:5], 1 rank" in runs[9].stdout, "a report names the slice", cli.shown(runs[9]))
    listed = cli.report(runs[11])["arrays"][0]
    tap.ok("t  int16 2x4x1 (time, lat, lon), slice [1:3, :, 4:5], missing: 27" in runs[10].stdout and (listed["shape"], listed["slice"]) == ([2, 4, 5], [[0, 2], [0, 4], [0, 5]]),
           "info shows the slice", cli.shown(runs[10]))
    cases = [("lan=1:2", "e.nc: --slice: expected a dimension of its shape 3x4x5, by number or by name (time, lat, lon), found 'lan=1:2'"), ("3=1:2", "found '3=1:2'"),
             ("time=0:2:2", "steps are not supported"), ("time=1:2,0=1:2", "each dimension once"), ("time=3", "extent of 3, found 'time=3'"), ("time=-4", "found 'time=-4'"),
             ("time", "expected DIMENSION=FIRST:END"), ("time=", "expected indices"), ("time=a:b", "expected indices"), ("time=1:2,", "behind the last comma"), ("", "found ''"),
             (f"time={'0' * 600}1:2", "at most 511 characters")]
    launches = [(["sum", t, f"--slice={text}"], said) for text, said in cases]
    launches += [(["sum", folder.name("e.nc:*"), "--slice=time=1"], "expected no --slice"), (["sum", "--total", t, "--slice=time=1"], "expected no --slice"),
                 (["info", "--slice=0=1"], "expected a FILE")]
    for (words, said), done in zip(launches, cli.each_alone([words for words, _ in launches])):
        fault = cli.refused(done, 2, said)
        tap.ok(not fault, f"refused: {said}", fault)


def test_chunks_of_slices(folder):
    """Only the chunks that a slice needs are decoded."""
    with h5py.File(folder.name("d.h5"), "w") as file:
        data = file.create_dataset("x", data=np.arange(600.0).reshape(20, 30), chunks=(4, 30), compression="gzip")
        at = data.id.get_chunk_info(2).byte_offset
    with open(folder.name("d.h5"), "r+b") as file:
        file.seek(at)
        file.write(b"damaged")
    name = folder.name("d.h5:x")
    fine, rows, damaged = cli.each_alone([["sum", "-q", name, "--slice=0=12:"], ["sum", "--json", "--axis=0", name, "--slice=0=5:8,1=-2:"], ["sum", name, "--slice=0=11:13"]])
    x = np.arange(600.0).reshape(20, 30)
    tap.ok(fine.stdout == f"{x[12:].sum()}\n" and cli.report(rows)["results"]["sum"] == x[5:8, -2:].sum(0).tolist(), "a damaged chunk beside a slice", cli.shown(fine))
    fault = cli.refused(damaged, 1, "chunk at (8, 0)")
    tap.ok(not fault, "and in a slice", fault)


def test_joined_chunks(folder):
    """Files in chunks are one array, as many as there are; those that differ are refused."""
    x = integers("<i2", (420, 4))
    x[x == 7] = 8
    x[17, 2] = 7
    for i in range(140):  # more than are open at a time
        write_chunks(folder.name(f"y{i:03}.h5"), x[3 * i: 3 * i + 3], ["time", "lat"], (1 + i % 3, 2 + i % 2), _FillValue=np.int16(7), scale_factor=0.5)
    years = folder.name("y*.h5:x")
    runs = cli.each([(1, ["sum", "--json", years]), (3, ["argmin", "--json", "--staging=64", years]), (3, ["mean", "--axis=time", "--json", "--staging=64", years]),
                     (1, ["sum", "-q", "--missing=error", years])])
    kept = np.ma.masked_equal(x, 7)
    found = cli.report(runs[0])
    tap.ok(found and (found["value"], found["missing"], found["count"]) == (kept.sum() * 0.5, 1, x.size), "140 files in chunks", cli.shown(runs[0]))
    found = cli.report(runs[1])
    tap.ok(found and (found["index"], found["value"]) == (kept.argmin(), kept.min() * 0.5), "an index on 3 ranks", cli.shown(runs[1]))
    tap.ok(cli.report(runs[2])["results"]["mean"] == [float(m) * 0.5 for m in kept.mean(0)], "along the joined dimension", cli.shown(runs[2]))
    fault = cli.refused(runs[3], 1, "at index 70, (time, lat) = (17, 2)")
    tap.ok(not fault, "the place of a missing element", fault)
    names, chunk, attributes = ["time", "lat"], (2, 2), {"_FillValue": np.int16(7), "scale_factor": 0.5}
    write_chunks(folder.name("types.h5"), x[:3].astype("i4"), names, chunk)
    write_chunks(folder.name("shapes.h5"), x[:3, :2], names, chunk, **attributes)
    write_chunks(folder.name("names.h5"), x[:3], ["time", "lon"], chunk, **attributes)
    write_chunks(folder.name("packings.h5"), x[:3], names, chunk, **{**attributes, "scale_factor": 0.25})
    write_chunks(folder.name("missing.h5"), x[:3], names, chunk, scale_factor=0.5)
    with h5py.File(folder.name("layouts.h5"), "w") as file:
        file.create_dataset("x", data=x[:3]).attrs.update(attributes)
    with h5py.File(folder.name("plain.h5"), "w") as file:  # HDF5 gives no place to a dataset without elements
        for name, rows in (("none", x[:0]), ("x", x[:3])):
            file.create_dataset(name, data=rows).attrs.update(attributes)
        file.create_dataset("later", data=x[:0], chunks=chunk, maxshape=(None, 4)).attrs.update(attributes)
    plain = [folder.name(f"plain.h5:{name}") for name in ("none", "x", "later", "x")]
    for order in (plain, plain[::-1], [plain[2], folder.name("y000.h5:x"), plain[0]]):
        done, twice = cli.alone("sum", "-q", *order), 2 if order[1] in plain else 1
        tap.ok(done.stdout == f"{twice * kept[:3].sum() * 0.5}\n", "files without elements are joined, however others lie", cli.shown(done))
    cases = [("types", "int32 3x4 (time, lat), in chunks: the types differ"), ("shapes", "int16 3x4 (time, lat), missing: 7, packed: 0.5 x + 0, in chunks so far, found int16 3x2"),
             ("names", "(time, lon), missing: 7, packed: 0.5 x + 0, in chunks: the names of dimensions differ"), ("packings", "packed: 0.25 x + 0, in chunks: the packings differ"),
             ("missing", "the missing values differ"), ("layouts", "the layouts differ")]
    for (name, said), done in zip(cases, cli.each_alone([["sum", folder.name("y000.h5:x"), folder.name(f"{name}.h5:x")] for name, _ in cases])):
        fault = cli.refused(done, 1, f"{name}.h5: expected what can be joined to the files before along the first axis", said)
        tap.ok(not fault, f"refused: {said}", fault)


def climate(path, x, first=0, units=b"days since 2000-01-01"):
    """A classic file of x as (time, lat, lon), with coordinates and attributes."""
    cdf = Cdf(1, [("time", 0), ("lat", x.shape[1]), ("lon", x.shape[2])], len(x))
    cdf.add("time", (0,), np.arange(len(x)) + first + 0.5, units=units.decode())
    cdf.add("lat", (1,), np.linspace(0, 240, x.shape[1]).astype("i2"), units="degrees_north", scale_factor=0.5, add_offset=-60.0)
    cdf.add("t", (0, 1, 2), x, units="K", long_name="temperature", cell_methods="area: mean", coordinates="height", _FillValue=np.array([99], x.dtype))
    cdf.write(path)


def results(path):
    """Variables, their attributes and dimensions, of a file in classic NetCDF, as SciPy reads it."""
    with netcdf_file(path, mmap=False) as file:
        variables = {name: (v[...].copy() if v.shape else v.getValue(), v.dimensions, {key: value for key, value in v._attributes.items()}) for name, v in file.variables.items()}
        return variables, file.history.decode(), dict(file.dimensions)


def test_netcdf_results(folder):
    """-o FILE.nc: what other programs read."""
    x = integers("<f4", (6, 4, 5))
    x[x == 99], x[:, 1, 2], x[2, 0, 0] = 98, 99, 99
    climate(folder.name("c0.nc"), x[:2])
    climate(folder.name("c1.nc"), x[2:], 2)
    climate(folder.name("c2.nc"), x[2:], 0, b"days since 2000-01-03")
    files = {key: folder.name(f"{key}.nc") for key in ("mean", "stats", "argmax", "keep", "apart", "scalar", "wide", "fortran")}
    np.save(folder.name("fortran.npy"), np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)))
    np.save(folder.name("wide.npy"), np.arange(6).reshape(2, 3) << 40)
    joined = [folder.name("c0.nc:t"), folder.name("c1.nc:t")]
    launches = [(1, ["mean", "--axis=time", joined[0], joined[1], "-o", files["mean"]]), (3, ["stats", "--axis=lat,lon", *joined, "-o", files["stats"], "--slice=time=1:5"]),
                (1, ["argmax", "--axis=lon", *joined, "-o", files["argmax"], "--slice=lat=-3:"]), (1, ["variance", "--axis=1", "--keepdims", joined[0], "-o", files["keep"], "--output-type=f32"]),
                (1, ["sum", "--axis=lon", joined[0], folder.name("c2.nc:t"), "-o", files["apart"]]), (1, ["sum", "--axis=0,1,2", joined[0], "-o", files["scalar"]]),
                (1, ["max", "--axis=0", folder.name("wide.npy"), "-o", files["wide"]]), (1, ["sum", "--axis=1", folder.name("fortran.npy"), "-o", files["fortran"]])]
    runs = cli.each(launches)
    wrong = "".join(cli.shown(done) for done in runs if done.returncode != 0)
    tap.ok(not wrong, "results in NetCDF", wrong)
    told = "the coordinate time is left out: its attributes are not the same in all files"
    tap.ok([told in done.stderr for done in runs] == [i == 4 for i in range(len(runs))], "a line on standard error if a coordinate is left out", runs[4].stderr)
    kept = np.ma.masked_equal(x, 99)
    sums = cli.alone("max", "-q", f"{files['wide']}:max")
    with open(files["wide"], "rb") as file:
        tap.ok(file.read(4) == b"CDF\5" and sums.stdout == f"{5 << 40}\n", "64-bit integers take CDF-5", cli.shown(sums))
    if netcdf_file is not None:
        found, history, dimensions = results(files["mean"])
        values, names, attributes = found["t"]
        with open(files["mean"], "rb") as file:
            version = file.read(4)
        tap.ok(version == b"CDF\1" and names == ("lat", "lon") and dimensions == {"lat": 4, "lon": 5} and np.allclose(values, kept.astype(float).mean(0).filled(np.nan), rtol=1e-15, equal_nan=True)
               and math.isnan(values[1, 2]), "a mean", (version, values))
        tap.ok({key: value for key, value in attributes.items() if key != "_FillValue"} == {"units": b"K", "long_name": b"temperature", "cell_methods": b"area: mean time: mean"}
               and math.isnan(attributes["_FillValue"]) and "lon" not in found and np.array_equal(found["lat"][0], np.linspace(-60, 60, 4).astype("f4"))
               and found["lat"][2] == {"units": b"degrees_north"} and f"Z: allfold mean --axis=time {joined[0]}" in history, "with its attributes, coordinates and history", (attributes, history))
        found = results(files["stats"])[0]
        tap.ok(np.array_equal(found["time"][0], np.arange(1, 5) + 0.5) and found["time"][1] == ("time",) and found["time"][2] == {"units": b"days since 2000-01-01"}
               and np.array_equal(found["t_count"][0], kept[1:5].count((1, 2))) and found["t_count"][0].dtype.itemsize == 4 and "units" not in found["t_count"][2]
               and np.array_equal(found["t_sum"][0], kept[1:5].astype(float).sum((1, 2))) and found["t_variance"][2]["units"] == b"(K)^2" and len(found) == 13,
               "statistics, and a coordinate of a slice of two files", found.keys())
        found = results(files["argmax"])[0]
        tap.ok(np.array_equal(found["t_argmax"][0], kept[:, -3:].argmax(2)) and np.array_equal(found["t_value"][0], kept[:, -3:].max(2)) and len(found["lat"][0]) == 3, "indices and their values", found)
        found = results(files["keep"])[0]
        tap.ok(found["t"][0].shape == (2, 1, 5) and found["t"][0].dtype.itemsize == 4 and "lat" not in found and "time" in found, "axes that stay", found)
        tap.ok("time" not in results(files["apart"])[0] and results(files["scalar"])[0]["t"][0] == kept[:2].sum(), "times of different meaning; one number", results(files["apart"])[0].keys())
        found = results(files["fortran"])[0]
        tap.ok(found["sum"][1] == ("dim_2", "dim_0") and np.array_equal(found["sum"][0], np.arange(24.0).reshape(2, 3, 4).sum(1).T), "Fortran order: the dimensions in their order in the file", found)
    cdf = Cdf(1, [("t_sum", 0), ("t_mean", 2), ("t_mean_result", 2), ("x", 4)], 3)
    for i, name in ((1, "t_mean"), (2, "t_mean_result")):
        cdf.add(name, (i,), np.arange(2.0))
    cdf.add("t", (0, 1, 2, 3), np.arange(48.0).reshape(3, 2, 2, 4))
    cdf.write(folder.name("names.nc"))
    done = cli.alone("stats", "--axis=x", folder.name("names.nc:t"), "-o", folder.name("named.nc"))
    listed = cli.alone("info", "-q", folder.name("named.nc:*")).stdout.split()
    tap.ok(done.returncode == 0 and len(set(listed)) == len(listed) == 14 and {"t_mean", "t_mean_result", "t_mean_result2", "t_sum_result", "t_count"} <= set(listed),
           "dimensions that are called as results are", listed)
    if shutil.which("cdo"):
        done = subprocess.run(["cdo", "-s", "outputf,%.9g,1", files["stats"]], capture_output=True, text=True, timeout=tap.SECONDS, check=False)
        cdo = [float(word) for word in done.stdout.split()]
        tap.ok(done.returncode == 0 and cdo[2::12] == [float(f"{v:.9g}") for v in kept[1:5].astype(float).sum((1, 2))], "CDO reads the same", done.stdout + done.stderr)
    empty = folder.name("none.nc")
    cases = [(["sum", "--axis=0", joined[0], "-o", empty, "--output-type=bf16"], 1, "NetCDF has no bf16"), (["sum", "--axis=1", joined[0], "-o", empty, "--slice=time=2:"], 1, "no dimension of length 0, as time is"),
             (["argmax", "--axis=1", joined[0], "-o", empty, "--values=v.npy"], 2, "expected no --values"), (["softmax", "--axis=1", joined[0], "-o", empty], 2, "no .nc is written here"),
             (["max", "--axis=0", folder.name("wide.npy"), "-o", empty, "--slice=0=:0"], 1, "empty")]
    for (words, status, said), done in zip(cases, cli.each_alone([words for words, *_ in cases])):
        fault = cli.refused(done, status, said)
        tap.ok(not fault and not os.path.exists(empty), f"refused: {said}", fault)


def main():
    cli.ignore_leaks()
    with cli.Folder() as folder:
        test_inputs(folder)
        test_all_arrays(folder)
        test_names(folder)
        test_slices(folder)
        test_encoded_slices(folder)
        test_netcdf_results(folder)
        if h5py is not None:
            test_chunks_of_slices(folder)
            test_joined_chunks(folder)
    tap.done()


main()
