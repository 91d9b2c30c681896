"""Kinds of arrays: NumPy's in any layout, what NumPy can convert, DLPack, __cuda_array_interface__, PyTorch and JAX if they are
there, in device memory if there is some."""
import array
import copy
import ctypes
import itertools
import math
import sys

import numpy as np

import allfold
from allfold import _dlpack, begin
from ranks import MPI, ok, parts, rank, refused, size, values

WHOLE = np.arange(24, dtype=np.float32).reshape(4, 6)
TOTAL = 276.0 * size


def check_numpy():
    layouts = {"Fortran order": np.asfortranarray(WHOLE), "a transposed view": WHOLE.T, "every other column": WHOLE.repeat(2, 1)[:, ::2],
               "reversed": WHOLE[::-1], "big-endian": WHOLE.astype(">f4"), "a memmap": np.asarray(WHOLE).view(np.memmap),
               "not aligned": np.frombuffer(b"x" + WHOLE.tobytes(), np.uint8)[1:].view("<f4"), "a list": WHOLE.tolist(),
               "a memoryview": memoryview(WHOLE), "array.array": array.array("f", WHOLE.ravel()),
               "longlong": WHOLE.astype(np.longlong), "bytes that cannot be written": np.frombuffer(WHOLE.tobytes(), "f4")}
    found = {name: allfold.sum(x) for name, x in layouts.items()}
    ok(all(total == TOTAL for total in found.values()), "NumPy's arrays of any layout", found)
    wrong = []
    for name, x in layouts.items():
        plain = np.array(x).astype(np.asarray(x).dtype.newbyteorder("="))
        for call in (allfold.prod, allfold.mean, allfold.min, allfold.argmin, allfold.norm, allfold.logsumexp, allfold.stats, allfold.softmax,
                     lambda x, axis: allfold.log_softmax(x, axis, np.empty(np.shape(x))), lambda x, axis: begin.argmax(x).result(),
                     lambda x, axis: allfold.dot(*[y if y.ndim == 1 else y[:, axis or 0] for y in 2 * [np.asarray(x)]])):
            wrong += [(name, call, axis) for axis in (None, -1) if repr(call(x, axis=axis)) != repr(call(plain, axis=axis))]
    ok(not wrong, "in every function", wrong)
    nothing, rows = np.empty((0, 3)), np.empty((3, 0), np.float32)
    found = allfold.sum(nothing, 0), allfold.max(nothing, 1), allfold.prod(rows, 1), allfold.stats(rows, -1), allfold.softmax(rows), allfold.softmax(nothing, 0)
    ok(found[0].tolist() == [0] * 3 and found[1].shape == (0,) and found[2].tolist() == [1] * 3 * size and found[3].argmin.tolist() == [-1] * 3 * size
       and np.isnan(found[3].mean).all() and found[4].shape == (3, 0) and found[5].shape == (0, 3), "empty arrays", found)
    found = [allfold.argmax(x) for x in (np.asfortranarray(-WHOLE), WHOLE[::-1], -WHOLE.T)]
    ok(found == [0, 5, 0], "indices are those of C order", found)
    ok(allfold.argmax(np.asfortranarray(WHOLE)) == 23 and allfold.stats(WHOLE.T).argmax == 23, "also in Fortran order")
    found = allfold.sum(np.float64(2)), allfold.sum(7, 0), allfold.sum(7, -1, keepdims=True), allfold.softmax(2.0)
    ok(found == (2 * size, 7 * size, 7 * size, 1 / size) and found[3].shape == (), "scalars are arrays of one element", found)
    found = allfold.softmax(np.asfortranarray(WHOLE), axis=None)
    ok(found.shape == (4, 6) and found.flags.c_contiguous and found.argmax() == 23, "softmax of Fortran order", found)
    refused("a masked array", (ValueError,), ["mask", "compressed"], lambda: allfold.sum(np.ma.masked_equal(WHOLE, 3)))
    refused("complex numbers", (ValueError,), ["complex128", "float32", "bfloat16"], lambda: allfold.sum(np.ones(2, complex)))
    refused("objects", (ValueError,), ["object"], lambda: allfold.sum([1, None]))
    refused("ragged lists", (ValueError,), [], lambda: allfold.sum([[1, 2], [3]]))
    ok(allfold.sum(WHOLE, (0, -1)) == allfold.sum(WHOLE.ravel(), -1) == TOTAL, "all axes are the whole array")
    found = [allfold.norm(-WHOLE, ord) for ord in (1, 2, math.inf)]
    ok(found == [TOTAL, math.sqrt(size * float((WHOLE.astype(float)**2).sum())), 23], "norms of the vector of a matrix", found)
    refused("an unknown norm", (ValueError,), ["ord='fro'"], lambda: allfold.norm(WHOLE, "fro"))


def check_out():
    x = np.arange(8, dtype=np.float32)
    refused("out that overlaps", (ValueError,), ["overlaps"], lambda: allfold.softmax(x[:4], out=x[2:6]))
    refused("out of another shape", (ValueError,), ["(8,)", "(4,)"], lambda: allfold.softmax(x, out=np.empty(4)))
    refused("out with gaps", (ValueError,), ["gaps"], lambda: allfold.softmax(x[:4], out=np.empty(8)[::2]))
    refused("out that cannot be written", (ValueError,), ["writable"], lambda: allfold.softmax(x, out=np.frombuffer(bytes(32), "f4")))
    refused("out that is no array", (ValueError,), ["list"], lambda: allfold.softmax(x, out=[0.0] * 8))
    refused("out and dtype", (ValueError,), ["dtype and out"], lambda: allfold.softmax(x, out=np.empty(8), dtype=float))
    refused("softmax in integers", (ValueError,), ["int32", "float16"], lambda: allfold.softmax(x, dtype=np.int32))
    out = np.empty(8)
    ok(allfold.softmax(x, out=out) is out and abs(out.sum() * size - 1) < 1e-12, "out of another type", out)


class Tensor:
    """Of a library of which only DLPack is known."""

    def __init__(self, x, versions=True):
        self.x, self.versions, self.shape = x, versions, x.shape

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versions and "max_version" in options:
            raise TypeError("max_version")
        return self.x.__dlpack__(**options)


class Versioned(Tensor):
    """The same with DLPack 1.0 and its flags: 1 is read-only."""

    def __init__(self, x, flags):
        super().__init__(x)
        self.lengths, self.strides = ((ctypes.c_int64 * x.ndim)(*numbers) for numbers in (x.shape, [stride // 4 for stride in x.strides]))
        tensor = _dlpack.Tensor(data=x.ctypes.data, device_type=1, ndim=x.ndim, code=2, bits=32, lanes=1, shape=self.lengths, strides=self.strides)
        self.managed = _dlpack.ManagedVersioned(major=1, minor=0, flags=flags, tensor=tensor)

    def __dlpack__(self, **options):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor_versioned", None)


def check_dlpack():
    x = WHOLE.copy()
    before = sys.getrefcount(x)
    found = [allfold.sum(Tensor(y, versions)) for y in (x, x.T, x[::2], x[:, 1::2]) for versions in (True, False)]
    ok(found == [TOTAL] * 4 + [float(x[::2].sum()) * size] * 2 + [float(x[:, 1::2].sum()) * size] * 2, "DLPack, in any layout", found)
    found = [allfold.sum(Tensor(values(name, 9).reshape(3, 3))) for name in ("int8", "uint16", "int64", "float16", "float64")]
    expected = [math.fsum(values(name, 9).tolist()) * size for name in ("int8", "uint16", "int64", "float16", "float64")]
    ok(np.allclose(found, expected, rtol=1e-15), "of several types", (found, expected))
    out = Versioned(np.empty((4, 6), np.float32), 0)
    ok(allfold.softmax(Tensor(x), axis=None, out=out) is out and abs(out.x.sum() * size - 1) < 1e-6, "softmax into a tensor", out.x)
    row = Versioned(np.empty((2, 24), np.float32)[::2], 0)
    ok(allfold.softmax(x.reshape(1, 24), axis=None, out=row) is row and np.array_equal(row.x.ravel(), out.x.ravel()), "a dimension of length 1 has any stride", row.x)
    refused("out with gaps, by DLPack", (ValueError,), ["gaps"], lambda: allfold.softmax(x, out=Versioned(np.empty((8, 6), np.float32)[::2], 0)))
    kept = x.copy()
    refused("out that is read-only", (ValueError,), ["out", "writable"], lambda: allfold.softmax(WHOLE, axis=None, out=Versioned(x, 1)))
    refused("out that does not say so", (ValueError,), ["out", "does not say"], lambda: allfold.softmax(WHOLE, axis=None, out=Tensor(x, False)))
    ok(np.array_equal(x, kept), "and not written", x)
    made = allfold.softmax(Tensor(x), axis=None)
    ok(isinstance(made, np.ndarray) and np.array_equal(made, out.x), "or into a new array", made)
    refused("complex tensors", (ValueError,), ["complex128"], lambda: allfold.sum(Tensor(np.ones(3, complex))))
    ok(sys.getrefcount(x) == before, "every tensor is given back", (before, sys.getrefcount(x)))


class OnDevice:
    """An address that must not be read."""

    def __init__(self, **changes):
        self.shape = (1000,)
        self.__cuda_array_interface__ = {"shape": self.shape, "typestr": "<f4", "data": (4096, False), "version": 3, **changes}


def check_device_refusals():
    """The CPU backend must not follow an address of a device."""
    with allfold.Context(backend="cpu") as context:
        refused("a copy of a context", (ValueError,), ["open another"], lambda: copy.copy(context))
        refused("device memory for the CPU backend", (ValueError,), ["CPU backend"], lambda: allfold.sum(OnDevice(), comm=context))
        refused("and as out", (ValueError,), ["CPU backend"],
                lambda: allfold.softmax(np.zeros(1000, np.float32), out=OnDevice(), comm=context))
    refused("device memory with gaps", (ValueError,), ["gaps", "contiguous"], lambda: allfold.sum(OnDevice(strides=(8,))))
    refused("with a mask", (ValueError,), ["mask"], lambda: allfold.sum(OnDevice(mask=WHOLE)))
    refused("in another byte order", (NotImplementedError,), ["byte order"], lambda: allfold.sum(OnDevice(typestr=">f4")))
    refused("arrays in two streams", (ValueError,), ["one stream", "8 and 7"], lambda: allfold.dot(OnDevice(stream=8), OnDevice(stream=7)))
    refused("softmax without out", (ValueError,), ["out", "OnDevice"], lambda: allfold.softmax(OnDevice()))


def check_bfloat16():
    try:
        import ml_dtypes
    except ImportError:
        return
    x = WHOLE.astype(ml_dtypes.bfloat16)
    found = allfold.softmax(x, axis=None)
    ok(allfold.sum(x) == TOTAL and found.dtype == x.dtype and found.shape == x.shape, "bfloat16 of ml_dtypes", found)
    ok(allfold.sum(1 + x / 256, dtype=ml_dtypes.bfloat16) == ml_dtypes.bfloat16(float((1 + x / 256).astype(float).sum()) * size),
       "a result in it")


def check_torch(device):
    import torch

    whole = torch.from_numpy(values("float32"))
    x = torch.from_numpy(parts(values("float32"))).to(device)
    found = [allfold.sum(x), allfold.argmax(x), allfold.max(x.bfloat16()), allfold.sum(x.long()), allfold.sum(x > 0)]
    expected = [math.fsum(whole.tolist()), int(whole.argmax()), float(whole.bfloat16().max()), int(whole.long().sum()), int((whole > 0).sum())]
    ok(found == expected, f"PyTorch, {device}", (found, expected))
    ok(allfold.sum(x, dtype=torch.float16) == np.float16(expected[0]), "PyTorch's types as dtype")
    made, sums = allfold.softmax(x / 1000), torch.softmax(whole / 1000, 0)
    ok(made.device == x.device and made.dtype == x.dtype and torch.allclose(made.cpu(), torch.from_numpy(parts(sums.numpy())), rtol=1e-5),
       "PyTorch: softmax", made)
    rows = torch.arange(12.0, device=device).reshape(3, 4)
    found, sums = allfold.stats(rows, 1, cut=1), allfold.sum(rows, 0)
    ok(found.max.tolist() == [3, 7, 11] and found.argmax.tolist() == [3] * 3 and found.count.tolist() == [4 * size] * 3 and sums.device == x.device
       and sums.tolist() == [12 * size, 15 * size, 18 * size, 21 * size], "PyTorch: along axes", (found, sums))
    ok(torch.allclose(allfold.softmax(rows, cut=0), torch.softmax(rows, 1)), "PyTorch: softmax of rows")
    small = (rows > 4).to(torch.uint8)
    found, unsigned = [allfold.sum(small, 1), allfold.sum(rows > 4, 1), allfold.stats(small, 1).count], getattr(torch, "uint64", torch.int64)
    ok([a.dtype for a in found] == [unsigned] * 3 and [a.tolist() for a in found] == [[0, 3, 4] * size] * 2 + [[4] * 3 * size],
       "PyTorch: unsigned results, of bool too", found)
    found = allfold.sum(small, 0, dtype=torch.int16), allfold.max(small, keepdims=True, dtype=torch.uint8)
    ok([a.dtype for a in found] == [torch.int16, torch.uint8] and found[0].tolist() == [size, 2 * size, 2 * size, 2 * size] and found[1].tolist() == [[1]]
       and found[1].device == x.device, "PyTorch: an integer dtype, keepdims", found)
    half = x.half()
    ok(allfold.softmax(half, out=half) is half, "PyTorch: in place")
    refused("PyTorch: a tensor that requires its gradient", (ValueError,), ["detach"], lambda: allfold.sum(torch.zeros(3, requires_grad=True)))
    negative = torch.complex(rows, rows).conj().imag
    refused("PyTorch: the negative bit", (ValueError,), ["resolve_neg"], lambda: allfold.sum(negative))
    refused("PyTorch: and as out", (ValueError,), ["resolve_neg"], lambda: allfold.softmax(rows, out=torch._neg_view(rows.clone())))
    ok(allfold.sum(negative.resolve_neg()) == -66 * size, "PyTorch: negatives themselves")
    strided = torch.arange(60.0, device=device).reshape(5, 12)[:, 2:8]
    found = [allfold.sum(strided, 1, cut=1), allfold.sum(strided, 0), allfold.argmax(strided.t()[::2], 1)]
    with allfold.Context(MPI and MPI.COMM_SELF) as mine:
        found += [allfold.sum(strided.t(), 0, mine), allfold.sum(strided.t(), 1, mine)]
    ok([a.tolist() for a in found] == [[27 * size + 72 * size * i for i in range(5)], [size * (130 + 5 * i) for i in range(6)], [4] * 3 * size,
                                       [27 + 72 * i for i in range(5)], [130 + 5 * i for i in range(6)]]
       and found[0].device == x.device, "PyTorch: slices and transposes", found)
    if device == "cuda":
        refused("PyTorch: gaps", (ValueError,), ["contiguous"], lambda: allfold.sum(torch.zeros(8, device=device)[::2]))
        with torch.cuda.stream(torch.cuda.Stream()):
            late = torch.zeros(1 << 24, device=device)
            for _ in range(100):
                late += 1
            found = allfold.sum(late)
        ok(found == 100 * 2**24 * size, "PyTorch: what a stream still computes", found)
        with allfold.Context(MPI and MPI.COMM_SELF) as mine:
            found = allfold.sum(x, comm=mine)
        ok(found == math.fsum(x.tolist()), "PyTorch: one rank alone works on its current GPU", found)
        ok(allfold.sum(torch.ones(9)) == 9 * size and allfold.softmax(torch.ones(4)).device.type == "cpu", "host memory streams")
    else:
        ok(allfold.sum(torch.arange(8.0)[::2].bfloat16()) == 12 * size, "PyTorch: gaps, on the host")


def ulps(torch, found, due, precision, least):
    """The largest error in units of the last place of a type of that precision, whose smallest normal number is 2^least; inf where one alone is NaN."""
    place = torch.exp2(torch.floor(torch.log2(due.abs().clamp_min(2.0**least))) - precision + 1)
    same = (found == due) | (found.isnan() & due.isnan())
    return float(torch.where(same, 0, (found - due).abs() / place).nan_to_num(torch.inf, torch.inf).max())


def check_large(torch):
    """Columns and rows of so many elements that GPUs have kernels of their own for them, beside PyTorch's in f64."""
    formats = {torch.float32: (24, -126, {"fast": 4.1, "exact": 1.5}), torch.bfloat16: (8, -126, {"fast": 0.52, "exact": 0.52}), torch.float16: (11, -14, {"fast": 0.58, "exact": 0.52})}
    wrong = []
    torch.manual_seed(5)
    alone = MPI and MPI.COMM_SELF
    for shape, axis in (((1601, 4098), 0), ((64, 80002), 0), ((2, 1700, 1538), 1), ((40000, 126), 0), ((4400, 1033), 0), ((3, 1 << 22), 1)):
        for kind, far in itertools.product(formats, (False, True)):
            precision, least, promised = formats[kind]
            x = torch.randn(shape, device="cuda").to(kind)
            lines = x.movedim(axis, -1)  # a view
            lines += 3000 * torch.randint(-1, 2, lines.shape[:-1], device="cuda")[..., None].to(kind) if far else 0
            last = lines if lines.dim() == 2 else lines[-1]
            last[0, 1:], last[1, 3], last[2] = -torch.inf, torch.nan, -torch.inf
            due = x.double()
            for level in ("fast", "exact"):
                found = [f(x, axis=axis, comm=alone, level=level).double() for f in (allfold.softmax, allfold.log_softmax, allfold.logsumexp)]
                sums = torch.logsumexp(due, axis)
                logarithms = torch.log_softmax(due, axis)  # near 0 that is not as precise as what is promised
                errors = [ulps(torch, found[0], torch.softmax(due, axis), precision, least),
                          ulps(torch, found[1], logarithms, precision, -10), ulps(torch, found[2], sums, 24 if level == "fast" else 48, 0)]
                if errors[0] > promised[level] or errors[1] > (2.01 if precision == 24 else 0.52) or errors[2] > 2:
                    wrong.append((shape, kind, far, level, errors))
    ok(not wrong, "PyTorch: softmax, log-softmax and logsumexp of large columns and rows", wrong[:6])


def check_jax():
    import jax

    jax.config.update("jax_default_device", jax.local_devices()[rank % len(jax.local_devices())])  # on a GPU: the context's
    x = jax.numpy.asarray(WHOLE)
    found = allfold.softmax(x.ravel()) if jax.default_backend() == "cpu" else x
    ok(allfold.sum(x) == TOTAL and allfold.sum(x.astype("bfloat16")) == TOTAL and isinstance(found, jax.Array), "JAX", found)
    refused("JAX: as out", (ValueError,), ["JAX", "written"], lambda: allfold.softmax(x, out=x))
    ok(np.array_equal(x, WHOLE), "JAX: arrays are not written", x)
    found = allfold.sum(x + 2.0**20, 1, cut=1)
    ok(found.dtype == np.float64 and found.tolist() == [float(total) * size for total in (np.asarray(x, float) + 2.0**20).sum(1)], "JAX: along axes", found)


def check():
    check_numpy()
    check_out()
    check_dlpack()
    check_device_refusals()
    check_bfloat16()
    for module, function, *arguments in (("torch", check_torch, "cpu"), ("jax", check_jax)):
        try:
            __import__(module)
        except ImportError:
            continue
        function(*arguments)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.set_device(rank % torch.cuda.device_count())
        check_torch("cuda")
        check_large(torch)
