#!/usr/bin/env python3
"""HDF5 and NetCDF-4: folds of the files of tests/data, and, if h5py is there, of random datasets, against exact sums; missing and packed
values; what is listed, and what is refused. docs/formats.md, tests/data/make_hdf5.py."""
import fcntl
import math
import os
import shutil
import signal
import subprocess

import numpy as np

import cli
import tap

PROGRAM = os.path.join(tap.BUILD, "tests", "programs", "format_folds")
FAULTY = os.path.join(tap.BUILD, "tests", "faults", "allfold-faulty")
DATA = os.path.join(tap.SOURCE, "tests", "data")
RANDOM = np.random.default_rng(5)


def expected_lines():
    """(fold, input, value) of tests/data/expected.txt."""
    with open(os.path.join(DATA, "expected.txt"), encoding="ascii") as file:
        for line in file:
            if not line.startswith("#"):
                words, value = line.rstrip("\n").split(" = ")
                yield words.split()[0], os.path.join(DATA, words.split()[1]), value


def same(wanted, found):
    """Equal as numbers: C and Python write hexadecimal numbers with different digits in front."""
    if wanted == found:
        return True
    try:
        (a, _, place), (b, _, other) = wanted.partition("@"), found.partition("@")
        return place == other and float.fromhex(a) == float.fromhex(b)
    except ValueError:
        return False


def check_folds(cases, folder, name, ranks, backend):
    """cases: (fold, input, value). All in one launch; shards are so small that each rank has several."""
    with open(folder.name("cases"), "w", encoding="ascii") as file:
        file.write("".join(f"{fold} {array}\n" for fold, array, _ in cases))
    done = tap.run(ranks, PROGRAM, backend, 4096, folder.name("cases"))
    found = done.stdout.splitlines()
    wrong = [f"{fold} {array}: expected {wanted}, found {got}" for (fold, array, wanted), got in zip(cases, found) if not same(wanted, got)]
    tap.ok(done.returncode == 0 and len(found) == len(cases) and not wrong, f"{name}: {len(cases)} folds of {ranks} ranks on {backend}",
           "\n".join(wrong) or cli.shown(done))


def random_cases(folder):
    """Random shapes, chunks and filters; values with many ties."""
    try:
        import h5py
    except ImportError:
        return []
    cases = []
    with h5py.File(folder.name("random.h5"), "w") as file:
        for i in range(60):
            shape = tuple(int(n) for n in RANDOM.integers(1, 13, RANDOM.integers(1, 5)))
            chunks = tuple(int(RANDOM.integers(1, n + 1)) for n in shape)
            x = RANDOM.integers(-9, 9, shape).astype(RANDOM.choice(["f4", "f8", ">f4", "i2", ">i8", "i1"]))
            more = {"compression": RANDOM.choice([None, "gzip"]), "shuffle": bool(RANDOM.integers(2)), "fletcher32": bool(RANDOM.integers(2))}
            file.create_dataset(f"x{i}", data=x, chunks=chunks, **more)
            for fold in ("sum", "argmin", "argmax"):
                place = int(x.argmin() if fold == "argmin" else x.argmax())
                value = float(x.sum(dtype="f8")).hex() if x.dtype.kind == "f" else str(int(x.sum()))
                best = float(x.flat[place]).hex() if x.dtype.kind == "f" else str(int(x.flat[place]))
                cases.append((fold, folder.name(f"random.h5:x{i}"), value if fold == "sum" else f"{best}@{place}"))
    return cases


def test_folds(folder):
    cases, more = list(expected_lines()), random_cases(folder)
    for backend in cli.backends():
        for ranks in cli.rank_counts(backend):
            check_folds(cases, folder, "stored files", ranks, backend)
            if more:
                check_folds(more, folder, "random datasets", ranks, backend)
            else:
                tap.skip("random datasets: no h5py")


def data(name):
    return os.path.join(DATA, name)


def test_missing():
    """Left out, kept, refused; what reports say of it."""
    packed = data("netcdf4.nc:packed")
    omit, keep = (cli.report(cli.ranks(count, "stats", packed, "--json", f"--missing={mode}", "--backend=cpu"))
                  for count, mode in ((3, "omit"), (1, "keep")))
    tap.ok(omit["missing"] == 8 and omit["stats"]["count"]["value"] == 132 and omit["count"] == 140 and "missing" not in keep
           and keep["stats"]["count"]["value"] == 140 and keep["stats"]["min"]["value"] == 273.15 - 327.68
           and (omit["dtype"], omit["stored_dtype"]) == ("f64", "int16"), "reports count what is missing", (omit, keep))
    text = cli.alone("max", packed, "--backend=cpu").stdout
    tap.ok("(140 f64 packed as int16, 8 missing, from " in text, "in words, too", text)
    for words, status, said in ((["sum", data("rare.h5:missing/one"), "--missing=error"], 1, ("1 of the elements", "at index 10, (2, 0):")),
                                (["sum", data("rare.h5:missing/two"), "--missing=error"], 1, ("2 of the elements", "at index 2, (0, 2):")),
                                (["sum", packed, "--missing=error"], 1, ("8 of the elements", "(-32767, -32768)", "at index 0, (t, y, x) = (0, 0, 0):")),
                                (["softmax", packed, "-o", "none"], 1, ("8 of the elements", "--missing=keep")),
                                (["max", data("netcdf4.nc:all-missing")], 1, ("max of an empty array does not exist",)),
                                (["sum", packed, "--dtype=f32"], 2, ("its elements are f64: expected no --dtype", "found f32")),
                                (["sum", packed, "--offset=1"], 2, ("no --offset", "do not lie in the file as they are"))):
        fault = cli.refused(cli.alone(*words, "--backend=cpu"), status, *said)
        tap.ok(not fault and not os.path.exists("none"), f"refused: {words[0]} {words[2:]}", fault)


def test_partials(folder):
    """Partials of packed and of missing elements: indices count what is missing, sums are those of the values."""
    halves = [folder.name("a"), folder.name("b")]
    for fold, wanted in (("sum", 2), ("argmax", None)):
        for half in halves:
            cli.alone(fold, data("netcdf4.nc:packed"), "-q", "--backend=cpu", f"--partial={half}")
        one = cli.report(cli.alone(fold, data("netcdf4.nc:packed"), "--json", "--backend=cpu"))
        both = cli.report(cli.alone("merge", *halves, "--json"))
        tap.ok(both["value"] == one["value"] * (wanted or 1) and both.get("index") == one.get("index") and both["count"] == 280
               and both["missing"] == 16, f"two partials of {fold}", (one, both))
    np.save(folder.name("more.npy"), np.array([1e9]))
    cli.alone("argmax", folder.name("more.npy"), "-q", "--backend=cpu", f"--partial={halves[1]}")
    merged = cli.report(cli.alone("merge", *halves, "--json"))
    tap.ok(merged["index"] == 140, "an index behind missing elements", merged)


def test_softmax(folder):
    """Of datasets in chunks: results go to the places of their elements."""
    for name, ranks in (("types.h5:edges", 1), ("types.h5:edges", 3), ("netcdf4.nc:several", 2), ("types.h5:empty", 2)):
        done = cli.ranks(ranks, "softmax", data(name), "--missing=keep", "-o", folder.name("y.npy"), "--output-type=f64", "--backend=cpu",
                         "--staging=512")
        y = np.load(folder.name("y.npy"))
        best, first = (cli.alone(fold, data(name), "-q", "--missing=keep", "--backend=cpu").stdout.split() for fold in ("argmax", "argmin"))
        tap.ok(done.returncode == 0 and (y.size == 0 or (abs(math.fsum(y.ravel()) - 1) < 1e-12 and y.argmax() == int(best[1])
               and y.argmin() == int(first[1]))), f"softmax of {name}, {ranks} ranks", cli.shown(done))


REFUSED = {"compound": "type compound", "string": "type string", "fixed-string": "type string", "variable": "type variable-length",
           "enumeration": "type enumeration", "reference": "type reference", "opaque": "type opaque", "lzf": "filter lzf", "odd": "of 24 bits",
           "virtual": "a virtual dataset", "external": "external storage", "elsewhere": "another file", "text-missing": "missing_value",
           "none": "it holds"}


def test_refused(folder):
    cases = [(data(f"refused.h5:{name}"), said) for name, said in REFUSED.items()] + [(data("refused.h5"), "found no name")]
    with open(data("types.h5"), "rb") as file:
        whole = file.read()
    for name, content, said in (("block.h5", whole[:len(whole) // 2], "block.h5: cannot open it: HDF5: truncated file"), ("head.h5", whole[:100], "HDF5")):
        with open(folder.name(name), "wb") as file:
            file.write(content)
        cases.append((folder.name(f"{name}:edges"), said))
    shutil.copy(data("refused.h5"), folder.name("refused.h5"))
    os.mkfifo(folder.name("one.h5"))  # what its link leads to
    cases += [(folder.name("refused.h5:elsewhere"), "another file"), (data("damaged.h5:fletcher32"), "chunk at (2): fletcher32: expected the checksum"),
              (data("damaged.h5:deflate"), "chunk at (0): deflate: expected 80 bytes")]
    for (name, said), done in zip(cases, cli.each_alone([["sum", name, "--backend=cpu"] for name, _ in cases])):
        fault = cli.refused(done, 2 if said in ("it holds", "found no name") else 1, said)
        tap.ok(not fault, f"refused: {os.path.basename(name)}: {said}", fault)
    shutil.copy(data("one.h5"), folder.name("locked.h5"))
    with open(folder.name("locked.h5"), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        fault = cli.refused(cli.alone("sum", folder.name("locked.h5"), "--backend=cpu"), 1, "locked.h5: a program that writes", "unable to lock")
    tap.ok(not fault, "refused: a file that is locked", fault)


def test_replaced(folder):
    """A file of the same size in place of the one that was described: read if it is its copy, refused if anything differs."""
    for name in ("same", "block", "type", "order", "layout"):
        for i in (1, 2):
            shutil.copy(data(f"replaced-{i}.h5"), folder.name(f"{i}.h5"))
        with open(folder.name("cases"), "w", encoding="ascii") as file:
            file.write(f"replaced-by {folder.name('2.h5')}\nsum {folder.name('1.h5')}:{name}\n")
        done = tap.run(2, PROGRAM, "cpu", 4096, folder.name("cases"))
        found = done.stdout.rstrip("\n")
        tap.ok(done.returncode == 0 and (same("0x1.f8p+10", found) if name == "same" else "not the one that was described" in found),
               f"replaced by a file of another {name}" if name != "same" else "replaced by its copy", cli.shown(done))


def test_resume(folder):
    """Killed in the middle, with a checkpoint: what is resumed ends as a run that nothing stopped. Missing elements count that were found
    before."""
    def run(program, fault, fold, name, missing, part="0=1:"):
        return subprocess.run([program, fold, data(name), f"--slice={part}", "--json", "--backend=cpu", "--staging=16", "--threads=1", "--verbose",
                               f"--missing={missing}", f"--checkpoint={folder.name('ck')}", "--checkpoint-every=0"],
                              env={**os.environ, "ALLFOLD_FAULT": fault}, capture_output=True, text=True, timeout=tap.SECONDS, check=False)
    for fold, name, missing in (("argmax", "types.h5:edges", "omit"), ("sum", "netcdf4.nc:packed", "omit"),
                                ("sum", "rare.h5:missing/one", "error")):
        killed = run(FAULTY, "0:*>read:kill:7", fold, name, missing)
        other = run(tap.ALLFOLD, "", fold, name, missing, "0=:-1")
        resumed = run(tap.ALLFOLD, "", fold, name, missing)
        said = killed.returncode == -signal.SIGKILL and "the checkpoint has" in resumed.stderr
        if missing == "error":
            tap.ok(said and resumed.returncode == 1 and not resumed.stdout and "one: 1 of the elements are missing, " in resumed.stderr
                   and "before it was resumed" in resumed.stderr, "resumed: missing elements are refused", cli.shown(killed) + cli.shown(resumed))
        else:
            found, whole = cli.report(resumed), cli.report(cli.alone(fold, data(name), "--slice=0=1:", "--json", "--backend=cpu"))
            tap.ok(said and "--slice" in other.stderr and other.returncode == 1 and all(found.get(key) == whole.get(key) for key in ("value", "index", "count", "missing")),
                   f"{fold} of {name}, resumed", cli.shown(killed) + cli.shown(resumed))


def test_resume_netcdf(folder):
    """Results in NetCDF, whose history has another command when the work goes on."""
    words = ["mean", "--axis=2", data("types.h5:edges"), "-o", folder.name("o.nc"), f"--checkpoint={folder.name('nc')}", "--checkpoint-every=0", "--staging=16",
             "--threads=1", "--backend=cpu"]
    killed = subprocess.run([FAULTY, *words], env={**os.environ, "ALLFOLD_FAULT": "0:*>read:kill:3"}, capture_output=True, text=True, timeout=tap.SECONDS, check=False)
    left = [name for name in folder.files() if name.endswith(".part")]
    resumed = cli.alone(*words, "--verbose")
    rows = cli.alone("mean", "--axis=2", "--json", "--backend=cpu", data("types.h5:edges"))
    tap.ok(killed.returncode == -signal.SIGKILL and left and "the checkpoint has" in resumed.stderr and resumed.returncode == 0, "an output in NetCDF, resumed", cli.shown(killed) + cli.shown(resumed))
    values = cli.alone("sum", "-q", "--backend=cpu", f"{folder.name('o.nc')}:edges")
    tap.ok(values.returncode == 0 and math.isclose(float(values.stdout), math.fsum(v for row in cli.report(rows)["results"]["mean"] for v in row), rel_tol=1e-15),
           "and its results", cli.shown(values))


def test_unwritten():
    done = cli.alone("sum", data("unwritten.h5"), "--backend=cpu", "--threads=4")
    tap.ok(done.returncode == 0 and not done.stderr, "threads say nothing of chunks that were never written", cli.shown(done))


def test_part():
    done = cli.alone("sum", data("one.h5"), "--offset=3", "--count=2", "--backend=cpu", "-q")
    tap.ok(done.stdout == "7.0\n", "--offset and --count choose elements of a contiguous dataset", cli.shown(done))


def test_rare_filter():
    done = cli.alone("sum", data("types.h5:filters/scaleoffset"), "--backend=cpu")
    quiet = cli.alone("sum", data("types.h5:filters/scaleoffset"), "--backend=cpu", "-q")
    tap.ok(done.returncode == 0 and len(cli.told(done)) == 1 and "scaleoffset is undone by the HDF5 library" in cli.told(done)[0]
           and not quiet.stderr, "a rare filter is read through the library, and one line says so", cli.shown(done))


def test_list():
    found = cli.report(cli.alone("info", data("netcdf4.nc"), "--json"))
    arrays = {array["name"]: array for array in found["arrays"]}
    packed = arrays["packed"]
    tap.ok(found["format"] == "netcdf4" and packed["shape"] == [4, 5, 7] and packed["dimensions"] == ["t", "y", "x"]
           and packed["chunks"] == [1, 3, 4] and packed["filters"] == "shuffle, deflate" and packed["missing"] == "-32767, -32768"
           and packed["packing"] == "0.01 x + 273.15" and arrays["nan-filled"]["missing"] == "nan" and "g/inner" in arrays
           and arrays["x"]["dimensions"] == ["x"] and "t" not in arrays, "what info lists of a NetCDF-4 file", found)
    found = cli.report(cli.alone("info", data("types.h5"), "--json"))
    arrays = {array["name"]: array for array in found["arrays"]}
    tap.ok(found["format"] == "hdf5" and arrays["/types/big-f4"]["byte_order"] == "big" and arrays["/types/bool"]["dtype"] == "bool"
           and arrays["/filters/zstd"]["filters"] == "shuffle, zstd" and arrays["/scalar"]["shape"] == [], "and of an HDF5 file", found)
    found = cli.report(cli.alone("info", data("rare.h5"), "--json"))
    listed = next(array for array in found["arrays"] if array["name"] == "listed")
    tap.ok(listed["dimensions"] is None, "a DIMENSION_LIST that is no list of references names no dimensions", listed)


def absent():
    """What this build lacks, without which the files of tests/data cannot be read; in a build without HDF5 they are refused."""
    build = cli.report(cli.alone("info", "--json"))["build"]
    if build["hdf5"] == "no":
        fault = cli.refused(cli.alone("sum", data("one.h5"), "--backend=cpu"), 1, "this build has no HDF5", "libhdf5-dev", "--with-hdf5")
        tap.ok(not fault, "refused in a build without HDF5", fault)
    elif build["zstd"] == "no":
        fault = cli.refused(cli.alone("sum", data("types.h5:filters/zstd"), "--backend=cpu"), 1, "filter zstd", "libzstd-dev")
        tap.ok(not fault, "refused in a build without zstd", fault)
    return [name for name in ("hdf5", "zstd") if build[name] == "no"]


def main():
    cli.ignore_leaks()
    lacking = absent()
    if lacking:
        tap.skip(f"a build without {', '.join(lacking)}")
        tap.done()
    with cli.Folder() as folder:
        test_folds(folder)
        test_missing()
        test_partials(folder)
        test_softmax(folder)
        test_refused(folder)
        test_replaced(folder)
        test_resume(folder)
        test_resume_netcdf(folder)
        test_unwritten()
        test_part()
        test_rare_filter()
        test_list()
    tap.done()


if __name__ == "__main__":
    main()
