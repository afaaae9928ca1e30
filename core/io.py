"""Matrices and vectors in files: Matrix Market, SciPy's .npz, NumPy's .npy and the DLMC's .smtx.

The parsing is SciPy's and NumPy's; what is here finds out what a file is, checks its header
before memory is allocated for it, and turns every failure into an error that names the file.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .errors import (
    InvalidArgument,
    InvalidMatrix,
    ShapeMismatch,
    UnsupportedDtype,
    WollemiError,
)
from .executor import Executor
from .formats import Coo, Csr, Dense, Matrix, validate
from .linop import LinOp

#: No entry of a Matrix Market file is shorter than "1\n" (array) or "1 1\n" (coordinate).
_SHORTEST = {"array": 2, "coordinate": 4}

_BANNER = re.compile(
    rb"%%MatrixMarket\s+matrix\s+(coordinate|array)\s+"
    rb"(real|double|complex|integer|unsigned-integer|pattern)\s+"
    rb"(general|symmetric|skew-symmetric|hermitian)\s*$",
    re.IGNORECASE,
)


#: Fortran writes 1.0D+3, of which SciPy would read 1.0.
_FORTRAN = bytes.maketrans(b"dD", b"eE")

#: What numbers are made of, inf and nan too; SciPy skips what else follows one.
_IN_NUMBERS = b"0123456789+-.eE \t\r\n\f\vnNaAiIfFtTyY"

#: Where SciPy says that a line is wrong.
_LINE = re.compile(r"^Line (\d+): (.*)", re.DOTALL)


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
    with _naming(path):
        entries = _entries(path)
        if isinstance(entries, np.ndarray):
            return Dense(entries[:, None] if entries.ndim == 1 else entries, executor=executor)
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
    path = Path(path)
    with _naming(path):
        entries = _entries(path)
        dense = entries if isinstance(entries, np.ndarray) else np.asarray(entries.toarray())
        dense = validate.values(dense, "values", dense.ndim)
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
    if host.ndim not in (1, 2) or host.dtype.kind not in "buifc":
        raise InvalidArgument(
            f"expected a matrix or a vector of numbers, got {type(matrix).__name__} of shape "
            f"{host.shape} and dtype {host.dtype}"
        )
    if kind == "npz" and not dense:
        save_npz(path, host)
    elif kind == "npy" and dense:
        np.save(path, host)
    elif kind == "mtx":
        columns = host.reshape(-1, 1) if dense and host.ndim == 1 else host
        digits = np.finfo(columns.dtype).precision + 3 if columns.dtype.kind in "fc" else None
        buffer = io.BytesIO()
        mmwrite(buffer, columns, precision=digits, symmetry="general")
        opener = gzip.open if path.name.endswith(".gz") else open
        with opener(path, "wb") as file:
            file.write(buffer.getvalue())
    else:
        raise InvalidArgument(
            f"{path}: {'an array' if dense else 'a sparse matrix'} is not written as .{kind}; use "
            f"{'.mtx or .npy' if dense else '.mtx or .npz'}"
        )


def _kind(path: Path) -> str:
    name = path.name
    for kind in ("mtx", "smtx"):
        if name.endswith((f".{kind}", f".{kind}.gz")):
            return kind
    if name.endswith((".npz", ".npy")):
        return name[-3:]
    raise InvalidArgument(
        f"{path}: unknown kind of file; known are .mtx, .mtx.gz, .npz, .npy, .smtx, .smtx.gz"
    )


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong in a file that can be opened into an InvalidMatrix naming it."""
    kind = _kind(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    path.open("rb").close()  # a folder, or no permission: the system's own error says so
    try:
        yield
    except InvalidMatrix as error:
        known = str(error).startswith(str(path))
        raise error if known else InvalidMatrix(f"{path}: {error}") from error
    except (UnsupportedDtype, ShapeMismatch) as error:
        raise InvalidMatrix(f"{path}: {error}") from error
    except WollemiError:
        raise  # the executor's, not the file's
    except MemoryError as error:
        raise InvalidMatrix(f"{path}: not enough memory for what it announces: {error}") from error
    # parsers that meet a damaged file raise anything: zipfile alone has a dozen kinds
    except Exception as error:
        place = _LINE.match(str(error))
        if place:
            raise InvalidMatrix(f"{path}, line {place[1]}: {place[2]}") from error
        raise InvalidMatrix(
            f"{path}: not a valid .{kind} file: {error or type(error).__name__}"
        ) from error


def _entries(path: Path) -> Any:
    """Return what a file holds as a SciPy sparse matrix or a NumPy array."""
    kind = _kind(path)
    if kind == "npz":
        from scipy.sparse import load_npz

        return load_npz(path)
    if kind == "npy":
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray) or array.ndim not in (1, 2):
            raise InvalidMatrix(f"expected a vector or a matrix, got {np.shape(array)}")
        return array
    content = _content(path)
    return _parse_smtx(content, path) if kind == "smtx" else _parse_mtx(content, path)


def _content(path: Path) -> bytes:
    if not path.name.endswith(".gz"):
        return path.read_bytes()
    with gzip.open(path) as file:
        return file.read()


def _parse_mtx(content: bytes, path: Path) -> Any:
    from scipy.io import mmread

    body = len(content) - _check_header(content, path)
    entries = content[body:].translate(_FORTRAN)
    strange = entries.translate(None, _IN_NUMBERS)
    if strange:
        where = entries.index(strange[:1])
        line = content[:body].count(b"\n") + entries[:where].count(b"\n") + 1
        raise InvalidMatrix(f"{path}, line {line}: {strange[:1]!r} does not belong into a number")
    # SciPy reads beyond the end of a last line that has more than its numbers and no end of its own
    return mmread(io.BytesIO(content[:body] + entries + b"\n"))


def _check_header(content: bytes, path: Path) -> int:
    """Check the banner and the sizes; return how many bytes follow.

    The sizes must be those of a file of this length: nothing is allocated for others.
    """
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
    place = f"{path}, line {number}"
    sizes = _integers(line, place, 3 if layout == "coordinate" else 2)
    if symmetry != "general" and sizes[0] != sizes[1]:
        raise InvalidMatrix(f"{place}: {symmetry}, but {sizes[0]} x {sizes[1]} is not square")
    stored = sizes[2] if layout == "coordinate" else _stored(sizes[0], sizes[1], symmetry)
    if stored * _SHORTEST[layout] > len(rest) + 1:
        raise InvalidMatrix(
            f"{path}: truncated: line {number} announces {stored} entries, and "
            f"{len(rest)} bytes follow"
        )
    _check_memory(sizes[0], place)
    return len(rest)


def _stored(rows: int, columns: int, symmetry: str) -> int:
    """Return how many entries the array layout lists."""
    if symmetry == "general":
        return rows * columns
    return rows * (rows - 1) // 2 if symmetry == "skew-symmetric" else rows * (rows + 1) // 2


def _integers(line: bytes, place: str, count: int) -> list[int]:
    """Return the ``count`` sizes in a line; commas may stand between them."""
    try:
        sizes = [int(word) for word in line.replace(b",", b" ").split()]
    except ValueError:
        sizes = []
    if len(sizes) != count or min(sizes) < 0:
        shown = line[:60].decode(errors="replace")
        raise InvalidMatrix(f"{place}: expected {count} sizes, got {shown!r}")
    if max(sizes) > np.iinfo(np.int64).max:
        raise InvalidMatrix(f"{place}: sizes beyond 64 bits: {sizes}")
    return sizes


def _check_memory(rows: int, place: str) -> None:
    """Refuse row pointers that no memory holds: a file of two lines may announce any number."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if 8 * rows > memory:
        raise InvalidMatrix(
            f"{place}: {rows} rows need {8 * rows / 2**30:.0f} GiB for their pointers alone, and "
            f"this machine has {memory / 2**30:.0f}"
        )


def _parse_smtx(content: bytes, path: Path) -> Any:
    from scipy.sparse import csr_array

    lines = content.splitlines()
    if len(lines) < 2:
        raise InvalidMatrix(f"{path}: truncated: expected 3 lines, got {len(lines)}")
    rows, columns, nnz = _integers(lines[0], f"{path}, line 1", 3)
    # a pattern without entries may lack its third line
    pointers, indices = (
        _index_line(line, f"{path}, line {number}", count)
        for number, line, count in zip((2, 3), (*lines[1:3], b"")[:2], (rows + 1, nnz), strict=True)
    )
    # through our own checks, which name the place of what is wrong
    checked = Csr((np.ones(nnz), indices, pointers), shape=(rows, columns), executor="reference")
    return csr_array((checked.data, checked.indices, checked.indptr), shape=(rows, columns))


def _index_line(line: bytes, place: str, count: int) -> np.ndarray[Any, Any]:
    try:
        numbers = np.array(line.split(), dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise InvalidMatrix(f"{place}: expected integers: {error}") from error
    if numbers.size != count:
        raise InvalidMatrix(f"{place}: line 1 announces {count} numbers here, found {numbers.size}")
    return numbers
