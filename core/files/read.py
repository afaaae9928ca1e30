"""Reading of matrices and vectors from files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from ..errors import (
    InvalidMatrix,
    OutOfDeviceMemory,
    ShapeMismatch,
    UnsupportedDtype,
    WollemiError,
)
from ..executor import Executor
from ..formats import Dense, Matrix, validate
from . import harwell_boeing, matlab, matrix_market, numpy_files, smtx, text
from .entries import Compressed, Coordinates, HostArray, in_format, known_format
from .source import PLAIN, Source, truncated

Readable = str | os.PathLike[str] | IO[bytes] | IO[str]

_PARSERS = {
    "mtx": matrix_market.parse,
    "smtx": smtx.parse,
    "hb": harwell_boeing.parse,
    "mat": matlab.parse,
    "npz": numpy_files.parse_npz,
    "npy": numpy_files.parse_npy,
    **dict.fromkeys(PLAIN, text.parse),
}


def read(file: Readable, *, format: str | None = None, executor: Any = None) -> Any:
    """Read a matrix from a file.

    Parameters
    ----------
    file : str, Path or open file
        ``.mtx`` (Matrix Market), ``.npz`` (``scipy.sparse.save_npz``), ``.npy``, ``.smtx`` (DLMC: a
        pattern, its values are ones), ``.hb``, ``.rb`` or the type of the matrix such as ``.rua``
        (Harwell-Boeing, Rutherford-Boeing), or ``.mat`` (MATLAB before 7.3: the only sparse matrix
        in the file, or ``Problem.A`` as in the SuiteSparse Matrix Collection). ``.txt``, ``.dat``
        and ``.csv`` contain the numbers of a vector or of a dense matrix. The text formats may be
        compressed: ``.gz``, ``.bz2``, ``.xz``. The suffix of a path determines the kind; for an
        open file the first bytes do. It is read from its current position and left open.
    format : str, optional
        Format of the matrix: ``"csr"``, ``"coo"``, ``"csc"``, ``"ell"``, ``"sellp"``, ``"hybrid"``,
        ``"bsr"`` or ``"dense"``. ``"coo"`` keeps duplicates and needs no memory for empty rows; the
        other formats sum duplicates.
    executor : Executor, str or Group, optional
        Executor of the matrix; the default executor by default. The members of a group read the
        file together, see :mod:`wollemi.distributed`.

    Returns
    -------
    Csr or Dense, or a matrix of the format
        Dense for the array layout. Explicit zeros are kept; integers become float64, and patterns
        become ones.

    Raises
    ------
    InvalidMatrix
        If the file violates its format: it is malformed or truncated, its header does not fit its
        size, or the matrix needs more memory than available. Also if row pointers take more than
        256 MiB and 16 times the memory of the entries, and no format was requested.
    InvalidArgument
        If the kind of file or the format is unknown.
    MissingFile
        If the file does not exist; it is a ``FileNotFoundError`` too. Other errors of the system
        are not converted.

    Examples
    --------
    >>> import tempfile, os, numpy as np, wollemi as wl
    >>> path = os.path.join(tempfile.mkdtemp(), "a.mtx")
    >>> wl.write(path, wl.Csr(np.array([[2.0, 0.0], [1.0, 3.0]])))
    >>> wl.read(path).nnz
    3
    >>> with open(path, "rb") as file:
    ...     wl.read(file, format="coo").format
    'coo'
    """
    known_format(format)
    if hasattr(executor, "run") and not isinstance(executor, Executor):
        from ..distributed.reading import read as read_together

        result: Matrix = read_together(file, executor, format=format)
        return result
    source = Source(file)
    with _naming(source):
        entries = _entries(source)
        if isinstance(entries, np.ndarray):
            dense = Dense(entries[:, None] if entries.ndim == 1 else entries, executor=executor)
            return in_format(dense, format or "dense")
        return entries.matrix(format, executor)


def read_vector(file: Readable) -> HostArray:
    """Read a vector, or a block of vectors, as a NumPy array of shape (n,) or (n, k).

    Parameters
    ----------
    file : str, Path or open file
        Any file that :func:`read` accepts, such as a text with one number per line; a sparse matrix
        is converted to a dense array.

    Raises
    ------
    InvalidMatrix
        As in :func:`read`, and if the dense array needs more memory than available.
    """
    source = Source(file)
    with _naming(source):
        entries = _entries(source)
        dense = entries if isinstance(entries, np.ndarray) else entries.dense()
        dense = validate.values(dense, "values", dense.ndim)
    return dense[:, 0] if dense.ndim == 2 and dense.shape[1] == 1 else dense


def _entries(source: Source) -> HostArray | Coordinates | Compressed:
    """Return the contents of a file."""
    with source.open() as stream:
        return _PARSERS[source.kind](stream, source)


@contextmanager
def _naming(source: Source) -> Iterator[None]:
    """Convert every error in a readable file to an InvalidMatrix that names the file."""
    name = source.name
    try:
        yield
    except InvalidMatrix as error:
        known = str(error).startswith(name)
        raise error if known else InvalidMatrix(f"{name}: {error}") from error
    except (UnsupportedDtype, ShapeMismatch) as error:
        raise InvalidMatrix(f"{name}: {error}") from error
    except OutOfDeviceMemory as error:
        raise OutOfDeviceMemory(f"{name}: {error}") from error
    except WollemiError:
        raise  # an error of the executor, not of the file
    except MemoryError as error:
        raise InvalidMatrix(f"{name}: not enough memory for its announced size: {error}") from error
    except EOFError as error:  # from decompressors of Python and NumPy
        raise truncated(name, "the end of its data is missing") from error
    except Exception as error:
        # For a folder, missing permission or a broken disk, the system's own error is informative.
        # But decompressors raise OSError without a number, and in a damaged archive zipfile seeks
        # to an invalid position, which gives EINVAL.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        kind = f".{source.kind} file" if source.kind else "file"
        raise InvalidMatrix(
            f"{name}: not a valid {kind}: {error or type(error).__name__}"
        ) from error
