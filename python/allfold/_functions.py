"""The folds and softmax, under NumPy's and SciPy's names."""
from __future__ import annotations

import math
import numbers
from ctypes import byref
from dataclasses import dataclass, fields
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy

from . import _axes
from ._arrays import common_stream, elements, empty, needs_out, of_kind, type_of, writable
from ._context import Context, choice, context_of, in_range
from ._errors import ArgumentError, IntegerOverflowError
from ._files import Array
from ._library import F64, I64, NAN_POLICIES, Call, Result, Results, Value
from ._mpi import lib
from ._types import BYTES_OF, FLOATS, FOLDS, NAME_OF, TYPE_OF, type_of_name

Scalar = Union[int, float]
Axis = Union[None, int, Tuple[int, ...]]

_Rows = Tuple[Axis, int, bool, bool]  # axis, cut, keepdims, own
_INDEXED = {FOLDS[name] for name in ("argmin", "argmax")}  # whose results are indices
_NORMS: Dict[Any, str] = {None: "norm2", 1: "norm1", 2: "norm2", math.inf: "norminf"}
_reduce, _reduce_all, _softmax, _softmax_axis, _softmax_nd = (
    getattr(lib, f"allfold_{name}") for name in ("reduce", "reduce_all", "softmax", "softmax_axis", "softmax_nd"))


# ---- arguments and results


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


def number_of(value: Value) -> Scalar:
    kind = value.kind
    found: Scalar = value.f64 if kind == F64 else value.i64 if kind == I64 else value.u64
    return found


def _number(result: Result) -> Scalar:
    return number_of(result.value)


def _take_options(call: Call, dtype: Any, nan_policy: str, ddof: int = 0) -> None:
    call.nan = 0 if nan_policy == "propagate" else choice("nan_policy", NAN_POLICIES, nan_policy)
    call.result_type = 0 if dtype is None else _result_type(dtype)
    call.ddof = in_range("ddof", ddof, 2**64 - 1) if ddof != 0 else 0


def _check_float(call: Call, dtype: Any) -> None:
    """Of results of several types. After _take_options."""
    if dtype is not None and call.result_type == 0:
        raise ArgumentError(f"dtype {dtype}: expected a floating-point type, or None, with which integers stay integers")


def _fill(context: Context, x: Any, ordered: bool, options: Tuple[Any, ...]) -> Any:
    """The context's part and call. Gives what must live as long as the library reads. options: of _take_options."""
    part, call = context.part, context.call
    part.data, part.count, part.type, call.stream, owner = elements(x, ordered)
    _take_options(call, *options)
    return owner


def _fill_two(context: Context, x: Any, y: Any, options: Tuple[Any, ...]) -> Any:
    """The same of the operands of a dot product."""
    second = context.second
    if numpy.shape(x) != numpy.shape(y) or (len(numpy.shape(x)) > 1 and not isinstance(x, Array)):
        raise ArgumentError(f"dot of shapes {tuple(numpy.shape(x))} and {tuple(numpy.shape(y))}: expected one dimension, of one "
                            "length. x.ravel() has all elements of x in one dimension")
    second.data, second.count, second.type, stream, other = elements(y, True)
    owner = _fill(context, x, True, options)
    if stream is not None:
        context.call.stream = common_stream(context.call.stream, stream)
    return owner, other


def _prepare(context: Context, fill: Callable[..., Any], *arguments: Any) -> Any:
    """fill(context, ...). After an error all ranks raise it."""
    if context.handle is None:
        context.check_open()
    try:
        return fill(context, *arguments)
    except Exception as error:
        context.fail(error)


def _rows_of(context: Context, x: Any, axis: Axis, cut: int, keepdims: bool = False, own: bool = False) -> Optional[_axes.Rows]:
    """None: this is of all elements, in the order of the ranks, and gives no arrays of results."""
    try:
        if axis is None and not (cut or keepdims or own):
            return None
        rows = _axes.rows_of(x, axis, cut, context.ranks)
        if not rows.are_whole() or keepdims or own:
            return rows
        if rows.short is None and rows.cut >= 0:
            raise ArgumentError(f"cut {cut} with all axes: expected the first dimension, as the parts of the ranks follow one another in a fold to "
                                f"one number, or keepdims; found shape {rows.shape}")
        return None
    except Exception as error:
        with context.lock:
            context.fail(error)


def _fold_axes(fold: int, x: Any, context: Context, rows: Tuple[_axes.Rows, bool, bool], options: Tuple[Any, ...]) -> _axes.Results:
    """rows: and keepdims, own"""
    def take(call: Call) -> Optional[str]:
        _take_options(call, *options)
        if fold == _STATS:
            _check_float(call, options[0])
        return None if options[0] is None or call.result_type else _name_of_dtype(options[0])

    return _axes.fold(context, fold, x, *rows, take)


def _fold(fold: int, x: Any, comm: Any, level: Optional[str], rows: _Rows, options: Tuple[Any, ...]) -> Any:
    """Every fold with one result. A call takes the time of what is done here: tools/python-overhead measures it."""
    context = context_of(comm, level)
    along = _rows_of(context, x, *rows)
    if along is not None:
        results = _fold_axes(fold, x, context, (along, *rows[2:]), options)
        return results.indices["value"] if fold in _INDEXED else results.values["value"]
    with context.lock:
        owner = _prepare(context, _fill, x, fold in _INDEXED, options)
        status = _reduce(context.handle, fold, context.part_ref, context.call_ref, context.result_ref)
        if status:
            raise context.error(status)
        value = context.result.index if fold in _INDEXED else _number(context.result)
    del owner
    return value if options[0] is None else _as_dtype(value, options[0])


def _weighted(fold: int, x: Any, comm: Any, level: Optional[str], rows: _Rows, options: Tuple[Any, ...], weights: Any) -> Any:
    """A fold with weights: f64, or dtype, of any elements."""
    if weights is None:
        return _fold(fold, x, comm, level, rows, options)
    context, (axis, cut, keepdims, own) = context_of(comm, level), rows
    try:
        along = _axes.rows_of(x, axis, cut, context.ranks)
    except Exception as error:
        with context.lock:
            context.fail(error)

    def take(call: Call) -> Optional[str]:
        _take_options(call, *options)
        _check_float(call, options[0])
        call.result_type = call.result_type or TYPE_OF["float64"]
        return None

    values = _axes.fold(context, fold, x, along, keepdims, own, take, weights).values["value"]
    if not along.are_whole() or keepdims or own:
        return values
    return values.item() if options[0] is None else _as_dtype(values.item(), options[0])


# ---- folds


def sum(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, keepdims: bool = False, cut: int = 0, own: bool = False,
        level: Optional[str] = None, weights: Any = None) -> Any:
    """The sum of the elements of all ranks, rounded once; 0 of none. With weights that of weight times element.

    >>> sum([0.1] * 10)
    1.0
    >>> import numpy
    >>> sum(numpy.array([2**62, 2**62 - 1]))  # exact, or an IntegerOverflowError
    9223372036854775807
    >>> sum(numpy.float32([1, 2]), dtype=numpy.float32).dtype
    dtype('float32')
    """
    return _weighted(_SUM, x, comm, level, (axis, cut, keepdims, own), (dtype, "propagate"), weights)


def prod(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, keepdims: bool = False, cut: int = 0, own: bool = False,
         level: Optional[str] = None) -> Any:
    """The product of the elements of all ranks; 1 of none.

    >>> prod([2, 3, 4])
    24
    """
    return _fold(_PROD, x, comm, level, (axis, cut, keepdims, own), (dtype, "propagate"))


def mean(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, keepdims: bool = False, cut: int = 0, own: bool = False,
         level: Optional[str] = None, weights: Any = None) -> Any:
    """The arithmetic mean of the elements of all ranks. Of none it is a NoValueError.

    weights: one for each element, of a shape that NumPy broadcasts to that of x; finite and not negative. The mean is sum(weights * x) /
    sum(weights), rounded once; NaN if all weights are 0.

    >>> mean([1, 2, 4, 4])
    2.75
    >>> mean([[1.0, 2.0], [3.0, 8.0]], weights=[[3], [1]])
    2.5
    """
    return _weighted(_MEAN, x, comm, level, (axis, cut, keepdims, own), (dtype, "propagate"), weights)


def min(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, keepdims: bool = False, nan_policy: str = "propagate",
        cut: int = 0, own: bool = False, level: Optional[str] = None) -> Any:
    """The smallest element of all ranks. Of none it is a NoValueError.

    nan_policy is SciPy's: 'propagate' NaN, 'omit' it, or 'raise' a NoValueError.

    >>> min([3.0, float('nan'), 2.0]), min([3.0, float('nan'), 2.0], nan_policy='omit')
    (nan, 2.0)
    """
    return _fold(_MIN, x, comm, level, (axis, cut, keepdims, own), (dtype, nan_policy))


def max(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, keepdims: bool = False, nan_policy: str = "propagate",
        cut: int = 0, own: bool = False, level: Optional[str] = None) -> Any:
    """The largest element of all ranks: see min.

    >>> max([3, 7, 5])
    7
    """
    return _fold(_MAX, x, comm, level, (axis, cut, keepdims, own), (dtype, nan_policy))


def argmin(x: Any, axis: Axis = None, comm: Any = None, *, keepdims: bool = False, nan_policy: str = "propagate", cut: int = 0,
           own: bool = False, level: Optional[str] = None) -> Any:
    """The index of the first smallest element in the array of all ranks, in C order, from 0: see min.

    >>> argmin([3, 2, 2])
    1
    """
    return _fold(_ARGMIN, x, comm, level, (axis, cut, keepdims, own), (None, nan_policy))


def argmax(x: Any, axis: Axis = None, comm: Any = None, *, keepdims: bool = False, nan_policy: str = "propagate", cut: int = 0,
           own: bool = False, level: Optional[str] = None) -> Any:
    """The index of the first largest element in the array of all ranks, in C order, from 0: see min.

    >>> argmax([3, 7, 7])
    1
    """
    return _fold(_ARGMAX, x, comm, level, (axis, cut, keepdims, own), (None, nan_policy))


def norm(x: Any, ord: Optional[float] = None, axis: Axis = None, comm: Any = None, *, dtype: Any = None, keepdims: bool = False,
         cut: int = 0, own: bool = False, level: Optional[str] = None) -> Any:
    """The norm of the vector of all elements of all ranks, or of those along axes: ord 1, 2 (or None) or inf, as
    numpy.linalg.vector_norm has it. Never that of a matrix, which numpy.linalg.norm means by an ord and two dimensions.

    >>> norm([3.0, -4.0]), norm([3.0, -4.0], 1), norm([3.0, -4.0], float('inf'))
    (5.0, 7.0, 4.0)
    """
    context = context_of(comm, level)
    return _fold(norm_fold(context, ord), x, context, None, (axis, cut, keepdims, own), (dtype, "propagate"))


def norm_fold(context: Context, ord: Any) -> int:
    """The fold of that name. After an error all ranks raise it."""
    try:
        return _norm_of(ord)
    except Exception as error:
        with context.lock:
            context.fail(error)


def _norm_of(ord: Any) -> int:
    name = _NORMS.get(ord) if ord is None or isinstance(ord, numbers.Real) else None
    if name is None:
        raise ArgumentError(f"norm with ord={ord!r}: expected 1, 2, inf, or None for 2")
    return FOLDS[name]


def variance(x: Any, axis: Axis = None, comm: Any = None, *, ddof: int = 0, dtype: Any = None, keepdims: bool = False,
             nan_policy: str = "propagate", cut: int = 0, own: bool = False, level: Optional[str] = None, weights: Any = None) -> Any:
    """The variance of the elements of all ranks. Of none it is a NoValueError.

    ddof as in numpy.var: the sum of squared deviations is divided by their number - ddof. nan_policy as for min. weights as for mean: the
    variance is sum(weights * (x - mean)**2) / sum(weights), without ddof and nan_policy.

    >>> variance([1.0, 2.0, 4.0, 5.0]), variance([1, 3], ddof=1)
    (2.5, 2.0)
    """
    return _weighted(_VARIANCE, x, comm, level, (axis, cut, keepdims, own), (dtype, nan_policy, ddof), weights)


def std(x: Any, axis: Axis = None, comm: Any = None, *, ddof: int = 0, dtype: Any = None, keepdims: bool = False,
        nan_policy: str = "propagate", cut: int = 0, own: bool = False, level: Optional[str] = None, weights: Any = None) -> Any:
    """The standard deviation of the elements of all ranks, the root of the variance, rounded once: see variance.

    >>> std([1.0, 1.0, 5.0, 5.0])
    2.0
    """
    return _weighted(_STD, x, comm, level, (axis, cut, keepdims, own), (dtype, nan_policy, ddof), weights)


def logsumexp(x: Any, axis: Axis = None, comm: Any = None, *, dtype: Any = None, keepdims: bool = False, cut: int = 0, own: bool = False,
              level: Optional[str] = None) -> Any:
    """log(sum(exp(x))) over all ranks, without overflow; -inf of none.

    >>> logsumexp([1000.0, 1000.0])
    1000.6931471805599
    """
    return _fold(_LOGSUMEXP, x, comm, level, (axis, cut, keepdims, own), (dtype, "propagate"))


def dot(x: Any, y: Any, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Any:
    """The sum of x[i] * y[i] over all ranks; 0 of none. x and y have one dimension, one element type, and on each rank one length.

    >>> dot([3, 2, 1], [1, 10, 100])
    123
    >>> dot([1e200, 1.0, 1e200], [1e200, 1.0, -1e200])  # products neither round, overflow nor underflow
    1.0
    """
    context = context_of(comm, level)
    with context.lock:
        owner = _prepare(context, _fill_two, x, y, (dtype, "propagate"))
        status = lib.allfold_dot(context.handle, context.part_ref, context.second_ref, context.call_ref, context.result_ref)
        if status:
            raise context.error(status)
        value = _number(context.result)
    del owner
    return value if dtype is None else _as_dtype(value, dtype)


@dataclass(frozen=True)
class Stats:
    """What stats gives. Numbers: a statistic that an array without elements does not have is None. Arrays, along axes and with keepdims or
    own: there it is NaN, or -1 as an index."""

    count: Any
    nan_count: Any
    sum: Any
    mean: Any
    variance: Any
    min: Any
    max: Any
    argmin: Any
    argmax: Any
    norm1: Any
    norm2: Any
    norminf: Any


def _stats_of(values: Dict[str, Any], indices: Dict[str, Any]) -> Stats:
    named = {**values, **{f"arg{name}": index for name, index in indices.items()}}
    return Stats(**{field.name: named.get(field.name) for field in fields(Stats)})


def stats(x: Any, axis: Axis = None, comm: Any = None, *, ddof: int = 0, dtype: Any = None, keepdims: bool = False,
          nan_policy: str = "propagate", cut: int = 0, own: bool = False, level: Optional[str] = None) -> Stats:
    """Count, sum, mean, variance, extremes with their indices, and norms of the elements of all ranks, in one pass.

    nan_policy as for min. ddof as in numpy.var: the variance is divided by count - ddof. dtype: the floating-point type to which
    statistics are rounded; counts and indices are not.

    >>> found = stats([1.0, 2.0, 4.0, 5.0])
    >>> found.count, found.mean, found.variance, found.max, found.argmax
    (4, 3.0, 2.5, 5.0, 3)
    """
    context = context_of(comm, level)
    options = dtype, nan_policy, ddof
    rows = _rows_of(context, x, axis, cut, keepdims, own)
    if rows is not None:
        along = _fold_axes(_STATS, x, context, (rows, keepdims, own), options)
        return _stats_of(along.values, along.indices)
    room = (Result * lib.allfold_result_count(_STATS))()
    results = Results(results=room, capacity=len(room))
    with context.lock:
        owner = _prepare(context, _fill_stats, x, options)
        status = _reduce_all(context.handle, _STATS, context.part_ref, context.call_ref, byref(results))
        if status:
            raise context.error(status)
    del owner
    return _stats_found(room[:results.count], dtype)


def _fill_stats(context: Context, x: Any, options: Tuple[Any, ...]) -> Any:
    owner = _fill(context, x, True, options)
    _check_float(context.call, options[0])
    return owner


def _stats_found(results: List[Result], dtype: Any) -> Stats:
    found = {result.name.decode(): result for result in results}
    values = {name: _number(result) for name, result in found.items()}
    return _stats_of({name: value if dtype is None or isinstance(value, int) else _as_dtype(value, dtype) for name, value in values.items()},
                     {name: found[name].index for name in ("min", "max") if name in found})


# ---- softmax


def softmax(x: Any, axis: Axis = -1, out: Any = None, comm: Any = None, *, dtype: Any = None, cut: int = 0,
            level: Optional[str] = None) -> Any:
    """exp(x - max) / sum(exp(x - max)) along axes, over all ranks: this rank's part, of the shape of x.

    axis=None: over all elements. out: where the result goes; x itself is allowed, other overlaps are not. Otherwise a new array of
    the kind of x is made, of type dtype: that of x, or float64 for integers.

    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    return _normalised(x, out, context_of(comm, level), (axis, cut), (dtype, False))


def log_softmax(x: Any, axis: Axis = -1, out: Any = None, comm: Any = None, *, dtype: Any = None, cut: int = 0,
                level: Optional[str] = None) -> Any:
    """x - logsumexp(x) along axes, over all ranks: see softmax.

    >>> log_softmax([0.0, 0.0])
    array([-0.69314718, -0.69314718])
    """
    return _normalised(x, out, context_of(comm, level), (axis, cut), (dtype, True))


def _normalised(x: Any, out: Any, context: Context, where: Tuple[Axis, int], options: Tuple[Any, bool]) -> Any:
    """where: axis, cut; options: dtype, logarithm"""
    x = _with_shape(context, x)
    rows = _rows_of(context, x, *where, keepdims=True)
    if rows is not None and rows.are_whole():  # in whatever order
        rows = None
    made, turned = out is None, isinstance(x, Array) and x.order == "F"
    with context.lock:
        context.check_open()
        call = context.call
        try:
            source = elements(x, True)
            if rows is None:
                part = context.part
                part.data, part.count, part.type, stream, owner = source
            else:
                stream, any_rank = _axes.fill_view(context, source, rows)
            if out is None:
                if needs_out(x):
                    raise ArgumentError(f"out: expected an array in device memory, as allfold cannot make one of {type(x).__name__}")
                out = empty(x, _output_type(NAME_OF[type_of(x, source[2])], options[0]), x.shape[::-1] if turned else x.shape)
                target = writable(out, out)
            elif options[0] is not None:
                raise ArgumentError("dtype and out: expected one of them")
            elif turned:
                raise ArgumentError("out: expected None, as the elements of x lie in Fortran's order")
            else:
                target = writable(out, x)
                _check_overlap(source, target)
            call.stream = common_stream(stream, target[3])
            call.nan, call.result_type, call.ddof, call.logarithm = 0, 0, 0, options[1]
        except Exception as error:
            context.fail(error)
        function, described = (_softmax, context.part_ref) if rows is None else (_softmax_nd, context.view_nd_ref) if any_rank \
            else (_softmax_axis, context.view_ref)
        status = function(context.handle, described, target[0], target[2], context.call_ref)
        call.logarithm = 0
        if status:
            raise context.error(status)
    return out if not made else out.T if turned else of_kind(out, x)


def _with_shape(context: Context, x: Any) -> Any:
    try:
        return x if hasattr(x, "shape") else numpy.asarray(x)
    except Exception as error:
        with context.lock:
            context.fail(error)


def _output_type(name: str, dtype: Any) -> str:
    if dtype is None:
        return name if name in FLOATS else "float64"
    wanted = _name_of_dtype(dtype)
    if wanted not in FLOATS:
        raise ArgumentError(f"dtype {wanted}: softmax gives {', '.join(FLOATS)}")
    return wanted


def _check_overlap(source: Any, target: Any) -> None:
    """The same memory with the same type is allowed, as is no memory in common."""
    if source[0] == target.address and source[2] == target.type or not target.size:
        return
    if source[0] + source[1] * BYTES_OF.get(source[2], 0) > target.address and target.address + target.size * BYTES_OF[target.type] > source[0]:
        raise ArgumentError("out overlaps x: expected x itself, or memory that has nothing in common with it")


_SUM, _PROD, _MEAN, _MIN, _MAX, _ARGMIN, _ARGMAX, _LOGSUMEXP, _STATS, _VARIANCE, _STD = (FOLDS[name] for name in (
    "sum", "prod", "mean", "min", "max", "argmin", "argmax", "logsumexp", "stats", "variance", "std"))
