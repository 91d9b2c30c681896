#!/usr/bin/env python3
"""Makes the HDF5 and NetCDF-4 files of this folder, and expected.txt: what folds of them must print, computed with h5py's elements by
math.fsum and exact fractions. Needs h5py, netCDF4 and zstandard; the tests do not. tests/data/make_hdf5.py FOLDER"""
import ctypes
import math
import os
import sys
from fractions import Fraction

import h5py
import netCDF4
import numpy as np
import zstandard

RANDOM = np.random.default_rng(20261122)
FOLDS = ("sum", "argmin", "argmax", "mean")
lines = []


def value_text(value):
    """As C's %a has it; integers in decimal."""
    if isinstance(value, (int, np.integer, np.bool_)):
        return str(int(value))
    mantissa, _, exponent = float(value).hex().partition("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}" if exponent else float(value).hex()


def expect(name, values, indices=None, total=None, folds=FOLDS):
    """values: those that are not missing, in row-major order; indices: theirs; total: the exact sum, a Fraction."""
    values = np.asarray(values).ravel()
    indices = np.arange(values.size) if indices is None else np.asarray(indices)
    real = values.dtype.kind == "f"
    numbers = [Fraction(float(v)) if real else Fraction(int(v)) for v in values] if total is None else []
    total = sum(numbers, Fraction(0)) if total is None else total
    for fold in folds:
        if fold == "sum":
            found = value_text(float(total) if real else int(total))
        elif values.size == 0:
            continue
        elif fold == "mean":
            found = value_text(float(total / values.size))
        else:
            place = int(values.argmin() if fold == "argmin" else values.argmax())
            found = f"{value_text(values[place] if not real else float(values[place]))}@{indices[place]}"
        lines.append(f"{fold} {name} = {found}")


def numbers(dtype, shape):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return RANDOM.integers(0, 2, shape).astype(dtype)
    if kind == "f":
        return (RANDOM.integers(-1000, 1000, shape) * 0.37).astype(dtype)
    return RANDOM.integers(0 if kind == "u" else -100, 100, shape).astype(dtype)


class File:
    def __init__(self, name, **more):
        self.name, self.file = name, h5py.File(name, "w", **more)

    def add(self, name, x, **more):
        self.file.create_dataset(name, data=x, **more)
        expect(f"{self.name}:{name}", x)

    def low(self, name, x, prepare):
        """Through h5py's low-level calls: prepare(properties, filters of) sets the creation properties."""
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        prepare(properties)
        dataset = h5py.h5d.create(self.file.id, name.encode(), h5py.h5t.py_create(x.dtype), h5py.h5s.create_simple(x.shape), properties)
        expect(f"{self.name}:{name}", x)
        return dataset


def types(file):
    for dtype in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", ">f2", ">f4", ">f8", ">i2", ">i4", ">u8"):
        name = dtype.replace(">", "big-").replace("?", "bool")
        file.add(f"types/{name}", numbers(dtype, (5, 7)), chunks=(2, 3), compression="gzip", shuffle=True)
    file.add("placed", numbers("f4", (6, 7)))
    file.add("placed-big", numbers(">i4", (6, 7)))


def shapes(file):
    file.add("edges", numbers("f4", (7, 5, 6)), chunks=(3, 2, 4), compression="gzip", shuffle=True)
    file.add("plain-chunks", numbers("i2", (7, 5, 6)), chunks=(3, 2, 4))
    file.add("row", numbers("f8", (1001,)), chunks=(100,), compression="gzip")
    file.add("one-chunk", numbers("f8", (10,)), chunks=(10,), fletcher32=True)
    file.add("scalar", np.float64(2.5))
    for name, shape in (("empty", (0, 5)), ("empty-inside", (3, 0))):
        file.add(name, np.zeros(shape, "f4"), chunks=(2, 2), maxshape=(None, None))
    file.file["null"] = h5py.Empty("f4")
    expect(f"{file.name}:null", np.zeros(0, "f4"))
    ties = np.zeros((4, 4), "f4")
    ties[0, 2] = ties[1, 0] = 7  # in the second chunk and in the first
    ties[3, 1] = ties[2, 2] = -7
    file.add("ties", ties, chunks=(2, 2))


def filters(file):
    x = numbers("f4", (9, 10))
    for name, more in (("deflate", {"compression": "gzip"}), ("shuffle", {"shuffle": True}), ("fletcher32", {"fletcher32": True}),
                       ("all", {"compression": "gzip", "shuffle": True, "fletcher32": True}), ("scaleoffset", {"scaleoffset": 0})):
        file.add(f"filters/{name}", x.astype("i4") if name == "scaleoffset" else x, chunks=(4, 4), **more)
    def checked_first(properties):
        properties.set_chunk((4, 4))
        properties.set_fletcher32()
        properties.set_shuffle()
        properties.set_deflate(6)
    file.low("filters/checked-first", x, checked_first).write(h5py.h5s.ALL, h5py.h5s.ALL, x)
    def with_zstd(properties):
        properties.set_chunk((3, 5))
        properties.set_shuffle()
        properties.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (3,))
    dataset = file.low("filters/zstd", x, with_zstd)
    for i in range(0, 9, 3):
        for j in range(0, 10, 5):
            part = np.ascontiguousarray(x[i:i + 3, j:j + 5])
            shuffled = part.view("u1").reshape(-1, 4).T.tobytes()
            dataset.write_direct_chunk((i, j), zstandard.compress(shuffled), 0)
    y = numbers("i4", (6,))
    def plain(properties):
        properties.set_chunk((2,))
        properties.set_shuffle()
        properties.set_deflate(6)
    dataset = file.low("filters/masks", y, plain)
    dataset.write_direct_chunk((0,), y[:2].tobytes(), 3)  # neither filter
    dataset.write_direct_chunk((2,), np.frombuffer(y[2:4].tobytes(), "u1").reshape(2, 4).T.tobytes(), 2)  # not deflated
    dataset.write_direct_chunk((4,), __import__("zlib").compress(y[4:].tobytes()), 1)  # not shuffled


def holes(file):
    """Chunks that were never written are the fill value."""
    for name, more in (("plain", {}), ("deflate", {"compression": "gzip"}), ("through", {"scaleoffset": 0})):
        x = np.full((7, 9), 5, "i2")
        x[2:4, 3:6] = 7
        dataset = file.file.create_dataset(f"holes/{name}", shape=x.shape, dtype="i2", chunks=(2, 3), fillvalue=5, **more)
        dataset[2:4, 3:6] = 7
        expect(f"{file.name}:holes/{name}", x)
    file.file.create_dataset("holes/all", shape=(5, 5), dtype="f8", chunks=(2, 2), fillvalue=0.5)
    expect(f"{file.name}:holes/all", np.full((5, 5), 0.5))
    file.file.create_dataset("holes/placed", shape=(100,), dtype="f4", fillvalue=2)
    expect(f"{file.name}:holes/placed", np.full(100, 2, "f4"))
    for name, dtype in (("compact", "f4"), ("compact-big", ">i2")):
        x = numbers(dtype, (3, 4))
        file.low(name, x, lambda properties: properties.set_layout(h5py.h5d.COMPACT)).write(h5py.h5s.ALL, h5py.h5s.ALL, x)


def newest(file):
    """Every index of chunks that the file format of HDF5 1.10 has."""
    x = numbers("i4", (6, 10))
    file.add("single", x, chunks=(6, 10))
    file.add("single-deflate", x, chunks=(6, 10), compression="gzip")
    file.add("fixed", x, chunks=(2, 3))
    file.add("fixed-deflate", x, chunks=(2, 3), compression="gzip")
    file.add("extensible", x, chunks=(2, 3), maxshape=(None, 10), compression="gzip")
    file.add("tree", x, chunks=(2, 3), maxshape=(None, None), compression="gzip")
    def early(properties):
        properties.set_chunk((2, 3))
        properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    file.low("implicit", x, early).write(h5py.h5s.ALL, h5py.h5s.ALL, x)


def whole_chunks_only(properties):
    """Has filters leave out the chunks that the array's edge cuts: h5py has no name for it."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        libraries = {line.split()[-1] for line in maps if "/libhdf5" in line and "_hl" not in line}
    library = max(libraries, key=lambda name: "h5py" in name)  # not netCDF4's
    set_options = ctypes.CDLL(library).H5Pset_chunk_opts
    set_options.argtypes = ctypes.c_int64, ctypes.c_uint
    assert set_options(properties.id, 2) >= 0  # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS


def rare(file):
    """What few writers do."""
    x = np.arange(25, dtype="f4").reshape(5, 5)
    for name in ("shuffle", "deflate", "fletcher32"):
        def whole_only(properties):
            properties.set_chunk((2, 2))
            {"shuffle": properties.set_shuffle, "deflate": lambda: properties.set_deflate(6), "fletcher32": properties.set_fletcher32}[name]()
            whole_chunks_only(properties)
        file.low(f"edges-{name}", x, whole_only).write(h5py.h5s.ALL, h5py.h5s.ALL, x)
    def shuffled_last(properties):
        properties.set_chunk((2, 2))
        properties.set_deflate(6)
        properties.set_shuffle()
    file.low("shuffled-last", x, shuffled_last).write(h5py.h5s.ALL, h5py.h5s.ALL, x)
    for name, places in (("one", [10]), ("two", [5, 2])):  # in chunks: 5 before 2
        holed = x.copy()
        holed.flat[places] = -1
        file.file.create_dataset(f"missing/{name}", data=holed, chunks=(2, 2)).attrs["_FillValue"] = np.float32(-1)
    listed = file.file.create_dataset("listed", data=x[0])
    lists = np.empty(1, object)
    lists[0] = np.array([1], "i1")
    listed.attrs.create("DIMENSION_LIST", lists, dtype=h5py.vlen_dtype("i1"))


def replaced(names):
    """Two files of one size, the second in place of the first: datasets of the same names and shapes."""
    x = np.arange(64, dtype="f4").reshape(8, 8)
    for second, name in enumerate(names):
        with h5py.File(name, "w") as file:
            file.create_dataset("same", data=x, chunks=(2, 2))
            file.create_dataset("block", data=x, chunks=(8, 8) if second else (2, 2))
            file.create_dataset("type", data=x.astype("i4" if second else "f4"), chunks=(8, 8))
            file.create_dataset("order", data=x.astype(">f4" if second else "<f4"), chunks=(8, 8))
            file.create_dataset("layout", data=x, chunks=None if second else (8, 8))
    size = max(map(os.path.getsize, names))
    for name in names:
        os.truncate(name, size)


def refused(name):
    with h5py.File(name, "w") as file:
        file["compound"] = np.zeros(3, dtype=[("x", "f4"), ("y", "i4")])
        file["string"] = "text"
        file["fixed-string"] = np.array([b"a", b"bc"])
        file.create_dataset("variable", (2,), dtype=h5py.vlen_dtype("i4"))
        file.create_dataset("enumeration", data=np.zeros(2, "i1"), dtype=h5py.enum_dtype({"RED": 0, "BLUE": 5}, "i1"))
        file.create_dataset("reference", (2,), dtype=h5py.ref_dtype)
        file["opaque"] = np.zeros(2, "V7")
        file.create_dataset("lzf", data=np.arange(100.0), chunks=(50,), compression="lzf")
        layout = h5py.VirtualLayout((3,), "f4")
        layout[:] = h5py.VirtualSource("none.h5", "x", shape=(3,))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", (4,), dtype="f4", external=[("none.raw", 0, h5py.h5f.UNLIMITED)])
        file["elsewhere"] = h5py.ExternalLink("one.h5", "/x")
        odd = h5py.h5t.STD_I32LE.copy()
        odd.set_precision(24)
        h5py.h5d.create(file.id, b"odd", odd, h5py.h5s.create_simple((4,)))
        with_text = file.create_dataset("text-missing", data=np.zeros(2, "f4"))
        with_text.attrs["missing_value"] = "none"


def damaged(name):
    with h5py.File(name, "w") as file:
        sums = file.create_dataset("fletcher32", data=np.arange(6.0), chunks=(2,), fletcher32=True)
        deflated = file.create_dataset("deflate", data=np.arange(10.0), chunks=(10,), compression="gzip")
        places = sums.id.get_chunk_info(1).byte_offset + 3, deflated.id.get_chunk_info(0).byte_offset + 9
    with open(name, "r+b") as file:
        for place in places:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 0xff]))


def netcdf(name):
    file = netCDF4.Dataset(name, "w")
    file.set_auto_maskandscale(False)
    for dimension, size in (("t", None), ("y", 5), ("x", 7)):
        file.createDimension(dimension, size)

    def variable(name, dtype, x, fill=None, attributes=None, dimensions=("t", "y", "x"), **more):
        made = file.createVariable(name, dtype, dimensions, fill_value=fill, **more)
        made.set_auto_maskandscale(False)
        made.setncatts(attributes or {})
        made[:] = x
        return made

    def masked(name, x, missing, scale=None, offset=0.0):
        stored = np.asarray(x).ravel()
        kept = np.flatnonzero(~missing(stored))
        if scale is None:
            expect(f"{file.filepath()}:{name}", stored[kept], kept)
            return
        scale, offset = Fraction(float(scale)), Fraction(float(offset))
        total = sum((scale * int(v) + offset for v in stored[kept]), Fraction(0))
        values = np.array([float(scale * Fraction(float(v)) + offset) for v in stored[kept]])
        if stored.dtype.kind == "f":  # unpacked one by one
            total = sum((Fraction(float(v)) for v in values), Fraction(0))
        expect(f"{file.filepath()}:{name}", values, kept, total)

    packed = RANDOM.integers(-30000, 30000, (4, 5, 7)).astype("i2")
    packed[1, 2] = -32767
    packed[0, 0, 0] = -32768
    variable("packed", "i2", packed, -32767, {"missing_value": np.int16(-32768), "scale_factor": 0.01, "add_offset": 273.15}, zlib=True,
             chunksizes=(1, 3, 4))
    masked("packed", packed, lambda v: (v == -32767) | (v == -32768), 0.01, 273.15)
    variable("packed-single", "i4", packed, None, {"scale_factor": np.float32(0.1), "add_offset": np.float32(-7.7)}, zlib=True)
    masked("packed-single", packed.astype("i4"), lambda v: v == v + 1, np.float32(0.1), np.float32(-7.7))
    real = (RANDOM.integers(-1000, 1000, (4, 5, 7)) * 0.37).astype("f4")
    holed = real.copy()
    holed[:, 1, 1:5] = 1e20
    holed[0, 4, 6] = np.nan
    variable("filled", "f4", np.where(np.isnan(holed), 3, holed), np.float32(1e20), {"missing_value": 1e20}, zlib=True, chunksizes=(2, 2, 2))
    masked("filled", np.where(np.isnan(holed), np.float32(3), holed), lambda v: v == np.float32(1e20))
    variable("nan-filled", "f4", holed, np.float32(np.nan))
    masked("nan-filled", holed, lambda v: v != v)
    wide = RANDOM.integers(-5, 5, (4, 5, 7)).astype("i8")
    variable("several", "i8", wide, None, {"missing_value": np.array([-3, 0, 4], "i8")})
    masked("several", wide, lambda v: (v == -3) | (v == 0) | (v == 4))
    signs = RANDOM.integers(0, 256, (4, 5, 7)).astype("u1")
    variable("unsigned", "i1", signs.view("i1"), np.int8(-1), {"_Unsigned": "true", "scale_factor": 0.5})
    masked("unsigned", signs, lambda v: v == 255, 0.5)
    variable("packed-real", "f4", real, None, {"scale_factor": 0.1, "add_offset": 1.0})
    masked("packed-real", real, lambda v: v == v + 1e30, 0.1, 1.0)
    variable("all-missing", "f4", np.full((4, 5, 7), -9, "f4"), np.float32(-9))
    lines.append(f"sum {file.filepath()}:all-missing = 0x0p+0")
    fill = variable("never-written", "f4", np.zeros((0, 5, 7)), np.float32(-9), chunksizes=(1, 5, 7))
    lines.append(f"sum {file.filepath()}:never-written = 0x0p+0")
    variable("x", "f8", np.arange(7.0), dimensions=("x",))
    expect(f"{file.filepath()}:x", np.arange(7.0))
    group = file.createGroup("g")
    inner = group.createVariable("inner", "i4", ("y",))
    inner[:] = range(5)
    expect(f"{file.filepath()}:g/inner", np.arange(5, dtype="i4"))
    file.close()


def main():
    os.chdir(sys.argv[1])
    file = File("types.h5")
    for part in (types, shapes, filters, holes):
        part(file)
    file.file.close()
    file = File("newest.h5", libver=("v110", "v110"))  # what HDF5 1.10 reads
    newest(file)
    file.file.close()
    with h5py.File("one.h5", "w", userblock_size=512) as one:
        one["x"] = np.arange(10.0)
    expect("one.h5", np.arange(10.0))
    file = File("rare.h5", libver=("v110", "v110"))
    rare(file)
    file.file.close()
    with h5py.File("unwritten.h5", "w") as sparse:
        sparse.create_dataset("x", shape=(4000, 4000), dtype="f4", chunks=(100, 100), compression="gzip")[0, 0] = 1
    replaced(("replaced-1.h5", "replaced-2.h5"))
    refused("refused.h5")
    damaged("damaged.h5")
    netcdf("netcdf4.nc")
    with open("expected.txt", "w", encoding="ascii") as out:
        out.write("# FOLD INPUT = VALUE[@INDEX], in order of make_hdf5.py, which made this file.\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
