"""Log-probabilities of rows of logits, and their gradient."""
from __future__ import annotations

from ctypes import byref, c_int64
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy

from . import _arrays, _axes, _functions, _torch
from ._arrays import address_of, common_stream, empty
from ._context import Context, context_of, in_range
from ._errors import ArgumentError
from ._files import Array
from ._mpi import lib
from ._types import NAME_OF, TYPE_OF

IGNORED = -100  # the library's default
OUTPUTS = {"log_prob": "float64", "logsumexp": "float64", "entropy": "float64", "argmax": "int64"}


@dataclass(frozen=True)
class LogProbs:
    """What log_probs gives: arrays of the shape of the logits without their axis; None where not wanted."""

    log_prob: Any = None
    logsumexp: Any = None
    entropy: Any = None
    argmax: Any = None


def _rows(shape: Tuple[int, ...], axis: Any, cut: Any, ranks: int) -> _axes.Rows:
    """How logits are cut."""
    rows = _axes.rows_of_shape(shape, axis, 0 if cut is None else cut, ranks)
    if len(rows.axes) != 1:
        raise ArgumentError(f"axis {axis}: expected one axis")
    if rows.short is None:
        raise ArgumentError(f"cut {cut}: expected the axis, or the first dimension before or behind it that is longer than 1")
    return rows


def _strides(rows: _axes.Rows, strides: Tuple[int, ...]) -> Tuple[int, int]:
    """Of rows, and of elements along the axis."""
    axis, = rows.axes
    wide = [(d, rows.shape[d], strides[d]) for d in range(len(rows.shape)) if rows.shape[d] != 1 and d != axis]
    outer, inner = [one for one in wide if one[0] < axis], [one for one in wide if one[0] > axis]
    merge = all(a[2] == b[1] * b[2] for part in (outer, inner) for a, b in zip(part, part[1:]))
    repeated = any(n > 1 and stride == 0 for n, stride in zip(rows.shape, strides))  # to the library 0 is the stride of dense rows
    if not merge or repeated or min(strides) < 0 or (inner and inner[-1][2] != 1):
        raise ArgumentError(f"logits of shape {rows.shape} with strides {strides}: expected rows at one distance from each other, as contiguous arrays have")
    along = strides[axis] if rows.shape[axis] != 1 else 1
    return (outer[-1][2] if outer else max(along * rows.shape[axis], 1)), along


def _numbers(a: Any, name: str, kind: str, shape: Tuple[int, ...], stream: Optional[int]) -> Tuple[Optional[int], Any, Optional[int]]:
    """The address of numbers of rows, what owns them, and the stream in which all is ready."""
    if a is None:
        return None, None, stream
    plain = _torch.elements(a)
    if plain is not None and plain[2] == TYPE_OF[kind] and plain[3] == stream and a.shape == shape:
        return plain[0], a, stream
    if not hasattr(a, "__dlpack__") and not hasattr(a, "__cuda_array_interface__"):
        a = numpy.asarray(a)
    if isinstance(a, numpy.ndarray) and (a.dtype.kind in ("iu" if kind == "int64" else "iuf") or a.size == 0):
        if a.dtype.kind == "u" and a.size > 0 and int(a.max()) >= 2**63:
            raise ArgumentError(f"{name}: expected int64, found {a.max()}")
        a = a.astype(kind, copy=False)
    if tuple(a.shape) != shape:
        raise ArgumentError(f"{name} of shape {tuple(a.shape)}: expected one for each of this rank's rows, {shape}")
    address, _, number, own, owner = _arrays.elements(a, True)
    if number != TYPE_OF[kind]:
        raise ArgumentError(f"{name} of {NAME_OF[number]}: expected {kind}")
    return address, owner, stream if own is None else own if stream is None else common_stream(stream, own)


class _Given:
    """A call's arguments as the library takes them: in the context's structs. found: what elements_apart says of the logits."""

    def __init__(self, context: Context, logits: Any, found: Tuple[Any, Optional[Tuple[int, ...]]], where: Tuple[Any, Any], targets: Any,
                 ignore_index: Any) -> None:
        if isinstance(logits, Array):
            raise ArgumentError(f"{logits.name}: logits are read at once with their targets: expected an array in memory")
        (address, _, self.type, self.stream, owner), strides = found
        shape, (axis, cut), view = _axes.shape_of(logits), where, context.rows
        self.rows = _rows(shape, axis, cut, context.ranks)
        self.shape = self.rows.results[False]  # of what there is of each row
        assert self.rows.short is not None
        self.owners = [owner]
        view.outer, view.length, view.inner, view.cut = self.rows.short
        view.outer_stride, view.axis_stride = (0, 0) if strides is None else _strides(self.rows, strides)
        view.data, view.type = address, self.type
        self.targets = self.numbers(targets, "targets", "int64")
        self.ignored = None if ignore_index is IGNORED else byref(c_int64(in_range("ignore_index", ignore_index, 2**63 - 1, -2**63)))

    def numbers(self, a: Any, name: str, kind: str) -> Optional[int]:
        address, owner, self.stream = _numbers(a, name, kind, self.shape, self.stream)
        self.owners.append(owner)
        return address

    def call(self, context: Context, own: bool = False) -> int:
        call = context.rows_call
        call.stream, call.own_results = self.stream, own
        return context.rows_call_ref


def _wanted(outputs: Sequence[str], has_targets: bool) -> List[str]:
    unknown = [name for name in outputs if name not in OUTPUTS]
    if unknown or isinstance(outputs, str):
        raise ArgumentError(f"outputs {outputs}: expected some of {', '.join(OUTPUTS)}")
    return [name for name in OUTPUTS if name in outputs and (has_targets or name != "log_prob")]


def _made(context: Context, logits: Any, wanted: List[str], shape: Tuple[int, ...]) -> Dict[str, Any]:
    """New arrays, of which the context's struct has the addresses."""
    found: Dict[str, Any] = {}
    dtypes = _torch.dtypes_for(logits)
    for name, kind in OUTPUTS.items():
        address = None
        if name in wanted:
            made = found[name] = empty(logits, kind, shape) if dtypes is None else logits.new_empty(shape, dtype=dtypes[kind])
            address = address_of(made) if dtypes is None else made.data_ptr()
        setattr(context.rows_output, name, address)
    return found


def log_probs(logits: Any, targets: Any = None, axis: int = -1, comm: Any = None, *, cut: Optional[int] = None, ignore_index: int = IGNORED,
              outputs: Sequence[str] = ("log_prob", "logsumexp", "entropy"), own: bool = False, level: Optional[str] = None) -> LogProbs:
    """Log-probabilities of rows of logits over all ranks, from one read: log_prob of the targets, logsumexp, entropy in nats, argmax.

    targets: int64, of each of this rank's rows an index along the whole axis; if the axis is cut, of all rows, the same on all ranks. A target
    that is ignore_index has log_prob 0. cut: the dimension that the ranks share out; None: the first. outputs: the wanted ones. Arrays are
    of the kind of logits, and lie where they lie. own: as for sums along an axis.

    >>> found = log_probs([[0.0, 0.0], [1.0, 2.0]], [1, 1])
    >>> found.log_prob
    array([-0.69314718, -0.31326169])
    >>> found.entropy
    array([0.69314718, 0.58220311])
    """
    context = context_of(comm, level)
    with context.lock:
        context.check_open()
        try:
            if not hasattr(logits, "shape"):
                logits = numpy.asarray(logits)
            wanted = _wanted(outputs if isinstance(outputs, str) else tuple(outputs), targets is not None)
            given = _Given(context, logits, _arrays.elements_apart(logits), (axis, cut), targets, ignore_index)
            own = bool(own)
        except Exception as error:
            context.fail(error)
        shape = given.shape if given.rows.are_cut() and not own else _axes.shape_of_results(context, given.rows, False, own)
        try:
            found = _made(context, logits, wanted, shape)
        except Exception as error:
            context.fail(error)
        status = lib.allfold_log_probs(context.handle, context.rows_ref, given.targets, given.ignored, given.call(context, own), context.rows_output_ref)
        if status:
            raise context.error(status)
    return LogProbs(**found)


def log_probs_gradient(logits: Any, targets: Any, logsumexp: Any, scale: Any = None, axis: int = -1, comm: Any = None, *,
                       cut: Optional[int] = None, ignore_index: int = IGNORED, out: Any = None, level: Optional[str] = None) -> Any:
    """scale * (softmax - 1 at the target) of each row, 0 in rows whose target is ignored: the gradient of the sum of -scale * log_prob.

    logsumexp: that of log_probs, and scale: float64, both of the rows of targets. out: where the result goes; logits itself is allowed. Otherwise
    a new array like logits is made.

    >>> log_probs_gradient([[0.0, 0.0]], [1], [0.6931471805599453])
    array([[ 0.5, -0.5]])
    """
    context = context_of(comm, level)
    with context.lock:
        context.check_open()
        try:
            if not hasattr(logits, "shape"):
                logits = numpy.asarray(logits)
            source = _arrays.elements(logits, True)  # in C order, as out
            given = _Given(context, logits, (source, None), (axis, cut), targets, ignore_index)
            sums, scales = given.numbers(logsumexp, "logsumexp", "float64"), given.numbers(scale, "scale", "float64")
            if out is None:
                if _arrays.needs_out(logits):
                    raise ArgumentError(f"out: expected an array in device memory, as allfold cannot make one of {type(logits).__name__}")
                out = empty(logits, NAME_OF[given.type], logits.shape)
            made = _arrays.writable(out, logits)
            _functions._check_overlap(source, made)
        except Exception as error:
            context.fail(error)
        status = lib.allfold_log_probs_gradient(context.handle, context.rows_ref, given.targets, given.ignored, sums, scales, made[0], made[2],
                                                given.call(context))
        if status:
            raise context.error(status)
    return out
