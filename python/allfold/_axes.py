"""Folds and softmax along axes: an array of which some dimensions are folded, and the one that the ranks share out."""
from __future__ import annotations

import functools
import math
import operator
from ctypes import addressof, byref, c_int64, c_uint64
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union

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
    results: Tuple[Tuple[int, ...], Tuple[int, ...]]  # shapes of the results of this part: without the axes, and with these of length 1

    def are_whole(self) -> bool:
        """Whether the axes are all."""
        return len(self.axes) == len(self.shape)

    def are_cut(self) -> bool:
        return self.cut in self.axes


def dimension(name: str, number: Any, dimensions: int) -> int:
    if type(number) is int and 0 <= number < dimensions:
        return number
    try:
        number = int(operator.index(number))
    except TypeError:
        raise ArgumentError(f"{name}: expected an integer{' or a tuple of them' if name == 'axis' else ''}, found {type(number).__name__}") from None
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
        shape = shape_of(x)
        axes = axes_of(x.axes(axis), len(shape))
        return Rows(shape, axes, -1, None, _results_shapes(shape, axes))
    return rows_of_shape(shape_of(x), axis, cut, ranks)


def rows_of_shape(shape: Tuple[int, ...], axis: Any, cut: Any, ranks: int) -> Rows:
    if type(axis) is int and type(cut) is int:
        return _rows_kept(shape, axis, cut, ranks)
    return _rows(shape, axis, cut, ranks)


def _results_shapes(shape: Tuple[int, ...], axes: Tuple[int, ...]) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    lengths = list(enumerate(shape))
    return tuple(length for i, length in lengths if i not in axes), tuple(1 if i in axes else length for i, length in lengths)


def _rows(shape: Tuple[int, ...], axis: Any, cut: Any, ranks: int) -> Rows:
    axes, cut = axes_of(axis, len(shape)), dimension("cut", cut, len(shape))
    first, last, results = axes[0], axes[-1], _results_shapes(shape, axes)
    ends = 0, first, last + 1, len(shape)
    group = 0 if cut < first else 1 if cut <= last else 2
    if len(axes) != last + 1 - first or (ranks > 1 and math.prod(shape[ends[group]:cut]) != 1):
        return Rows(shape, axes, cut, None, results)
    outer, length, inner = (math.prod(shape[begin:end]) for begin, end in zip(ends, ends[1:]))
    return Rows(shape, axes, cut, (outer, length, inner, (CUT_OUTER, CUT_AXIS, CUT_INNER)[group]), results)


_rows_kept = functools.lru_cache(maxsize=1024)(_rows)


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
    given = _arrays.reals("weights", _arrays.on_host(weights))
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
    found = rows.results[keepdims]
    if own and rows.are_cut():
        share, longer = divmod(math.prod(found), context.ranks)
        return (share + (context.rank < longer),)
    if not own and context.ranks > 1 and rows.cut >= 0 and not rows.are_cut():
        shape = list(rows.shape)
        shape[rows.cut] = total(context, shape[rows.cut])
        return _results_shapes(tuple(shape), rows.axes)[keepdims]
    return found


class Results(NamedTuple):
    """Arrays for a fold's results, whose addresses are in the context's outputs."""

    values: Dict[str, Any]
    indices: Dict[str, Any]
    integers: Dict[str, str]  # of values that are integers: the type; the arrays are int64

    def finished(self, dtype: Optional[str]) -> "Results":
        """With integers of their type, or of dtype."""
        if not self.integers:
            return self
        return self._replace(values={name: _arrays.as_integers(made, self.integers[name], dtype) if name in self.integers else made
                                     for name, made in self.values.items()})


@functools.lru_cache(maxsize=None)
def _results_of(fold: int, *types: int) -> Tuple[Tuple[Tuple[str, Optional[str], bool], ...], Dict[str, str]]:
    """Of each result its name, the type of its values (None: it has none), and whether it has indices; and which are integers, of what type.
    types: of the elements, the call's result_type"""
    indexed, of_stats = fold in (FOLDS["argmin"], FOLDS["argmax"]), fold == FOLDS["stats"]
    names = [lib.allfold_result_name(fold, i).decode() for i in range(lib.allfold_result_count(fold))]
    found = tuple((name, None if indexed else NAME_OF[lib.allfold_result_type(fold, i, *types)], indexed or of_stats and name in ("min", "max"))
                  for i, name in enumerate(names))
    return found, {name: kind for name, kind, _ in found if kind is not None and kind not in FLOATS}


def results_for(context: Any, x: Any, fold: int, types: Tuple[int, int, Optional[str]], shape: Tuple[int, ...]) -> Results:
    """types: of the elements, the call's result_type, the integer dtype"""
    wanted, integers = _results_of(fold, types[0], types[1])
    values: Dict[str, Any] = {}
    indices: Dict[str, Any] = {}
    if types[2] is not None:
        _arrays.empty(x, types[2], (0,))  # refuses a type that PyTorch lacks, before the fold
    context.outputs.count = len(wanted)
    for row, (name, kind, indexed) in zip(context.output_rows, wanted):
        row.values = row.indices = None
        if kind is not None:
            if types[2] is not None and kind in FLOATS:
                raise ArgumentError(f"dtype {types[2]}: expected a floating-point type, as the results are {kind}")
            values[name] = made = _arrays.empty(x, "int64" if name in integers else kind, shape)
            row.values = _arrays.address_of(made)
        if indexed:
            indices[name] = made = _arrays.empty(x, "int64", shape)
            row.indices = _arrays.address_of(made)
    return Results(values, indices, integers)


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
            results = results_for(context, x, number, (_arrays.type_of(x, elements[2]), call.result_type, dtype), shape[::-1] if turned else shape)
        except Exception as error:
            context.fail(error)
        call.own_results = own
        function, view = (lib.allfold_reduce_nd, context.view_nd_ref) if any_rank else (lib.allfold_reduce_axis, context.view_ref)
        status = function(context.handle, number, view, context.call_ref, context.outputs_ref)
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
        if own and results.integers:  # of which other ranks may have others, that dtype cannot hold
            total(context, 0)
    return results
