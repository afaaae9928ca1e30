"""Reading: a file to a matrix or a vector."""

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
        ``.mtx`` (Matrix Market), ``.npz`` (``scipy.sparse.save_npz``), ``.npy``, ``.smtx`` (DLMC:
        a pattern, its values are ones), ``.hb``, ``.rb`` or the type of the matrix such as ``.rua``
        (Harwell-Boeing, Rutherford-Boeing), or ``.mat`` (MATLAB before 7.3: the only sparse matrix
        in the file, or ``Problem.A`` as in the SuiteSparse Matrix Collection). ``.txt``, ``.dat``
        and ``.csv`` have the numbers of a vector or of a dense matrix. The text formats may be
        compressed: ``.gz``, ``.bz2``, ``.xz``. The ending of a path decides, or the first bytes
        of an open file; it is read from its current position and left open.
    format : str, optional
        Of the matrix: ``"csr"``, ``"coo"``, ``"csc"``, ``"ell"``, ``"sellp"``, ``"hybrid"``,
        ``"bsr"`` or ``"dense"``. ``"coo"`` keeps entries of one position apart, others add them up,
        and needs no memory for rows without entries.
    executor : Executor, str or Group, optional
        Where it goes; the default executor by default. The members of a group read it together,
        see :mod:`wollemi.distributed`.

    Returns
    -------
    Csr or Dense, or a matrix of the format
        Dense for the array format; explicit zeros stay. Integers become float64, patterns ones.

    Raises
    ------
    InvalidMatrix
        If the file does not follow its format: malformed, truncated, with a header that does not
        fit its size, or with one that needs more memory than there is. Also if there are 16 times
        more row pointers than entries, beyond 256 MiB of them, and no format was asked for.
    InvalidArgument
        If the kind of file or the format is unknown.
    MissingFile
        If there is none; it is a ``FileNotFoundError`` too. Other errors of the system stay.

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

        made: Matrix = read_together(file, executor, format=format)
        return made
    source = Source(file)
    with _naming(source):
        entries = _entries(source)
        if isinstance(entries, np.ndarray):
            dense = Dense(entries[:, None] if entries.ndim == 1 else entries, executor=executor)
            return in_format(dense, format or "dense")
        return entries.matrix(format, executor)


def read_vector(file: Readable) -> HostArray:
    """Read a vector, or a block of them, as a NumPy array of shape (n,) or (n, k).

    Parameters
    ----------
    file : str, Path or open file
        Any file that :func:`read` takes, such as a text with one number on each line; a sparse one
        is made dense.

    Raises
    ------
    InvalidMatrix
        As :func:`read`, and if the dense array needs more memory than there is.
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
    """Turn every error in a file that can be opened into an InvalidMatrix naming it."""
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
        raise  # the executor's, not the file's
    except MemoryError as error:
        raise InvalidMatrix(f"{name}: not enough memory for its announced size: {error}") from error
    except EOFError as error:  # the decompressors of Python and NumPy
        raise truncated(name, "the end of its data is missing") from error
    except Exception as error:
        # A folder, no permission, a broken disk: the system's own error says so. But decompressors
        # raise OSError without a number, and zipfile, which goes to where a damaged archive says
        # that its parts are, is told that an argument is invalid.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        kind = f".{source.kind} file" if source.kind else "file"
        raise InvalidMatrix(
            f"{name}: not a valid {kind}: {error or type(error).__name__}"
        ) from error
