"""Convert PyTorch's sparse layouts to CSR patterns, and results back to these layouts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from ...core.errors import ExecutorMismatch, InvalidArgument, InvalidMatrix, ShapeMismatch
from ...core.formats import Csr
from ...core.formats.mask import refuse_without_entries
from ...core.formats.on_host import on_host
from ...core.linop import LinOp
from ...core.products.operands import edge_list_remedy, is_dense_mask
from .captured import refuse_always, refuse_first
from .patterns import Pattern, pattern_tensors, tensors_of, value_tensor


class CompressedTensors(NamedTuple):
    """A pattern, and the positions of its entries in the tensor from which it was made.

    Attributes
    ----------
    pattern : Pattern
        The pattern; for a batch of different patterns, their block-diagonal matrix.
    order : Tensor or None
        Entry ``e`` of the pattern is entry ``order[e]`` of the tensor; None if the orders are
        equal.
    inverse : Tensor or None
        The inverse of ``order``.
    diagonal : tuple of int or None
        Rows and columns of one diagonal block, if the tensor is a batch of different patterns.
    batched : bool
        Whether the tensor is a batch with one common pattern.
    """

    pattern: Pattern
    order: Tensor | None = None
    inverse: Tensor | None = None
    diagonal: tuple[int, int] | None = None
    batched: bool = False


class Sparse(NamedTuple):
    """The argument ``A`` of functions of this package: its pattern, its values, its type.

    ``values()`` have the order of the pattern. ``like(values)`` converts values of the pattern to a
    tensor with the layout of ``A``; if ``A`` is not a tensor, it returns the values themselves.
    """

    compressed: CompressedTensors
    values: Callable[[], Tensor]
    like: Callable[[Tensor], Tensor]

    @property
    def pattern(self) -> Pattern:
        """The CSR pattern."""
        return self.compressed.pattern

    def checked(self, values: Tensor, name: str = "values") -> Tensor:
        """Return user-given numbers of the entries of ``A``, in the order of the pattern."""
        nnz = self.pattern.nnz
        if not isinstance(values, Tensor):
            raise InvalidArgument(
                f"{name}: expected a torch tensor, got {type(values).__name__}; wl.spmm and the "
                "others take arrays"
            )
        check_dense(name, values)
        if self.compressed.diagonal is not None and values.numel() == nnz:
            return values.reshape(nnz)
        if values.dim() < 1 or values.shape[-1] != nnz:
            raise ShapeMismatch(
                f"{name}: expected shape ({nnz},) or (b, {nnz}), got {tuple(values.shape)}"
            )
        order = self.compressed.order
        return values if order is None else values.index_select(-1, order)

    def fold(self, dense: Tensor, side: int) -> Tensor:
        """Return a dense operand stacked for a block-diagonal pattern; otherwise unchanged.

        ``side`` is 0 for an operand with the rows of ``A``, 1 for an operand with its columns.
        """
        block = self.compressed.diagonal
        if block is None:
            return dense
        count = self.pattern.shape[0] // max(block[0], 1)
        if dense.dim() == 2:
            dense = dense.expand(count, *dense.shape)
        if dense.dim() != 3 or dense.shape[:2] != (count, block[side]):
            raise ShapeMismatch(
                f"expected shape ({count}, {block[side]}, k) for a batch of {count} matrices of "
                f"different patterns, got {tuple(dense.shape)}"
            )
        return dense.reshape(count * block[side], -1)

    def unfold(self, result: Tensor) -> Tensor:
        """Return a result with one block of rows per matrix of a batch."""
        block = self.compressed.diagonal
        return result if block is None else result.unflatten(-2, (-1, block[0]))


def check_dense(label: str, tensor: Tensor) -> None:
    """Raise InvalidArgument if a tensor is sparse: only the matrix ``A`` may be sparse."""
    if tensor.layout is not torch.strided:
        raise InvalidArgument(
            f"{label}: expected a dense tensor, got layout {tensor.layout}; make it dense with "
            ".to_dense(), or multiply two sparse matrices without gradients: wl.Csr(A) @ wl.Csr(B)"
        )


def sparse_of(A: object, device: torch.device) -> Sparse:
    """Return the common form of a matrix, a :class:`Pattern` or a sparse tensor of any layout.

    Raises
    ------
    InvalidArgument, UnsupportedOperation
        If ``A`` has another type.
    """
    if isinstance(A, Csr):
        return _of_matrix(A, device)
    refuse_without_entries(A)
    if isinstance(A, Pattern):
        return Sparse(CompressedTensors(A), lambda: _ones(A), _as_they_are)
    if isinstance(A, Tensor) and A.layout in _LAYOUTS:
        return _of_tensor(A)
    if isinstance(A, Tensor) and is_dense_mask(A):
        return _of_mask(A)
    of_graph = getattr(A, "pattern", None)
    if isinstance(of_graph, (Csr, Pattern)):
        return sparse_of(of_graph, device)
    if hasattr(A, "tocsr") or isinstance(A, LinOp):
        remedy = "wl.Csr(A) is a matrix of constant values; pass values= for their gradients"
    elif isinstance(A, Tensor) and not A.is_floating_point() and A.shape[:1] == (2,):
        remedy = "a list of edges is a graph: wl.graph.from_edges(edge_index, num_nodes)"
    elif edge_list_remedy(A):
        remedy = edge_list_remedy(A)
    elif isinstance(A, Tensor):
        remedy = "make a dense one sparse with .to_sparse_csr()"
    else:
        remedy = "make an array sparse with wl.Csr(A), a dense tensor with .to_sparse_csr()"
    raise InvalidArgument(
        "A: expected a wl.Csr, a Graph, a Pattern, a sparse torch matrix or a boolean mask, got "
        f"{'a dense tensor' if isinstance(A, Tensor) else type(A).__name__}; {remedy}"
    )


def _beside(A: Csr, device: torch.device) -> Csr | None:
    """Return a host copy, for CPU tensors, of a matrix that follows its operands; else None."""
    return on_host(A) if device.type == "cpu" else None


def _of_matrix(A: Csr, device: torch.device) -> Sparse:
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
        pattern = pattern_tensors(A, device)
        return Sparse(CompressedTensors(pattern), lambda: value_tensor(A), _as_they_are)
    try:
        tensors = tensors_of(A)
    except ExecutorMismatch:
        beside = _beside(A, device)
        if beside is None:
            raise
        return _of_matrix(beside, device)
    result: Sparse | None = tensors.sparse
    if result is None or tensors.pattern.indptr.device.type != device.type:
        beside = _beside(A, device)
        if beside is not None:
            return _of_matrix(beside, device)
        result = Sparse(CompressedTensors(pattern_tensors(A, device)), tensors.values, _as_they_are)
        tensors.sparse = result
    return result


def _as_they_are(values: Tensor) -> Tensor:
    return values


P = ParamSpec("P")


def eager_for_tensors(
    function: Callable[Concatenate[Any, P], Tensor],
) -> Callable[Concatenate[Any, P], Tensor]:
    """Return a function that is not compiled for sparse tensors.

    The compiler of PyTorch 2.13 cannot pass the arrays of a sparse tensor from one graph to the
    next (``IndexError: tuple index out of range``). Therefore, the graph is broken for the whole
    call.
    """
    eager = torch.compiler.disable(
        function,
        reason="the arrays of a sparse tensor and a list of edges cannot be in a graph; call "
        "wollemi.interop.torch.pattern_of(A), or for edges "
        "graph = wl.graph.from_edges(edge_index, num_nodes), outside of the function",
    )

    @wraps(function)
    def called(A: object, *arguments: P.args, **options: P.kwargs) -> Tensor:
        if isinstance(A, Tensor):
            found: Tensor = eager(A, *arguments, **options)
            return found
        return function(A, *arguments, **options)

    return called


def _ones(pattern: Pattern) -> Tensor:
    """Return ones in the dtype that gives way to any other dtype."""
    return torch.ones(pattern.nnz, dtype=torch.bool, device=pattern.indices.device)


def compress(
    row: Tensor, col: Tensor, shape: tuple[int, int]
) -> tuple[Pattern, Tensor | None, Tensor | None]:
    """Return entries in CSR order, with their order and its inverse.

    Entries of a row keep their order; both orders are None if the rows are sorted already.
    """
    order = inverse = None
    if row.numel() > 1 and bool((row[1:] < row[:-1]).any()):
        row, order = torch.sort(row, stable=True)
        inverse = torch.argsort(order)
        col = col.index_select(0, order)
    lengths = torch.bincount(row, minlength=shape[0])
    indptr = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).to(col.dtype)
    return Pattern(indptr, col.contiguous(), shape), order, inverse


def _readable(A: Tensor) -> AbstractContextManager[Any]:
    """Return a context in which a tensor's arrays can be read.

    A transform of ``torch.func`` queries strides of compressed tensors, which do not have any. A
    tensor that is not transformed is read outside of the transform.
    """
    functorch = torch._C._functorch
    plain = not functorch.is_functorch_wrapped_tensor(A)
    if plain and functorch.peek_interpreter_stack() is not None:
        return torch._C._DisableFuncTorch()
    return nullcontext()


# ---- tensors: a pattern is made once and cached as long as its tensor lives

_compressed: Any = WeakIdKeyDictionary()


def _described(A: Tensor, describe: Callable[[Tensor], CompressedTensors]) -> CompressedTensors:
    """Return the pattern of a tensor, which is kept until the tensor is written into."""
    found = _compressed.get(A)
    if found is None or found[0] != A._version:
        refuse_first(A, "a product with a sparse tensor", "its pattern by compressed rows")
        with torch.no_grad(), _readable(A):
            found = _compressed[A] = (A._version, describe(A))
    compressed: CompressedTensors = found[1]
    return compressed


def _of_tensor(A: Tensor) -> Sparse:
    describe, values, like = _LAYOUTS[A.layout]
    compressed = _described(A, describe)

    def ordered() -> Tensor:
        with _readable(A):
            given = values(A)
        if compressed.batched:
            return given.reshape(*A.shape[:-2], -1)
        given = given.reshape(-1)
        return given if compressed.order is None else given.index_select(0, compressed.order)

    def likened(result: Tensor) -> Tensor:
        if compressed.inverse is not None:
            result = result.index_select(-1, compressed.inverse)
        made: Tensor = like(A, result)
        return made

    return Sparse(compressed, ordered, likened)


def pattern_of_mask(mask: Tensor) -> Pattern:
    """Return the positions of the nonzero elements of a dense matrix.

    Raises
    ------
    ShapeMismatch
        If it is no matrix.
    """
    if mask.dim() != 2:
        raise ShapeMismatch(f"pattern: expected a matrix, got shape {tuple(mask.shape)}")
    rows, columns = mask.nonzero(as_tuple=True)
    counts = torch.bincount(rows, minlength=mask.shape[0])
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return Pattern(indptr, columns, _size(mask))


def _of_mask(mask: Tensor) -> Sparse:
    compressed = _described(mask, lambda mask: CompressedTensors(pattern_of_mask(mask)))
    indptr, indices, shape = pattern = compressed.pattern

    def like(values: Tensor) -> Tensor:
        edges = torch.stack([_majors(indptr[None], pattern.nnz), indices])
        return torch.sparse_coo_tensor(
            edges, values, shape, is_coalesced=True, check_invariants=False
        )

    return Sparse(compressed, lambda: _ones(pattern), like)


def _size(A: Tensor) -> tuple[int, int]:
    return int(A.shape[-2]), int(A.shape[-1])


def _describe_csr(A: Tensor) -> CompressedTensors:
    indptr, indices, shape = A.crow_indices(), A.col_indices(), _size(A)
    if A.dim() == 2:
        return CompressedTensors(Pattern(indptr, indices, shape))
    indptr, indices = indptr.reshape(-1, shape[0] + 1), indices.reshape(-1, indices.shape[-1])
    if bool((indptr == indptr[:1]).all()) and bool((indices == indices[:1]).all()):
        one = Pattern(indptr[0].contiguous(), indices[0].contiguous(), shape)
        return CompressedTensors(one, batched=True)
    if A.dim() != 3:
        raise InvalidMatrix(
            f"A: a batch of different patterns has one leading axis, got shape {tuple(A.shape)}"
        )
    block = torch.arange(A.shape[0], device=A.device).repeat_interleave(indices.shape[1])
    row = _majors(indptr, indices.shape[1]) + block * shape[0]
    return _on_diagonal(A, row, indices.reshape(-1) + block * shape[1])


def _majors(pointers: Tensor, entries: int) -> Tensor:
    """Return the row of each entry, for every matrix of a batch."""
    count, rows = pointers.shape[0], pointers.shape[1] - 1
    every = torch.arange(rows, device=pointers.device).repeat(count)
    return torch.repeat_interleave(every, pointers.diff().reshape(-1).long())


def _on_diagonal(A: Tensor, row: Tensor, col: Tensor) -> CompressedTensors:
    count, (m, n) = int(A.shape[0]), _size(A)
    pattern, order, inverse = compress(row, col.long(), (count * m, count * n))
    return CompressedTensors(pattern, order, inverse, diagonal=(m, n))


def _describe_csc(A: Tensor) -> CompressedTensors:
    if A.dim() != 2:
        raise InvalidMatrix("A: a batch in layout torch.sparse_csc; convert it to torch.sparse_csr")
    pointers, row = A.ccol_indices(), A.row_indices()
    col = _majors(pointers[None], row.shape[0]).to(row.dtype)
    return CompressedTensors(*compress(row, col, _size(A)))


def _describe_bsr(A: Tensor) -> CompressedTensors:
    if A.dim() != 2:
        raise InvalidMatrix("A: a batch in layout torch.sparse_bsr; convert it to torch.sparse_csr")
    pointers, indices = A.crow_indices(), A.col_indices()
    _, r, c = A.values().shape
    block_row = _majors(pointers[None], indices.shape[0]).to(indices.dtype)
    i, j = (torch.arange(size, device=A.device, dtype=indices.dtype) for size in (r, c))
    row = (block_row[:, None, None] * r + i[:, None]).expand(-1, r, c).reshape(-1)
    col = (indices[:, None, None] * c + j).expand(-1, r, c).reshape(-1)
    return CompressedTensors(*compress(row, col, _size(A)))


def _describe_coo(A: Tensor) -> CompressedTensors:
    if A.dense_dim() != 0 or A.sparse_dim() not in (2, 3):
        raise InvalidMatrix(
            f"A: expected 2 or 3 sparse dimensions and none that are dense, got "
            f"{A.sparse_dim()} and {A.dense_dim()}"
        )
    *batch, row, col = A.coalesce().indices()
    if not batch:
        return CompressedTensors(*compress(row, col, _size(A)))
    m, n = _size(A)
    return _on_diagonal(A, row + batch[0] * m, col + batch[0] * n)


def _like_compressed(A: Tensor, values: Tensor) -> Tensor:
    """Return a tensor with the pattern of ``A``, which is known to be valid."""
    rows_first = A.layout in (torch.sparse_csr, torch.sparse_bsr)
    pointers = A.crow_indices() if rows_first else A.ccol_indices()
    indices = A.col_indices() if rows_first else A.row_indices()
    return torch.sparse_compressed_tensor(
        pointers,
        indices,
        values.reshape(A.values().shape),
        size=A.shape,
        layout=A.layout,
        check_invariants=False,
    )


def _like_coo(A: Tensor, values: Tensor) -> Tensor:
    indices = A.coalesce().indices()
    return torch.sparse_coo_tensor(
        indices, values, size=A.shape, is_coalesced=True, check_invariants=False
    )


def _values(A: Tensor) -> Tensor:
    return A.values()


def _coalesced_values(A: Tensor) -> Tensor:
    if not A.is_coalesced():
        refuse_always(
            A,
            "a product with a COO tensor",
            "its entries are sorted for each call, which the host waits for",
            "Pass A.coalesce(), made before the capture",
        )
    return A.coalesce().values()


_LAYOUTS: dict[torch.layout, tuple[Callable[..., Any], ...]] = {
    torch.sparse_csr: (_describe_csr, _values, _like_compressed),
    torch.sparse_csc: (_describe_csc, _values, _like_compressed),
    torch.sparse_bsr: (_describe_bsr, _values, _like_compressed),
    torch.sparse_coo: (_describe_coo, _coalesced_values, _like_coo),
}
