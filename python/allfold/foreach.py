"""Folds of several arrays in one call: foreach.norm(tensors) gives the list of their norms; with total=True one value, of all joined. Arrays
on a GPU are folded by a few kernels together, and all ranks exchange all partials at once.

>>> import allfold
>>> allfold.foreach.norm([[3.0, 4.0], [5.0], []])
[5.0, 5.0, 0.0]
>>> allfold.foreach.sum([[1, 2], [3]], total=True)
6
"""
from __future__ import annotations

import struct
from typing import Any, Iterable, List, Optional, Tuple

import numpy

from . import _functions, _torch
from ._arrays import common_stream, elements
from ._context import Context, context_of
from ._errors import ArgumentError
from ._functions import _as_dtype, _take_options, norm_fold
from ._library import F64, I64, Array, Result, Value
from ._mpi import lib
from ._types import FOLDS

__all__ = ["argmax", "argmin", "logsumexp", "max", "mean", "min", "norm", "prod", "std", "sum", "variance"]

_reduce_many = lib.allfold_reduce_many
_ARRAY = f"PQi{struct.calcsize('P') - 4}x"  # Array, as struct packs it
assert struct.calcsize(_ARRAY) == Array.type.offset + struct.calcsize("P")
_NUMBER = Result.value.offset + Value.number.offset
_RESULT = numpy.dtype({"names": ["kind", "f64", "i64", "u64", "index"], "formats": ["i4", "f8", "i8", "u8", "u8"],
                       "offsets": [Result.value.offset, _NUMBER, _NUMBER, _NUMBER, Result.index.offset], "itemsize": struct.calcsize("P5Q")})


def _several(context: Context, arrays: Iterable[Any]) -> List[Any]:
    """As a list, which is made before the call takes the context: a generator may call functions that need it."""
    try:
        if hasattr(arrays, "ndim"):
            raise ArgumentError("foreach: expected several arrays, such as a list, found one array")
        return list(arrays)
    except Exception as error:
        with context.lock:
            context.fail(error)


def _fill(context: Context, kept: List[Any], ordered: bool, options: Tuple[Any, ...], total: bool) -> Any:
    """The arrays as the library takes them, their number, and what must live as long as it reads."""
    owners: List[Any] = []
    plain = _torch.words(kept)
    if plain is None:
        words: List[Any] = []
        stream: Optional[int] = None
        for x in kept:
            address, size, number, own, owner = elements(x, ordered)
            stream = common_stream(stream, own)
            owners.append(owner)
            words += address, size, number
    else:
        words, stream = plain
    packed = struct.pack(_ARRAY * len(kept), *words)
    _take_options(context.call, *options)
    context.call.stream, context.call.total = stream, bool(total)
    return packed, len(kept), kept, owners


def _values(room: Any, indexed: bool) -> List[Any]:
    found = numpy.frombuffer(room, _RESULT)
    if indexed:
        return found["index"].tolist()
    kinds = found["kind"]
    for kind, name in ((F64, "f64"), (I64, "i64")):
        if (kinds == kind).all():
            return found[name].tolist()
    return [_functions._number(result) for result in room]


def _fold(fold: int, arrays: Iterable[Any], comm: Any, level: Optional[str], options: Tuple[Any, ...], total: bool) -> Any:
    context, indexed = context_of(comm, level), fold in _functions._INDEXED
    kept = _several(context, arrays)
    with context.lock:
        packed, count, *owners = _functions._prepare(context, _fill, kept, indexed, options, total)
        room = (Result * (1 if total else count))()
        call = context.call
        status = _reduce_many(context.handle, fold, packed, count, context.call_ref, room)
        call.total = 0
        if status:
            raise context.error(status)
    del owners
    found = _values(room, indexed) if len(room) else []
    if options[0] is not None:
        found = [_as_dtype(number, options[0]) for number in found]
    return found[0] if total else found


def sum(arrays: Iterable[Any], comm: Any = None, *, total: bool = False, dtype: Any = None, level: Optional[str] = None) -> Any:
    """allfold.sum of each array, in a list; with total=True of all joined, which have one type. Level exact, the default, gives the same bits.

    >>> sum([[0.1] * 10, [1.0]])
    [1.0, 1.0]
    """
    return _fold(FOLDS["sum"], arrays, comm, level, (dtype, "propagate"), total)


def prod(arrays: Iterable[Any], comm: Any = None, *, total: bool = False, dtype: Any = None, level: Optional[str] = None) -> Any:
    """allfold.prod of each array, or of all joined: see sum."""
    return _fold(FOLDS["prod"], arrays, comm, level, (dtype, "propagate"), total)


def mean(arrays: Iterable[Any], comm: Any = None, *, total: bool = False, dtype: Any = None, level: Optional[str] = None) -> Any:
    """allfold.mean of each array, or of all joined: see sum."""
    return _fold(FOLDS["mean"], arrays, comm, level, (dtype, "propagate"), total)


def min(arrays: Iterable[Any], comm: Any = None, *, total: bool = False, dtype: Any = None, nan_policy: str = "propagate",
        level: Optional[str] = None) -> Any:
    """allfold.min of each array, or of all joined: see sum."""
    return _fold(FOLDS["min"], arrays, comm, level, (dtype, nan_policy), total)


def max(arrays: Iterable[Any], comm: Any = None, *, total: bool = False, dtype: Any = None, nan_policy: str = "propagate",
        level: Optional[str] = None) -> Any:
    """allfold.max of each array, or of all joined: see sum.

    >>> max([[3, 7], [5]]), max([[3, 7], [5]], total=True)
    ([7, 5], 7)
    """
    return _fold(FOLDS["max"], arrays, comm, level, (dtype, nan_policy), total)


def argmin(arrays: Iterable[Any], comm: Any = None, *, total: bool = False, nan_policy: str = "propagate", level: Optional[str] = None) -> Any:
    """allfold.argmin of each array, or of all joined: see sum."""
    return _fold(FOLDS["argmin"], arrays, comm, level, (None, nan_policy), total)


def argmax(arrays: Iterable[Any], comm: Any = None, *, total: bool = False, nan_policy: str = "propagate", level: Optional[str] = None) -> Any:
    """allfold.argmax of each array, or of all joined: see sum."""
    return _fold(FOLDS["argmax"], arrays, comm, level, (None, nan_policy), total)


def norm(arrays: Iterable[Any], ord: Optional[float] = None, comm: Any = None, *, total: bool = False, dtype: Any = None,
         level: Optional[str] = None) -> Any:
    """allfold.norm of each array, or of all joined: see sum.

    >>> norm([[3.0], [4.0]], total=True), norm([[3.0, -4.0], [5.0]], 1)
    (5.0, [7.0, 5.0])
    """
    context = context_of(comm, level)
    return _fold(norm_fold(context, ord), arrays, context, None, (dtype, "propagate"), total)


def logsumexp(arrays: Iterable[Any], comm: Any = None, *, total: bool = False, dtype: Any = None, level: Optional[str] = None) -> Any:
    """allfold.logsumexp of each array, or of all joined: see sum."""
    return _fold(FOLDS["logsumexp"], arrays, comm, level, (dtype, "propagate"), total)


def variance(arrays: Iterable[Any], comm: Any = None, *, total: bool = False, ddof: int = 0, dtype: Any = None, nan_policy: str = "propagate",
             level: Optional[str] = None) -> Any:
    """allfold.variance of each array, or of all joined: see sum."""
    return _fold(FOLDS["variance"], arrays, comm, level, (dtype, nan_policy, ddof), total)


def std(arrays: Iterable[Any], comm: Any = None, *, total: bool = False, ddof: int = 0, dtype: Any = None, nan_policy: str = "propagate",
        level: Optional[str] = None) -> Any:
    """allfold.std of each array, or of all joined: see sum."""
    return _fold(FOLDS["std"], arrays, comm, level, (dtype, nan_policy, ddof), total)
