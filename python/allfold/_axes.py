"""Folds and softmax along axes: an array as outer x length x inner elements, and which of the three the ranks share out."""
from __future__ import annotations

import functools
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
    sizes: Tuple[int, int, int]  # outer, length, inner
    kind: int  # which of these the ranks cut

    def are_whole(self) -> bool:
        """Whether the axes are all."""
        return self.last - self.first + 1 == len(self.shape)


def dimension(name: str, number: Any, dimensions: int) -> int:
    number = int(operator.index(number))
    if not -dimensions <= number < dimensions:
        raise ArgumentError(f"{name} {number}: found an array of {dimensions} dimensions")
    return int(number % dimensions)


def shape_of(x: Any) -> Tuple[int, ...]:
    """A scalar counts as an array of one element in one dimension."""
    return tuple(int(length) for length in numpy.shape(x)) or (1,)


def axes_of(axis: Union[None, int, Tuple[int, ...]], dimensions: int) -> Tuple[int, ...]:
    """The numbers of the axes, in order."""
    if type(axis) is int and -dimensions <= axis < dimensions:
        return (axis % dimensions,)
    if axis is None:
        return tuple(range(dimensions))
    axes = sorted(dimension("axis", one, dimensions) for one in (axis if isinstance(axis, tuple) else (axis,)))
    if len(set(axes)) != len(axes) or not axes:
        raise ArgumentError(f"axis {axis}: found {'an axis twice' if axes else 'no axis: expected None for all'}")
    return tuple(axes)


def rows_of(x: Any, axis: Any, cut: int, ranks: int) -> Rows:
    shape = shape_of(x)
    return _rows(shape, axes_of(axis, len(shape)), dimension("cut", cut, len(shape)), ranks)


@functools.lru_cache(maxsize=1024)
def _rows(shape: Tuple[int, ...], axes: Tuple[int, ...], cut: int, ranks: int) -> Rows:
    first, last = axes[0], axes[-1]
    if axes != tuple(range(first, last + 1)):
        raise ArgumentError(f"axis {axes}: expected neighbouring axes. Transpose the array, or fold twice")
    ends = 0, first, last + 1, len(shape)
    outer, length, inner = (math.prod(shape[begin:end]) for begin, end in zip(ends, ends[1:]))
    group = 0 if cut < first else 1 if cut <= last else 2
    if ranks > 1 and math.prod(shape[ends[group]:cut]) != 1:
        raise ArgumentError(f"cut {cut} with axis {axes}: expected the first dimension of those before, in or behind the axes, as the parts of "
                            f"the ranks must follow one another; found shape {shape}")
    return Rows(shape, first, last, cut, (outer, length, inner), (CUT_OUTER, CUT_AXIS, CUT_INNER)[group])


Places = Tuple[int, int, int, int, int]  # outer, length, inner, and the strides of outer and of axis; 0: dense


def places_of(rows: Rows, ranks: int, strides: Tuple[int, ...]) -> Optional[Places]:
    """Where the library finds the elements, if each of the three has one stride, as that of inner is 1. One rank alone may take outer, of which
    there is one, for inner, and the other way round. None: there are no such places, or strides that the library takes for others: 0 is dense."""
    found = []
    for begin, end in ((0, rows.first), (rows.first, rows.last + 1), (rows.last + 1, len(rows.shape))):
        group = [(length, stride) for length, stride in zip(rows.shape[begin:end], strides[begin:end]) if length != 1]
        if any(above != length * stride for (_, above), (length, stride) in zip(group, group[1:])):
            return None
        found.append(group[-1][1] if group else 1)
    (outer, length, inner), (of_outer, of_axis, of_inner) = rows.sizes, found
    if ranks == 1 and (outer == 1 and of_inner != 1 or inner == 1 and of_outer == 1):
        outer, inner, of_outer, of_inner = inner, outer, of_inner, of_outer
    return (outer, length, inner, of_outer, of_axis) if of_inner == 1 and of_outer > 0 and of_axis > 0 else None


def fill_view(context: Any, elements: Tuple[int, int, int, Optional[int], Any], rows: Rows, places: Optional[Places] = None) -> Optional[int]:
    """The context's view becomes this rank's part; gives its stream. elements: of an array in C order, or in these places."""
    view = context.view
    view.data, _, view.type, stream, _ = elements
    view.outer, view.length, view.inner, view.outer_stride, view.axis_stride = places or rows.sizes + (0, 0)
    view.cut = rows.kind
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
    if rows.kind == CUT_AXIS and own:
        outer, _, inner = rows.sizes
        share, longer = divmod(outer * inner, context.ranks)
        return (share + (context.rank < longer),)
    if rows.kind != CUT_AXIS and not own and context.ranks > 1:
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


@functools.lru_cache(maxsize=None)
def _results_of(fold: int, *types: int) -> Tuple[Tuple[str, Optional[str], bool], ...]:
    """Of each result its name, the type of its values (None: it has none), and whether it has indices. types: of the elements, the call's
    result_type"""
    indexed, of_stats = fold in (FOLDS["argmin"], FOLDS["argmax"]), fold == FOLDS["stats"]
    names = [lib.allfold_result_name(fold, i).decode() for i in range(lib.allfold_result_count(fold))]
    return tuple((name, None if indexed else NAME_OF[lib.allfold_result_type(fold, i, *types)], indexed or of_stats and name in ("min", "max"))
                 for i, name in enumerate(names))


def results_for(x: Any, fold: int, types: Tuple[int, int, Optional[str]], shape: Tuple[int, ...]) -> Results:
    """types: of the elements, the call's result_type, the integer dtype"""
    wanted = _results_of(fold, *types[:2])
    rows = (_library.Output * len(wanted))()
    values: Dict[str, Any] = {}
    indices: Dict[str, Any] = {}
    if types[2] is not None:
        _arrays.empty(x, types[2], (0,))  # refuses a type that PyTorch lacks, before the fold
    for row, (name, found, indexed) in zip(rows, wanted):
        if found is not None:
            if types[2] is not None and found in FLOATS:
                raise ArgumentError(f"dtype {types[2]}: expected a floating-point type, as the results are {found}")
            values[name] = _arrays.empty(x, found if found in FLOATS else "int64", shape)
            row.values = _arrays.address_of(values[name])
        if indexed:
            indices[name] = _arrays.empty(x, "int64", shape)
            row.indices = _arrays.address_of(indices[name])
    found_types = {name: found for name, found, _ in wanted if found is not None}
    return Results(values, indices, found_types, _library.Outputs(rows, len(wanted)), rows)


def fold(context: Any, number: int, x: Any, rows: Rows, keepdims: bool, own: bool, options: Callable[[Any], Optional[str]]) -> Results:
    """The fold of that number along axes. options fills the call, and gives an integer dtype."""
    call = context.call
    with context.lock:
        context.check_open()
        try:
            elements, places = _arrays.elements_apart(x, functools.partial(places_of, rows, context.ranks))
            call.stream = fill_view(context, elements, rows, places)
            dtype = options(call)
            keepdims, own = bool(keepdims), bool(own)
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
