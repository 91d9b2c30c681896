#!/usr/bin/env python3
"""Formats of files: the folds of arrays that NumPy and other libraries have written, on several ranks, against Python's exact sums;
what is listed and what is refused. docs/formats.md."""
import json
import math
import os
import struct
import warnings
import zipfile

import numpy as np

import cli
import tap
from format_files import CDF_TYPES, SAFETENSORS, Cdf, tensor, write_safetensors

PROGRAM = os.path.join(tap.BUILD, "tests", "programs", "format_folds")
HAS_LIBDEFLATE, HAS_HDF5 = (f'"{name}": "no"' not in cli.alone("info", "--json", "--backend=cpu").stdout for name in ("libdeflate", "hdf5"))
RANDOM = np.random.default_rng(20261122)


def integers(dtype, shape):
    """Numbers of the type that tell places apart; for floating point halves, too."""
    kind = np.dtype(dtype).kind
    if kind == "S":
        return np.full(shape, b"x")
    if kind == "b":
        return RANDOM.integers(0, 2, shape).astype(dtype)
    least = 0 if kind == "u" else -100
    return (RANDOM.integers(least, 100, shape) * (1.5 if kind == "f" else 1)).astype(dtype)


def expected(fold, x):
    """What format_folds prints for an array, of which the first axis varies slowest in the file; x may be big-endian."""
    flat = x.ravel()
    if fold == "argmax":
        place = int(flat.argmax())
        return f"{value_text(flat[place])}@{place}"
    return value_text(math.fsum(flat.astype(float)) if x.dtype.kind == "f" else sum(flat.tolist()))


def value_text(value):
    """As C's %a has it."""
    if isinstance(value, (float, np.floating)):
        mantissa, _, exponent = float(value).hex().partition("p")
        return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}" if "." in mantissa else f"{mantissa}p{exponent}"
    return str(int(value))


class Cases:
    """Folds of inputs and what they must be."""

    def __init__(self, folder):
        self.folder, self.lines, self.wanted = folder, [], []

    def name(self, name):
        return os.path.join(self.folder, name)

    def add(self, name, x):
        """An input, relative to the folder, and its elements in the order of the file."""
        for fold in ("sum", "argmax") if x.size > 0 else ("sum",):
            self.lines.append(f"{fold} {self.name(name)}")
            self.wanted.append(expected(fold, x))

    def check(self, ranks, backend, staging):
        cases = self.name("cases")
        with open(cases, "w", encoding="utf-8") as file:
            file.write("\n".join(self.lines) + "\n")
        done = tap.run(ranks, PROGRAM, backend, staging, cases)
        found = done.stdout.splitlines()
        wrong = [f"{line}: expected {wanted}, found {got}" for line, wanted, got in zip(self.lines, self.wanted, found) if wanted != got]
        tap.ok(done.returncode == 0 and len(found) == len(self.lines) and not wrong,
               f"{len(self.lines)} folds of {ranks} ranks on {backend} in pieces of {staging} bytes", "\n".join(wrong) or cli.shown(done))


def make_npy(cases):
    for dtype in (">f2", ">f4", ">f8", ">i2", ">i4", ">u8", "|i1", "|b1"):
        x = integers(dtype, (61, 1031))
        np.save(cases.name(f"big_{dtype[1:]}.npy"), x)
        cases.add(f"big_{dtype[1:]}.npy", x)


def make_npz(cases):
    arrays = {"w": integers("<f4", (300, 41)), "b": integers(">i4", (7,)), "empty": np.zeros((0, 4)), "wide": integers("<f8", (5, 700)),
              "scalar": np.array(3.5)}
    np.savez(cases.name("x.npz"), strings=np.array(["a"]), **arrays)
    np.savez(cases.name("one.npz"), only=arrays["w"])
    if HAS_LIBDEFLATE:
        np.savez_compressed(cases.name("deflated.npz"), strings=np.array(["a"]), **arrays)
        for name, x in arrays.items():
            cases.add(f"deflated.npz:{name}", x)
    for name, x in arrays.items():
        cases.add(f"x.npz:{name}", x)
    cases.add("x.npz:wide.npy", arrays["wide"])
    cases.add("one.npz", arrays["w"])
    with open(cases.name("one.npz:only"), "wb") as file:  # a file of the whole name comes first
        np.save(file, arrays["b"])
    cases.add("one.npz:only", arrays["b"])


def make_safetensors(cases):
    arrays = {name: integers(dtype, (13, 77)) for name, dtype in SAFETENSORS.items()}
    tensors = {"odd": ("F8_E4M3", [3], b"abc"), **{name: tensor(name, x) for name, x in arrays.items()}}  # the others are not aligned
    bf16 = np.arange(-50, 51, dtype="<f4")
    tensors["brain"] = ("BF16", [101], (bf16.view("<u4") >> 16).astype("<u2").tobytes())
    tensors["layer.0/w:b \u00e9"] = tensor("F32", arrays["F32"])
    write_safetensors(cases.name("x.safetensors"), tensors, {"by": "a test"})
    for name, x in [*arrays.items(), ("brain", bf16), ("layer.0/w:b \u00e9", arrays["F32"])]:
        cases.add(f"x.safetensors:{name}", x)
    with open(cases.name("x.safetensors.index.json"), "w", encoding="ascii") as file:
        json.dump({"metadata": {}, "weight_map": {"F64": "x.safetensors", "other": "y.safetensors", "none": "none.safetensors"}}, file)
    write_safetensors(cases.name("y.safetensors"), {"other": tensor("I64", arrays["I64"])})
    cases.add("x.safetensors.index.json:F64", arrays["F64"])
    cases.add("x.safetensors.index.json:other", arrays["I64"])


def make_several(cases):
    """Parts of one array, some of them empty, in either byte order."""
    parts = [integers("<f4", (rows, 31)) for rows in (1, 0, 100, 7, 1)]
    for number, x in enumerate(parts):
        np.save(cases.name(f"part-{number}.npy"), x.astype(">f4" if number % 2 else "<f4"))
        np.save(cases.name(f"fortran-{number}.npy"), np.asfortranarray(x.T))
        np.savez(cases.name(f"part-{number}.npz"), w=x, other=x)
    whole = np.concatenate(parts)
    for name in ("part-*.npy", "part-?.npy", "part-[0-9].npy", "fortran-*.npy", "part-*.npz:w"):
        cases.add(name, whole)
    cases.add("part-0*.npy", parts[0])
    with open(cases.name("part-*"), "wb") as file:  # a file of the whole name comes first
        np.save(file, parts[2])
    cases.add("part-*", parts[2])


def cdf_of(version, types, records=23):
    """Variables of every type, with and without records, and odd lengths."""
    cdf = Cdf(version, [("time", 0), ("x", 5), ("y", 7)], records)
    for dtype in types:
        cdf.add(f"fixed_{dtype}", (1, 2), integers(dtype, (5, 7)), units="m")
        cdf.add(f"record_{dtype}", (0, 2), integers(dtype, (records, 7)))
    cdf.add("scalar", (), np.array(3.25))
    cdf.add("series", (0,), integers("f8", (records,)))
    return cdf


def make_netcdf(cases):
    for version, types in (1, ("i1", "i2", "i4", "f4", "f8")), (2, ("f4",)), (5, [t for t in CDF_TYPES if t != "S1"]):
        cdf = cdf_of(version, types)
        cdf.write(cases.name(f"v{version}.nc"), far=5 << 30 if version == 2 else 0)  # a sparse file of more than 4 GiB
        cdf.write(cases.name(f"s{version}.nc"), streaming=True, stated=2 ** 31 - 1)
        for name, _, x, _ in cdf.variables:
            cases.add(f"v{version}.nc:{name}", x)
        cases.add(f"s{version}.nc:record_f4", next(x for name, _, x, _ in cdf.variables if name == "record_f4"))
    lone = Cdf(1, [("time", 0), ("x", 3)], 50)
    lone.add("bytes", (0, 1), integers("i1", (50, 3)))  # the only one with records is not filled up
    lone.write(cases.name("lone.nc"))
    cases.add("lone.nc", lone.variables[0][2])
    deep = Cdf(1, [("time", 0), ("one", 1), ("two", 2)], 3)  # beside a variable of more dimensions than an array may have
    deep.add("a", (0,), integers("i4", (3,)))
    deep.add("b", (0, *[1] * 32, 2), integers("i4", (3, 2)))
    deep.write(cases.name("deep.nc"))
    cases.add("deep.nc:a", deep.variables[0][2])
    long = Cdf(5, [("time", 0), ("x", 40000)], 5)  # runs longer than a window, and shorter ones far apart
    for name, dtype, ids in ("a", "f8", (0, 1)), ("b", "i2", (0,)), ("c", "f4", (0, 1)):
        long.add(name, ids, integers(dtype, (5, 40000) if len(ids) == 2 else (5,)))
        cases.add(f"long.nc:{name}", long.variables[-1][2])
    long.write(cases.name("long.nc"))
    months = [cdf_of(2, ("f4",), records) for records in (1, 2, 3)]
    for number, cdf in enumerate(months):
        cdf.write(cases.name(f"month-{number}.nc"))
    cases.add("month-*.nc:record_f4", np.concatenate([cdf.variables[1][2] for cdf in months]))


def make_scipy(cases):
    """What SciPy has written."""
    try:
        from scipy.io import netcdf_file  # pylint: disable=import-outside-toplevel
    except ImportError:
        tap.skip("no SciPy")
        return
    x, y = integers(">f4", (11, 6)), integers(">i2", (11, 3))
    for version in (1, 2):
        with netcdf_file(cases.name(f"scipy{version}.nc"), "w", version=version) as file:
            file.createDimension("time", None)
            file.createDimension("six", 6)
            file.createDimension("three", 3)
            file.createVariable("x", ">f4", ("time", "six"))[:] = x
            file.createVariable("y", ">i2", ("time", "three"))[:] = y
        cases.add(f"scipy{version}.nc:x", x)
        cases.add(f"scipy{version}.nc:y", y)


def test_folds(folder):
    cases = Cases(folder.path)
    for make in (make_npy, make_npz, make_safetensors, make_several, make_netcdf, make_scipy):
        make(cases)
    for backend in cli.backends():
        for ranks in cli.rank_counts(backend):
            cases.check(ranks, backend, {1: 1 << 20, 2: 16384}.get(ranks, 4096))


def test_refused(folder):
    """Each by one message that says where and what."""
    x = np.zeros((3, 4), "f4")
    np.save(folder.name("x.npy"), x)
    np.save(folder.name("bad-0.npy"), x)
    np.save(folder.name("bad-1.npy"), x.astype("f8"))
    np.save(folder.name("scalar-0.npy"), np.array(1.0))
    for number in range(2):
        x.tofile(folder.name(f"raw-{number}"))
    np.savez(folder.name("a.npz"), a=x, b=np.array(["text"]))
    np.savez(folder.name("many.npz"), **{f"a{i}": x for i in range(30)})
    with open(folder.name("x.npy"), "rb") as file, zipfile.ZipFile(folder.name("broken.npz"), "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("a.npy", file.read())  # sizes of 32 bits, where some versions of NumPy take 64
    with open(folder.name("broken.npz"), "rb") as file:
        archive = file.read()
    directory = archive.index(b"PK\1\2")
    for name, at, local, value in ("broken", 16, 14, 1), ("bomb", 24, 22, 2 ** 30 + 1):  # a checksum, a size that is not what follows
        wrong = bytearray(archive)
        wrong[directory + at:directory + at + 4] = struct.pack("<I", value)
        wrong[local:local + 4] = struct.pack("<I", value)
        with open(folder.name(f"{name}.npz"), "wb") as file:
            file.write(wrong)
    wrong = bytearray(archive[:directory] + bytes(2000) + archive[directory:])  # more deflated bytes than the member can have
    for at in 18, directory + 2000 + 20, len(wrong) - 6:
        wrong[at:at + 4] = struct.pack("<I", struct.unpack("<I", wrong[at:at + 4])[0] + 2000)
    with open(folder.name("padded.npz"), "wb") as file:
        file.write(wrong)
    for name, at in ("crc", 14), ("stored", 18), ("bytes", 22):  # the member's own header says otherwise than the directory
        wrong = bytearray(archive)
        wrong[at] ^= 1
        with open(folder.name(f"{name}.npz"), "wb") as file:
            file.write(wrong)
    with warnings.catch_warnings(), zipfile.ZipFile(folder.name("twice.npz"), "w") as members:
        warnings.simplefilter("ignore")
        for _ in range(2):
            members.write(folder.name("x.npy"), "a.npy")
    good = {"a": tensor("F32", x), "b": tensor("F32", x)}
    spoilt = {"hole": lambda h: h["b"].update(data_offsets=[49, 97]), "overlap": lambda h: h["b"].update(data_offsets=[47, 95]),
              "beyond": lambda h: h["b"].update(shape=[2 ** 62, 2 ** 62]), "size": lambda h: h["b"].update(shape=[3, 3]),
              "negative": lambda h: h["b"].update(shape=[-3, -4]), "untyped": lambda h: h["b"].pop("dtype"),
              "huge": lambda h: h["b"].update(data_offsets=[48, 2 ** 64]), "half": lambda h: h["b"].update(shape=[3, 1.5]),
              "large": lambda h: h["b"].update(shape=[12, 2 ** 63]), "larger": lambda h: h["b"].update(shape=[12, 2 ** 80]),
              "deep": lambda h: h["b"].update(shape=[1] * 31 + [3, 4]), "unshaped": lambda h: h["b"].pop("shape"),
              "back": lambda h: h["b"].update(data_offsets=[96, 48]), "one": lambda h: h["b"].update(data_offsets=[48]),
              "number": lambda h: h["b"].update(dtype=32)}
    for name, spoil in spoilt.items():
        write_safetensors(folder.name(f"{name}.safetensors"), good, spoil=spoil)
    write_safetensors(folder.name("f8.safetensors"), {"f8": ("F8_E5M2", [2], b"ab"), "a": tensor("F32", x)})
    for name, content in {"short": b"123", "long": struct.pack("<Q", 1 << 40) + b"{}", "list": struct.pack("<Q", 2) + b"[]",
                          "open": struct.pack("<Q", 5) + b'{"a":', "two": struct.pack("<Q", 4) + b"{}{}"}.items():
        with open(folder.name(f"{name}.safetensors"), "wb") as file:
            file.write(content)
    with open(folder.name("size.safetensors"), "rb") as file:
        whole = file.read()
    for name, old, new in ("twice", b'"a": {', b'"b": {'), ("dtypes", b'"shape"', b'"dtype"'):  # names of one length
        with open(folder.name(f"{name}.safetensors"), "wb") as file:
            file.write(whole.replace(old, new, 1))
    for name, text in {"away": '{"weight_map": {"a": "../x.safetensors"}}', "empty": "{}", "pair": '{"weight_map": {"a": "x", "a": "x"}}',
                       "lost": '{"weight_map": {"a": "no.safetensors"}}'}.items():
        with open(folder.name(f"{name}.safetensors.index.json"), "w", encoding="ascii") as file:
            file.write(text)
    with open(folder.name("a.npz"), "rb") as file:
        archive = file.read()
    for name, content in {"cut": archive[:-30], "nothing": b"", "local": archive.replace(b"a.npy", b"c.npy", 1),
                          "sizes": archive.replace(b"PK\1\2", b"PK\1\3", 1)}.items():
        with open(folder.name(f"{name}.npz"), "wb") as file:
            file.write(content)
    cdf = cdf_of(1, ("i2", "S1"))
    cdf.write(folder.name("c.nc"))
    with open(folder.name("c.nc"), "rb") as file:
        whole = file.read()
    for name, content in {"tail": whole[:-8], "head": whole[:100], "version": b"CDF\x03" + whole[4:], "tag": whole[:8] + b"\0\0\0\x0c" + whole[12:],
                          "dims": whole[:12] + b"\x7f\xff\xff\xff" + whole[16:], "minus": whole[:12] + b"\xff" * 4 + whole[16:]}.items():
        with open(folder.name(f"{name}.nc"), "wb") as file:
            file.write(content)
    lone = Cdf(1, [("time", 0), ("x", 3)])
    lone.add("a", (1,), integers("i4", (3,)))
    lone.write(folder.name("lone.nc"))
    with open(folder.name("lone.nc"), "rb") as file:
        whole = file.read()
    with open(folder.name("early.nc"), "wb") as file:  # its elements begin with the last number of the header, which says so
        file.write(whole[:-16] + struct.pack(">i", len(whole) - 16) + whole[-12:])
    lone.add("a", (1,), integers("i4", (3,)))
    lone.write(folder.name("twice.nc"))
    packed = dict(_FillValue=np.array([-9], "i2"), scale_factor=np.array([0.5]))
    for name, more in ("scale", {"scale_factor": np.array([0.25])}), ("fill", {"_FillValue": np.array([-8], "i2")}):
        for number in range(2):
            part = Cdf(1, [("time", 0), ("x", 3)])
            part.add("a", (1,), integers("i2", (3,)), **{**packed, **(more if number else {})})
            part.write(folder.name(f"{name}-{number}.nc"))
    deep = Cdf(1, [("time", 0), ("one", 1)])
    deep.add("a", (1,) * 33, integers("i4", (1,)))
    deep.write(folder.name("deep.nc"))
    cases = [("c.nc", 2, "fixed_i2 (int16 5x7), record_i2 (int16 23x7)"), ("c.nc:fixed_S1", 1, "characters"), ("tail.nc:series", 1, "tail.nc:series: expected its elements (23)", "cut short"),
             ("head.nc", 1, "NetCDF header", "a list within the header"), ("version.nc", 2, "--dtype"), ("tag.nc", 1, "in this order", "at byte 8"),
             ("dims.nc", 1, "a list within the header"), ("minus.nc", 1, "not negative"),
             ("x.npy:a", 2, "one array", "':a'"), ("a.npz", 2, "no name", "a (f32 3x4), b (unknown)"), ("a.npz:c", 2, "'c'", "a (f32 3x4)"),
             ("a.npz:b", 1, "a.npz:b: .npy header", "strings"), ("many.npz", 2, "a0 (f32 3x4)", "more: allfold info FILE"), *([("broken.npz", 1, "checksum"), ("bomb.npz", 1, "1073741825"), ("padded.npz", 1, "at most 1200 deflated bytes")] if HAS_LIBDEFLATE else [("broken.npz", 1, "libdeflate-dev")]),
             ("bad-*.npy", 1, "bad-1.npy", "f32 3x4 so far", "found f64 3x4"), ("scalar-*.npy", 1, "scalar-0.npy", "at least one dimension"),
             ("none-*.npy", 1, "no file that matches it"), ("none/*.npy", 1, "cannot read the folder"),
             ("hole.safetensors:a", 1, "'b' to begin at byte 48", "found 49"), ("overlap.safetensors:a", 1, "found 47"),
             ("beyond.safetensors:a", 1, "less than 2^63 bytes"), ("size.safetensors:a", 1, "9 F32 elements", "found 48 bytes"),
             ("negative.safetensors:a", 1, "tensor 'b'", "not negative and below 2^63", "found -3"), ("half.safetensors:a", 1, "a shape", "found 1.5"),
             ("large.safetensors:a", 1, "a shape", "found 9223372036854775808"), ("larger.safetensors:a", 1, "a shape", "below 2^63", "or more"),
             ("deep.safetensors:a", 1, "at most 32", "found 33 of them"), ("unshaped.safetensors:a", 1, "a shape", "found none"),
             ("untyped.safetensors:a", 1, "a dtype", "found none"), ("number.safetensors:a", 1, "a dtype", "found 32"),
             ("huge.safetensors:a", 1, "data_offsets", "found 18446744073709551615 or more"), ("back.safetensors:a", 1, "data_offsets", "found 96 and 48"),
             ("one.safetensors:a", 1, "data_offsets", "found 1 of them"),
             ("f8.safetensors:f8", 1, "F8_E5M2"), ("short.safetensors", 1, "found 0"), ("long.safetensors", 1, "found 1099511627776"),
             ("list.safetensors", 1, "one JSON object"), ("open.safetensors", 1, "one JSON object"), ("two.safetensors", 1, "one JSON object"),
             *[(f"{name}.safetensors:b", 1, "found one twice") for name in ("twice", "dtypes")], ("pair.safetensors.index.json:a", 1, "found one twice"),
             ("away.safetensors.index.json:a", 1, "own folder"), ("empty.safetensors.index.json:a", 1, "weight_map"),
             ("lost.safetensors.index.json:a", 1, "no.safetensors"), ("cut.npz:a", 1, "damaged"), ("nothing.npz", 1, "damaged"),
             *[(f"{name}.npz:a", 1, "checksum and sizes") for name in ("local", "crc", "stored", "bytes")],
             *[(f"twice.{ending}:a", 1, "one array called 'a'", "found 2") for ending in ("npz", "nc")],
             ("early.nc", 1, "early.nc:a: expected elements behind the header", f"begin at byte {len(whole) - 16}"),
             ("scale-*.nc", 1, "scale-1.nc", "packed: 0.5 x + 0", "packed: 0.25 x + 0"), ("fill-*.nc", 1, "missing: -9", "missing: -8"),
             ("deep.nc:a", 1, "at most 32 dimensions", "found 33"), ("sizes.npz:a", 1, "an entry for a member")]
    runs = cli.each_alone([["sum", folder.name(name)] for name, *_ in cases])
    for (name, status, *words), done in zip(cases, runs):
        fault = cli.refused(done, 2 if status == 2 else 1, *words)
        tap.ok(not fault, f"refused: {name}: {words[-1]}", fault)
    options = [(["sum", folder.name("raw-*"), "--dtype=f32", "--offset=4"], "several files"),
               (["sum", folder.name("a.npz:a"), "--offset=13"], "within its 12"),
               (["sum", folder.name("a.npz:a"), "--dtype=f64"], "expected no --dtype"),
               (["sum", folder.name("bad-0*.npy"), f"--partial={folder.name('bad-0.npy')}"], "replace the input"),
               (["info", folder.name("a.npz:c")], "found 'c'"), (["info", folder.name("x.npy:a")], "one array"),
               (["info", folder.name("a.npz"), "--check"], "--check")]
    for (words, said), done in zip(options, cli.each_alone([words for words, _ in options])):
        fault = cli.refused(done, done.returncode or 1, said)
        tap.ok(not fault, f"refused: {said}", fault)


def write_shape(folder, shape):
    """Files of an f64 array of this shape, which has no elements, of each format; gives the words that name them as INPUT."""
    with open(folder.name("none.npy"), "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(folder.name("none.npz"), "w") as members:
        members.write(folder.name("none.npy"), "a.npy")
    write_safetensors(folder.name("none.safetensors"), {"a": ("F64", list(shape), b"")})
    cdf = Cdf(5, list(zip("tuv", shape)), 0)
    cdf.variables.append(("a", (0, 1, 2), np.zeros((1, 0)), {}))
    cdf.write(folder.name("none.nc"))
    open(folder.name("none.f64"), "wb").close()
    names = [[folder.name(f"none.{ending}")] for ending in ("npy", "npz", "safetensors", "nc")]
    try:
        import h5py
        with h5py.File(folder.name("none.h5"), "w") as file:
            file.create_dataset("a", shape, "f8")
            file.create_dataset("b", shape, "f8", chunks=(1, 1, 1), maxshape=(None, None, None))
        names += [[folder.name("none.h5:a")], [folder.name("none.h5:b")]] if HAS_HDF5 else []
    except ImportError:
        tap.skip("no h5py")
    return names + [[folder.name("none.f64"), "--dtype=f64", "--shape=" + ",".join(map(str, shape))]]


def test_shapes(folder):
    """One rule for shapes, which is NumPy's: the dimensions other than 0 make less than 2^63 bytes."""
    for shape in ((0, 2**63 - 1, 2), (0, 2**32, 2**32), (0, 2**31, 2**29), (0, 2**31, 2**28)):
        names = write_shape(folder, shape)
        runs = cli.each_alone([["sum", "-q", *name] for name in names])
        wrong = [cli.shown(run) if shape[2] == 2**28 else cli.refused(run, run.returncode, "less than 2^63 bytes") for run in runs
                 if shape[2] != 2**28 or run.stdout != "0.0\n"]
        tap.ok(not any(wrong), f"shape {shape} in {len(names)} files", "".join(wrong))


def test_options(folder):
    """--offset and --count, in the elements of any array that lies as it is."""
    x = np.arange(12.0).reshape(3, 4)
    np.savez(folder.name("o.npz"), a=x)
    np.savez_compressed(folder.name("d.npz"), a=np.arange(24.0).reshape(2, 12))
    for part in range(2):
        np.save(folder.name(f"o-{part}.npy"), x + 12 * part)
    done = cli.each_alone([["sum", "-q", "--offset=5", "--count=3", folder.name("o.npz:a")],
                           ["sum", "-q", "--offset=10", "--count=4", folder.name("o-*.npy")],
                           *[["sum", "-q", "--offset=10", "--count=4", folder.name("d.npz")]] * HAS_LIBDEFLATE])
    tap.ok([run.stdout for run in done] == ["18.0\n", "46.0\n", "46.0\n"][:len(done)], "--offset and --count", "".join(map(cli.shown, done)))


def test_missing(folder):
    """Packed integers with missing values, in every way that NetCDF's attributes say so."""
    packed = RANDOM.integers(-100, 100, (11, 7)).astype("i2")
    packed[2, 3] = packed[5] = -999
    plain = np.array([1.5, -1e30, 2.5, 1e20], "f4")
    cdf = Cdf(1, [("time", 0), ("y", 7), ("x", 4)], 11)
    cdf.add("packed", (0, 1), packed, _FillValue=np.array([-999], "i2"), scale_factor=np.array([0.5]), add_offset=np.array([10.0]))
    cdf.add("plain", (2,), plain, _FillValue=np.array([-1e30], "f4"), missing_value=np.array([1e20], "f4"))
    large = np.array([np.inf, 1, np.inf, 2], "f4")
    cdf.add("large", (2,), large, missing_value=np.array([1.7e308]))  # no f4: matches no element
    cdf.add("infinite", (2,), large, missing_value=np.array([np.inf]))
    cdf.add("fraction", (2,), np.array([1, 1, 2, 3], "i2"), _FillValue=np.array([1.5]))  # no int16: matches no element
    cdf.add("unsigned", (2,), np.array([-1, -2, 2, 3], "i1"), _Unsigned="true", _FillValue=np.array([-1], "i1"))
    cdf.write(folder.name("m.nc"))
    wanted = [repr(math.fsum(packed[packed != -999] * 0.5 + 10.0)), "4.0", "259", repr(math.fsum(plain.astype(float))), "inf", "3.0", "7"]
    words = [["packed"], ["plain"], ["unsigned"], ["plain", "--missing=keep"], ["large"], ["infinite"], ["fraction"]]
    runs = cli.each_alone([["sum", "-q", f"{folder.name('m.nc')}:{name}", *more] for name, *more in words])
    tap.ok([run.stdout.strip() for run in runs] == wanted, "classic NetCDF: missing values and packing", "".join(map(cli.shown, runs)))
    listed, joined = cli.each_alone([["info", folder.name("m.nc")], ["info", folder.name("[m].nc") + ":packed"]])
    tap.ok("packed  int16 11x7 (time, y), missing: -999, packed: 0.5 x + 10, big-endian" in joined.stdout, "info tells of joined files, too", cli.shown(joined))
    tap.ok(listed.stdout.splitlines()[1:3] == ["  packed  int16 11x7 (time, y), missing: -999, packed: 0.5 x + 10, big-endian",
                                               "  plain  f32 4 (x), missing: -1e+30, 1e+20, big-endian"],
           "and info tells of them", cli.shown(listed))


def test_info(folder):
    """What a file holds, in words, in JSON and as names."""
    write_safetensors(folder.name("i.safetensors"), {"a": tensor("F32", np.zeros((3, 4), "f4")), "b": ("F8_E4M3", [2], b"ab")})
    np.save(folder.name("i.npy"), np.zeros((2, 5), ">i4", order="F"))
    np.zeros(3).tofile(folder.name("i.bin"))
    write_safetensors(folder.name("empty.safetensors"), {"": tensor("F32", np.ones(3, "f4")), "b": tensor("F32", np.ones(2, "f4"))})
    np.savez(folder.name("empty.npz"), **{"": np.ones(3), "b": np.ones(2)})
    for name in ("empty.safetensors", "empty.npz"):  # a name without letters is one
        listed, chosen, total, text = cli.each_alone([["info", "--json", folder.name(name)], ["info", "--json", folder.name(name + ":")],
                                                      ["sum", "-q", folder.name(name + ":")], ["sum", folder.name(name)]])
        found = [[entry["name"] for entry in cli.report(run)["arrays"]] for run in (listed, chosen)]
        tap.ok(found == [["", "b"], [""]] and total.stdout == "3.0\n" and "it holds '' (" in text.stderr, f"an empty name in {name}",
               (found, cli.shown(total), cli.shown(text)))
    for name in "xy":
        write_safetensors(folder.name(f"{name}.safetensors"), {"a": tensor("F32", np.ones(3, "f4")), "b": tensor("F32", np.ones(2, "f4"))})
    with open(folder.name("z.safetensors.index.json"), "w", encoding="ascii") as file:
        json.dump({"weight_map": {"a": "x.safetensors", "b": "y.safetensors"}}, file)
    write_safetensors(folder.name("long.safetensors"), {name: tensor("F32", np.ones(1, "f4")) for name in ("a", "b" * 200, "c")})
    with open(folder.name("cut.npy"), "wb") as file:
        file.write(b"\x93NUMPY\1\0")
    index, long, many, cut = cli.each_alone([["info", "-q", folder.name("z.safetensors.index.json")], ["sum", folder.name("long.safetensors")],
                                             ["sum", folder.name("many.npz")], ["info", folder.name("cut.npy")]])
    fault = cli.refused(long, 2, "it holds a (f32 1) and 2 more: ") or cli.refused(many, 2, "a15 (f32 3x4) and 14 more: ") \
        or cli.refused(cut, 1, "cut.npy: .npy file: expected at least 10 bytes")
    tap.ok(index.stdout == "a\nb\n" and not fault, "tensors of the index alone; a list that is cut; a file that is one array, and damaged", fault)
    text, names, one, npy, odd, *raw = cli.each_alone([["info", folder.name("i.safetensors")], ["info", "-q", folder.name("i.safetensors")],
                                                 ["info", "--json", folder.name("i.safetensors:a")], ["info", "--json", folder.name("i.npy")],
                                                 ["info", "--json", folder.name("i.safetensors:b")],
                                                 ["info", folder.name("i.bin")], ["info", folder.name("*.bin")]])
    tap.ok(text.stdout.splitlines()[1:] == ["  a  f32 3x4", "  b  F8_E4M3 2, cannot be read: expected elements of type F64, F32, "
                                        "F16, BF16, I64 to I8, U64 to U8 or BOOL, found F8_E4M3"]
           and "safetensors, 2 arrays" in text.stdout and names.stdout == "a\nb\n", "info FILE in words", cli.shown(text))
    found = cli.report(one)
    tap.ok(found and found["format"] == "safetensors" and len(found["arrays"]) == 1 and found["arrays"][0]["dtype"] == "f32"
           and found["arrays"][0]["shape"] == [3, 4], "info --json FILE:NAME", found)
    found = cli.report(odd)
    tap.ok(found and [(entry["name"], entry["dtype"], entry["shape"]) for entry in found["arrays"]] == [("b", None, [2])]
           and "found F8_E4M3" in found["arrays"][0]["refused"], "of an array that cannot be read: why", found)
    found = cli.report(npy)
    entry = found["arrays"][0] if found else {}
    tap.ok(entry.get("name", 0) is None and entry["byte_order"] == "big" and entry["fortran_order"] and entry["dtype"] == "int32", "info of an .npy file",
           found)
    fault = "".join(cli.refused(done, 2, "no header to list") for done in raw)
    tap.ok(not fault, "info of a file of no known format, and of a pattern of them", fault)


def main():
    cli.ignore_leaks()
    with cli.Folder() as folder:
        test_folds(folder)
    with cli.Folder() as folder:
        test_refused(folder)
        test_shapes(folder)
        test_options(folder)
        test_missing(folder)
        test_info(folder)
    tap.done()


main()
