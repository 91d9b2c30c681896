"""Arrays of the caller: their address, count, type and stream. NumPy and whatever it can convert; PyTorch, CuPy, JAX and others by
DLPack; else by __cuda_array_interface__."""
from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple, Optional, Tuple

import numpy

from . import _dlpack, _files, _library, _torch
from ._errors import ArgumentError, IntegerOverflowError, UnsupportedError
from ._types import BYTES_OF, TYPE_OF, type_of_name

_DTYPE_OF = {name: numpy.dtype(name) for name in TYPE_OF if name != "bfloat16"}
_TYPE_OF_DTYPE = {dtype: TYPE_OF[name] for name, dtype in _DTYPE_OF.items()}
_ndarray = numpy.ndarray

LEGACY_STREAM = _dlpack.LEGACY_STREAM


class Elements(NamedTuple):
    """An array as the library takes it. Device memory has a stream that is never None, so that the CPU backend refuses it."""

    address: int
    size: int
    type: int
    stream: Optional[int]
    owner: Any


def elements(x: Any, ordered: bool) -> Tuple[int, int, int, Optional[int], Any]:
    """What is in Elements, of any array. ordered: the elements must be in C order; else Fortran's will do."""
    if type(x) is _ndarray:
        flags, number = x.flags, _TYPE_OF_DTYPE.get(x.dtype)
        if number is not None and flags.aligned and (flags.c_contiguous or (flags.f_contiguous and not ordered)):
            return x.ctypes.data, x.size, number, None, x
        return _of_numpy(x)
    plain = _torch.elements(x)
    if plain is not None:
        return plain
    if isinstance(x, _files.Array):
        return x.handle(), 0, _library.SOURCE, None, x
    found = _described(x)
    return _of_numpy(x) if found is None else _of_view(*found, ordered)


def type_of(x: Any, number: int) -> int:
    """The type of the elements of x, of which elements() gives that number."""
    return x.type if number == _library.SOURCE else number


def elements_apart(x: Any) -> Tuple[Tuple[int, int, int, Optional[int], Any], Optional[Tuple[int, ...]]]:
    """The same in C order, and None; or elements that lie apart, or in another order, and the strides of the dimensions."""
    if type(x) is _ndarray:
        number, size = _TYPE_OF_DTYPE.get(x.dtype), x.itemsize
        if number is not None and x.flags.aligned and not x.flags.c_contiguous and all(stride % size == 0 for stride in x.strides):
            return Elements(x.ctypes.data, x.size, number, None, x), tuple(stride // size for stride in x.strides)
        return elements(x, True), None
    plain = _torch.elements(x)
    if plain is not None:
        return plain, None
    found = None if isinstance(x, _files.Array) else _described(x)
    if found is None:
        return elements(x, True), None
    view, stream = found
    return _in_place(view, stream), None if is_dense(view.shape, view.strides, True) else view.strides


def _described(x: Any) -> Optional[Tuple[_dlpack.View, Optional[int]]]:
    """What an array of another library than NumPy says of itself, and its stream. None: NumPy may make an array of it."""
    if hasattr(x, "__dlpack__") and not isinstance(x, _ndarray):
        return _view(x)
    if hasattr(x, "__cuda_array_interface__"):
        return _cuda_view(x.__cuda_array_interface__, x)
    return None


def _view(x: Any) -> Tuple[_dlpack.View, Optional[int]]:
    """Of an array that has __dlpack__, and the stream in which its elements are ready."""
    return _torch.view(x) if _torch.is_tensor(x) else (_dlpack.view(x), None)


def _is_cupy(x: Any) -> bool:
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(x, cupy.ndarray)


def _is_jax(x: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array)


def _of_numpy(x: Any) -> Elements:
    """Of everything from which NumPy makes an array. Copies what is not in C order, or not in this machine's byte order."""
    if isinstance(x, numpy.ma.MaskedArray):
        raise ArgumentError("a masked array: expected an array without a mask. x.compressed() has the elements that are not masked")
    x = numpy.asarray(x)
    number = type_of_name(x.dtype.name)
    x = numpy.require(x, x.dtype.newbyteorder("="), ["C", "A"])
    return Elements(x.ctypes.data, x.size, number, None, x)


def on_host(x: Any) -> Any:
    """An array of PyTorch or CuPy in host memory; what is something else as it is: pandas has a get of another kind."""
    return x.detach().cpu() if _torch.is_tensor(x) else x.get() if _is_cupy(x) else x


def reals(name: str, given: Any) -> Any:
    """As an array of NumPy, beside the elements: weights, edges and the like."""
    found = numpy.asarray(given)
    if isinstance(given, numpy.ma.MaskedArray) or found.dtype.kind in "cSUMm":
        raise ArgumentError(f"{name}: expected real numbers without a mask, found {type(given).__name__} of {found.dtype}")
    return found


def is_dense(shape: Tuple[int, ...], strides: Optional[Tuple[int, ...]], ordered: bool) -> bool:
    """Whether the elements lie in C order without gaps; if not ordered, in Fortran order will do."""
    if strides is None or 0 in shape:
        return True
    wide = [(length, stride) for length, stride in zip(shape, strides) if length != 1]
    for axes in (wide[::-1],) if ordered else (wide[::-1], wide):
        expected, dense = 1, True
        for length, stride in axes:
            dense = dense and stride == expected
            expected *= length
        if dense:
            return True
    return False


def _of_view(view: _dlpack.View, stream: Optional[int], ordered: bool) -> Elements:
    if is_dense(view.shape, view.strides, ordered):
        return _in_place(view, stream)
    number = type_of_name(view.name)
    if view.on_device:
        raise ArgumentError(f"an array in device memory with gaps or out of order (shape {view.shape}, strides {view.strides}): "
                            "expected a contiguous one, as .contiguous() of PyTorch and ascontiguousarray() of CuPy make; or for a fold keepdims=True, "
                            "which takes it by its strides")
    packed = _packed(view, BYTES_OF[number])
    return Elements(packed.ctypes.data, packed.size, number, None, packed)


def _in_place(view: _dlpack.View, stream: Optional[int]) -> Elements:
    if view.on_device and stream is None:
        stream = LEGACY_STREAM
    return Elements(view.address, math.prod(view.shape), type_of_name(view.name), stream if view.on_device else None, view.owner)


class _Strided:
    """Memory of the host as NumPy's unsigned integers of that size, whatever they stand for."""

    def __init__(self, view: _dlpack.View, size: int) -> None:
        assert view.strides is not None
        self.__array_interface__ = {"version": 3, "shape": view.shape, "typestr": f"<u{size}", "data": (view.address, True),
                                    "strides": tuple(stride * size for stride in view.strides)}


def _packed(view: _dlpack.View, size: int) -> Any:
    return numpy.asarray(_Strided(view, size)).copy(order="C")


def _cuda_view(interface: Any, owner: Any) -> Tuple[_dlpack.View, Optional[int]]:
    """Of __cuda_array_interface__, version 2 or 3, and the stream in which the elements are ready."""
    dtype, shape, (address, read_only) = numpy.dtype(interface["typestr"]), tuple(interface["shape"]), interface["data"]
    if interface.get("mask") is not None:
        raise ArgumentError("an array with a mask: expected one without")
    if not dtype.isnative:
        raise UnsupportedError(f"device memory of {interface['typestr']}: expected this machine's byte order")
    strides = interface.get("strides")
    if strides is not None:
        strides = tuple(stride // dtype.itemsize for stride in strides)
    return _dlpack.View(address or 0, dtype.name, shape, strides, True, not read_only, owner), interface.get("stream")


def common_stream(first: Optional[int], second: Optional[int]) -> Optional[int]:
    """The stream in which two arrays are ready. A call has one."""
    if first is None or second is None or first == second:
        return second if first is None else first
    raise ArgumentError(f"expected two arrays that are ready in one stream, found {first} and {second}. DLPack's are ready in "
                        f"{LEGACY_STREAM}, the legacy default stream")


# ---- where softmax writes


def writable(out: Any, x: Any) -> Elements:
    """out as the library takes it: of the shape of x, in C order, without gaps, of a floating-point type."""
    plain = None if type(out) is _ndarray else _torch.elements(out)
    if plain is not None:
        found, shape = Elements._make(plain), tuple(out.shape)
    elif isinstance(out, _ndarray):
        flags = out.flags
        if not (flags.c_contiguous and flags.aligned and flags.writeable and out.dtype.isnative) or \
                isinstance(out, numpy.ma.MaskedArray):
            raise ArgumentError("out: expected a writable, aligned array in C order without gaps or a mask, in this machine's byte order")
        found, shape = Elements(out.ctypes.data, out.size, _TYPE_OF_DTYPE.get(out.dtype) or type_of_name(out.dtype.name), None, out), out.shape
    else:
        if _is_jax(out):
            raise ArgumentError("out: found an array of JAX, which cannot be written: expected one of NumPy, PyTorch or CuPy, or None")
        if hasattr(out, "__dlpack__"):
            view, own = _view(out)
        elif hasattr(out, "__cuda_array_interface__"):
            view, own = _cuda_view(out.__cuda_array_interface__, out)
        else:
            raise ArgumentError(f"out: expected an array, found {type(out).__name__}")
        if view.writable is False or not is_dense(view.shape, view.strides, True):
            raise ArgumentError("out: expected a writable array in C order without gaps")
        if view.writable is None and not _torch.is_tensor(out) and not _is_cupy(out):
            raise ArgumentError(f"out: found an array ({type(out).__name__}) that does not say whether it can be written: expected one of "
                                "NumPy, PyTorch or CuPy, or one with DLPack 1.0")
        found, shape = _of_view(view, own, True), view.shape
    if out is not x and shape != tuple(numpy.shape(x)):
        raise ArgumentError(f"out: expected the shape of x, {tuple(numpy.shape(x))}, found {shape}")
    return found


def needs_out(x: Any) -> bool:
    """Whether x lies in device memory of which allfold cannot make more: of other libraries than PyTorch and CuPy."""
    if _torch.is_tensor(x) or _is_cupy(x):
        return False
    if hasattr(x, "__dlpack_device__"):
        return int(x.__dlpack_device__()[0]) in _dlpack.ON_DEVICE
    return hasattr(x, "__cuda_array_interface__")


def empty(x: Any, name: str, shape: Tuple[int, ...]) -> Any:
    """A new array of that type and shape: of PyTorch and CuPy, in the place of x, if x is; else of NumPy."""
    dtype = _DTYPE_OF.get(name) if type(x) is _ndarray else None
    if dtype is not None:
        return numpy.empty(shape, dtype)
    if _torch.is_tensor(x):
        return _torch.empty(x, name, shape)
    if _is_cupy(x):
        with x.device:
            return sys.modules["cupy"].empty(shape, name)
    return numpy.empty(shape, numpy.dtype(_extended(name)))


def as_integers(made: Any, found: str, dtype: Optional[str]) -> Any:
    """What empty() has made of int64 and now holds integers of the type `found` (int64 or uint64), as an array of the type dtype. None: of
    the type found, or of int64 if that is uint64, which PyTorch lacks before 2.3."""
    if dtype is None:
        dtype = found if not _torch.is_tensor(made) or _torch.has_type(found) else "int64"
    kind = _torch.dtype_of(dtype) if _torch.is_tensor(made) else dtype
    if dtype == found:
        return made.view(kind)
    limits = numpy.iinfo(dtype)
    least, most = 0 if found == "uint64" else max(limits.min, -2**63), min(limits.max, 2**63 - 1)
    wrong = made[(made < least) | (made > most)]
    if len(wrong):
        raise IntegerOverflowError(f"dtype {dtype}: a result is {int(wrong[0]) % 2**64 if found == 'uint64' else int(wrong[0])}: expected "
                                   f"all from {limits.min} to {limits.max}")
    return made.to(kind) if _torch.is_tensor(made) else made.astype(kind)


def of_kind(made: Any, x: Any) -> Any:
    """What empty() has made of the type of x, as an array of JAX if x is one, whose arrays cannot be written. JAX would cut other types
    to its own widths."""
    return sys.modules["jax"].numpy.asarray(made) if _is_jax(x) and made.dtype == x.dtype else made


def address_of(made: Any) -> int:
    """Of what empty() has made."""
    if isinstance(made, _ndarray):
        return made.ctypes.data
    return made.data_ptr() if _torch.is_tensor(made) else _dlpack.view(made).address


def _extended(name: str) -> Any:
    """What numpy.dtype takes for that type: bfloat16 is of the package ml_dtypes."""
    if name != "bfloat16":
        return name
    try:
        import ml_dtypes
    except ImportError:
        raise ArgumentError("arrays of bfloat16: NumPy has them only with the package ml_dtypes, which is not there") from None
    return ml_dtypes.bfloat16
