"""Order statistics: quantiles, the largest elements, histograms."""
from __future__ import annotations

import ctypes
from ctypes import byref
from typing import Any, NamedTuple, Optional, Tuple

import numpy

from . import _functions
from ._arrays import address_of, elements, empty, reals, type_of
from ._context import Context, choice, context_of, in_range
from ._errors import ArgumentError
from ._functions import number_of
from ._library import F64, I64, NAN_POLICIES, QUANTILE_METHODS, U64, Bins, Outside, Quantiles, Result, Top
from ._mpi import lib
from ._types import NAME_OF


class TopK(NamedTuple):
    """The values, of the type of x, and their indices among the elements of all ranks."""

    values: Any
    indices: Any


class Histogram(NamedTuple):
    """The counts of the bins, their edges, and how many elements are in none."""

    hist: Any
    bin_edges: Any
    below: int
    above: int
    nan: int


def _fill(context: Context, x: Any, axis: Any, what: Any) -> Tuple[Any, Any]:
    """The context's part, and the call that `what` makes of its stream; and what must live as long as the library reads."""
    part = context.part
    if axis is not None:
        raise ArgumentError(f"axis {axis}: expected None, as order statistics are of all elements")
    part.data, part.count, part.type, stream, owner = elements(x, True)
    call, kept = what(stream)
    call.size = ctypes.sizeof(call)
    return call, (owner, kept)


def quantile(x: Any, q: Any, axis: None = None, comm: Any = None, *, method: str = "linear", nan_policy: str = "propagate") -> Any:
    """Quantiles of the elements of all ranks, exactly: of one q a number, of an array of them an array. An interpolated value is rounded once.

    >>> quantile([1, 2, 3, 4], 0.5)
    2.5
    >>> quantile([1, 2, 3, 4], [0, 0.5], method="lower").tolist()
    [1, 2]
    """
    context = context_of(comm, None)

    def what(stream: Optional[int]) -> Tuple[Any, Any]:
        wanted = numpy.array(reals("q", q), numpy.float64, order="C")
        return Quantiles(stream=stream, q=wanted.ctypes.data, count=wanted.size, method=choice("method", QUANTILE_METHODS, method),
                         nan=choice("nan_policy", NAN_POLICIES, nan_policy)), wanted

    with context.lock:
        call, kept = _functions._prepare(context, _fill, x, axis, what)
        results = (Result * max(call.count, 1))()
        status = lib.allfold_quantile(context.handle, context.part_ref, byref(call), results)
        if status:
            raise context.error(status)
    numbers = [number_of(result.value) for result in results]
    if kept[1].ndim == 0:
        return numbers[0]
    return numpy.array(numbers, {F64: numpy.float64, I64: numpy.int64, U64: numpy.uint64}[results[0].value.kind]).reshape(kept[1].shape)


def median(x: Any, axis: None = None, comm: Any = None, *, nan_policy: str = "propagate") -> Any:
    """The median of the elements of all ranks: of an even number of them the mean of the two in the middle, rounded once.

    >>> median([3.0, 1.0, 2.0])
    2.0
    """
    return quantile(x, 0.5, axis, comm, nan_policy=nan_policy)


def topk(x: Any, k: int, axis: None = None, comm: Any = None, *, largest: bool = True, nan_policy: str = "propagate") -> TopK:
    """The k largest or smallest elements of all ranks, in order, and their indices in the global array. Equal ones are in the order of their
    indices. NaN is the largest. The arrays are NumPy's.

    >>> found = topk([5, 1, 7, 7], 3)
    >>> found.values.tolist(), found.indices.tolist()
    ([7, 7, 5], [2, 3, 0])
    """
    context = context_of(comm, None)

    def what(stream: Optional[int]) -> Tuple[Any, Any]:
        call = Top(stream=stream, k=in_range("k", k, 2**20), smallest=not largest, nan=choice("nan_policy", NAN_POLICIES, nan_policy))
        return call, (empty(None, NAME_OF[type_of(x, context.part.type)], (call.k,)), numpy.empty(call.k, numpy.int64))

    with context.lock:
        call, (owner, (values, indices)) = _functions._prepare(context, _fill, x, axis, what)
        status = lib.allfold_topk(context.handle, context.part_ref, byref(call), address_of(values), address_of(indices))
        if status:
            raise context.error(status)
    del owner
    return TopK(values, indices)


def histogram(x: Any, bins: Any = 10, range: Optional[Tuple[float, float]] = None, comm: Any = None) -> Histogram:
    """How many elements of all ranks are in each bin, exactly, by the rules of numpy.histogram with edges in float64: bins is a number of bins of even width, or an array of
    edges. range: of even bins; None: from the least to the largest number, which takes a pass more.

    >>> found = histogram([1, 2, 1, 9], bins=3, range=(0, 3))
    >>> found.hist.tolist(), found.bin_edges.tolist(), found.above
    ([0, 2, 1], [0.0, 1.0, 2.0, 3.0], 1)
    """
    context = context_of(comm, None)

    def what(stream: Optional[int]) -> Tuple[Any, Any]:
        if numpy.ndim(bins) == 0:
            call = Bins(stream=stream, count=in_range("bins", bins, 2**20))
            if range is not None:
                ends = reals("range", range)
                if numpy.shape(ends) != (2,):
                    raise ArgumentError(f"range: expected the first edge and the last, found {range!r}")
                call.has_range, (call.low, call.high) = 1, map(float, ends)
            return call, None
        if range is not None:
            raise ArgumentError("range is of bins of even width, which a number of them gives: expected no range beside an array of edges")
        if numpy.ndim(bins) != 1 or len(bins) < 2:
            raise ArgumentError(f"bins: expected a number of bins, or an array of at least two edges, found shape {numpy.shape(bins)}")
        edges = numpy.ascontiguousarray(reals("bins", bins), numpy.float64)
        return Bins(stream=stream, count=len(edges) - 1, edges=edges.ctypes.data), edges

    outside = Outside()
    with context.lock:
        call, kept = _functions._prepare(context, _fill, x, None, what)
        counts, edges = numpy.empty(call.count, numpy.int64), numpy.empty(call.count + 1)
        status = lib.allfold_histogram(context.handle, context.part_ref, byref(call), counts.ctypes.data, edges.ctypes.data, byref(outside))
        if status:
            raise context.error(status)
    del kept
    return Histogram(counts, edges, outside.below, outside.above, outside.nan)
