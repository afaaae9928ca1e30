"""What operations on rows share: bounds, order, and new matrices from counts of entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import index_dtype, is_narrow
from ..operations import rows, scan
from ..store import Key
from .csr import Csr

if TYPE_CHECKING:
    from ..executor import Array
    from ..operation import Operation
    from .base import Matrix


_ORDER: Key[tuple[int, int]] = Key("order of columns")


def computed(matrix: Matrix) -> Csr:
    """Return a matrix as a Csr of a dtype that kernels compute in: 16-bit values as float32."""
    csr: Csr = matrix.asformat("csr")
    return csr.astype(np.float32) if is_narrow(csr.dtype) else csr


def canonical(matrix: Matrix) -> Csr:
    """Return what :func:`computed` does, rows sorted and entries of one place added up.

    The matrix itself stays as it is; it is what is returned if there is nothing to do.
    """
    return computed(matrix).without_duplicates()


def order_of(csr: Csr) -> tuple[int, int]:
    """Return how often the next column of a row is smaller, and how often it is the same.

    Without falls the rows are sorted; without falls and repeats there are no duplicates either.
    """
    return csr._pattern.get(_ORDER, lambda: _examined(csr))


def known_canonical(csr: Csr) -> Csr:
    """Return a matrix whose rows were made sorted and without duplicates: none are examined."""
    csr._pattern.get(_ORDER, lambda: (0, 0))
    return csr


def _examined(csr: Csr) -> tuple[int, int]:
    executor = csr.executor
    falls, repeats = (executor.allocate((1,), np.int64) for _ in range(2))
    executor.run(rows.examine, *row_bounds(csr), csr.indices, falls, repeats)
    fallen, repeated = executor.to_host_together(falls, repeats)
    return int(fallen[0]), int(repeated[0])


def row_bounds(csr: Csr) -> tuple[Array, Array]:
    """Return where the entries of each row begin and end, as views."""
    return csr.indptr[:-1], csr.indptr[1:]


def filled(
    csr: Csr, shape: tuple[int, int], count: Operation, fill: Operation, *arguments: Any
) -> Csr:
    """Return the new matrix of an operation that counts its entries and one that fills them in.

    Parameters
    ----------
    csr : Csr
        Has the dtypes of the new matrix, unless its index dtype cannot count the entries.
    shape : tuple of int
        Of the new matrix.
    count, fill : Operation
        They take ``arguments`` first. The names of those that they do not share are left out.
    """
    executor, dtype = csr.executor, csr.index_dtype
    lengths = executor.allocate((shape[0],), dtype)
    total = executor.allocate((1,), np.int64)
    taken = {parameter.name for parameter in count.parameters}
    counted = [a for p, a in zip(fill.parameters, arguments, strict=False) if p.name in taken]
    executor.run(count, *counted, lengths, total)
    entries = int(executor.to_host(total)[0])
    if index_dtype(entries, dtype) != dtype:
        wide = [a.astype(np.int64) if _is_index(a, dtype) else a for a in arguments]
        return filled(with_index_dtype(csr, np.int64), shape, count, fill, *wide)
    indptr = executor.allocate((shape[0] + 1,), dtype)
    executor.run(scan.pointers, lengths, indptr)
    indices = executor.allocate((entries,), dtype)
    data = executor.allocate((entries,), csr.dtype)
    executor.run(fill, *arguments, indptr, indices, data)
    return Csr._from_arrays(executor, shape, data, indices, indptr)


def _is_index(argument: Any, dtype: np.dtype[Any]) -> bool:
    return getattr(argument, "dtype", None) == dtype


def with_index_dtype(csr: Csr, dtype: Any) -> Csr:
    """Return a matrix with indices of ``dtype``; itself if it has them."""
    if csr.index_dtype == dtype:
        return csr
    return Csr._from_arrays(
        csr.executor,
        csr.shape,
        csr.data,
        csr.indices.astype(dtype),
        csr.indptr.astype(dtype),
    )
