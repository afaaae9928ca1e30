"""Block sparse rows: the CSR format with small dense blocks as entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import MAKES, TO_HOST
from ..errors import InvalidMatrix
from ..operands import to_host
from ..operations import matrix as operations
from ..small_values import for_zero_tests
from . import validate
from .constructed import Constructed
from .csr import Csr
from .given import checked_shape, owned_array, place
from .selection import masked

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .csr import Csr


class Bsr(Constructed):
    """A sparse matrix of small dense blocks, for several unknowns per node.

    Parameters
    ----------
    arg : matrix or tuple
        Any matrix; ``(data, indices, indptr)`` with data of shape ``(nblocks, r, c)``; or
        ``(data, (row, col))`` of scalar entries, with duplicates summed.
    shape : tuple of int, optional
        Rows and columns; multiples of the block size.
    blocksize : tuple of int, optional
        Rows and columns of a block. By default it is the block size of ``arg`` if it has one, else
        the first of (2, 2) ... (4, 4) that needs no fill, else (1, 1).
    dtype, executor, copy
        As for :class:`Csr`.

    Attributes
    ----------
    data : array, shape (nblocks, r, c)
        The blocks.
    indices : array of int32 or int64, shape (nblocks,)
        Block columns.
    indptr : array, shape (m / r + 1,)
        Block row ``i`` consists of the blocks ``indptr[i]:indptr[i + 1]``.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Bsr(np.kron(np.eye(2), np.ones((2, 2))), blocksize=(2, 2))
    >>> A.data.shape, A @ np.ones(4)
    ((2, 2, 2), array([2., 2., 2., 2.]))
    """

    format = "bsr"
    arrays = ("data", "indices", "indptr")

    indices: Array
    indptr: Array

    #: The same matrix as a Csr if its blocks have one entry, because Csr products are faster.
    _by_entries: Csr | None

    def _reset(self) -> None:
        self.__dict__.update(_by_entries=None)

    def __init__(
        self,
        arg: Any,
        shape: tuple[int, int] | None = None,
        *,
        blocksize: tuple[int, int] | None = None,
        dtype: Any = None,
        executor: Executor | str | None = None,
        copy: bool | None = None,
    ) -> None:
        if blocksize is None:
            blocksize = getattr(arg, "blocksize", None)
        self._construct(arg, shape, dtype, executor, copy, blocksize=blocksize)
        if blocksize not in (None, self.blocksize):
            raise InvalidMatrix(f"blocksize: {blocksize} was given for blocks of {self.blocksize}")

    @staticmethod
    def _of_arrays(arg: Any, shape: Any, executor: Any, copy: bool) -> Bsr | None:
        is_triple = isinstance(arg, tuple) and len(arg) == 3
        return _from_blocks(arg, shape, place(executor, *arg), copy) if is_triple else None

    def _replace_entries(self, csr: Csr) -> None:
        """Replace the entries by entries of a Csr in place; keep a block size that fits."""
        (m, n), (r, c) = csr.shape, self.blocksize
        fits = m % r == 0 and n % c == 0
        self._replace(csr.asformat("bsr", blocksize=self.blocksize if fits else (1, 1)))

    @property
    def blocksize(self) -> tuple[int, int]:
        """Rows and columns of a block."""
        return int(self.data.shape[1]), int(self.data.shape[2])

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(operations.bsr_spmv, self, x, y, alpha, beta)

    def _multiply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        if self.blocksize != (1, 1):
            self._apply(x, y, alpha, beta)
            return
        if self._by_entries is None:
            data = self.data.reshape(-1)
            made = Csr._from_arrays(self.executor, self.shape, data, self.indices, self.indptr)
            self._by_entries = self._share_values(made)
        self._by_entries._multiply(x, y, alpha, beta)

    @property
    def T(self) -> Bsr:
        """The transpose, a copy that later values of this matrix do not change."""
        return self.asformat("csr").T.asformat("bsr", blocksize=self.blocksize[::-1])

    @property
    def H(self) -> Bsr:
        """The conjugate transpose."""
        return self.T.conj()

    def _pattern_of_blocks(self) -> Csr:
        """Return a matrix with one entry per block; its values are the block numbers."""
        self.executor.refuse_capture(TO_HOST)
        (m, n), (r, c) = self.shape, self.blocksize
        numbers = self.executor.xp.arange(self.data.shape[0], dtype=np.int64)
        arrays = (numbers, self.indices, self.indptr)
        return Csr._from_arrays(self.executor, (m // r, n // c), *arrays)

    def _take_blocks(self, blocks: Csr) -> None:
        """Keep only the blocks whose numbers are the values of a matrix, in its order."""
        arrays = (self.data[blocks.data], blocks.indices, blocks.indptr)
        self._replace(self._with_arrays(self.executor, *arrays))

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the block columns of each row are ascending (equal ones allowed)."""
        return self._pattern_of_blocks().has_sorted_indices

    @has_sorted_indices.setter
    def has_sorted_indices(self, value: bool) -> None:
        validate.check_statement("has_sorted_indices", value, self.has_sorted_indices)

    @property
    def has_canonical_format(self) -> bool:
        """Whether the block columns of each row are strictly ascending."""
        return self._pattern_of_blocks().has_canonical_format

    @has_canonical_format.setter
    def has_canonical_format(self, value: bool) -> None:
        validate.check_statement("has_canonical_format", value, self.has_canonical_format)

    def sort_indices(self) -> None:
        """Sort the blocks of each row by column, in place.

        See :meth:`Csr.sort_indices`.
        """
        blocks = self._pattern_of_blocks()
        if not blocks.has_sorted_indices:
            self._take_blocks(blocks.sort())

    def sum_duplicates(self) -> None:
        """Sort the blocks of each row and sum blocks at the same position, in place.

        See :meth:`Csr.sum_duplicates`.
        """
        entries = self.asformat("csr")
        if entries.without_duplicates() is not entries:
            self._replace(entries.asformat("bsr", blocksize=self.blocksize))

    def eliminate_zeros(self) -> None:
        """Remove blocks of zeros in place; see :meth:`Csr.eliminate_zeros`."""
        self.executor.refuse_capture(MAKES)
        xp = self.executor.xp
        kept = for_zero_tests(self.executor, self.data) != 0
        kept = xp.any(xp.any(kept, axis=2), axis=1)
        if bool(xp.all(kept)):
            return
        self._take_blocks(masked(self._pattern_of_blocks(), kept))

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.bsr_array`` that shares no memory with this matrix."""
        from scipy.sparse import bsr_array

        return bsr_array(tuple(self._host_copies()), shape=self.shape)


def _from_blocks(triple: Any, shape: Any, executor: Executor, copy: bool) -> Bsr:
    data = validate.values(to_host(triple[0]), ndim=3)
    r, c = data.shape[1:]
    if r == 0 or c == 0:
        raise InvalidMatrix(f"data: blocks need at least one row and column, got {data.shape}")
    indptr = validate.integers(to_host(triple[2]), "indptr")
    if shape is None:
        indices = validate.integers(to_host(triple[1]), "indices")
        shape = ((indptr.size - 1) * r, (int(indices.max()) + 1 if indices.size else 0) * c)
    m, n = checked_shape(shape)
    if m % r or n % c:
        raise InvalidMatrix(f"shape: {m}x{n} is not a multiple of the block's {r}x{c}")
    indices = validate.indices(to_host(triple[1]), n // c, "indices")
    validate.equal_lengths(data=data, indices=indices)
    indptr = validate.pointers(indptr, m // r, data.shape[0])
    indices, indptr = validate.of_one_dtype(max(m, n, data.size), indices, indptr)
    if validate.is_logical(triple[0]):
        data, indices, indptr = validate.either_compressed(data, indices, indptr)
    arrays = zip((data, indices, indptr), triple, strict=True)
    return Bsr._from_arrays(
        executor, (m, n), *(owned_array(executor, a, given, copy=copy) for a, given in arrays)
    )
