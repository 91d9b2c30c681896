"""Arrays in files in place of arrays: every function gives what it gives of the elements in memory; slices, names, and what is refused."""
import copy
import os
import pickle
import shutil
import sys
import tempfile

import numpy as np

import allfold
from allfold import begin, foreach
from ranks import gather, last, ok, parts, rank, refused, size, values

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import format_files  # noqa: E402

SHAPE = (7, 5, 60)


def write_files(folder, x):
    """Those that NumPy and the tests' own code can write; with h5py HDF5, in chunks and packed."""
    np.save(f"{folder}/c.npy", x)
    np.save(f"{folder}/d.npy", x[:2])
    np.save(f"{folder}/wide.npy", x.astype(np.float64))
    np.save(f"{folder}/f.npy", np.asfortranarray(x))
    np.savez(f"{folder}/z.npz", a=x, b=x[0], text=np.array(["no number"]))
    x.tofile(f"{folder}/raw.bin")
    format_files.write_safetensors(f"{folder}/model.safetensors", {"w.a": format_files.tensor("F32", x), "w.b": format_files.tensor("F32", x[1])})
    netcdf = format_files.Cdf(2, [("time", 0), ("lat", SHAPE[1]), ("lon", SHAPE[2])], SHAPE[0])
    netcdf.add("tas", (0, 1, 2), x)
    netcdf.write(f"{folder}/x.nc")
    try:
        import h5py
    except ImportError:
        return
    with h5py.File(f"{folder}/h.h5", "w") as file:
        file.create_dataset("group/a", data=x, chunks=(3, 2, 32), compression="gzip")
        packed = file.create_dataset("packed", data=(x * 100).astype(np.int16), chunks=(3, 2, 32))
        packed.attrs["_FillValue"], packed.attrs["scale_factor"], packed.attrs["add_offset"] = np.int16(7), 0.5, 3.0


def same(a, b):
    return np.shape(a) == np.shape(b) and np.array_equal(a, b)


def check_array(name, a, x):
    """a: of the file; x: on every rank the same elements, of which it passes its part."""
    own = np.ascontiguousarray(parts(x))
    what = f"{name} on {size} ranks"
    ok((a.shape, a.ndim, a.size, a.dtype, len(a)) == (x.shape, x.ndim, x.size, x.dtype, len(x)), f"{what}: what it is", repr(a))
    functions = ("sum", "mean", "min", "norm", "logsumexp", "std", "variance", "median")
    found, due = [[getattr(allfold, one)(y) for one in functions] for y in (a, own)]
    ok(found == due, f"{what}: one number", (found, due))
    ok(np.unravel_index(allfold.argmax(a), a.shape, a.order) == np.unravel_index(x.argmax(), x.shape), f"{what}: argmax")
    found, due = allfold.stats(a, ddof=1), allfold.stats(own, ddof=1)
    ok((found.count, found.variance, found.norm1, found.max) == (due.count, due.variance, due.norm1, due.max), f"{what}: stats")
    wrong = []
    weights = np.arange(1.0, 6.0)[:, None]
    for axis in (0, 1, -1, (0, 1), (0, 2), (1, 2)):
        for keepdims in (False, True):
            pairs = [(getattr(allfold, one)(a, axis=axis, keepdims=keepdims), getattr(allfold, one)(own, axis=axis, keepdims=keepdims))
                     for one in ("sum", "max", "std")]
            pairs.append((allfold.mean(a, axis=axis, weights=weights, keepdims=keepdims), allfold.mean(own, axis=axis, weights=weights, keepdims=keepdims)))
            wrong += [(axis, keepdims, pair) for pair in pairs if not same(*pair)]
    ok(not wrong and same(allfold.argmin(a, axis=1), x.argmin(1)), f"{what}: along axes", wrong[:1])
    first = sum(len(part) for part in gather(own)[:rank])
    ok(all(same(np.ascontiguousarray(allfold.softmax(a, axis=axis))[first:first + len(own)], allfold.softmax(own, axis=axis)) for axis in (None, 0, 2)),
       f"{what}: softmax")
    ok(allfold.topk(a, 3).values.tolist() == np.sort(x, axis=None)[:-4:-1].tolist()
       and allfold.histogram(a, 5).hist.tolist() == allfold.histogram(own, 5).hist.tolist(), f"{what}: order statistics")
    ok(allfold.dot(a, a) == allfold.dot(own.ravel(), own.ravel()) and allfold.compare(a, a).within, f"{what}: two arrays")


def check_slices(name, a, x):
    wrong = []
    for key in (2, slice(1, -1), (..., slice(-10, None)), (1, 2, 3), (slice(None), 3), (slice(2, 5), -1, slice(5, 200)), slice(5, 3), ..., (),
                (slice(None), slice(None), 7)):
        b, y = a[key], x[key]
        if b.shape != y.shape or allfold.sum(b) != allfold.sum(parts(np.ravel(y))):
            wrong.append(key)
        for axis in range(y.ndim):
            own = np.ascontiguousarray(y) if rank == last else np.ascontiguousarray(y)[:0]
            if y.size and not same(allfold.sum(b, axis=axis), allfold.sum(own, axis=axis)):
                wrong.append((key, axis))
    for key, shape in (((2, slice(3, 3)), (0, 60)), ((1, 2, 3), (1,))):  # no elements, and one without a dimension
        b, due = a[key], x[key].sum()
        if not (allfold.sum(b, keepdims=True).tolist() == due.reshape((1,) * len(shape)).tolist() and allfold.sum(b, weights=2.0) == 2 * due
                and same(np.atleast_1d(allfold.softmax(b)), np.ones(shape, x.dtype))):
            wrong.append(key)
    inner, due = a[2][1:4, :50][-1], x[2][1:4, :50][-1]
    ok(not wrong and allfold.norm(inner) == allfold.norm(parts(due)) and [allfold.max(row) for row in a[0]] == x[0].max(axis=1).tolist(),
       f"{name} on {size} ranks: slices", wrong)


def check_file(folder, x):
    with allfold.open(f"{folder}/z.npz") as file:
        ok(file.keys() == list(file) == ["a", "b"] and len(file) == 2 and "a" in file and "/a" in file and "text" not in file, "names of a file's arrays of numbers")
        arrays = [np.ascontiguousarray(parts(x)), np.ascontiguousarray(parts(x[0]))]
        ok(foreach.norm(file.values()) == foreach.norm(arrays) and foreach.sum(file.values(), total=True) == foreach.sum(arrays, total=True),
           "foreach of all arrays of a file", foreach.norm(file.values()))
        named = [key for key, _ in file.items()], allfold.open(f"{folder}/z.npz:b").name
        ok(named == (["a", "b"], f"{folder}/z.npz:b"), "an array by its name", named)
    raw = allfold.open(f"{folder}/raw.bin", dtype="float32", shape=SHAPE)
    ok(raw.shape == SHAPE and allfold.sum(raw) == allfold.sum(parts(x)), "a raw file")
    part = allfold.open(f"{folder}/raw.bin", dtype=np.float32, offset=400, count=50)
    ok(part.shape == (50,) and allfold.max(part) == x.ravel()[100:150].max(), "a part of it")
    joined, due = allfold.open(f"{folder}/[cd].npy"), np.concatenate([x, x[:2]])
    ok(joined.shape == due.shape and same(allfold.max(joined[6:], axis=0), due[6:].max(0)) and allfold.sum(joined) == allfold.sum(parts(due)),
       "files joined", joined)
    found = allfold.compare(allfold.open(f"{folder}/wide.npy"), raw)
    ok(found.within and found.count == x.size, "a comparison of arrays of two types", found)
    with allfold.Context(backend="cpu", level="fast") as context:
        ok(allfold.max(raw, comm=context) == x.max(), "in another context")


def check_names(folder, x):
    tas = allfold.open(f"{folder}/x.nc")["tas"]
    found = [allfold.mean(tas, axis=axis) for axis in ("time", ("lat", "lon"), ("lon", "time"))]
    due = [allfold.mean(np.ascontiguousarray(parts(x)), axis=axis) for axis in (0, (1, 2), (0, 2))]
    ok(tas.names == ("time", "lat", "lon") and all(map(same, found, due)), "axes by name", (tas.names, found))
    ok(tas[:, 2].names == ("time", "lon") and same(allfold.max(tas[:, 2], axis="lon"), x[:, 2].max(1)), "and of a slice")
    refused("a name that it does not have", (ValueError,), ["axis 'depth'", "time, lat, lon"], lambda: allfold.sum(tas, axis="depth"))


def check_packed(folder, x):
    packed = allfold.open(f"{folder}/h.h5")["packed"]
    stored = (x * 100).astype(np.int16)
    there = stored[stored != 7].astype(float) * 0.5 + 3.0
    ok(allfold.stats(packed).count == there.size and allfold.max(packed) == there.max() and packed.dtype == np.float64
       and abs(allfold.mean(packed) - there.mean()) < 1e-9, "missing elements are left out, packed ones are values")
    kept = allfold.open(f"{folder}/h.h5:packed", missing="keep")
    ok(allfold.stats(kept).count == stored.size, "or are kept")
    refused("or refused", (allfold.NoValueError,), ["missing"], lambda: allfold.sum(allfold.open(f"{folder}/h.h5:packed", missing="error")))
    refused("softmax of missing elements", (allfold.NoValueError,), ["all elements are needed"], lambda: allfold.softmax(packed))


def check_errors(folder, x):
    a, argument = allfold.open(f"{folder}/c.npy"), (allfold.ArgumentError, ValueError)
    refused("no such file", (allfold.InputOutputError,), ["cannot find the file"], lambda: allfold.open(f"{folder}/none.npy"))
    refused("no name of a file", argument, ["PathLike"], lambda: allfold.open(3))
    refused("a file in place of its arrays", argument, ["file[NAME]", "w.a"], lambda: allfold.sum(allfold.open(f"{folder}/model.safetensors")))
    refused("a slice with a step", argument, ["step"], lambda: a[::2])
    refused("a fold in two phases", argument, ["nothing to begin"], lambda: begin.sum(a).result())
    refused("log-probabilities", argument, ["in memory"], lambda: allfold.log_probs(a))
    refused("its elements", argument, ["piece by piece"], lambda: np.asarray(a))
    refused("a name with a NUL", argument, ["NUL"], lambda: allfold.open(f"{folder}/x.npy\0b"))
    refused("a copy", argument, ["open it again"], lambda: copy.copy(a))
    refused("a pickle of it", argument, ["open it again"], lambda: pickle.dumps(a))
    refused("a cut", argument, ["share out"], lambda: allfold.sum(a, axis=0, cut=1))
    refused("own results", argument, ["own"], lambda: allfold.sum(a, axis=0, own=True))
    refused("an array in memory beside it", argument, ["two of one kind"], lambda: allfold.dot(a, x))
    refused("an array in place of several", argument, ["several arrays"], lambda: foreach.norm(a))
    if size > 1:
        refused("a slice on one rank", argument, ["different calls"], lambda: allfold.sum(a[1:] if rank == last else a))
    raised = []
    for wrong in (lambda: a[9], lambda: a[1, 2, 3, 4], lambda: a[..., 1, ...], lambda: allfold.open(f"{folder}/z.npz")["none"]):
        try:
            wrong()
        except LookupError as error:
            raised.append(type(error).__name__)
    ok(raised == ["IndexError"] * 3 + ["KeyError"], "indices and names that there are not", raised)
    with a as opened:
        ok(allfold.sum(opened) == allfold.sum(parts(x)), "and then a call that works")
    refused("a closed array", argument, ["is closed"], lambda: allfold.sum(a))
    b = allfold.open(f"{folder}/c.npy")
    gather(None)
    if rank == 0:
        np.save(f"{folder}/c.npy", x + 1)
    gather(None)
    refused("a file that was written to", (allfold.InputError,), ["c.npy", "changed"], lambda: allfold.sum(b))


def check():
    x = values("float32", int(np.prod(SHAPE)), 3).reshape(SHAPE)
    folder = gather(tempfile.mkdtemp() if rank == 0 else None)[0]
    try:
        if rank == 0:
            write_files(folder, x)
        gather(None)
        names = [("c.npy", None), ("f.npy", None), ("model.safetensors", "w.a")]
        if os.path.exists(f"{folder}/h.h5"):
            names.append(("h.h5", "group/a"))
            check_packed(folder, x)
        for name, array in names:
            opened = allfold.open(f"{folder}/{name}")
            opened = opened if array is None else opened[array]
            check_array(name, opened, x)
            check_slices(name, opened, x)
        check_file(folder, x)
        check_names(folder, x)
        check_errors(folder, x)
    finally:
        gather(None)
        if rank == 0:
            shutil.rmtree(folder)
