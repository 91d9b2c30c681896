"""Folds and softmax along axes: an array as outer x length x inner elements, and which of the three the ranks share out."""
from __future__ import annotations

import math
import operator
from ctypes import addressof, byref, c_uint64
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy

from . import _arrays, _library
from ._arrays import FLOATS, FOLDS, NAME_OF, TYPE_OF
from ._errors import ArgumentError
from ._mpi import lib

CUT_OUTER, CUT_AXIS, CUT_INNER = (_library.CUTS[name] for name in ("outer", "axis", "inner"))


class Rows(NamedTuple):
    """How an array is cut into rows."""

    shape: Tuple[int, ...]
    first: int  # the axes of a row are first to last
    last: int
    cut: int  # the dimension along which the ranks' parts follow one another

    def sizes(self) -> Tuple[int, int, int]:
        """outer, length, inner"""
        shape = self.shape
        return math.prod(shape[:self.first]), math.prod(shape[self.first:self.last + 1]), math.prod(shape[self.last + 1:])

    def group(self) -> Tuple[int, int, int]:
        """Which of these the ranks cut, and the dimensions that it is made of: first, one behind the last."""
        if self.cut < self.first:
            return CUT_OUTER, 0, self.first
        if self.cut <= self.last:
            return CUT_AXIS, self.first, self.last + 1
        return CUT_INNER, self.last + 1, len(self.shape)


def dimension(name: str, number: Any, dimensions: int) -> int:
    number = int(operator.index(number))
    if not -dimensions <= number < dimensions:
        raise ArgumentError(f"{name} {number}: found an array of {dimensions} dimensions")
    return int(number % dimensions)


def shape_of(x: Any) -> Tuple[int, ...]:
    """A scalar counts as an array of one element in one dimension."""
    return tuple(int(length) for length in numpy.shape(x)) or (1,)


def axes_of(axis: Union[None, int, Tuple[int, ...]], dimensions: int) -> List[int]:
    """The numbers of the axes, in order."""
    if axis is None:
        return list(range(dimensions))
    axes = sorted(dimension("axis", one, dimensions) for one in (axis if isinstance(axis, tuple) else (axis,)))
    if len(set(axes)) != len(axes) or not axes:
        raise ArgumentError(f"axis {axis}: found {'an axis twice' if axes else 'no axis: expected None for all'}")
    return axes


def is_whole(x: Any, axis: Any) -> bool:
    """Whether these are all axes."""
    dimensions = len(shape_of(x))
    return len(axes_of(axis, dimensions)) == dimensions


def rows_of(x: Any, axis: Any, cut: int, ranks: int) -> Rows:
    shape = shape_of(x)
    axes = axes_of(axis, len(shape))
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise ArgumentError(f"axis {axis}: expected neighbouring axes. Transpose the array, or fold twice")
    rows = Rows(shape, axes[0], axes[-1], dimension("cut", cut, len(shape)))
    _, first, _ = rows.group()
    if ranks > 1 and math.prod(shape[first:rows.cut]) != 1:
        raise ArgumentError(f"cut {cut} with axis {axis}: expected the first dimension of those before, in or behind the axes, as the parts of "
                            f"the ranks must follow one another; found shape {shape}")
    return rows


def fill_view(context: Any, elements: Tuple[int, int, int, Optional[int], Any], rows: Rows) -> Optional[int]:
    """The context's view becomes this rank's part; gives its stream. elements: of an array in C order."""
    view = context.view
    view.data, _, view.type, stream, _ = elements
    view.outer, view.length, view.inner = rows.sizes()
    view.cut = rows.group()[0]
    return stream


def total(context: Any, number: int) -> int:
    """The sum of a number over all ranks. Collective."""
    mine = c_uint64(number)
    part, call = _library.Array(addressof(mine), 1, TYPE_OF["uint64"]), _library.Call(size=context.call.size)
    status = lib.allfold_reduce(context.handle, FOLDS["sum"], byref(part), byref(call), context.result_ref)
    if status:
        raise context.error(status)
    return int(context.result.value.u64)


def shape_of_results(context: Any, rows: Rows, keepdims: bool, own: bool) -> Tuple[int, ...]:
    """Of the arrays of results on this rank: of all ranks, or own: of its part alone, and if the axis is cut its share of all results,
    in one dimension. Collective if the results are cut."""
    lengths: List[Optional[int]] = list(rows.shape)
    kind, _, _ = rows.group()
    if kind == CUT_AXIS and own:
        outer, _, inner = rows.sizes()
        share, longer = divmod(outer * inner, context.ranks)
        return (share + (context.rank < longer),)
    if kind != CUT_AXIS and not own and context.ranks > 1:
        lengths[rows.cut] = total(context, rows.shape[rows.cut])
    lengths[rows.first:rows.last + 1] = [1 if keepdims else None] * (rows.last + 1 - rows.first)
    return tuple(length for length in lengths if length is not None)


class Results(NamedTuple):
    """Arrays for a fold's results, which outputs describes to the library."""

    values: Dict[str, Any]
    indices: Dict[str, Any]
    types: Dict[str, str]  # of the values; the arrays for integers are int64
    outputs: Any  # allfold_outputs
    owner: Any

    def has_integers(self) -> bool:
        return any(name not in FLOATS for name in self.types.values())

    def finished(self, dtype: Optional[str]) -> "Results":
        """With integers of their type, or of dtype."""
        return self._replace(values={name: made if self.types[name] in FLOATS else _arrays.as_integers(made, self.types[name], dtype)
                                     for name, made in self.values.items()})


def results_for(x: Any, fold: int, types: Tuple[int, int, Optional[str]], shape: Tuple[int, ...]) -> Results:
    """types: of the elements, the call's result_type, the integer dtype"""
    count = lib.allfold_result_count(fold)
    rows = (_library.Output * count)()
    values: Dict[str, Any] = {}
    indices: Dict[str, Any] = {}
    found: Dict[str, str] = {}
    indexed = fold in (FOLDS["argmin"], FOLDS["argmax"])
    if types[2] is not None:
        _arrays.empty(x, types[2], (0,))  # refuses a type that PyTorch lacks, before the fold
    for i in range(count):
        name = lib.allfold_result_name(fold, i).decode()
        if not indexed:
            found[name] = NAME_OF[lib.allfold_result_type(fold, i, *types[:2])]
            if types[2] is not None and found[name] in FLOATS:
                raise ArgumentError(f"dtype {types[2]}: expected a floating-point type, as the results are {found[name]}")
            values[name] = _arrays.empty(x, found[name] if found[name] in FLOATS else "int64", shape)
            rows[i].values = _arrays.address_of(values[name])
        if indexed or name in ("min", "max") and fold == FOLDS["stats"]:
            indices[name] = _arrays.empty(x, "int64", shape)
            rows[i].indices = _arrays.address_of(indices[name])
    return Results(values, indices, found, _library.Outputs(rows, count), rows)


def fold(context: Any, number: int, x: Any, how: Tuple[Any, int, bool, bool], options: Callable[[Any], Optional[str]]) -> Results:
    """The fold of that number along axes. how: axis, cut, keepdims, own. options fills the call, and gives an integer dtype."""
    axis, cut = how[:2]
    call = context.call
    with context.lock:
        context.check_open()
        try:
            rows = rows_of(x, axis, cut, context.ranks)
            elements = _arrays.elements(x, True)
            call.stream = fill_view(context, elements, rows)
            dtype = options(call)
            keepdims, own = map(bool, how[2:])
        except Exception as error:
            context.fail(error)
        shape = shape_of_results(context, rows, keepdims, own)
        try:
            results = results_for(x, number, (context.view.type, call.result_type, dtype), shape)
        except Exception as error:
            context.fail(error)
        call.own_results = own
        status = lib.allfold_reduce_axis(context.handle, number, context.view_ref, context.call_ref, byref(results.outputs))
        call.own_results = call.ddof = 0
        if status:
            raise context.error(status)
        del elements
        try:
            results = results.finished(dtype)
        except Exception as error:
            if own:
                context.fail(error)
            raise
        if own and results.has_integers():  # of which other ranks may have others, that dtype cannot hold
            total(context, 0)
    return results
