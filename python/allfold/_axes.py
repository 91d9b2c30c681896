"""Folds and softmax along axes: an array of which some dimensions are folded, and the one that the ranks share out."""
from __future__ import annotations

import functools
import math
import operator
from ctypes import addressof, byref, c_int64, c_uint64
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy

from . import _arrays, _files, _library, _torch
from ._errors import ArgumentError
from ._mpi import lib
from ._types import FLOATS, FOLDS, NAME_OF, TYPE_OF

CUT_OUTER, CUT_AXIS, CUT_INNER = (_library.CUTS[name] for name in ("outer", "axis", "inner"))


class Rows(NamedTuple):
    """How an array is cut into rows."""

    shape: Tuple[int, ...]
    axes: Tuple[int, ...]  # of a row
    cut: int  # the dimension along which the ranks' parts follow one another; -1: of a file, which the ranks share out themselves
    short: Optional[Tuple[int, int, int, int]]  # of an array in C order outer, length, inner and which the ranks cut; None: not one of each

    def are_whole(self) -> bool:
        """Whether the axes are all."""
        return len(self.axes) == len(self.shape)

    def are_cut(self) -> bool:
        return self.cut in self.axes


def dimension(name: str, number: Any, dimensions: int) -> int:
    if type(number) is int and 0 <= number < dimensions:
        return number
    number = int(operator.index(number))
    if not -dimensions <= number < dimensions:
        raise ArgumentError(f"{name} {number}: found an array of {dimensions} dimensions")
    return int(number % dimensions)


def shape_of(x: Any) -> Tuple[int, ...]:
    """A scalar counts as an array of one element in one dimension."""
    shape = tuple(x.shape) if type(x) is numpy.ndarray or _torch.is_plain(x) else tuple(int(length) for length in numpy.shape(x))
    return shape or (1,)


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
    if isinstance(x, _files.Array):
        if cut:
            raise ArgumentError(f"cut {cut}: expected none, as the ranks share out an array of a file themselves")
        return Rows(shape_of(x), axes_of(x.axes(axis), x.ndim or 1), -1, None)
    return rows_of_shape(shape_of(x), axis, cut, ranks)


def rows_of_shape(shape: Tuple[int, ...], axis: Any, cut: Any, ranks: int) -> Rows:
    return _rows(shape, axes_of(axis, len(shape)), dimension("cut", cut, len(shape)), ranks)


@functools.lru_cache(maxsize=1024)
def _rows(shape: Tuple[int, ...], axes: Tuple[int, ...], cut: int, ranks: int) -> Rows:
    first, last = axes[0], axes[-1]
    ends = 0, first, last + 1, len(shape)
    group = 0 if cut < first else 1 if cut <= last else 2
    if len(axes) != last + 1 - first or (ranks > 1 and math.prod(shape[ends[group]:cut]) != 1):
        return Rows(shape, axes, cut, None)
    outer, length, inner = (math.prod(shape[begin:end]) for begin, end in zip(ends, ends[1:]))
    return Rows(shape, axes, cut, (outer, length, inner, (CUT_OUTER, CUT_AXIS, CUT_INNER)[group]))


def fill_view(context: Any, elements: Tuple[int, int, int, Optional[int], Any], rows: Rows, strides: Optional[Tuple[int, ...]] = None,
              weights: Any = None) -> Tuple[Optional[int], bool]:
    """One of the context's views becomes this rank's part; gives its stream, and whether it is the one of any dimensions. strides: NULL for an
    array in C order. weights: as weights_for gives them."""
    address, _, number, stream, owner = elements
    view: Any
    if rows.short is not None and strides is None and weights is None:
        view = context.view
        view.outer, view.length, view.inner, view.cut = rows.short
    else:
        view = context.view_nd
        view.rank, view.shape = len(rows.shape), (c_uint64 * len(rows.shape))(*rows.shape)
        view.strides = None if strides is None else (c_int64 * len(strides))(*strides)
        source = owner if number == _library.SOURCE else None  # whose shape the library knows; one of length 0 is false
        view.axes, view.cut = source.source_axes(rows.axes) if source is not None else sum(1 << axis for axis in rows.axes), rows.cut
        view.weights = None
        if weights is not None:
            view.weights, view.weights_type = weights.ctypes.data, TYPE_OF[weights.dtype.name]
            apart = tuple(stride // weights.itemsize for stride in weights.strides)
            apart = source.source_strides(apart) if source is not None else apart
            view.weights_strides = (c_int64 * len(apart))(*apart)
    view.data, view.type = address, number
    return stream, view is context.view_nd


def weights_for(weights: Any, shape: Tuple[int, ...]) -> Any:
    """As float32 or float64 of that shape, in host memory, by NumPy's rules for shapes."""
    for to_host in ("cpu", "get"):  # of PyTorch, of CuPy
        if not isinstance(weights, numpy.ndarray) and hasattr(weights, to_host):
            weights = getattr(weights.detach() if hasattr(weights, "detach") else weights, to_host)()
    given = _arrays.reals("weights", weights)
    if given.dtype not in (numpy.float32, numpy.float64) or any(stride % given.itemsize for stride in given.strides):
        exact = given.astype(numpy.float64)
        if given.dtype.kind in "iu" and (abs(exact) >= 2.0**53).any():
            raise ArgumentError("weights: expected integers below 2^53")
        given = exact
    try:
        return numpy.broadcast_to(given, shape)
    except ValueError:
        raise ArgumentError(f"weights of shape {given.shape}: expected one that broadcasts to {shape}") from None


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
    if rows.are_cut() and own:
        share, longer = divmod(math.prod(length for axis, length in enumerate(rows.shape) if axis not in rows.axes), context.ranks)
        return (share + (context.rank < longer),)
    if not rows.are_cut() and not own and context.ranks > 1 and rows.cut >= 0:
        lengths[rows.cut] = total(context, rows.shape[rows.cut])
    for axis in rows.axes:
        lengths[axis] = 1 if keepdims else None
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
        if not self.has_integers():
            return self
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


def _turned(arrays: Dict[str, Any]) -> Dict[str, Any]:
    return {name: array.T for name, array in arrays.items()}


def fold(context: Any, number: int, x: Any, rows: Rows, keepdims: bool, own: bool, options: Callable[[Any], Optional[str]],
         weights: Any = None) -> Results:
    """The fold of that number along axes. options fills the call, and gives an integer dtype."""
    call = context.call
    with context.lock:
        context.check_open()
        try:
            elements, strides = _arrays.elements_apart(x)
            weighed = None if weights is None else weights_for(weights, rows.shape)
            call.stream, any_rank = fill_view(context, elements, rows, strides, weighed)
            dtype = options(call)
            keepdims, own = bool(keepdims), bool(own)
            if rows.cut < 0 and own:
                raise ArgumentError("own: results of an array of a file are those of all ranks, on every rank: expected False")
        except Exception as error:
            context.fail(error)
        shape = shape_of_results(context, rows, keepdims, own)
        try:
            turned = rows.cut < 0 and x.order == "F"  # results lie as the elements do
            results = results_for(x, number, (_arrays.type_of(x, elements.type), call.result_type, dtype), shape[::-1] if turned else shape)
        except Exception as error:
            context.fail(error)
        call.own_results = own
        function, view = (lib.allfold_reduce_nd, context.view_nd_ref) if any_rank else (lib.allfold_reduce_axis, context.view_ref)
        status = function(context.handle, number, view, context.call_ref, byref(results.outputs))
        call.own_results = 0
        if status:
            raise context.error(status)
        del elements
        try:
            results = results.finished(dtype)
            if turned:
                results = results._replace(values=_turned(results.values), indices=_turned(results.indices))
        except Exception as error:
            if own:
                context.fail(error)
            raise
        if own and results.has_integers():  # of which other ranks may have others, that dtype cannot hold
            total(context, 0)
    return results
