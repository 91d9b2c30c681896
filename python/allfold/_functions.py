"""The folds and softmax, under NumPy's and SciPy's names."""
from __future__ import annotations

import math
import operator
from ctypes import byref
from dataclasses import dataclass, fields
from typing import Any, Callable, Dict, Optional, Tuple, Union

import numpy

from . import _library
from ._arrays import FLOATS, FOLDS, NAME_OF, TYPE_OF, common_stream, elements, empty_like, type_of_name, writable
from ._context import Context, choice, context_of
from ._errors import ArgumentError, IntegerOverflowError
from ._library import F64, I64, NAN_POLICIES, Result, Results
from ._mpi import lib

Scalar = Union[int, float]
Axis = Union[None, int, Tuple[int, ...]]

_ORDERED = {FOLDS[name] for name in ("argmin", "argmax", "stats")}  # their results hold indices
_NORMS = {None: "norm2", 1: "norm1", 2: "norm2", math.inf: "norminf"}
_reduce, _reduce_all, _softmax = lib.allfold_reduce, lib.allfold_reduce_all, lib.allfold_softmax


# ---- arguments and results


def _check_axis(x: Any, axis: Union[int, Tuple[int, ...]]) -> None:
    """Refuses an axis unless it is the whole array."""
    dimensions = len(numpy.shape(x))
    axes = axis if isinstance(axis, tuple) else (operator.index(axis),)
    if sorted(one + dimensions if one < 0 else one for one in axes) != list(range(dimensions)):
        raise ArgumentError(f"axis {axis} of an array of {dimensions} dimensions: expected None, for all elements of all ranks (or "
                            "all axes). Folds along some axes are not possible yet")


def _name_of_dtype(dtype: Any) -> str:
    """NumPy's name of an element type that NumPy, PyTorch, JAX or a string names."""
    if isinstance(dtype, str) and dtype in TYPE_OF:
        return dtype
    text = str(dtype)
    return text[len("torch."):] if text.startswith("torch.") else numpy.dtype(dtype).name


def _result_type(dtype: Any) -> int:
    """What the library rounds results to: none for integers, which are exact."""
    name = _name_of_dtype(dtype)
    number = type_of_name(name)
    if name == "bool":
        raise ArgumentError("dtype bool: expected an integer or floating-point type")
    return number if name in FLOATS else 0


def _as_dtype(number: Scalar, dtype: Any) -> Any:
    """The number as a scalar of NumPy's of that type; if NumPy has no such type, as it is. The same on every rank, also if refused."""
    name = _name_of_dtype(dtype)
    if name not in FLOATS:
        limits = numpy.iinfo(name)
        if isinstance(number, float):
            raise ArgumentError(f"dtype {name}: expected a floating-point type, as the result is {number!r}")
        if not limits.min <= number <= limits.max:
            raise IntegerOverflowError(f"dtype {name}: the result is {number}: expected one from {limits.min} to {limits.max}")
    return number if name == "bfloat16" else numpy.dtype(name).type(number)


def _number(result: Result) -> Scalar:
    value = result.value
    kind = value.kind
    found: Scalar = value.f64 if kind == F64 else value.i64 if kind == I64 else value.u64
    return found


def _index(result: Result) -> int:
    return int(result.index)


def _prepare(context: Context, x: Any, axis: Axis, ordered: bool, dtype: Any, nan_policy: str, stream: Optional[int] = None) -> Any:
    """Fills the context's part and call. Gives what must live until the call is over. After an error all ranks raise it. stream: of
    a second array."""
    if context.handle is None:
        context.check_open()
    part, call = context.part, context.call
    try:
        if axis is not None:
            _check_axis(x, axis)
        part.data, part.count, part.type, call.stream, owner = elements(x, ordered)
        if stream is not None:
            call.stream = common_stream(call.stream, stream)
        call.nan = 0 if nan_policy == "propagate" else choice("nan_policy", NAN_POLICIES, nan_policy)
        call.result_type = 0 if dtype is None else _result_type(dtype)
    except Exception as error:
        context.fail(error)
    return owner


def _fold(fold: int, x: Any, axis: Axis, comm: Any, level: Optional[str], dtype: Any = None, nan_policy: str = "propagate",
          found: Callable[[Result], Any] = _number) -> Any:
    """Every fold with one result. A call takes the time of what is done here: tools/python-overhead measures it."""
    context = context_of(comm, level)
    with context.lock:
        owner = _prepare(context, x, axis, fold in _ORDERED, dtype, nan_policy)
        status = _reduce(context.handle, fold, context.part_ref, context.call_ref, context.result_ref)
        if status:
            raise context.error(status)
        value = found(context.result)
    del owner
    return value if dtype is None else _as_dtype(value, dtype)


# ---- folds


def sum(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Any:
    """The sum of the elements of all ranks, rounded once; 0 of none.

    >>> sum([0.1] * 10)
    1.0
    >>> import numpy
    >>> sum(numpy.array([2**62, 2**62 - 1]))  # exact, or an IntegerOverflowError
    9223372036854775807
    >>> sum(numpy.float32([1, 2]), dtype=numpy.float32).dtype
    dtype('float32')
    """
    return _fold(_SUM, x, axis, comm, level, dtype)


def prod(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Any:
    """The product of the elements of all ranks; 1 of none.

    >>> prod([2, 3, 4])
    24
    """
    return _fold(_PROD, x, axis, comm, level, dtype)


def mean(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Any:
    """The arithmetic mean of the elements of all ranks. Of none it is a NoValueError.

    >>> mean([1, 2, 4, 4])
    2.75
    """
    return _fold(_MEAN, x, axis, comm, level, dtype)


def min(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, nan_policy: str = "propagate",
        level: Optional[str] = None) -> Any:
    """The smallest element of all ranks. Of none it is a NoValueError.

    nan_policy is SciPy's: 'propagate' NaN, 'omit' it, or 'raise' a NoValueError.

    >>> min([3.0, float('nan'), 2.0]), min([3.0, float('nan'), 2.0], nan_policy='omit')
    (nan, 2.0)
    """
    return _fold(_MIN, x, axis, comm, level, dtype, nan_policy)


def max(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, nan_policy: str = "propagate",
        level: Optional[str] = None) -> Any:
    """The largest element of all ranks: see min.

    >>> max([3, 7, 5])
    7
    """
    return _fold(_MAX, x, axis, comm, level, dtype, nan_policy)


def argmin(x: Any, axis: Axis = None, comm: Any = None, *, nan_policy: str = "propagate", level: Optional[str] = None) -> int:
    """The index of the first smallest element in the array of all ranks, in C order, from 0: see min.

    >>> argmin([3, 2, 2])
    1
    """
    index: int = _fold(_ARGMIN, x, axis, comm, level, None, nan_policy, _index)
    return index


def argmax(x: Any, axis: Axis = None, comm: Any = None, *, nan_policy: str = "propagate", level: Optional[str] = None) -> int:
    """The index of the first largest element in the array of all ranks, in C order, from 0: see min.

    >>> argmax([3, 7, 7])
    1
    """
    index: int = _fold(_ARGMAX, x, axis, comm, level, None, nan_policy, _index)
    return index


def norm(x: Any, ord: Optional[float] = None, axis: Axis = None, comm: Any = None, *, dtype: Any = None,
         level: Optional[str] = None) -> Any:
    """The norm of the vector of all elements of all ranks: ord 1, 2 (or None) or inf, as numpy.linalg.norm has it. For an array of
    several dimensions ord must be None: otherwise NumPy means the norm of a matrix.

    >>> norm([3.0, -4.0]), norm([3.0, -4.0], 1), norm([3.0, -4.0], float('inf'))
    (5.0, 7.0, 4.0)
    """
    fold = _NORMS.get(ord)
    context = context_of(comm, level)
    if fold is None or (ord is not None and len(numpy.shape(x)) > 1):
        with context.lock:
            context.fail(ArgumentError(f"norm with ord={ord!r} of {len(numpy.shape(x))} dimensions: expected 1, 2 or inf of one "
                                       "dimension, or None"))
    return _fold(FOLDS[fold], x, axis, context, None, dtype)


def logsumexp(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Any:
    """log(sum(exp(x))) over all ranks, without overflow; -inf of none.

    >>> logsumexp([1000.0, 1000.0])
    1000.6931471805599
    """
    return _fold(_LOGSUMEXP, x, axis, comm, level, dtype)


def dot(x: Any, y: Any, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Any:
    """The sum of x[i] * y[i] over all ranks; 0 of none. x and y have one dimension, one element type, and on each rank one length.

    >>> dot([3, 2, 1], [1, 10, 100])
    123
    >>> dot([1e200, 1.0, 1e200], [1e200, 1.0, -1e200])  # products neither round, overflow nor underflow
    1.0
    """
    context = context_of(comm, level)
    second = context.second
    with context.lock:
        context.check_open()
        try:
            if len(numpy.shape(x)) > 1 or numpy.shape(x) != numpy.shape(y):
                raise ArgumentError(f"dot of shapes {tuple(numpy.shape(x))} and {tuple(numpy.shape(y))}: expected one dimension, of one "
                                    "length. x.ravel() has all elements of x in one dimension")
            second.data, second.count, second.type, stream, other = elements(y, True)
        except Exception as error:
            context.fail(error)
        owner = _prepare(context, x, None, True, dtype, "propagate", stream)
        status = lib.allfold_dot(context.handle, context.part_ref, context.second_ref, context.call_ref, context.result_ref)
        if status:
            raise context.error(status)
        value = _number(context.result)
    del owner, other
    return value if dtype is None else _as_dtype(value, dtype)


@dataclass(frozen=True)
class Stats:
    """What stats gives. A statistic that an array without elements does not have is None."""

    count: int
    nan_count: int
    sum: Scalar
    mean: Optional[float]
    variance: Optional[float]  # of the population, as numpy.var
    min: Optional[Scalar]
    max: Optional[Scalar]
    argmin: Optional[int]
    argmax: Optional[int]
    norm1: Scalar
    norm2: float
    norminf: Scalar


def _stats_of(results: Results) -> Stats:
    found = {result.name.decode(): result for result in results.results[:results.count]}
    numbers: Dict[str, Any] = {field.name: _number(found[field.name]) if field.name in found else None for field in fields(Stats)}
    return Stats(**{**numbers, **{f"arg{name}": found[name].index for name in ("min", "max") if name in found}})


def stats(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, nan_policy: str = "propagate",
          level: Optional[str] = None) -> Stats:
    """Count, sum, mean, variance, extremes with their indices, and norms of the elements of all ranks, in one pass.

    nan_policy as for min. dtype: the floating-point type to which statistics are rounded; counts are not.

    >>> found = stats([1.0, 2.0, 4.0, 5.0])
    >>> found.count, found.mean, found.variance, found.max, found.argmax
    (4, 3.0, 2.5, 5.0, 3)
    """
    context = context_of(comm, level)
    room = (Result * lib.allfold_result_count(_STATS))()
    results = Results(results=room, capacity=len(room))
    with context.lock:
        owner = _prepare(context, x, axis, True, dtype, nan_policy)
        status = _reduce_all(context.handle, _STATS, context.part_ref, context.call_ref, byref(results))
        if status:
            raise context.error(status)
    del owner
    return _stats_of(results)


# ---- softmax


def softmax(x: Any, axis: Axis = -1, out: Any = None, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Any:
    """exp(x - max) / sum(exp(x - max)) over all ranks: this rank's part, of the shape of x.

    axis=None: over all elements; -1 means the same for one dimension. out: where the result goes; x itself is allowed, other
    overlaps are not. Otherwise a new array of the kind of x is made, of type dtype: that of x, or float64 for integers.

    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    return _normalised(x, axis, out, context_of(comm, level), dtype, False)


def log_softmax(x: Any, axis: Axis = -1, out: Any = None, comm: Any = None, *, dtype: Any = None,
                level: Optional[str] = None) -> Any:
    """x - logsumexp(x) over all ranks: see softmax.

    >>> log_softmax([0.0, 0.0])
    array([-0.69314718, -0.69314718])
    """
    return _normalised(x, axis, out, context_of(comm, level), dtype, True)


def _normalised(x: Any, axis: Axis, out: Any, context: Context, dtype: Any, logarithm: bool) -> Any:
    with context.lock:
        context.check_open()
        part, call = context.part, context.call
        convert = None
        try:
            if axis is not None:
                _check_axis(x, axis)
            if not hasattr(x, "shape"):
                x = numpy.asarray(x)
            source = elements(x, True)
            part.data, part.count, part.type, stream, owner = source
            if out is None:
                out, convert = empty_like(x, _output_type(NAME_OF[part.type], dtype))
            elif dtype is not None:
                raise ArgumentError("dtype and out: expected one of them")
            target = writable(out, x)
            _check_overlap(source, target)
            call.stream = common_stream(stream, target.stream)
            call.nan, call.result_type, call.logarithm = 0, 0, logarithm
        except Exception as error:
            context.fail(error)
        status = _softmax(context.handle, context.part_ref, target.address, target.type, context.call_ref)
        call.logarithm = 0
        if status:
            raise context.error(status)
    return out if convert is None else convert(out)


def _output_type(name: str, dtype: Any) -> str:
    if dtype is None:
        return name if name in FLOATS else "float64"
    wanted = _name_of_dtype(dtype)
    if wanted not in FLOATS:
        raise ArgumentError(f"dtype {wanted}: softmax gives {', '.join(FLOATS)}")
    return wanted


def _check_overlap(source: Any, target: Any) -> None:
    """The same memory with the same type is allowed, as is no memory in common."""
    size, out_size = lib.allfold_type_bytes(source[2]), lib.allfold_type_bytes(target.type)
    apart = source[0] + source[1] * size <= target.address or target.address + target.size * out_size <= source[0]
    if not apart and not (source[0] == target.address and source[2] == target.type) and target.size:
        raise ArgumentError("out overlaps x: expected x itself, or memory that has nothing in common with it")


_SUM, _PROD, _MEAN, _MIN, _MAX, _ARGMIN, _ARGMAX, _LOGSUMEXP, _STATS = (FOLDS[name] for name in (
    "sum", "prod", "mean", "min", "max", "argmin", "argmax", "logsumexp", "stats"))
