"""Block matrices: one kernel copies the rows of a block to their positions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from ..dtypes import COMPUTED, index_dtype, is_narrow, stored_or_held_dtype
from ..errors import InvalidArgument, ShapeMismatch
from ..formats.csr import Csr
from ..formats.kept_results import Repeated, kept_or_made
from ..formats.rowwise import of_pattern, row_bounds, with_index_dtype
from ..operations import rows, scan
from ..small_values import as_dtype
from ..store import Key
from .given import as_matrices, finished

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ..executor import Array, Executor
    from ..formats.base import Matrix


#: Key of the stacked pattern of matrices, by their patterns.
_STACKED: Key[Repeated[Csr]] = Key("matrices below one another")


class Block(NamedTuple):
    """A matrix, and the position of its first row and column in the block matrix."""

    csr: Csr
    row: int
    column: int


def vstack(
    blocks: Sequence[Any],
    format: str | None = None,
    dtype: DTypeLike | None = None,
    *,
    executor: Executor | str | None = None,
) -> Any:
    """Stack matrices vertically.

    Parameters
    ----------
    blocks : sequence of matrices of any library, or arrays
        The blocks, with equal numbers of columns.
    format : str, optional
        The format of the result; ``csr`` by default.
    dtype : dtype, optional
        Dtype of the entries; by default the common dtype of all blocks.
    executor : Executor or str, optional
        Executor of the result; by default the executor of the blocks.

    Returns
    -------
    Matrix

    Raises
    ------
    ShapeMismatch, ExecutorMismatch
        If the blocks do not fit together.
    InvalidArgument
        If there are no blocks.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[1.0, 0.0]]))
    >>> wl.sparse.vstack([A, 2 * A]).to_dense()
    array([[1., 0.],
           [2., 0.]])
    """
    blocks = list(blocks)
    if not blocks or any([block is None for block in blocks]):
        return _joined("vstack", [[block] for block in blocks], format, dtype, executor)
    # A fast path for the usual case: it takes the host half the time of a grid of blocks.
    matrices = as_matrices(blocks, "vstack", executor)
    width = _extent("vstack", "column", 0, matrices, 1)
    top = list(accumulate([matrix.shape[0] for matrix in matrices], initial=0))
    placed = [Block(m.tocsr(), row, 0) for m, row in zip(matrices, top, strict=False)]
    return finished(assembled((top[-1], width), placed), format, dtype, *matrices)


def hstack(
    blocks: Sequence[Any],
    format: str | None = None,
    dtype: DTypeLike | None = None,
    *,
    executor: Executor | str | None = None,
) -> Any:
    """Stack matrices horizontally; see :func:`vstack`.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[1.0], [0.0]]))
    >>> wl.sparse.hstack([A, 2 * A]).to_dense()
    array([[1., 2.],
           [0., 0.]])
    """
    return _joined("hstack", [list(blocks)], format, dtype, executor)


def block_array(
    blocks: Sequence[Sequence[Any]],
    *,
    format: str | None = None,
    dtype: DTypeLike | None = None,
    executor: Executor | str | None = None,
) -> Any:
    """Return the matrix that consists of rows of blocks.

    Parameters
    ----------
    blocks : sequence of sequences of matrices, arrays or None
        None means a block of zeros, with the size of the other blocks in its row and column.
    format, dtype, executor
        As for :func:`vstack`.

    Returns
    -------
    Matrix

    Raises
    ------
    ShapeMismatch, ExecutorMismatch
        If the blocks do not fit together.
    InvalidArgument
        If a row or column contains only None.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A, B = wl.Csr(np.array([[1.0, 2.0]])), wl.Csr(np.array([[3.0]]))
    >>> wl.sparse.block_array([[A, None], [None, B]]).to_dense()
    array([[1., 2., 0.],
           [0., 0., 3.]])
    """
    return _joined("block_array", [list(row) for row in blocks], format, dtype, executor)


def block_diag(
    mats: Sequence[Any],
    format: str | None = None,
    dtype: DTypeLike | None = None,
    *,
    executor: Executor | str | None = None,
) -> Any:
    """Return the block diagonal matrix of the given blocks.

    Parameters
    ----------
    mats : sequence of matrices of any library, arrays or numbers
        The diagonal blocks; a vector is a block of one row.
    format, dtype, executor
        As for :func:`vstack`.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.sparse.block_diag([[[1.0, 2.0]], 3.0]).to_dense()
    array([[1., 2., 0.],
           [0., 0., 3.]])
    """
    matrices = as_matrices(mats, "block_diag", executor)
    if not matrices:
        raise InvalidArgument("block_diag: expected one block at least, got none")
    row = column = 0
    placed = []
    for matrix in matrices:
        placed.append(Block(matrix.tocsr(), row, column))
        row, column = row + matrix.shape[0], column + matrix.shape[1]
    made = assembled((row, column), placed)
    return finished(made, format, dtype, *matrices)


def _joined(
    caller: str,
    grid: list[list[Any]],
    format: str | None,
    dtype: DTypeLike | None,
    executor: Executor | str | None,
) -> Any:
    if not grid or not grid[0] or any(len(row) != len(grid[0]) for row in grid):
        raise InvalidArgument(f"{caller}: expected rows of equally many blocks, one at least")
    given = [block for row in grid for block in row if block is not None]
    matrices = as_matrices(given, caller, executor)
    remaining = iter(matrices)
    filled = [[None if block is None else next(remaining) for block in row] for row in grid]
    heights = [_extent(caller, "row", i, row, 0) for i, row in enumerate(filled)]
    widths = [
        _extent(caller, "column", j, list(c), 1) for j, c in enumerate(zip(*filled, strict=True))
    ]
    top, left = (tuple(accumulate(lengths, initial=0)) for lengths in (heights, widths))
    placed = [
        Block(block.tocsr(), top[i], left[j])
        for i, row in enumerate(filled)
        for j, block in enumerate(row)
        if block is not None
    ]
    made = assembled((top[-1], left[-1]), placed)
    return finished(made, format, dtype, *matrices)


def _extent(caller: str, name: str, at: int, blocks: Sequence[Matrix | None], axis: int) -> int:
    """Return the number of rows of a block row, or the number of columns of a block column."""
    found = {block.shape[axis] for block in blocks if block is not None}
    if not found:
        raise InvalidArgument(f"{caller}: all blocks of {name} {at} are None: give one of them")
    if len(found) > 1:
        lengths = ", ".join(map(str, sorted(found)))
        raise ShapeMismatch(f"{caller}: blocks of {name} {at} have {lengths} {name}s")
    return found.pop()


def assembled(shape: tuple[int, int], blocks: list[Block]) -> Csr:
    """Return the matrix of blocks that do not overlap, ordered by column within each row.

    Its rows are sorted if the rows of the blocks are.
    """
    executor = blocks[0].csr.executor
    # Lists take the host less time than generators.
    entries = sum([block.csr.nnz for block in blocks])
    operands = {block.csr.index_dtype for block in blocks}
    wide = index_dtype(max(*shape, entries), *operands)
    if operands != {wide}:
        blocks = [block._replace(csr=with_index_dtype(block.csr, wide)) for block in blocks]
    dtype = _joint_dtype([block.csr for block in blocks])
    if _are_stacked(shape, blocks):
        return _stacked(executor, shape, blocks, dtype)
    data = [as_dtype(executor, block.csr.data, dtype) for block in blocks]
    if dtype in COMPUTED:
        return _put(executor, shape, blocks, data, dtype)
    first = list(accumulate((block.csr.nnz for block in blocks), initial=0))
    positions = [
        executor.xp.arange(first[i], first[i + 1], dtype=np.float64) for i in range(len(blocks))
    ]
    made = _put(executor, shape, blocks, positions, np.dtype(np.float64))
    return made._with_data(executor.xp.concatenate(data)[made.data.astype(np.int64)])


def _joint_dtype(matrices: list[Csr]) -> np.dtype[Any]:
    """Return the common dtype of the entries of all matrices."""
    dtypes = {matrix.dtype for matrix in matrices}
    if len(dtypes) == 1:
        return dtypes.pop()
    wide = (np.float32 if is_narrow(dtype) else dtype for dtype in dtypes)
    return stored_or_held_dtype(np.result_type(*wide))


def _are_stacked(shape: tuple[int, int], blocks: list[Block]) -> bool:
    """Return whether all blocks span the whole width, so that their arrays are concatenated."""
    shapes = [block.csr.shape for block in blocks]
    width = shape[1]
    return sum([m for m, _ in shapes]) == shape[0] and all([n == width for _, n in shapes])


def _stacked(
    executor: Executor, shape: tuple[int, int], blocks: list[Block], dtype: np.dtype[Any]
) -> Csr:
    """Return vertically stacked matrices: arrays are copied whole, and pointers are shifted."""
    with executor.uncaptured():
        return _copied(executor, shape, blocks, dtype)


def _copied(
    executor: Executor, shape: tuple[int, int], blocks: list[Block], dtype: np.dtype[Any]
) -> Csr:
    matrices = [block.csr for block in blocks]
    first = list(accumulate([csr.nnz for csr in matrices], initial=0))
    data = executor.allocate((first[-1],), dtype)
    for csr, at, end in zip(matrices, first, first[1:], strict=False):
        values = csr.data if csr.dtype == dtype else as_dtype(executor, csr.data, dtype)
        executor.copy_into(data[at:end], values)
    given = (shape, *[ref(csr._pattern) for csr in matrices])
    make = partial(_stacked_pattern, shape, blocks, first)
    return of_pattern(kept_or_made(matrices[0], _STACKED, given, make), data)


def _stacked_pattern(shape: tuple[int, int], blocks: list[Block], first: list[int]) -> Csr:
    """Return the pattern of vertically stacked matrices, without values."""
    executor, index = blocks[0].csr.executor, blocks[0].csr.index_dtype
    indices = executor.allocate((first[-1],), index)
    indptr = executor.allocate((shape[0] + 1,), index)
    for block, at, end in zip(blocks, first, first[1:], strict=False):
        csr = block.csr
        executor.copy_into(indices[at:end], csr.indices)
        executor.run(rows.shift, csr.indptr, at, indptr[block.row : block.row + csr.shape[0] + 1])
    return Csr._from_arrays(executor, shape, csr.data[:0], indices, indptr)


def _put(
    executor: Executor,
    shape: tuple[int, int],
    blocks: list[Block],
    data: list[Array],
    dtype: np.dtype[Any],
) -> Csr:
    index = blocks[0].csr.index_dtype
    lengths = executor.xp.zeros(shape[0], index)
    for block in blocks:
        _rows_of(lengths, block)[...] += block.csr.indptr[1:] - block.csr.indptr[:-1]
    indptr = executor.allocate((shape[0] + 1,), index)
    executor.run(scan.pointers, lengths, indptr)
    entries = sum(block.csr.nnz for block in blocks)
    indices, values = executor.allocate((entries,), index), executor.allocate((entries,), dtype)
    following = executor.copy(indptr[:-1])
    for block, given in zip(blocks, data, strict=True):
        begin, end = row_bounds(block.csr)
        target = _rows_of(following, block)
        arguments = (begin, end, block.csr.indices, given, block.column, target)
        executor.run(rows.put, *arguments, indices, values)
        target[...] += end - begin
    return Csr._from_arrays(executor, shape, values, indices, indptr)


def _rows_of(array: Array, block: Block) -> Array:
    """Return the part of a per-row array that belongs to the rows of a block."""
    return array[block.row : block.row + block.csr.shape[0]]
