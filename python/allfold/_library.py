"""The shared library: where it is, its structs and its functions. This is allfold.h once more, for ctypes; tests/test_python.py
compares sizes, offsets and numbers with the header's."""
from __future__ import annotations

import ctypes
import os
from ctypes import c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Dict, List, Tuple

SONAME = "liballfold.so.0"
NO_INDEX = 2**64 - 1

LEVELS = {"exact": 0, "fast": 1}
BACKENDS = {"auto": 0, "cuda": 1, "cpu": 2}
EXCHANGES = {"auto": 0, "mpi": 1}
CUTS = {"outer": 0, "axis": 1, "inner": 2}
NAN_POLICIES = {"propagate": 0, "omit": 1, "raise": 2}
QUANTILE_METHODS = {"linear": 0, "lower": 1, "higher": 2, "nearest": 3, "midpoint": 4}
MISSING_POLICIES = {"omit": 0, "keep": 1, "error": 2}
SOURCE = 1 << 8  # in place of an element type
F64, I64, U64 = range(3)  # allfold_value_kind

Log = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class Number(ctypes.Union):
    _fields_ = [("f64", c_double), ("i64", c_int64), ("u64", c_uint64)]


class Value(ctypes.Structure):
    _anonymous_ = ("number",)
    _fields_ = [("kind", c_int), ("number", Number)]


class Result(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", Value), ("index", c_uint64), ("count", c_uint64), ("level", c_int)]


class Results(ctypes.Structure):
    _fields_ = [("results", ctypes.POINTER(Result)), ("capacity", c_size_t), ("count", c_size_t)]


class Array(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("count", c_uint64), ("type", c_int)]


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("backend", c_int), ("device_memory", c_uint64), ("staging_bytes", c_uint64),
                ("threads", c_int), ("level", c_int), ("exchange", c_int), ("log", Log), ("log_user", c_void_p)]


class Call(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("stream", c_void_p), ("nan", c_int), ("logarithm", c_int), ("result_type", c_int),
                ("ddof", c_uint64), ("own_results", c_int), ("total", c_uint64)]


class Tolerance(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("stream", c_void_p), ("atol", c_double), ("rtol", c_double), ("equal_nan", c_int)]


class Largest(ctypes.Structure):
    _fields_ = [("value", Value), ("index", c_uint64), ("a", Value), ("b", Value)]


class Comparison(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("count", c_uint64), ("different", c_uint64), ("outside", c_uint64), ("nan_a", c_uint64), ("nan_b", c_uint64),
                ("nan_both", c_uint64), ("missing_a", c_uint64), ("missing_b", c_uint64), ("missing_both", c_uint64), ("within", c_int),
                ("has_ulp", c_int), ("max_abs", Largest), ("max_rel", Largest), ("max_ulp", Largest), ("mean_difference", c_double),
                ("rmse", c_double)]


class Quantiles(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("stream", c_void_p), ("q", c_void_p), ("count", c_size_t), ("method", c_int), ("nan", c_int)]


class Top(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("stream", c_void_p), ("k", c_uint64), ("smallest", c_int), ("nan", c_int)]


class Bins(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("stream", c_void_p), ("count", c_uint64), ("edges", c_void_p), ("has_range", c_int), ("low", c_double),
                ("high", c_double)]


class Outside(ctypes.Structure):
    _fields_ = [("count", c_uint64), ("below", c_uint64), ("above", c_uint64), ("nan", c_uint64)]


class View(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("outer", c_uint64), ("length", c_uint64), ("inner", c_uint64), ("outer_stride", c_uint64),
                ("axis_stride", c_uint64), ("type", c_int), ("cut", c_int)]


class ViewNd(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("data", c_void_p), ("rank", c_int), ("shape", ctypes.POINTER(c_uint64)), ("strides", ctypes.POINTER(c_int64)),
                ("axes", c_uint64), ("cut", c_int), ("type", c_int), ("weights", c_void_p), ("weights_strides", ctypes.POINTER(c_int64)),
                ("weights_type", c_int)]


class Output(ctypes.Structure):
    _fields_ = [("values", c_void_p), ("indices", c_void_p)]


class Outputs(ctypes.Structure):
    _fields_ = [("outputs", ctypes.POINTER(Output)), ("count", c_size_t)]


class LogProbsOutput(ctypes.Structure):
    _fields_ = [("log_prob", c_void_p), ("logsumexp", c_void_p), ("entropy", c_void_p), ("argmax", c_void_p)]


class SourceOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("missing", c_int), ("type", c_int), ("offset", c_uint64), ("count", c_uint64), ("shape", c_char_p),
                ("slice", c_char_p)]


class SourceFacts(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("type", c_int), ("count", c_uint64), ("rank", c_int), ("fortran_order", c_int),
                ("shape", ctypes.POINTER(c_uint64)), ("dimensions", ctypes.POINTER(c_char_p))]


def candidates() -> List[str]:
    """Where the library may be, best first."""
    named = os.environ.get("ALLFOLD_LIBRARY")
    if named:
        return [named]
    folder = os.path.dirname(os.path.abspath(__file__))
    folders = [folder]
    try:
        from ._installed import LIBDIR  # type: ignore[import-not-found,unused-ignore]  # by make install: relative to this folder; by pip install: absolute
        folders.append(os.path.normpath(os.path.join(folder, LIBDIR)))
    except ImportError:
        pass
    found = [os.path.join(place, SONAME) for place in folders]
    return [path for path in found if os.path.exists(path)] + [SONAME]


def load() -> ctypes.CDLL:
    reasons = []
    for path in candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
    raise ImportError(f"allfold: no {SONAME} that can be loaded ({'; '.join(reasons)}). Install the C library (make install, then "
                      "ldconfig), put its folder into LD_LIBRARY_PATH, set ALLFOLD_LIBRARY to the file, or install this package by "
                      "`pip install ./python` from the source of allfold, which builds the library for the CPU")


def declare(lib: ctypes.CDLL, comm: type) -> None:
    """The functions' arguments. comm: the C type of MPI_Comm."""
    for name, result, *arguments in (
            ("version", c_char_p), ("type_name", c_char_p, c_int), ("type_bytes", c_size_t, c_int),
            ("fold_name", c_char_p, c_int), ("result_count", c_size_t, c_int), ("message", c_char_p, c_void_p),
            ("open", c_int, comm, c_void_p, c_void_p, c_char_p, c_size_t), ("close", None, c_void_p),
            ("fail", c_int, c_void_p, c_int, c_char_p),
            ("reduce", c_int, c_void_p, c_int, c_void_p, c_void_p, c_void_p),
            ("reduce_all", c_int, c_void_p, c_int, c_void_p, c_void_p, c_void_p),
            ("reduce_many", c_int, c_void_p, c_int, c_void_p, c_size_t, c_void_p, c_void_p),
            ("dot", c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
            ("compare", c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
            ("log_probs", c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
            ("log_probs_gradient", c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_void_p),
            ("quantile", c_int, c_void_p, c_void_p, c_void_p, c_void_p),
            ("topk", c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
            ("histogram", c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
            ("reduce_begin", c_int, c_void_p, c_int, c_void_p, c_void_p, c_void_p),
            ("dot_begin", c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
            ("fail_begin", c_int, c_void_p, c_int, c_char_p, c_void_p), ("reduce_end", c_int, c_void_p, c_uint64, c_void_p),
            ("softmax", c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p),
            ("result_name", c_char_p, c_int, c_size_t), ("result_type", c_int, c_int, c_size_t, c_int, c_int),
            ("reduce_axis", c_int, c_void_p, c_int, c_void_p, c_void_p, c_void_p),
            ("softmax_axis", c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p),
            ("reduce_nd", c_int, c_void_p, c_int, c_void_p, c_void_p, c_void_p),
            ("softmax_nd", c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)):
        try:
            function = getattr(lib, f"allfold_{name}")
        except AttributeError:
            raise ImportError(f"allfold: {lib._name} has no allfold_{name}: this package needs a newer version of it") from None
        function.restype, function.argtypes = result, arguments


def tables(lib: ctypes.CDLL) -> Tuple[Dict[str, int], Dict[str, int]]:
    """The numbers of element types and of folds, by name, as this library has them."""
    types: Dict[str, int] = {}
    folds: Dict[str, int] = {}
    while lib.allfold_type_bytes(len(types) + 1):
        types[lib.allfold_type_name(len(types) + 1).decode()] = len(types) + 1
    while lib.allfold_result_count(len(folds)):
        folds[lib.allfold_fold_name(len(folds)).decode()] = len(folds)
    return types, folds
