"""Tensors of a GPU: the results, gradients and transforms equal the CPU's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

from ..backends.needs import cuda, package

torch = package("torch", in_ci=False)

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _device() -> None:
    cuda()
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA; this runs where it has")


def pattern(executor: str) -> wl.Csr:
    rng = np.random.default_rng(0)
    mask = rng.random((30, 20)) < 0.2
    return wl.Csr(mask * rng.standard_normal(mask.shape), executor=executor)


def on_both(f: Any, *operands: Any) -> None:
    """Compare a function of a matrix and tensors, and its gradients, on GPU and CPU."""
    found = []
    for executor, device in (("omp", "cpu"), ("cuda", "cuda")):
        leaves = [x.to(device).requires_grad_() for x in operands]
        out = f(pattern(executor), *leaves)
        gradients = torch.autograd.grad(out.pow(2).sum(), leaves)
        found.append([x.detach().cpu() for x in (out, *gradients)])
    torch.testing.assert_close(found[1], found[0])


def tensor(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).double()


@pytest.mark.parametrize("edge", [None, "sigmoid", "softmax", lambda s, e: e.softmax(s.tanh())])
def test_products(edge: Any) -> None:
    from wollemi.interop.torch import fusedmm, spmm

    C, B, D = tensor(2, 30, 4), tensor(2, 20, 4), tensor(20, 3)
    on_both(lambda A, c, b, d: fusedmm(A, c, b, d, edge=edge, dropout=0.2, seed=1), C, B, D)
    on_both(lambda A, b: spmm(A, b.transpose(0, 1)), tensor(20, 2, 5))


@pytest.mark.parametrize("edge", ["softmax", lambda s, e: e.softmax(s.tanh())])
def test_graphs_of_the_compiler_take_edge_functions(edge: Any) -> None:
    from wollemi.interop.torch import fusedmm

    A = pattern("cuda")

    def layer(c: Any, b: Any, d: Any) -> Any:
        return fusedmm(A, c, b, d, edge=edge).sin()

    compiled = torch.compile(layer, mode="reduce-overhead")
    for seed in range(5):
        torch.manual_seed(seed)
        leaves = [torch.randn(n, 4, device="cuda", requires_grad=True) for n in (30, 20, 20)]
        torch.compiler.cudagraph_mark_step_begin()
        got, want = (torch.autograd.grad(f(*leaves).sum(), leaves) for f in (compiled, layer))
        torch.testing.assert_close(got, want)


def test_transforms() -> None:
    from wollemi.interop.torch import spmm

    on_both(lambda A, b: torch.func.vmap(lambda x: spmm(A, x))(b), tensor(3, 20, 2))
    on_both(lambda A, b: torch.func.jvp(lambda x: spmm(A, x).sin(), (b,), (b,))[1], tensor(20, 2))
    on_both(
        lambda A, b: torch.compile(
            lambda x: spmm(A, x).relu(), fullgraph=True, backend="aot_eager"
        )(b),
        tensor(20, 2),
    )


def test_graphs() -> None:
    edges = torch.randint(0, 9, (2, 40), generator=torch.Generator().manual_seed(0))

    def reduced(A: Any, x: Any, e: Any) -> Any:
        graph = wl.graph.from_edges(edges.to(x.device), 9)
        weights = wl.graph.edge_softmax(graph, e)
        kinds = ("sum", "mean", "max", "min")
        return torch.stack([wl.graph.gspmm(graph, "mul", kind, x, weights) for kind in kinds])

    on_both(reduced, tensor(9, 4), tensor(40, 1))


def test_solves() -> None:
    from wollemi.interop.torch import solve

    def f(_: Any, values: Any, b: Any) -> Any:
        executor = "cuda" if b.is_cuda else "omp"
        P = wl.Csr(np.diag(np.full(8, 4.0)) + np.diag(np.ones(7), 1), executor=executor)
        return solve(P, b, values=values, rtol=1e-13)

    values = torch.from_numpy(wl.Csr(np.diag(np.full(8, 4.0)) + np.diag(np.ones(7), 1)).data)
    on_both(f, values.clone(), tensor(8, 2))


SYMMETRIC = np.diag([1.0, 2.5, 4.0, 6.0, 8.5]) + 0.3 * (np.eye(5, k=1) + np.eye(5, k=-1))
TALL = np.vstack([SYMMETRIC, np.eye(2, 5)])
#: Functions of the values of a matrix and a block of numbers.
DERIVED: dict[str, tuple[Any, Any]] = {
    "solve": (SYMMETRIC, lambda wt, A, v, b: wt.solve(A, b[:5], values=v, solver="direct")),
    "least squares": (TALL, lambda wt, A, v, b: wt.least_squares(A, b, values=v)),
    "sparse product": (
        SYMMETRIC,
        lambda wt, A, v, b: wt.matmul(A, A, A_values=v, B_values=v * v).values,
    ),
    "coarse matrix": (
        SYMMETRIC,
        lambda wt, A, v, b: wt.galerkin(A, A, A_values=v, P_values=v * v).values,
    ),
    "determinant": (SYMMETRIC, lambda wt, A, v, b: wt.log_determinant(A, values=v)),
    "eigenpairs": (SYMMETRIC, lambda wt, A, v, b: wt.eigsh(A, k=2, which="LA", values=v)),
    "singular triplets": (TALL, lambda wt, A, v, b: wt.svds(A, k=2, values=v)),
    "edge function": (
        SYMMETRIC,
        lambda wt, A, v, b: wt.fusedmm(
            A,
            b[:5],
            b[:5].cos(),
            b[:5].sin(),
            values=v,
            edge=lambda s, e: e.softmax(s.tanh() * e.of_rows(b[:5, 0]) - (e.rows - e.columns)),
        ),
    ),
    "edge function of a mask": (
        SYMMETRIC,
        lambda wt, A, v, b: wt.fusedmm(
            wl.masks.sliding_window(5, 3).to("cuda"),
            b[:5],
            b[:5].cos(),
            b[:5].sin(),
            edge=lambda s, e: e.softmax(s * e.of_columns(v[:5])),
        ),
    ),
}


@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_of_both_orders(name: str) -> None:
    from wollemi.interop import torch as wt

    array, f = DERIVED[name]
    A = wl.Csr(array, executor="cuda")
    values = torch.as_tensor(array[array.nonzero()], device="cuda").requires_grad_()
    b = tensor(len(array), 2).cuda().requires_grad_()
    given, options = (values, b), {"fast_mode": True, "nondet_tol": 1e-9}
    assert torch.autograd.gradcheck(lambda v, x: f(wt, A, v, x), given, **options)
    assert torch.autograd.gradgradcheck(lambda v, x: f(wt, A, v, x), given, **options)


@pytest.mark.parametrize("name", ["matmul", "galerkin"])
def test_a_matrix_on_the_device_is_a_constant_operand(name: str) -> None:
    from wollemi.interop import torch as wt

    A = pattern("cuda")
    square = A @ A.T.tocsr()
    values = torch.linspace(1.0, 2.0, square.nnz, device="cuda", requires_grad=True)
    found = getattr(wt, name)(square, A, A_values=values).values
    constant = torch.as_tensor(A.data, device="cuda")
    given = {"B_values" if name == "matmul" else "P_values": constant}
    expected = getattr(wt, name)(square, A, A_values=values, **given).values
    assert torch.equal(found, expected)
    (gradient,) = torch.autograd.grad(found.sum(), values)
    assert gradient.shape == values.shape and bool(gradient.isfinite().all())
