"""Writing of matrices and vectors to files."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from ..dtypes import NUMBER_KINDS
from ..errors import InvalidArgument, MissingFile
from ..formats import Coo, Dense, Matrix
from ..linop import LinOp
from ..operands import to_host
from .source import PLAIN, kind_of

_OPENERS: dict[str, Callable[..., Any]] = {
    "": open,
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


def write(path: str | Path, matrix: Any) -> None:
    """Write a matrix or a vector to a file.

    Parameters
    ----------
    path : str or Path
        ``.mtx`` (also ``.mtx.gz``, ``.mtx.bz2``, ``.mtx.xz``) for all matrices; ``.npz`` for sparse
        ones; ``.npy``, ``.txt``, ``.dat`` and ``.csv`` for dense ones (the texts also compressed).
    matrix : matrix or array
        The matrix or vector; all digits are written.

    Raises
    ------
    InvalidArgument
        If the suffix is unknown or does not fit the matrix.
    MissingFile
        If the folder of the file does not exist; it is a ``FileNotFoundError`` too.

    Examples
    --------
    >>> import tempfile, os, numpy as np, wollemi as wl
    >>> path = os.path.join(tempfile.mkdtemp(), "b.mtx.gz")
    >>> wl.write(path, np.array([1.0, 2.0]))
    >>> wl.io.read_vector(path)
    array([1., 2.])
    """
    from scipy.io import mmwrite
    from scipy.sparse import save_npz

    path = Path(path)
    kind, compression = kind_of(path)
    if not path.parent.is_dir():
        raise MissingFile(
            f"{path}: the folder {path.parent.absolute()} does not exist; make it first: "
            f"Path({str(path.parent)!r}).mkdir(parents=True)"
        )
    host = _on_host(matrix)
    dense = isinstance(host, np.ndarray)
    if host.ndim not in (1, 2) or host.dtype.kind not in NUMBER_KINDS:
        solution = "; write its x" if hasattr(matrix, "x") else ""
        raise InvalidArgument(
            f"expected a matrix or a vector of numbers, got {type(matrix).__name__} of shape "
            f"{host.shape} and dtype {host.dtype}{solution}"
        )
    if kind == "npz" and not dense:
        save_npz(path, host)
    elif kind == "npy" and dense:
        np.save(path, host)
    elif kind == "mtx":
        columns = host.reshape(-1, 1) if dense and host.ndim == 1 else host
        digits = _digits(columns.dtype)
        with _OPENERS[compression](path, "wb") as file:
            mmwrite(
                cast("IO[bytes]", _Forward(file)), columns, precision=digits, symmetry="general"
            )
    elif kind in PLAIN and dense:
        with _OPENERS[compression](path, "wb") as file:
            shown = "%d" if host.dtype.kind in "biu" else f"%.{_digits(host.dtype)}g"
            np.savetxt(file, host, fmt=shown, delimiter="," if kind == "csv" else " ")
    else:
        raise InvalidArgument(
            f"{path}: {'an array' if dense else 'a sparse matrix'} is not written as .{kind}; use "
            f"{'.mtx or .npy' if dense else '.mtx or .npz'}"
        )


def _digits(dtype: Any) -> int | None:
    """Return the digits that distinguish all numbers of a dtype; None for integers."""
    return int(np.finfo(dtype).precision) + 3 if dtype.kind in "fc" else None


class _Forward:
    """A file for SciPy's writer, which seeks; compressed files cannot seek."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write, self.flush = file.write, file.flush

    def seek(self, offset: int, whence: int = 0) -> None:
        """Do nothing: SciPy only ensures that it is at the end."""


def _on_host(matrix: Any) -> Any:
    """Return the object that SciPy or NumPy can write."""
    if isinstance(matrix, Dense):
        return matrix.to_dense()
    if isinstance(matrix, Matrix):
        return (matrix if isinstance(matrix, Coo) else matrix.asformat("csr")).to_scipy()
    if isinstance(matrix, LinOp):
        raise InvalidArgument(
            f"{matrix!r}{matrix._no_entries} has no entries to write; convert it to a matrix"
        )
    return matrix if hasattr(matrix, "tocsr") else to_host(matrix)
