"""Conversions between formats: each format can be converted to CSR, and CSR to each format.

Native kernels do the two conversions that move every entry (COO to CSR, and the transpose). The
others use array functions of the executor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import MAKES
from ..dtypes import COMPUTED, index_dtype
from ..errors import InvalidArgument, OutOfDeviceMemory
from ..host import available_memory
from ..operations import rows as row_operations
from ..operations import scan, structure
from ..registry import entry_points
from ..small_values import for_zero_tests
from ..suggest import hint
from . import base
from .base import Matrix
from .bsr import Bsr
from .coo import Coo
from .csc import Csc
from .csr import Csr
from .dense import Dense
from .diagonal import Diagonal
from .ell import Ell
from .hybrid import QUANTILE, Hybrid
from .rowwise import is_hypersparse, row_bounds
from .sellp import SLICE_SIZE, WINDOW, Sellp
from .stored import StoredCsr, widened

if TYPE_CHECKING:
    from ..executor import Array

#: The entry-point group in which other packages declare formats.
ENTRY_POINT_GROUP = "wollemi.formats"

#: Size in bytes below which a conversion does not query the available memory; a query takes 50
#: microseconds.
_WORTH_ASKING = 1 << 28

#: Number of per-row arrays that a conversion holds at the same time.
_AT_ONCE = 4

#: All formats by name.
FORMATS: dict[str, type[Matrix]] = {
    cls.format: cls for cls in (Csr, Csc, Coo, Ell, Sellp, Hybrid, Bsr, Dense, Diagonal, StoredCsr)
}

_TO_CSR: dict[str, Callable[[Any], Csr]] = {}
_FROM_CSR: dict[str, Callable[..., Matrix]] = {}

#: Direct conversions by the names of both formats. They avoid arrays of row pointers, because there
#: may be far more rows than entries.
_DIRECTLY: dict[tuple[str, str], Callable[[Any], Matrix]] = {}


#: Formats of other libraries, as host arrays. A registered format of the same name takes
#: precedence.
HOST_FORMATS: dict[str, Callable[[Matrix], Any]] = {
    "array": lambda matrix: matrix.to_dense(),
    "dia": lambda matrix: matrix.to_scipy().todia(),
    "dok": lambda matrix: matrix.to_scipy().todok(),
    "lil": lambda matrix: matrix.to_scipy().tolil(),
}


def convert(matrix: Matrix, format: str, **options: Any) -> Matrix:
    """Return ``matrix`` in another format; itself if it has the format and the options.

    Raises
    ------
    InvalidArgument
        If the format does not exist, or if it has no such option.
    """
    asked = {name: value for name, value in options.items() if value is not None}
    if matrix.format == format and all(
        getattr(matrix, name, None) == value for name, value in asked.items()
    ):
        return matrix
    if format not in ("csr", *_FROM_CSR):
        load_format(format)
    if format not in ("csr", *_FROM_CSR):
        known = ", ".join(sorted({"csr", *_FROM_CSR}))
        raise InvalidArgument(
            f"no conversion to {format!r}; {hint(format, ('csr', *_FROM_CSR))}formats: {known}; "
            f"on the host {', '.join(HOST_FORMATS)}"
        )
    matrix.executor.refuse_capture(MAKES)
    require_memory(matrix, format)
    direct = _DIRECTLY.get((matrix.format, format))
    if direct is not None and not asked:
        return direct(matrix)._following(matrix)
    csr = matrix if isinstance(matrix, Csr) else _TO_CSR[matrix.format](matrix)
    if format == "csr":
        if asked:
            raise InvalidArgument(f"csr has no options, got {', '.join(asked)}")
        return csr._following(matrix)
    try:
        return _FROM_CSR[format](csr, **options)._following(matrix)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        unknown = str(error).rpartition(" ")[2]
        raise InvalidArgument(f"{format} has no option {unknown}") from None


def require_memory(matrix: Matrix, format: str) -> None:
    """Raise OutOfDeviceMemory if host memory cannot hold the arrays that the shape requires.

    A GPU reports this itself when memory is allocated.
    """
    rows, columns = matrix.shape
    if format == "dense":
        nbytes = 2 * matrix.dtype.itemsize * rows * columns
    else:
        length = max(rows, columns) if "csc" in (format, matrix.format) else rows
        if (matrix.format, format) in _DIRECTLY:
            length = columns
        nbytes = _AT_ONCE * matrix.index_dtype.itemsize * length
    if nbytes > _WORTH_ASKING and matrix.executor.xp is np and nbytes > available_memory():
        raise OutOfDeviceMemory(
            f"a {rows} x {columns} matrix in {format} format takes {nbytes / 2**30:.3g} GiB for "
            f"its shape alone while it is made, and {available_memory() / 2**30:.3g} GiB are "
            f"available on {matrix.executor.name}"
        )


def load_format(name: str) -> None:
    """Import the package that declares a format of that name by an entry point, if any.

    Raises
    ------
    InvalidArgument
        If the package cannot be imported, or does not register the format.
    """
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name != name or name in FORMATS:
            continue
        try:
            point.load()
        except Exception as error:
            raise InvalidArgument(
                f"{ENTRY_POINT_GROUP}: {point.name} = {point.value} could not be imported: "
                f"{error}; repair or uninstall the package that declares it"
            ) from error
        if name not in FORMATS:
            raise InvalidArgument(
                f"{ENTRY_POINT_GROUP}: {point.value} registers no format {name!r}: the name of the "
                "entry point is that of the class, `format`, and its module calls register_format"
            )


def register_format(
    cls: type[Matrix],
    to_csr: Callable[[Any], Csr],
    from_csr: Callable[..., Matrix] | None = None,
) -> None:
    """Register a format for ``asformat``, conversions and files.

    Parameters
    ----------
    cls : type
        The class; ``cls.format`` is its name.
    to_csr : callable
        Converts a matrix of the format to a :class:`wollemi.Csr` on the same executor.
    from_csr : callable, optional
        Converts a :class:`wollemi.Csr`, which may have unsorted rows and duplicates; it gets
        options of the format by name. Without it there are no conversions to the format.

    Raises
    ------
    InvalidArgument
        If another format has that name.
    """
    taken = FORMATS.setdefault(cls.format, cls)
    if taken is not cls and _place(taken) != _place(cls):  # a notebook cell may run again
        raise InvalidArgument(
            f"there is a format {cls.format!r} already, {taken.__module__}.{taken.__qualname__}; "
            "choose another name"
        )
    FORMATS[cls.format] = cls
    _TO_CSR[cls.format] = to_csr
    if from_csr is not None:
        _FROM_CSR[cls.format] = from_csr


def _place(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


# ---- to CSR


def _csc_to_csr(matrix: Csc) -> Csr:
    return matrix._new_rows()


def _coo_to_csr(matrix: Coo) -> Csr:
    return rows_of(matrix).without_duplicates()


def _coo_to_csc(matrix: Coo) -> Csc:
    rows = columns_of(matrix).T.without_duplicates()
    return Csc._from_arrays(matrix.executor, matrix.shape, *rows._native_arrays())


def _csc_to_coo(matrix: Csc) -> Coo:
    if not is_hypersparse(matrix.shape[0], matrix.nnz):
        return _csr_to_coo(_csc_to_csr(matrix))
    return _csr_to_coo(matrix.T).T


def columns_of(matrix: Coo) -> Csc:
    """Return coordinates as compressed columns; duplicates and their order are kept."""
    turned = Coo._from_arrays(
        matrix.executor, matrix.shape[::-1], matrix.data, matrix.col, matrix.row
    )
    return Csc._from_arrays(matrix.executor, matrix.shape, *rows_of(turned)._native_arrays())


def rows_of(matrix: Coo) -> Csr:
    """Return coordinates as compressed rows; duplicates and their order are kept."""
    executor, entries = matrix.executor, matrix
    executor.refuse_capture(MAKES)
    if matrix.dtype not in COMPUTED:
        # Kernels move only values of their dtypes; move positions instead, which float64 holds
        # exactly.
        places = executor.xp.arange(matrix.nnz, dtype=np.float64)
        entries = Coo._from_arrays(executor, matrix.shape, places, matrix.row, matrix.col)
    indptr, indices, data = executor.run(structure.coo_to_csr, entries)
    if entries is not matrix:
        data = matrix.data[data.astype(np.int64)]
    return Csr._from_arrays(matrix.executor, matrix.shape, data, indices, indptr)


def _padded_to_csr(matrix: Any, rows: Any, data: Any, indices: Any) -> Csr:
    """Remove the padding; the entries are in the order in which ``rows`` lists them."""
    keep = indices >= 0
    coo = Coo._from_arrays(
        matrix.executor, matrix.shape, data[keep], rows[keep].astype(indices.dtype), indices[keep]
    )
    return rows_of(coo)


def _ell_to_csr(matrix: Ell) -> Csr:
    xp = matrix.executor.xp
    rows = xp.repeat(xp.arange(matrix.shape[0]), matrix.width)
    return _padded_to_csr(matrix, rows, matrix.data.T.reshape(-1), matrix.indices.T.reshape(-1))


def _sellp_to_csr(matrix: Sellp) -> Csr:
    xp, size = matrix.executor.xp, matrix.slice_size
    position = xp.flatnonzero(matrix.indices >= 0)
    which = xp.searchsorted(matrix.slice_ptr[1:], position, side="right")
    lane = (position - matrix.slice_ptr[which]) % size
    rows = matrix.permutation[which * size + lane].astype(matrix.indices.dtype)
    data, indices = matrix.data[position], matrix.indices[position]
    return rows_of(Coo._from_arrays(matrix.executor, matrix.shape, data, rows, indices))


def _hybrid_to_csr(matrix: Hybrid) -> Csr:
    xp = matrix.executor.xp
    ell, coo = _ell_to_csr(matrix.ell).asformat("coo"), matrix.coo
    rows = xp.concatenate([ell.row, coo.row.astype(ell.row.dtype)])
    joined = Coo._from_arrays(
        matrix.executor,
        matrix.shape,
        xp.concatenate([ell.data, coo.data]),
        rows,
        xp.concatenate([ell.col, coo.col.astype(ell.col.dtype)]),
    )
    return rows_of(joined)


def _bsr_to_csr(matrix: Bsr) -> Csr:
    xp, (r, c) = matrix.executor.xp, matrix.blocksize
    dtype = index_dtype(max(*matrix.shape, matrix.nnz), matrix.index_dtype)
    blocks = xp.arange(int(matrix.indices.size))
    pointers = matrix.indptr.astype(np.int64)
    counts = pointers[1:] - pointers[:-1]
    block_row = xp.searchsorted(pointers[1:], blocks, side="right")
    first = pointers[block_row]
    begin = first * (r * c) + (blocks - first) * c  # start of the first row of each block
    step = counts[block_row] * c
    to = begin[:, None, None] + xp.arange(r)[None, :, None] * step[:, None, None]
    to = (to + xp.arange(c)[None, None, :]).reshape(-1)
    columns = matrix.indices.astype(np.int64)[:, None, None] * c + xp.arange(c)[None, None, :]
    data = xp.empty(matrix.nnz, matrix.dtype)
    indices = xp.empty(matrix.nnz, dtype)
    data[to] = matrix.data.reshape(-1)
    indices[to] = xp.broadcast_to(columns, matrix.data.shape).reshape(-1).astype(dtype)
    indptr = xp.zeros(matrix.shape[0] + 1, dtype)
    indptr[1:] = xp.cumsum(xp.repeat(counts * c, r)).astype(dtype)
    return Csr._from_arrays(matrix.executor, matrix.shape, data, indices, indptr)


def _dense_to_csr(matrix: Dense) -> Csr:
    xp = matrix.executor.xp
    row, col = xp.nonzero(for_zero_tests(matrix.executor, matrix.data))
    dtype = index_dtype(max(*matrix.shape, int(row.size)))
    return rows_of(
        Coo._from_arrays(
            matrix.executor,
            matrix.shape,
            matrix.data[row, col],
            row.astype(dtype),
            col.astype(dtype),
        )
    )


def _diagonal_to_csr(matrix: Diagonal) -> Csr:
    xp, n = matrix.executor.xp, matrix.shape[0]
    dtype = index_dtype(n)
    return Csr._from_arrays(
        matrix.executor,
        matrix.shape,
        matrix.executor.copy(matrix.data),
        xp.arange(n, dtype=dtype),
        xp.arange(n + 1, dtype=dtype),
    )


# ---- from CSR


def _csr_to_csc(matrix: Csr) -> Csc:
    transposed = matrix.transpose()
    return Csc._from_arrays(
        matrix.executor, matrix.shape, transposed.data, transposed.indices, transposed.indptr
    )


def _row_of_entry(matrix: Csr) -> Array:
    result = matrix.executor.allocate((matrix.nnz,), matrix.index_dtype)
    matrix.executor.run(row_operations.number, *row_bounds(matrix), result)
    return result


def _csr_to_coo(matrix: Csr) -> Coo:
    made = Coo._from_arrays(
        matrix.executor, matrix.shape, matrix.data, _row_of_entry(matrix), matrix.indices
    )
    return matrix._share_values(made)


def _place_in_row(matrix: Csr) -> tuple[Any, Any]:
    """Return the row of each entry, and its number within the row."""
    rows = _row_of_entry(matrix)
    return rows, matrix.executor.xp.arange(matrix.nnz) - matrix.indptr[rows]


def _check_width(format: str, width: Any) -> None:
    if not isinstance(width, (int, np.integer)) or width < 0:
        raise InvalidArgument(f"{format}: the width is an integer of at least 0, got {width!r}")


def _csr_to_ell(matrix: Csr, width: int | None = None) -> Ell:
    xp = matrix.executor.xp
    rows, number = _place_in_row(matrix)
    longest = int(number.max()) + 1 if matrix.nnz else 0
    if width is not None:
        _check_width("ell", width)
    if width is not None and width < longest:
        raise InvalidArgument(f"ell: a row of {longest} entries does not fit a width of {width}")
    shape = (longest if width is None else width, matrix.shape[0])
    data = xp.zeros(shape, matrix.dtype)
    indices = xp.full(shape, -1, matrix.index_dtype)
    data[number, rows] = matrix.data
    indices[number, rows] = matrix.indices
    return Ell._from_arrays(matrix.executor, matrix.shape, data, indices, _nnz=matrix.nnz)


def _csr_to_sellp(matrix: Csr, slice_size: int = SLICE_SIZE, window: int = WINDOW) -> Sellp:
    if not all(isinstance(v, (int, np.integer)) and v >= 1 for v in (slice_size, window)):
        raise InvalidArgument(
            f"sellp: slice_size and window are at least 1, got {slice_size} and {window}"
        )
    xp, m = matrix.executor.xp, matrix.shape[0]
    slices = -(-m // slice_size)
    dtype = matrix.index_dtype
    lengths = xp.diff(matrix.indptr)
    # Sort rows by window, then by descending length. The sort is stable: equal rows keep their
    # order.
    key = xp.arange(m) // (slice_size * window) * (int(lengths.max()) + 1 if m else 1)
    permutation = xp.argsort(key - lengths + (lengths.max() if m else 0), kind="stable")
    padded = xp.zeros(slices * slice_size, lengths.dtype)
    padded[:m] = lengths[permutation]
    widths = padded.reshape(slices, slice_size).max(axis=1) if slices else padded
    slice_ptr = xp.zeros(slices + 1, xp.int64)
    slice_ptr[1:] = xp.cumsum(widths.astype(xp.int64) * slice_size)
    total = int(slice_ptr[-1])
    dtype = index_dtype(max(*matrix.shape, total), dtype)
    data = xp.zeros(total, matrix.dtype)
    indices = xp.full(total, -1, dtype)
    position = xp.empty(m, xp.int64)
    position[permutation] = xp.arange(m)
    rows, number = _place_in_row(matrix)
    place = position[rows]
    where = slice_ptr[place // slice_size] + number * slice_size + place % slice_size
    data[where] = matrix.data
    indices[where] = matrix.indices
    return Sellp._from_arrays(
        matrix.executor,
        matrix.shape,
        data,
        indices,
        slice_ptr.astype(dtype),
        permutation.astype(dtype),
        slice_size=slice_size,
        _nnz=matrix.nnz,
    )


def _csr_to_hybrid(matrix: Csr, width: int | None = None) -> Hybrid:
    executor = matrix.executor
    if width is None:
        lengths = np.diff(executor.to_host(matrix.indptr))
        width = int(np.quantile(lengths, QUANTILE)) if lengths.size else 0
    _check_width("hybrid", width)
    rows, number = _place_in_row(matrix)
    common = number < width

    def part(selected: Any) -> Coo:
        return Coo._from_arrays(
            executor, matrix.shape, matrix.data[selected], rows[selected], matrix.indices[selected]
        )

    return Hybrid._from_parts(_csr_to_ell(rows_of(part(common)), width), part(~common))


def _csr_to_bsr(matrix: Csr, blocksize: tuple[int, int] | None = None) -> Bsr:
    executor = matrix.executor
    if blocksize is None:
        blocksize = _fitting_blocksize(matrix)
    if not (isinstance(blocksize, (tuple, list)) and len(blocksize) == 2):
        raise InvalidArgument(f"bsr: blocksize is (rows, columns), got {blocksize!r}")
    r, c = (int(b) for b in blocksize)
    m, n = matrix.shape
    if r < 1 or c < 1 or m % r or n % c:
        raise InvalidArgument(f"bsr: {m}x{n} is not a multiple of the block size {r}x{c}")
    matrix = matrix.without_duplicates()
    lengths, count = _blocks_of(matrix, r, c)
    indptr = executor.allocate((m // r + 1,), matrix.index_dtype)
    executor.run(scan.pointers, lengths, indptr)
    indices = executor.allocate((count,), matrix.index_dtype)
    values, computes = matrix.data, matrix.dtype in COMPUTED
    if not computes:  # move positions, counted from 1, instead
        values = executor.xp.arange(1, matrix.nnz + 1, dtype=np.float64)
    data = executor.allocate((count * r * c,), values.dtype)
    executor.run(
        row_operations.fill_blocks,
        *(lengths, matrix.indptr, matrix.indices, values, r, c, indptr, indices, data),
    )
    if not computes:
        zero = executor.xp.zeros(1, dtype=matrix.dtype)
        data = executor.xp.concatenate([zero, matrix.data])[data.astype(np.int64)]
    return Bsr._from_arrays(executor, matrix.shape, data.reshape(count, r, c), indices, indptr)


def _blocks_of(matrix: Csr, height: int, width: int) -> tuple[Array, int]:
    """Return the number of blocks in each block row of a sorted matrix, and in total."""
    executor = matrix.executor
    lengths = executor.allocate((matrix.shape[0] // height,), matrix.index_dtype)
    total = executor.allocate((1,), np.int64)
    executor.run(
        row_operations.count_blocks,
        *(matrix.indptr, matrix.indices, height, width, lengths, total),
    )
    return lengths, int(executor.to_host(total)[0])


def _fitting_blocksize(matrix: Csr) -> tuple[int, int]:
    """Return the largest square block size up to 4 x 4 that needs no fill."""
    m, n = matrix.shape
    matrix = matrix.sort()
    for size in (4, 3, 2):
        if m % size or n % size or matrix.nnz == 0 or matrix.nnz % (size * size):
            continue
        if _blocks_of(matrix, size, size)[1] * size * size == matrix.nnz:
            return size, size
    return 1, 1


def _csr_to_dense(matrix: Csr) -> Dense:
    matrix = matrix.without_duplicates()  # each position is then assigned once
    data = matrix.executor.xp.zeros(matrix.shape, matrix.dtype)
    data[_row_of_entry(matrix), matrix.indices] = matrix.data
    return Dense._from_arrays(matrix.executor, matrix.shape, data)


_TO_CSR.update(
    csc=_csc_to_csr,
    coo=_coo_to_csr,
    ell=_ell_to_csr,
    sellp=_sellp_to_csr,
    hybrid=_hybrid_to_csr,
    bsr=_bsr_to_csr,
    dense=_dense_to_csr,
    diagonal=_diagonal_to_csr,
    stored=widened,
)
_DIRECTLY.update({("coo", "csc"): _coo_to_csc, ("csc", "coo"): _csc_to_coo})
_FROM_CSR.update(
    csc=_csr_to_csc,
    coo=_csr_to_coo,
    ell=_csr_to_ell,
    sellp=_csr_to_sellp,
    hybrid=_csr_to_hybrid,
    bsr=_csr_to_bsr,
    dense=_csr_to_dense,
)


def _in_format(matrix: Matrix, format: str, **options: Any) -> Any:
    """Return a matrix in a format, or as a SciPy or NumPy array on the host."""
    if matrix.format == format and not options:
        return matrix
    if format in HOST_FORMATS and format not in _FROM_CSR and not options:
        return HOST_FORMATS[format](matrix)
    return convert(matrix, format, **options)


base.convert.provide(_in_format)
