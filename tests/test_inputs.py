#!/usr/bin/env python3
"""Several inputs, joined in the order given, or each array of a file for itself; names of dimensions, and places. docs/formats.md."""
import math
import os

import numpy as np

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
    several = tap.run(3, tap.ALLFOLD, "softmax", b, a, "-o", folder.name("y.npy"))
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
    several = tap.run(3, tap.ALLFOLD, "sum", f"{name}:*")
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
    several = cli.report(tap.run(2, tap.ALLFOLD, "norm2", "--json", "--total", f"{name}:*.weight", f"--partial={folder.name('p')}"))
    merged, alone = cli.each_alone([["merge", "-q", folder.name("p")], ["norm2", "-q", "--total", f"{name}:*.weight"]])
    tap.ok(several and merged.stdout == alone.stdout == f"{several['text']}\n" and several["value"] == math.sqrt(math.fsum(whole.astype(float) ** 2)),
           "on 2 ranks, with a partial", (several, cli.shown(merged)))
    tap.ok(runs["plain"].stdout == "61.5\n" and runs["listed"].stdout.splitlines() == [f"layer.{i}.weight" for i in range(3)],
           "packed elements and others; names that info lists", cli.shown(runs["plain"]) + cli.shown(runs["listed"]))
    cases = [(["max", f"{name}:*"], 1, "m.safetensors:empty: max of an empty array"), (["sum", f"{name}:z*"], 2, "found 'z*'; it holds odd (F8_E4M3 3)"),
             (["sum", folder.name("c.nc:w*")], 1, "expected arrays of numbers, found none"), (["sum", "--axis=0", f"{name}:*"], 2, "found '*'"),
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


def main():
    cli.ignore_leaks()
    with cli.Folder() as folder:
        test_inputs(folder)
        test_all_arrays(folder)
        test_names(folder)
    tap.done()


main()
