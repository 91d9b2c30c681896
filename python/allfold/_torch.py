"""Tensors of PyTorch. A plain one, of which nearly all are, says itself what it is, in a tenth of the time of an export by DLPack."""
from __future__ import annotations

import operator
import sys
from typing import Any, Dict, List, Optional, Tuple

from . import _dlpack
from ._errors import ArgumentError
from ._types import TYPE_OF

LEGACY_STREAM = _dlpack.LEGACY_STREAM


class _Module:
    """What is asked of PyTorch, looked up once."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.tensor, self.strided, self.cuda = torch, torch.Tensor, torch.strided, torch.cuda
        self.dtypes = {name: getattr(torch, name) for name in TYPE_OF if hasattr(torch, name)}
        self.numbers = {dtype: TYPE_OF[name] for name, dtype in self.dtypes.items()}
        # the same as current_stream(device).cuda_stream, without the object: ten microseconds less
        self.stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (lambda device: torch.cuda.current_stream(device).cuda_stream)

    def stream_of(self, x: Any) -> Optional[int]:
        """In which its elements are ready; None: host memory."""
        return self.stream(x.get_device()) or LEGACY_STREAM if x.is_cuda else None


_found: Optional[_Module] = None


def module() -> Optional[_Module]:
    """None: the program has not imported PyTorch."""
    global _found
    torch = sys.modules.get("torch")  # None, too, where a program forbids it; of another thread's import not all may be there yet
    if _found is None and hasattr(torch, "Tensor") and hasattr(torch, "strided") and hasattr(torch, "cuda"):
        _found = _Module(torch)
    return _found


def is_tensor(x: Any) -> bool:
    known = _found or module()
    return known is not None and isinstance(x, known.tensor)


def is_plain(x: Any) -> bool:
    """Whether x is of the type Tensor itself."""
    known = _found or module()
    return known is not None and type(x) is known.tensor


def dtypes_for(x: Any) -> Optional[Dict[str, Any]]:
    """PyTorch's types by NumPy's names, for new_empty of a plain tensor. None: x is something else."""
    known = _found or module()
    return known.dtypes if known is not None and type(x) is known.tensor else None


def elements(x: Any) -> Optional[Tuple[int, int, int, Optional[int], Any]]:
    """Address, number, type and stream of the elements of a plain tensor in C order, and the tensor. None: x is something else, view() says what."""
    known = _found or module()
    if known is None or type(x) is not known.tensor or x.layout is not known.strided or x.requires_grad or x.is_neg() or not x.is_contiguous():
        return None
    number, stream = known.numbers.get(x.dtype), known.stream_of(x)
    if number is None or (stream is None and x.device.type != "cpu"):
        return None
    return x.data_ptr(), x.numel(), number, stream, x


def view(x: Any) -> Tuple[_dlpack.View, Optional[int]]:
    """What any tensor is, and the stream in which its elements are ready. PyTorch exports tensors of its current device only, the memory of a tensor whose
    elements are the negatives of what is there, and before 2.1 no bool."""
    known = module()
    assert known is not None
    if x.is_neg():
        raise ArgumentError("a tensor with PyTorch's negative bit, which DLPack does not carry: expected one without. x.resolve_neg() makes one")
    stream = known.stream_of(x)
    if type(x) is known.tensor and x.layout is known.strided and x.device.type in ("cpu", "cuda") and not (x.requires_grad or x.is_conj()):
        return _dlpack.View(x.data_ptr(), str(x.dtype).replace("torch.", ""), tuple(x.shape), x.stride(), x.is_cuda, None, x), stream
    with known.cuda.device_of(x):
        if x.dtype == known.torch.bool:
            return _dlpack.view(x.view(known.torch.uint8))._replace(name="bool"), stream
        return _dlpack.view(x), stream


def dtype_of(name: str) -> Any:
    known = module()
    assert known is not None
    try:
        return known.dtypes[name]
    except KeyError:
        raise ArgumentError(f"dtype {name}: PyTorch {known.torch.__version__} has no such type. Pass x.numpy(), or another dtype") from None


def has_type(name: str) -> bool:
    known = module()
    return known is not None and name in known.dtypes


def empty(x: Any, name: str, shape: Tuple[int, ...]) -> Any:
    """A new tensor of that type and shape, where x is."""
    known = _found or module()
    assert known is not None
    dtype = known.dtypes.get(name) or dtype_of(name)
    return x.new_empty(shape, dtype=dtype) if type(x) is known.tensor else known.torch.empty(shape, dtype=dtype, device=x.device)


_dtype, _requires_grad = operator.attrgetter("dtype"), operator.attrgetter("requires_grad")


def words(tensors: List[Any]) -> Optional[Tuple[List[Any], Optional[int]]]:
    """Address, number and type of the elements of each of several plain tensors on one device, one behind the other, and their stream: what is asked of
    all at once costs no step of the interpreter. None: they are something else."""
    known = module()
    if known is None or set(map(type, tensors)) != {known.tensor}:
        return None
    kind, first = known.tensor, tensors[0]
    if not all(map(kind.is_contiguous, tensors)) or any(map(kind.is_neg, tensors)) or any(map(_requires_grad, tensors)) \
            or first.device.type not in ("cpu", "cuda") or len(set(map(kind.get_device, tensors))) > 1:
        return None
    found: List[Any] = [0] * (3 * len(tensors))
    found[0::3], found[1::3], found[2::3] = map(kind.data_ptr, tensors), map(kind.numel, tensors), map(known.numbers.get, map(_dtype, tensors))
    if None in found[2::3]:
        return None
    return found, known.stream_of(first)
