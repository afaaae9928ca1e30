"""MATLAB's .mat files of versions 4 to 7, read by SciPy: one sparse matrix, or one array.

The SuiteSparse Matrix Collection stores a matrix as member ``A`` of a structure ``Problem``.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from ..dtypes import NUMBER_KINDS
from ..errors import InvalidMatrix
from .entries import Coordinates, HostArray
from .memory import require
from .source import CHUNK, Source

#: Bytes before the first element in a file of version 5 to 7, and bytes of an element's tag.
_START, _TAG = 128, 8

#: The type code of a compressed element.
_COMPRESSED = 15

#: The first bytes of an HDF5 file of version 7.3.
_VERSION_7_3 = b"MATLAB 7.3"

#: Names of the structure and its matrix in the SuiteSparse Matrix Collection.
_PROBLEM, _MATRIX = "Problem", "A"

_NUMBERS = ("double", "single", "logical", "int8", "uint8", "int16", "uint16", "int32", "uint32",
            "int64", "uint64")  # fmt: skip


def parse(stream: IO[bytes], source: Source) -> HostArray | Coordinates:
    """Return the matrix of a file.

    Raises
    ------
    InvalidMatrix
        If the file has no matrix or several, has version 7.3, is damaged, or needs more memory than
        available.
    """
    from scipy.io import loadmat, whosmat

    file: Any = io.BytesIO(stream.read())  # SciPy's stubs allow only paths
    if file.getbuffer()[: len(_VERSION_7_3)] == _VERSION_7_3:
        raise InvalidMatrix(
            f"{source.name}: a file of MATLAB 7.3 is HDF5, which is not read: "
            "write it with save(..., '-v7')"
        )
    require(_inflated(file.getbuffer()), f"{source.name}: its variables need")
    there = {name: (shape, kind) for name, shape, kind in whosmat(file)}
    name = _chosen(there, source.name)
    file.seek(0)
    found = loadmat(file, variable_names=[name], spmatrix=False)[name]
    if name == _PROBLEM:
        found = _member(found, source.name)
    return _entries(found, name)


def _chosen(there: Mapping[str, tuple[object, str]], file: str) -> str:
    """Return the name of the variable to read."""
    if there.get(_PROBLEM, (None, ""))[1] == "struct":
        return _PROBLEM
    for kinds in (("sparse",), _NUMBERS):
        found = [name for name, (_, kind) in there.items() if kind in kinds]
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidMatrix(
                f"{file}: expected one matrix, got {', '.join(found[:8])}: save one alone, or "
                "read them with scipy.io.loadmat"
            )
    raise InvalidMatrix(f"{file}: expected a matrix, got {', '.join(there) or 'no variable'}")


def _member(problem: Any, file: str) -> Any:
    """Return the matrix in a structure of the SuiteSparse Matrix Collection."""
    names = problem.dtype.names or ()
    if _MATRIX not in names or problem.size != 1:
        raise InvalidMatrix(f"{file}: {_PROBLEM} has no member {_MATRIX}, only {', '.join(names)}")
    return problem[_MATRIX].ravel()[0]


def _entries(value: Any, name: str) -> HostArray | Coordinates:
    if isinstance(value, np.ndarray):
        if value.ndim != 2 or value.dtype.kind not in NUMBER_KINDS:
            raise InvalidMatrix(f"{name}: expected a matrix, got {value.dtype} of {value.shape}")
        return value
    return Coordinates(value.tocoo())


def _inflated(data: memoryview) -> int:
    """Return the decompressed size of all variables in bytes, without storing them."""
    total, at = 0, _START
    order: Any = "little" if bytes(data[126:128]) == b"IM" else "big"
    while at + _TAG <= len(data):
        kind = int.from_bytes(data[at : at + 4], order)
        size = int.from_bytes(data[at + 4 : at + _TAG], order)
        body = data[at + _TAG : at + _TAG + size]
        total += _inflated_size(body) if kind == _COMPRESSED else len(body)
        at += _TAG + size
    return total


def _inflated_size(compressed: memoryview) -> int:
    total, inflate = 0, zlib.decompressobj()
    left: bytes | memoryview = compressed
    while left and not inflate.eof:
        total += len(inflate.decompress(left, CHUNK))
        left = inflate.unconsumed_tail
    return total
