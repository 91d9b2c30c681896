"""Folds in two phases: begin.sum(x) starts one and gives a Request, whose result() gives the value. All that is begun shares one exchange
between the ranks, and work may go on between. All ranks begin the same folds in the same order.

>>> import allfold
>>> total, largest = allfold.begin.sum([1.0, 2.0]), allfold.begin.max([1.0, 2.0])
>>> total.result(), largest.result()
(3.0, 2.0)
"""
from __future__ import annotations

from ctypes import byref, c_uint64
from typing import Any, Callable, List, Optional, Tuple

from . import _functions
from ._context import Context, context_of, status_of, text_of
from ._errors import Error
from ._functions import _fill, _fill_stats, _fill_two
from ._library import Result, Results
from ._mpi import lib
from ._types import FOLDS

__all__ = ["Request", "argmax", "argmin", "dot", "logsumexp", "max", "mean", "min", "norm", "prod", "stats", "std", "sum", "variance"]


class Request:
    """A fold that was begun. The array must stay as it is until result() has returned; it is kept alive meanwhile, by the context, whose
    device may still be reading it when a request is dropped."""

    def __init__(self, context: Context, finish: Callable[[List[Result]], Any], number: int) -> None:
        self._context, self._finish, self._number = context, finish, number
        self._ended, self._value = False, None
        self._error: Optional[Error] = None

    def result(self) -> Any:
        """The value, as the function of that name gives it. Collective at first: all ranks end what they have begun. Later it is what was
        found then. Folds that share an exchange fail together."""
        if not self._ended:
            self._end()
        if self._error is not None:
            raise self._error
        return self._value

    def _end(self) -> None:
        room = (Result * lib.allfold_result_count(FOLDS["stats"]))()
        results = Results(results=room, capacity=len(room))
        context = self._context
        with context.lock:
            context.check_open()
            status = lib.allfold_reduce_end(context.handle, self._number, byref(results))
            self._ended = True
            del context.begun[self._number]
            if status:
                self._error = context.error(status)
                return
        try:
            self._value = self._finish(room[:results.count])
        except Error as error:
            self._error = error


def _begin(context: Context, fill: Callable[[Context], Any], start: Callable[[Any], int], finish: Callable[[List[Result]], Any]) -> Request:
    """What this rank cannot begin is begun as a failure, which the end tells on all ranks."""
    number, owner = c_uint64(), None
    with context.lock:
        context.check_open()
        try:
            owner = fill(context)
        except Exception as error:
            status = lib.allfold_fail_begin(context.handle, status_of(error), text_of(error), byref(number))
        else:
            status = start(byref(number))
        if status:
            raise context.error(status)
        context.begun[number.value] = owner
    return Request(context, finish, number.value)


def _value(dtype: Any) -> Callable[[List[Result]], Any]:
    """Gives the one number of a fold."""
    def value(found: List[Result]) -> Any:
        number = _functions._number(found[0])
        return number if dtype is None else _functions._as_dtype(number, dtype)

    return value


def _fold(name: str, x: Any, comm: Any, level: Optional[str], options: Tuple[Any, ...]) -> Request:
    context, indexed = context_of(comm, level), name in ("argmin", "argmax")
    return _begin(context, lambda context: _fill(context, x, indexed, options),
                  lambda number: lib.allfold_reduce_begin(context.handle, FOLDS[name], context.part_ref, context.call_ref, number),
                  (lambda found: found[0].index) if indexed else _value(options[0]))


def sum(x: Any, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Request:
    """Begins allfold.sum of all elements.

    >>> sum([1, 2]).result()
    3
    """
    return _fold("sum", x, comm, level, (dtype, "propagate"))


def prod(x: Any, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Request:
    """Begins allfold.prod."""
    return _fold("prod", x, comm, level, (dtype, "propagate"))


def mean(x: Any, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Request:
    """Begins allfold.mean."""
    return _fold("mean", x, comm, level, (dtype, "propagate"))


def min(x: Any, comm: Any = None, *, dtype: Any = None, nan_policy: str = "propagate", level: Optional[str] = None) -> Request:
    """Begins allfold.min."""
    return _fold("min", x, comm, level, (dtype, nan_policy))


def max(x: Any, comm: Any = None, *, dtype: Any = None, nan_policy: str = "propagate", level: Optional[str] = None) -> Request:
    """Begins allfold.max."""
    return _fold("max", x, comm, level, (dtype, nan_policy))


def argmin(x: Any, comm: Any = None, *, nan_policy: str = "propagate", level: Optional[str] = None) -> Request:
    """Begins allfold.argmin."""
    return _fold("argmin", x, comm, level, (None, nan_policy))


def argmax(x: Any, comm: Any = None, *, nan_policy: str = "propagate", level: Optional[str] = None) -> Request:
    """Begins allfold.argmax."""
    return _fold("argmax", x, comm, level, (None, nan_policy))


def logsumexp(x: Any, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Request:
    """Begins allfold.logsumexp."""
    return _fold("logsumexp", x, comm, level, (dtype, "propagate"))


def norm(x: Any, ord: Optional[float] = None, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Request:
    """Begins allfold.norm of the vector of all elements.

    >>> norm([3.0, 4.0]).result()
    5.0
    """
    context, fold = context_of(comm, level), 0

    def fill(context: Context) -> Any:
        nonlocal fold
        fold = _functions._norm_of(ord)
        return _fill(context, x, False, (dtype, "propagate"))

    return _begin(context, fill,
                  lambda number: lib.allfold_reduce_begin(context.handle, fold, context.part_ref, context.call_ref, number), _value(dtype))


def dot(x: Any, y: Any, comm: Any = None, *, dtype: Any = None, level: Optional[str] = None) -> Request:
    """Begins allfold.dot.

    >>> dot([3, 2, 1], [1, 10, 100]).result()
    123
    """
    context = context_of(comm, level)
    return _begin(context, lambda context: _fill_two(context, x, y, (dtype, "propagate")),
                  lambda number: lib.allfold_dot_begin(context.handle, context.part_ref, context.second_ref, context.call_ref, number),
                  _value(dtype))


def stats(x: Any, comm: Any = None, *, dtype: Any = None, nan_policy: str = "propagate", ddof: int = 0,
          level: Optional[str] = None) -> Request:
    """Begins allfold.stats."""
    context = context_of(comm, level)
    return _begin(context, lambda context: _fill_stats(context, x, (dtype, nan_policy, ddof)),
                  lambda number: lib.allfold_reduce_begin(context.handle, FOLDS["stats"], context.part_ref, context.call_ref, number),
                  lambda found: _functions._stats_found(found, dtype))


def variance(x: Any, comm: Any = None, *, dtype: Any = None, nan_policy: str = "propagate", ddof: int = 0,
             level: Optional[str] = None) -> Request:
    """Begins allfold.variance."""
    return _fold("variance", x, comm, level, (dtype, nan_policy, ddof))


def std(x: Any, comm: Any = None, *, dtype: Any = None, nan_policy: str = "propagate", ddof: int = 0, level: Optional[str] = None) -> Request:
    """Begins allfold.std."""
    return _fold("std", x, comm, level, (dtype, nan_policy, ddof))
