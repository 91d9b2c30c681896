"""The comparison of two arrays."""
from __future__ import annotations

import ctypes
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Optional, Tuple

import numpy

from . import _functions
from ._arrays import common_stream, elements
from ._context import Context, context_of
from ._errors import ArgumentError
from ._functions import Scalar, number_of
from ._library import NO_INDEX, Comparison as Found
from ._library import Largest, Tolerance
from ._mpi import lib


@dataclass(frozen=True)
class Comparison:
    """What compare gives. An index counts the elements of all ranks, in C order; it and the values there are None if the largest is 0. max_ulp is
    None of integers, and of float16 against bfloat16. mean_difference and rmse are NaN if no pair has numbers."""

    count: int
    different: int
    nan_a: int
    nan_b: int
    nan_both: int
    max_abs: float
    max_abs_index: Optional[int]
    max_abs_a: Optional[Scalar]
    max_abs_b: Optional[Scalar]
    max_rel: float
    max_rel_index: Optional[int]
    max_rel_a: Optional[Scalar]
    max_rel_b: Optional[Scalar]
    max_ulp: Optional[int]
    max_ulp_index: Optional[int]
    max_ulp_a: Optional[Scalar]
    max_ulp_b: Optional[Scalar]
    mean_difference: float
    rmse: float
    outside: int
    within: bool


def _tolerance(name: str, given: Any) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: expected a number, found {given!r}") from None


def _fill(context: Context, a: Any, b: Any, rule: Tuple[float, float, bool]) -> Tuple[Any, Tolerance]:
    part, second = context.part, context.second
    if numpy.shape(a) != numpy.shape(b):
        raise ArgumentError(f"compare of shapes {tuple(numpy.shape(a))} and {tuple(numpy.shape(b))}: expected one shape")
    part.data, part.count, part.type, stream, first = elements(a, True)
    second.data, second.count, second.type, other, owner = elements(b, True)
    tolerance = Tolerance(ctypes.sizeof(Tolerance), stream if other is None else common_stream(stream, other), _tolerance("atol", rule[0]),
                          _tolerance("rtol", rule[1]), bool(rule[2]))
    return (first, owner), tolerance


def _largest(found: Largest, exists: bool = True) -> Tuple[Any, Optional[int], Optional[Scalar], Optional[Scalar]]:
    if not exists:
        return None, None, None, None
    value = number_of(found.value)
    if found.index == NO_INDEX:
        return value, None, None, None
    return value, found.index, number_of(found.a), number_of(found.b)


def compare(a: Any, b: Any, comm: Any = None, *, atol: float = 0.0, rtol: float = 0.0, equal_nan: bool = False) -> Comparison:
    """How two arrays of one shape differ, exactly; over all ranks. Their types may differ among floating-point types, and among integers. An
    element is outside if |a - b| > atol + rtol |b|.

    >>> found = compare([1.0, 2.0, 3.0], [1.0, 2.5, 3.0])
    >>> found.different, found.max_abs, found.max_abs_index, found.within
    (1, 0.5, 1, False)
    >>> compare([1.0, 2.0, 3.0], [1.0, 2.5, 3.0], rtol=0.2).within
    True
    """
    context = context_of(comm, None)
    found = Found()
    found.size = ctypes.sizeof(Found)
    with context.lock:
        owner, tolerance = _functions._prepare(context, _fill, a, b, (atol, rtol, equal_nan))
        status = lib.allfold_compare(context.handle, context.part_ref, context.second_ref, byref(tolerance), byref(found))
        if status:
            raise context.error(status)
    del owner
    return Comparison(found.count, found.different, found.nan_a, found.nan_b, found.nan_both, *_largest(found.max_abs), *_largest(found.max_rel),
                      *_largest(found.max_ulp, bool(found.has_ulp)), found.mean_difference, found.rmse, found.outside, bool(found.within))
