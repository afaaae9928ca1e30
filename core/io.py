"""Matrices and vectors in files: Matrix Market, SciPy's .npz, NumPy's .npy and the DLMC's .smtx.

The parsing is SciPy's and NumPy's; what is here finds out what a file is, checks its header
before memory is allocated for it, and turns every failure into an error that names the file.
"""

from __future__ import annotations

import gzip
import io
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InvalidArgument, InvalidMatrix
from .executor import Executor
from .formats import Coo, Csr, Dense, Matrix
from .linop import LinOp

#: No entry of a Matrix Market file is shorter than "1\n" (array) or "1 1\n" (coordinate).
_SHORTEST = {"array": 2, "coordinate": 4}

_BANNER = re.compile(
    rb"%%MatrixMarket\s+matrix\s+(coordinate|array)\s+"
    rb"(real|double|complex|integer|unsigned-integer|pattern)\s+"
    rb"(general|symmetric|skew-symmetric|hermitian)\s*$",
    re.IGNORECASE,
)


def read(path: str | Path, *, executor: Executor | str | None = None) -> Matrix:
    """Read a matrix from a file.

    Parameters
    ----------
    path : str or Path
        ``.mtx`` (Matrix Market), ``.npz`` (``scipy.sparse.save_npz``), ``.npy`` or ``.smtx``
        (DLMC: a pattern, its values are ones); the text formats may be compressed, ``.gz``.
    executor : Executor or str, optional
        Where it goes; the default executor by default.

    Returns
    -------
    Csr or Dense
        Dense for the array format; explicit zeros stay.

    Raises
    ------
    InvalidMatrix
        If the file is not what it says it is: malformed, truncated, or with a header that its
        size belies.
    FileNotFoundError
        If there is none.

    Examples
    --------
    >>> import tempfile, os, numpy as np, wollemi as wl
    >>> path = os.path.join(tempfile.mkdtemp(), "a.mtx")
    >>> wl.write(path, wl.Csr(np.array([[2.0, 0.0], [1.0, 3.0]])))
    >>> wl.read(path).nnz
    3
    """
    path = Path(path)
    entries = _read_any(path)
    if isinstance(entries, np.ndarray):
        return Dense(entries.reshape(entries.shape[0], -1), executor=executor)
    return Csr(entries, executor=executor)


def read_vector(path: str | Path) -> np.ndarray[Any, Any]:
    """Read a vector, or a block of them, as a NumPy array of shape (n,) or (n, k).

    Parameters
    ----------
    path : str or Path
        Any file that :func:`read` takes; a sparse one is made dense.

    Raises
    ------
    InvalidMatrix
        As :func:`read`.
    """
    entries = _read_any(Path(path))
    dense = entries if isinstance(entries, np.ndarray) else np.asarray(entries.toarray())
    return dense[:, 0] if dense.ndim == 2 and dense.shape[1] == 1 else dense


def write(path: str | Path, matrix: Any) -> None:
    """Write a matrix or a vector to a file.

    Parameters
    ----------
    path : str or Path
        ``.mtx``, ``.mtx.gz``, ``.npz`` (sparse) or ``.npy`` (dense).
    matrix : matrix or array
        What to write; all its digits are kept.

    Raises
    ------
    InvalidArgument
        If the ending is unknown or does not fit.
    """
    from scipy.io import mmwrite
    from scipy.sparse import save_npz

    path = Path(path)
    kind = _kind(path)
    if isinstance(matrix, Dense):
        host: Any = matrix.to_dense()
    elif isinstance(matrix, Matrix):
        host = (matrix if isinstance(matrix, Coo) else matrix.asformat("csr")).to_scipy()
    elif isinstance(matrix, LinOp):
        raise InvalidArgument(f"{matrix!r} has no entries to write; convert it to a matrix")
    else:
        from .operands import to_host

        host = matrix if hasattr(matrix, "tocsr") else to_host(matrix)
    dense = isinstance(host, np.ndarray)
    if kind == "npz" and not dense:
        save_npz(path, host)
    elif kind == "npy" and dense:
        np.save(path, host)
    elif kind == "mtx":
        columns = host.reshape(-1, 1) if dense and host.ndim == 1 else host
        digits = np.finfo(columns.dtype).precision + 3 if columns.dtype.kind in "fc" else None
        buffer = io.BytesIO()
        mmwrite(buffer, columns, precision=digits, symmetry="general")
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "wb") as file:
            file.write(buffer.getvalue())
    else:
        raise InvalidArgument(
            f"{path}: {'an array' if dense else 'a sparse matrix'} is not written as .{kind}; use "
            f"{'.mtx or .npy' if dense else '.mtx or .npz'}"
        )


def _kind(path: Path) -> str:
    suffixes = path.suffixes[-2:]
    kind = suffixes[-2] if suffixes and suffixes[-1] == ".gz" and len(suffixes) > 1 else path.suffix
    if kind not in (".mtx", ".npz", ".npy", ".smtx"):
        raise InvalidArgument(
            f"{path}: unknown kind of file; known are .mtx, .mtx.gz, .npz, .npy, .smtx, .smtx.gz"
        )
    return kind[1:]


def _read_any(path: Path) -> Any:
    """Return what a file holds as a SciPy sparse matrix or a NumPy array."""
    kind = _kind(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    try:
        if kind == "npz":
            from scipy.sparse import load_npz

            return load_npz(path)
        if kind == "npy":
            return np.load(path, allow_pickle=False)
        content = _content(path)
        return _parse_smtx(content, path) if kind == "smtx" else _parse_mtx(content, path)
    except InvalidMatrix:
        raise
    except (ValueError, OverflowError, KeyError, EOFError, MemoryError) as error:
        raise InvalidMatrix(f"{path}: not a valid .{kind} file: {error}") from error
    except (zipfile.BadZipFile, zlib.error) as error:
        raise InvalidMatrix(f"{path}: damaged: {error}") from error


def _content(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except (gzip.BadGzipFile, EOFError) as error:
        raise InvalidMatrix(f"{path}: damaged or truncated: {error}") from error


def _parse_mtx(content: bytes, path: Path) -> Any:
    from scipy.io import mmread

    _check_header(content, path)
    return mmread(io.BytesIO(content))


def _check_header(content: bytes, path: Path) -> None:
    """Check the banner, and that the sizes can be those of a file of this length."""
    banner, _, rest = content.partition(b"\n")
    match = _BANNER.match(banner.strip())
    if match is None:
        shown = banner[:60].decode(errors="replace")
        raise InvalidMatrix(
            f"{path}, line 1: expected '%%MatrixMarket matrix ...' with a known field and "
            f"symmetry, got {shown!r}"
        )
    layout, symmetry = match[1].decode().lower(), match[3].decode().lower()
    number = 2
    while rest:
        line, _, rest = rest.partition(b"\n")
        if line.strip() and not line.lstrip().startswith(b"%"):
            break
        number += 1
    else:
        raise InvalidMatrix(f"{path}: truncated: there is no line with the sizes")
    expected = 3 if layout == "coordinate" else 2
    try:
        sizes = [int(word) for word in line.split()]
    except ValueError:
        sizes = []
    if len(sizes) != expected or min(sizes) < 0:
        raise InvalidMatrix(
            f"{path}, line {number}: expected {expected} sizes, got "
            f"{line[:60].decode(errors='replace')!r}"
        )
    if layout == "coordinate":
        stored = sizes[2]
    else:
        full = sizes[0] * sizes[1]
        stored = full if symmetry == "general" else full // 2
    if max(sizes) > np.iinfo(np.int64).max:
        raise InvalidMatrix(f"{path}, line {number}: sizes beyond 64 bits: {sizes}")
    if stored * _SHORTEST[layout] > len(rest) + 1:
        raise InvalidMatrix(
            f"{path}: truncated: line {number} announces {stored} entries, and "
            f"{len(rest)} bytes follow"
        )


def _parse_smtx(content: bytes, path: Path) -> Any:
    from scipy.sparse import csr_array

    lines = content.decode("ascii", errors="replace").splitlines()
    if len(lines) < 2:
        raise InvalidMatrix(f"{path}: truncated: expected 3 lines, got {len(lines)}")
    sizes = [int(word) for word in lines[0].replace(",", " ").split()]
    if len(sizes) != 3 or min(sizes) < 0:
        raise InvalidMatrix(f"{path}, line 1: expected 'rows, columns, entries', got {lines[0]!r}")
    rows, columns, nnz = sizes
    pointers, indices = (np.array(line.split(), dtype=np.int64) for line in (*lines[1:3], "")[:2])
    if pointers.size != rows + 1 or indices.size != nnz:
        raise InvalidMatrix(
            f"{path}: line 1 announces {rows + 1} pointers and {nnz} indices, found "
            f"{pointers.size} and {indices.size}"
        )
    # through our own checks, which name the place of what is wrong
    checked = Csr((np.ones(nnz), indices, pointers), shape=(rows, columns), executor="reference")
    return csr_array((checked.data, checked.indices, checked.indptr), shape=(rows, columns))
