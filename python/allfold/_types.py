"""Element types and folds by the library's names and NumPy's, and their numbers."""
from __future__ import annotations

from . import _library
from ._errors import ArgumentError
from ._mpi import lib

TYPES, FOLDS = _library.tables(lib)  # by the library's names
_SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
FLOATS = tuple(_SHORT)
TYPE_OF = {long: TYPES[short] for long, short in _SHORT.items()}  # by NumPy's names
TYPE_OF.update((name, number) for name, number in TYPES.items() if name not in _SHORT.values())
NAME_OF = {number: name for name, number in TYPE_OF.items()}
BYTES_OF = {number: int(lib.allfold_type_bytes(number)) for number in NAME_OF}


def type_of_name(name: str) -> int:
    try:
        return TYPE_OF[name]
    except KeyError:
        raise ArgumentError(f"element type {name}: expected one of {', '.join(TYPE_OF)}") from None
