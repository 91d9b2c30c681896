"""Arrays in files, and generated ones: allfold.open, and what it gives. This is allfold_files.h, of a library that the first call loads."""
from __future__ import annotations

import ctypes
import operator
import os
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy

from ._context import Context, choice, context_of, in_range
from ._errors import BY_STATUS, ArgumentError, Error, UnsupportedError
from ._library import MISSING_POLICIES, SourceFacts, SourceOptions
from ._mpi import lib
from ._types import NAME_OF, type_of_name

SONAME = "liballfold-files.so.0"
_loaded: List[ctypes.CDLL] = []  # once it is


def _library() -> ctypes.CDLL:
    """From where the other library is."""
    if not _loaded:
        try:
            found = ctypes.CDLL(os.path.join(os.path.dirname(lib._name), SONAME))
        except OSError as error:
            raise UnsupportedError(f"allfold.open needs {SONAME} beside {lib._name}, which cannot be loaded ({error}). `make install` of the C library, "
                                   "which needs json-c, installs it; Debian's package is liballfold-files0") from None
        for name, result, *arguments in (("open", c_int, c_void_p, c_char_p, c_void_p, c_void_p), ("close", None, c_void_p),
                                         ("slice", c_int, c_void_p, c_char_p, c_void_p, c_char_p, c_size_t),
                                         ("describe", None, c_void_p, c_void_p), ("list", c_int, c_void_p, c_char_p, c_void_p, c_void_p)):
            function = getattr(found, f"allfold_source_{name}")
            function.restype, function.argtypes = result, arguments
        _loaded.append(found)
    return _loaded[0]


_free = ctypes.CDLL(None).free
_free.restype, _free.argtypes = None, [c_void_p]


class Array:
    """An array in a file, the same on all ranks. Functions of allfold take it in place of an array, and read it piece by piece: it need not fit
    any memory. The ranks share its elements out themselves. Each call opens the file, and refuses one that was written to meanwhile.

    - shape, ndim, size, dtype: those of the elements; packed ones count as float64
    - names: of the dimensions, which axis may name; None: they have none
    - order: 'C' or 'F'. Indices count the elements in this order: numpy.unravel_index(index, x.shape, x.order)
    - name: FILE, or FILE:NAME

    x[0:120, ..., -10:] is a part of it, an Array of its own, which reads no more than that: slices, indices and an ellipsis, by NumPy's rules,
    without steps.

    >>> import allfold
    >>> x = allfold.open("gen:ramp?n=12", shape=(3, 4))
    >>> x.shape, allfold.sum(x), allfold.sum(x[1:, 0]), allfold.max(x, axis=0).tolist()
    ((3, 4), 66.0, 12.0, [8.0, 9.0, 10.0, 11.0])
    """

    def __init__(self, handle: int, kept: Optional[Tuple[int, ...]] = None) -> None:
        facts = SourceFacts(size=ctypes.sizeof(SourceFacts))
        self._handle: Optional[int] = handle
        _library().allfold_source_describe(handle, byref(facts))
        self._dimensions = facts.rank  # of the source, of which these are shown: an index in x[3] takes one away
        self._kept = tuple(range(facts.rank)) if kept is None else kept
        self.name: str = os.fsdecode(facts.name)
        self.type: int = facts.type
        self.order = "F" if facts.fortran_order else "C"
        self.shape: Tuple[int, ...] = tuple(facts.shape[d] for d in self._kept)
        self.names: Optional[Tuple[str, ...]] = None
        if facts.dimensions:
            self.names = tuple(facts.dimensions[d].decode(errors="replace") for d in self._kept)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for length in self.shape:
            size *= length
        return size

    @property
    def dtype(self) -> Any:
        from ._arrays import _extended
        return numpy.dtype(_extended(NAME_OF[self.type]))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<allfold.Array {self.name!r} {'x'.join(map(str, self.shape)) or 'scalar'}{' closed' if self._handle is None else ''}>"

    def __array__(self, *ignored: Any, **options: Any) -> Any:
        raise ArgumentError(f"{self.name}: an allfold.Array gives its elements to functions of allfold only, piece by piece")

    def __reduce__(self) -> Any:
        raise ArgumentError(f"{self.name}: an allfold.Array cannot be copied or pickled, as it owns memory of the library: open it again by its name")

    def __getitem__(self, key: Any) -> "Array":
        words, kept = [], []
        for dimension, length, part in zip(self._kept, self.shape, _parts(key, self.ndim)):
            if isinstance(part, slice):
                if part.step not in (None, 1):
                    raise ArgumentError(f"{self.name}: expected slices without a step, found {part.step}")
                first, end, _ = part.indices(length)
                words.append(f"{dimension}={first}:{end}")
                kept.append(dimension)
            else:
                index = operator.index(part)
                if not -length <= index < length:
                    raise IndexError(f"index {index} is out of bounds for a dimension of {length}")
                words.append(f"{dimension}={index % length}")
        if not words:
            return self
        found, message = c_void_p(), ctypes.create_string_buffer(1024)
        status = _library().allfold_source_slice(self.handle(), ",".join(words).encode(), byref(found), message, len(message))
        if status:
            raise BY_STATUS.get(status, Error)(message.value.decode(errors="replace"))
        return Array(found.value or 0, tuple(kept))

    def __iter__(self) -> Iterator["Array"]:
        return (self[i] for i in range(len(self)))

    def handle(self) -> int:
        """For the functions."""
        if self._handle is None:
            raise ArgumentError(f"{self.name} is closed: expected an open array")
        return self._handle

    def axes(self, axis: Any) -> Any:
        """With numbers in place of names."""
        if isinstance(axis, str):
            if axis not in (self.names or ()):
                raise ArgumentError(f"axis {axis!r}: expected " + (f"one of {', '.join(self.names)}" if self.names else "a number, as the dimensions "
                                                                    f"of {self.name} have no names"))
            return (self.names or ()).index(axis)
        return tuple(map(self.axes, axis)) if isinstance(axis, (tuple, list)) else axis

    def source_axes(self, axes: Tuple[int, ...]) -> int:
        """The source's dimensions that these are, as bits; of one element, taken by its indices, all."""
        return sum(1 << self._kept[axis] for axis in axes) if self._kept else (1 << self._dimensions) - 1

    def source_strides(self, strides: Tuple[int, ...]) -> List[int]:
        """Of an array of this shape, for the source's dimensions."""
        found = dict(zip(self._kept, strides))
        return [found.get(dimension, 0) for dimension in range(self._dimensions)]

    def close(self) -> None:
        """Frees the description. Local; at the latest when nothing refers to it."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _library().allfold_source_close(handle)

    def __enter__(self) -> "Array":
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and _loaded:
            self.close()


def _parts(key: Any, dimensions: int) -> List[Any]:
    """A slice or an index for each dimension."""
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1 or len(parts) - len(dots) > dimensions:
        raise IndexError(f"expected up to {dimensions} indices{' and one ellipsis' if len(dots) > 1 else ''}, found {len(parts)}")
    at = dots[0] if dots else len(parts)
    return parts[:at] + [slice(None)] * (dimensions - len(parts) + len(dots)) + parts[at + 1:]


class File:
    """The arrays of a file, by their names: file['name'] is an Array. Opening one is collective, as allfold.open is. Arrays that are no numbers are
    left out.

    foreach takes several: allfold.foreach.norm(file.values())
    """

    def __init__(self, name: str, names: List[str], context: Context, options: SourceOptions) -> None:
        self.name = name
        self._names = {name[name.startswith("/"):]: name for name in names}  # those of HDF5 begin with the file's own group
        self._context, self._options = context, options

    def __getitem__(self, name: str) -> Array:
        found = self._names.get(name[name.startswith("/"):])
        if found is None:
            raise KeyError(f"{name}: expected one of {', '.join(self._names)[:200]}")
        with self._context.lock:
            return _open(self._context, f"{self.name}:{found}", self._options)

    def keys(self) -> List[str]:
        return list(self._names)

    def values(self) -> List[Array]:
        return [self[name] for name in self._names]

    def items(self) -> List[Tuple[str, Array]]:
        return [(name, self[name]) for name in self._names]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name[name.startswith("/"):] in self._names

    def __repr__(self) -> str:
        return f"<allfold.File {self.name!r}: {', '.join(self._names)}>"

    def __array__(self, *ignored: Any, **options: Any) -> Any:
        raise ArgumentError(f"{self.name} is a file of {len(self)} arrays: expected one of them, file[NAME], of {', '.join(self._names)[:200]}")

    def close(self) -> None:
        """Nothing is open between calls: for programs that close what they open."""

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()


def _open(context: Context, name: str, options: SourceOptions) -> Array:
    found = c_void_p()
    context.check_open()
    status = _library().allfold_source_open(context.handle, os.fsencode(name), byref(options), byref(found))
    if status:
        raise context.error(status)
    return Array(found.value or 0)


def _names(context: Context, name: str) -> Optional[List[str]]:
    """Of the arrays in the file; None: it is one array."""
    text, count = c_void_p(), c_size_t()
    status = _library().allfold_source_list(context.handle, os.fsencode(name), byref(text), byref(count))
    if status:
        raise context.error(status)
    if not text.value:
        return None
    found, at = [], text.value
    for _ in range(count.value):
        one = ctypes.string_at(at)
        found.append(os.fsdecode(one))
        at += len(one) + 1
    _free(text)
    return found


def _options(missing: str, dtype: Any, shape: Any, offset: int, count: Optional[int]) -> SourceOptions:
    from ._functions import _name_of_dtype
    lengths = None if shape is None else ",".join(str(operator.index(length)) for length in (shape if isinstance(shape, (tuple, list)) else (shape,)))
    return SourceOptions(size=ctypes.sizeof(SourceOptions), missing=choice("missing", MISSING_POLICIES, missing),
                         type=0 if dtype is None else type_of_name(_name_of_dtype(dtype)), offset=in_range("offset", offset, 2**64 - 1),
                         count=0 if count is None else in_range("count", count, 2**64 - 1), shape=None if lengths is None else lengths.encode())


def open(name: Union[str, "os.PathLike[str]"], comm: Any = None, *, missing: str = "omit", dtype: Any = None,
         shape: Union[None, int, Tuple[int, ...]] = None, offset: int = 0, count: Optional[int] = None) -> Union[Array, File]:
    """An Array: the array in a file of that name, array NAME of a file ('FILE:NAME'), the arrays of several files joined ('part-*.npy',
    'y*.nc:tas'), or a generator ('gen:normal?n=1e9'). A file whose arrays have names, such as .npz, HDF5, NetCDF and safetensors, is a File
    of them. Collective over comm; functions of any communicator may then take it. docs/formats.md has the formats.

    missing: what becomes of missing elements: 'omit', 'keep' them as the numbers that they are, or 'error'. dtype, shape, offset (in bytes)
    and count: of a raw file, which needs dtype; of other files of one array shape, offset (in elements) and count, too.
    """
    context = context_of(comm, None)
    with context.lock:
        context.check_open()
        try:
            _library()
            path, options = os.fsdecode(os.fspath(name)), _options(missing, dtype, shape, offset, count)
            if "\0" in path:
                raise ArgumentError(f"{path!r}: a file's name has no NUL")
        except Exception as error:
            context.fail(error)
        names = None if dtype is not None else _names(context, path)  # a raw file has no header
        return _open(context, path, options) if names is None else File(path, names, context, options)
