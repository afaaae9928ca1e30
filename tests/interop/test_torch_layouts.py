"""Sparse tensors of every layout, operands of every shape, and results that stay tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import ExecutorMismatch, InvalidArgument, InvalidMatrix, ShapeMismatch

from ..backends.needs import package

torch = package("torch")
wt = package("wollemi.interop.torch")

close = torch.testing.assert_close

DENSE = torch.tensor(
    [[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 4.0, 0.0], [0.0, 5.0, 6.0, 7.0]]
).double()


def uncoalesced(dense: Any) -> Any:
    coo = dense.to_sparse()
    indices = torch.cat([coo.indices().flip(1), coo.indices()], 1)
    values = torch.cat([coo.values().flip(0), coo.values()]) / 2
    return torch.sparse_coo_tensor(indices, values, dense.shape)


LAYOUTS = {
    "csr": lambda dense: dense.to_sparse_csr(),
    "csc": lambda dense: dense.to_sparse_csc(),
    "bsr": lambda dense: dense.to_sparse_bsr((2, 2)),
    "coo": lambda dense: dense.to_sparse(),
    "uncoalesced": uncoalesced,
}


def leaf(*shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_multiplies_as_the_dense_matrix_does(layout: str) -> None:
    A, B = LAYOUTS[layout](DENSE), leaf(4, 3)
    close(wt.spmm(A, B), DENSE @ B)
    mask = A.to_dense() != 0 if layout != "bsr" else torch.ones_like(DENSE, dtype=torch.bool)
    if layout == "bsr":  # its blocks hold zeros, which are entries
        mask[:2, :2] = mask[:2, 2:] = mask[2:, :2] = mask[2:, 2:] = True
    C = leaf(4, 3, seed=1)
    sampled = wt.sddmm(A, C, B, use_values=True)
    assert sampled.layout is A.layout
    close(sampled.to_dense(), DENSE * (C @ B.T))
    scores = (0.5 * C @ B.T).masked_fill(~mask, -torch.inf)
    want = torch.nan_to_num(scores.softmax(1)) @ B
    close(wt.fusedmm(A, C, B, B, edge="softmax", alpha=0.5), want)


@pytest.mark.parametrize("layout", ["csr", "coo", "uncoalesced"])
def test_the_values_of_tensors_have_gradients(layout: str) -> None:
    A, B = LAYOUTS[layout](DENSE).requires_grad_(), leaf(4, 3)
    wt.spmm(A, B).sum().backward()
    row_sums = B.detach().sum(1)
    close(A.grad.to_dense(), (DENSE != 0) * row_sums)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_that_are_given_are_in_the_order_of_the_tensor(layout: str) -> None:
    A, B = LAYOUTS[layout](DENSE), leaf(4, 3)
    values = (A.coalesce() if A.layout is torch.sparse_coo else A).values().reshape(-1)
    close(wt.spmm(A, B, values=2 * values), 2 * DENSE @ B)


def test_batches_of_csr_tensors_of_one_pattern_and_of_different_ones() -> None:
    other = DENSE.T.contiguous()
    B, C = leaf(2, 4, 3), leaf(2, 4, 3, seed=1)
    for dense in (torch.stack([DENSE, 2 * DENSE]), torch.stack([DENSE, other])):
        for A in (dense.to_sparse_csr(), dense.to_sparse()):
            close(wt.spmm(A, B), dense @ B)
            close(wt.spmm(A, B[0]), dense @ B[0])
            sampled = wt.sddmm(A, C, B, use_values=True)
            close(sampled.to_dense(), dense * (C @ B.mT))
            want = wt.fusedmm(A, C, B, B, use_values=True)
            close(want, (dense * (C @ B.mT)) @ B)
    A = torch.stack([DENSE, other]).to_sparse_csr().requires_grad_()
    wt.spmm(A, B).sum().backward()
    close(A.grad.values()[0], B.detach()[0].sum(1)[A.col_indices()[0]])
    with pytest.raises(ShapeMismatch, match="a batch of 2 matrices"):
        wt.spmm(A, leaf(3, 4, 3))


def test_any_number_of_leading_axes_in_any_strides() -> None:
    A = wl.Csr(DENSE.numpy())
    X = leaf(2, 4, 3, 5)  # batch, rows, heads, width
    heads = X.transpose(1, 2)
    assert not heads.is_contiguous()
    close(wt.spmm(A, heads), DENSE @ heads)
    close(wt.sddmm(A, heads, heads)[1, 2], wt.sddmm(A, heads[1, 2], heads[1, 2]))
    close(
        wt.fusedmm(A, heads, heads, leaf(4, 2), edge="sigmoid")[1, 2],
        wt.fusedmm(A, heads[1, 2], heads[1, 2], leaf(4, 2), edge="sigmoid"),
    )
    torch.autograd.gradcheck(lambda x: wt.spmm(A, x.transpose(1, 2)), (X,), fast_mode=True)


def test_vectors_and_factors() -> None:
    A, b = wl.Csr(DENSE.numpy()), leaf(4)
    close(wt.spmm(A, b), DENSE @ b)
    close(wt.spmm(A, b, alpha=0.5), DENSE @ b / 2)
    torch.autograd.gradcheck(lambda x: wt.spmm(A, x, alpha=2.0), (b,))


def test_results_are_written_where_asked() -> None:
    A, B = wl.Csr(DENSE.numpy()), leaf(4, 3).detach()
    for out in (torch.ones(4, 3).double(), torch.ones(3, 4).double().T):
        assert wt.spmm(A, B, out=out, alpha=2.0, beta=0.5) is out
        close(out, 2 * DENSE @ B + 0.5)
    vector = torch.full((4,), torch.nan).double()
    close(wt.spmm(A, B[:, 0], out=vector), DENSE @ B[:, 0])
    want = DENSE @ B[[0, 1, 2, 0]]
    same = B[[0, 1, 2, 0]].clone()
    close(wt.spmm(A, same, out=same), want)
    with pytest.raises(InvalidArgument, match="no gradients"):
        wt.spmm(A, leaf(4, 3), out=vector.new_empty(4, 3))
    with pytest.raises(ShapeMismatch, match="out"):
        wt.spmm(A, B, out=vector.new_empty(4, 2))
    with pytest.raises(InvalidArgument, match="beta"):
        wt.spmm(A, B, beta=1.0)


def test_products_of_tensors_are_tensors() -> None:
    A, B = wl.Csr(DENSE.numpy()), leaf(4, 3)
    wl.spmm(A, B).sum().backward()
    close(B.grad, (DENSE.T @ torch.ones(4, 3).double()))
    made = wl.fusedmm(A, B, B, B, edge="softmax")
    assert made.requires_grad
    close(wl.spmm(A, B.detach() * 1j), DENSE * 1j @ B.detach().to(torch.complex128))
    close(wl.spmm(A, torch.ones(4, 2, dtype=torch.int64)), DENSE @ torch.ones(4, 2).double())
    assert isinstance(wl.sddmm(A, B.detach(), B.detach()), wl.Csr)
    assert wl.sddmm(DENSE.to_sparse_csr(), B, B).layout is torch.sparse_csr
    out = np.empty((4, 3))
    assert wl.spmm(A, B.detach().numpy(), out=out) is out


def test_a_pattern_of_tensors_may_stand_for_a_matrix() -> None:
    S = DENSE.to_sparse_csr()
    pattern = wt.Pattern(S.crow_indices(), S.col_indices(), (4, 4))
    B = leaf(4, 3)
    close(wt.spmm(pattern, B), (DENSE != 0).double() @ B)
    close(wt.spmm(pattern, B, values=S.values()), DENSE @ B)
    assert pattern.nnz == 7
    assert wt.spmm(pattern, B.detach().half()).dtype is torch.float16
    close(torch.from_numpy(wt.pattern_of(pattern).to_dense()).double(), (DENSE != 0).double())


def test_what_is_written_into_a_pattern_is_seen() -> None:
    indptr, indices = torch.tensor([0, 1, 2]), torch.tensor([0, 1])
    pattern, B = wt.Pattern(indptr, indices, (2, 2)), leaf(2, 1)
    close(wt.spmm(pattern, B), B)
    indices.copy_(torch.tensor([1, 0]))
    close(wt.spmm(pattern, B), B.flip(0))


def test_patterns_that_are_none_are_refused() -> None:
    B = leaf(2, 1)
    good = torch.tensor([0, 1, 2])
    for indptr, indices in (
        (good, torch.tensor([0, 2])),
        (good, torch.tensor([0, -1])),
        (torch.tensor([0, 2, 1]), torch.tensor([0, 1])),
        (torch.tensor([0, 1, 3]), torch.tensor([0, 1])),
        (good.float(), torch.tensor([0, 1])),
        (good, torch.tensor([0, 1], dtype=torch.int32)),
    ):
        with pytest.raises(InvalidMatrix):
            wt.spmm(wt.Pattern(indptr, indices, (2, 2)), B)


def test_memory_that_was_given_back_is_not_taken_for_the_pattern_that_was_there() -> None:
    B = leaf(3, 1)
    for shift in range(20):  # new tensors, often in the memory of the last ones
        indices = (torch.arange(3) + shift) % 3
        pattern = wt.Pattern(torch.arange(4), indices, (3, 3))
        close(wt.spmm(pattern, B), B[indices])


def test_a_tensor_elsewhere_is_refused() -> None:
    with pytest.raises(ExecutorMismatch, match="move one of them"):
        wl.spmm(wl.Csr(DENSE.numpy()), torch.ones(4, 2, device="meta", requires_grad=True))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_compiled_functions_of_sparse_tensors_break_their_graph_at_the_product(layout: str) -> None:
    torch._dynamo.reset()
    A, B = LAYOUTS[layout](DENSE), leaf(4, 3)

    def layer(A: Any, B: Any) -> Any:
        return wt.spmm(A, 2 * B).relu()

    close(torch.compile(layer, backend="aot_eager")(A, B), (2 * DENSE @ B).relu())
    close(torch.compile(lambda B: layer(A, B), backend="aot_eager")(B), (2 * DENSE @ B).relu())
