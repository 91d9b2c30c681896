"""Tensors of DLPack: https://dmlc.github.io/dlpack/latest. A capsule is read while its owner lives, and never taken over: its own
destructor then frees it."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from typing import Any, NamedTuple, Optional, Tuple

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
ON_HOST, ON_DEVICE = (CPU, CUDA_HOST), (CUDA, CUDA_MANAGED)
LEGACY_STREAM = 1  # the legacy default stream, in DLPack and as a cudaStream_t
READ_ONLY = 1  # in flags

TYPES = {(0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64", (1, 8): "uint8", (1, 16): "uint16",
         (1, 32): "uint32", (1, 64): "uint64", (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
         (4, 16): "bfloat16", (6, 8): "bool"}  # by code and bits
CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", c_void_p), ("deleter", c_void_p)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
                ("tensor", Tensor)]


class View(NamedTuple):
    """What a tensor says of itself."""

    address: int
    name: str  # NumPy's, of its type
    shape: Tuple[int, ...]
    strides: Optional[Tuple[int, ...]]  # in elements; None: C order
    on_device: bool
    writable: Optional[bool]  # None: the exporter does not say
    owner: Any  # keeps the memory while it lives


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [py_object, c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c_int, [py_object, c_char_p]


def _export(x: Any, on_device: bool) -> Any:
    """The capsule. The elements of a device are ready in the legacy default stream, in which the call then begins."""
    stream = {"stream": LEGACY_STREAM} if on_device else {}
    try:
        return x.__dlpack__(max_version=(1, 0), **stream)
    except TypeError:  # older than max_version
        return x.__dlpack__(**stream)


def view(x: Any) -> View:
    """x has __dlpack__ and __dlpack_device__. What its exporter raises passes through."""
    device = int(x.__dlpack_device__()[0])
    if device not in ON_HOST + ON_DEVICE:
        raise ValueError(f"DLPack device type {device}: expected host memory (1) or CUDA (2)")
    capsule = _export(x, device in ON_DEVICE)
    writable = None  # older capsules do not say
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = ManagedVersioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise ValueError(f"DLPack version {versioned.major}.{versioned.minor}: expected 1")
        tensor, writable = versioned.tensor, not versioned.flags & READ_ONLY
    else:
        tensor = Managed.from_address(_pointer(capsule, b"dltensor")).tensor
    name = TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if name is None:
        raise ValueError(f"element type {CODES.get(tensor.code, f'DLPack code {tensor.code}')}{tensor.bits}"
                         f"{f'x{tensor.lanes}' if tensor.lanes != 1 else ''}: allfold has no such type")
    dimensions = range(tensor.ndim)
    strides = tuple(tensor.strides[i] for i in dimensions) if tensor.strides else None
    return View((tensor.data or 0) + tensor.byte_offset, name, tuple(tensor.shape[i] for i in dimensions), strides,
                device in ON_DEVICE, writable, (capsule, x))
