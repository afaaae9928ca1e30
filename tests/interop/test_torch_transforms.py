"""Traced, compiled, batched and differentiated calls have the results of the plain call."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import UnsupportedOperation

from ..backends.needs import package

torch = package("torch")
wt = package("wollemi.interop.torch")

close = torch.testing.assert_close
testing = package("torch._dynamo.testing")


def pattern() -> wl.Csr:
    """A 6 x 5 pattern with an empty row, an empty column, unsorted and double entries."""
    indices = [3, 0, 1, 4, 4, 0, 0, 3, 1, 4]
    return wl.Csr(
        (np.linspace(-1, 1, 10), indices, [0, 2, 2, 5, 7, 9, 10]), shape=(6, 5), executor="omp:2"
    )


A = pattern()


def leaf(*shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


VALUES, C, B, D = leaf(10), leaf(6, 4), leaf(5, 4, seed=1), leaf(5, 3, seed=2)

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "spmm": (lambda v, b: wt.spmm(A, b, values=v), (VALUES, B)),
    "spmm of own values": (lambda b: wt.spmm(A, b, alpha=0.5), (B,)),
    "sddmm": (lambda v, c, b: wt.sddmm(A, c, b, alpha=0.5, values=v), (VALUES, C, B)),
    "fusedmm": (lambda c, b, d: wt.fusedmm(A, c, b, d), (C, B, D)),
    "sigmoid": (
        lambda v, c, b, d: wt.fusedmm(A, c, b, d, edge="sigmoid", values=v),
        (VALUES, C, B, D),
    ),
    "softmax": (
        lambda v, c, b, d: wt.fusedmm(A, c, b, d, edge="softmax", values=v, alpha=0.7),
        (VALUES, C, B, D),
    ),
}


@pytest.fixture(params=["spmm", "sddmm", "softmax"])
def function(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return FUNCTIONS[request.param]


@pytest.fixture(params=FUNCTIONS)
def each(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return FUNCTIONS[request.param]


def energy(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: f(*operands).pow(2).sum()


@pytest.mark.parametrize("mode", ["real", "symbolic"])
def test_a_traced_graph_computes_what_the_function_does(each: Any, mode: str) -> None:
    f, operands = each
    from torch.fx.experimental.proxy_tensor import make_fx

    # with symbols of shapes, constants of the function's must be allowed in
    traced = make_fx(f, tracing_mode=mode, _allow_non_fake_inputs=True)(*operands)
    others = [x + 1 for x in operands]
    close(traced(*others), f(*others))


def test_a_traced_gradient_computes_what_the_gradient_does(function: Any) -> None:
    f, operands = function
    from torch.fx.experimental.proxy_tensor import make_fx

    gradient = torch.func.grad(energy(f), argnums=tuple(range(len(operands))))
    others = [x + 1 for x in operands]
    close(make_fx(gradient)(*operands)(*others), gradient(*others))


def test_fake_tensors_have_the_shapes_of_results(function: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    f, operands = function
    with FakeTensorMode() as mode:
        made = f(*(mode.from_tensor(x) for x in operands))
    want = f(*operands)
    assert (made.shape, made.dtype, made.stride()) == (want.shape, want.dtype, want.stride())


def test_pytorch_s_own_checks_of_operators() -> None:
    indptr, indices = torch.from_numpy(A.indptr), torch.from_numpy(A.indices)
    own = torch.ops.wollemi
    v, c, b, d = (x.clone().requires_grad_() for x in (VALUES, C, B, D))
    calls = {
        own.spmm.default: (v, b, "auto"),
        own.fusedmm.default: (v, c, b, d, "softmax", 0.5, "auto"),
    }
    for op, arguments in calls.items():
        torch.library.opcheck(op, (indptr, indices, *arguments))


def test_compiled_functions_have_one_graph_and_the_same_gradients(function: Any) -> None:
    f, operands = function
    torch._dynamo.reset()
    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    got = [x.clone().requires_grad_() for x in operands]
    want = [x.clone().requires_grad_() for x in operands]
    out = compiled(*got)
    close(out, f(*want))
    out.pow(2).sum().backward()
    f(*want).pow(2).sum().backward()
    close([x.grad for x in got], [x.grad for x in want])


def test_one_compiled_graph_serves_all_widths() -> None:
    torch._dynamo.reset()
    counter = testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(
        lambda b: wt.spmm(A, b).relu(), fullgraph=True, dynamic=True, backend=counter
    )
    for width in (4, 7, 16, 33):
        b = leaf(5, width)
        close(compiled(b), wt.spmm(A, b).relu())
    assert counter.frame_count == 1


def test_a_compiled_function_of_a_pattern_serves_other_patterns() -> None:
    torch._dynamo.reset()

    def mean(indptr: Any, indices: Any, b: Any) -> Any:
        pattern = wt.Pattern(indptr, indices, (indptr.shape[0] - 1, b.shape[0]))
        return wt.spmm(pattern, b)

    counter = testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(mean, fullgraph=True, dynamic=True, backend=counter)
    for rows in (6, 8, 11):
        indptr = torch.arange(rows + 1)
        indices = torch.arange(rows) % 5
        close(compiled(indptr, indices, B), B[indices])
    assert counter.frame_count == 1


def test_exported_programs_keep_the_pattern() -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("indptr", torch.from_numpy(A.indptr))
            self.register_buffer("indices", torch.from_numpy(A.indices))
            self.weights = torch.nn.Parameter(VALUES.clone())

        def forward(self, b: Any) -> Any:
            pattern = wt.Pattern(self.indptr, self.indices, (6, 5))
            return wt.spmm(pattern, b, values=self.weights)

    layer = Layer()
    program = torch.export.export(layer, (B,), dynamic_shapes=({1: torch.export.Dim("k")},))
    stored = io.BytesIO()
    torch.export.save(program, stored)
    stored.seek(0)
    again = torch.export.load(stored).module()
    close(again(leaf(5, 9)), layer(leaf(5, 9)))


def test_functions_over_a_batch_are_batches(each: Any) -> None:
    f, operands = each
    stacked = [torch.stack([x, 2 * x, x - 1], dim=x.dim() - 1) for x in operands]
    dims = tuple(x.dim() - 1 for x in operands)
    got = torch.func.vmap(f, in_dims=dims)(*stacked)
    want = torch.stack(
        [f(*(s.select(d, i) for s, d in zip(stacked, dims, strict=True))) for i in range(3)]
    )
    close(got, want)
    first = torch.func.vmap(f, in_dims=(0, *[None] * (len(operands) - 1)))
    rest = operands[1:]
    close(first(torch.stack([operands[0]] * 2), *rest)[1], f(*operands))


def test_patterns_are_no_batch() -> None:
    indptr, indices = torch.from_numpy(A.indptr), torch.from_numpy(A.indices)
    with pytest.raises(UnsupportedOperation, match="on the diagonal of one"):
        torch.func.vmap(lambda i: torch.ops.wollemi.sddmm(indptr, i, C, B, "auto"))(
            torch.stack([indices, indices])
        )


def test_forward_and_reverse_jacobians_agree(each: Any) -> None:
    f, operands = each
    every = tuple(range(len(operands)))
    close(torch.func.jacfwd(f, every)(*operands), torch.func.jacrev(f, every)(*operands))


def test_second_derivatives_agree(function: Any) -> None:
    f, operands = function
    every = tuple(range(len(operands)))
    small = [x[..., :2] if x.dim() == 2 else x for x in operands]
    forward_over_reverse = torch.func.hessian(energy(f), every)(*small)
    reverse_over_reverse = torch.func.jacrev(torch.func.grad(energy(f), every), every)(*small)
    close(forward_over_reverse, reverse_over_reverse)


def test_products_with_the_hessian(function: Any) -> None:
    f, operands = function
    directions = tuple(torch.ones_like(x) for x in operands)
    _, by_reverse = torch.autograd.functional.hvp(energy(f), tuple(operands), directions)
    gradient = torch.func.grad(energy(f), tuple(range(len(operands))))
    _, by_forward = torch.func.jvp(gradient, tuple(operands), directions)
    close(by_reverse, by_forward)


def test_linearized_functions(function: Any) -> None:
    f, operands = function
    _, tangent = torch.func.linearize(f, *operands)
    directions = [torch.ones_like(x) for x in operands]
    close(tangent(*directions), torch.func.jvp(f, tuple(operands), tuple(directions))[1])


def test_dual_numbers(function: Any) -> None:
    f, operands = function
    tangents = [torch.ones_like(x) for x in operands]
    with torch.autograd.forward_ad.dual_level() as _:
        duals = [
            torch.autograd.forward_ad.make_dual(x, t)
            for x, t in zip(operands, tangents, strict=True)
        ]
        tangent = torch.autograd.forward_ad.unpack_dual(f(*duals)).tangent
    step = 1e-6
    ends = [
        f(*(x + s * step * t for x, t in zip(operands, tangents, strict=True))) for s in (1, -1)
    ]
    close(tangent, (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-8)


def test_batches_of_gradients(function: Any) -> None:
    f, operands = function
    leaves = [x.clone().requires_grad_() for x in operands]
    out = f(*leaves)
    directions = torch.stack([torch.ones_like(out), torch.randn_like(out)])
    got = torch.autograd.grad(out, leaves, directions, is_grads_batched=True, retain_graph=True)
    want = [torch.autograd.grad(out, leaves, d, retain_graph=True) for d in directions]
    for g, w in zip(got, zip(*want, strict=True), strict=True):
        close(g, torch.stack(w))


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints(function: Any, reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    f, operands = function
    leaves = [x.clone().requires_grad_() for x in operands]
    checkpoint(f, *leaves, use_reentrant=reentrant).pow(2).sum().backward()
    want = torch.func.grad(energy(f), tuple(range(len(operands))))(*operands)
    close(tuple(x.grad for x in leaves), want)


def test_autocast_lowers_products_as_it_lowers_dense_ones() -> None:
    package("ml_dtypes")
    a, b = VALUES.float().requires_grad_(), B.float()
    with torch.autocast("cpu", torch.bfloat16):
        out = wt.spmm(A, b, values=a)
        wide = wt.spmm(A, B, values=VALUES)
    assert out.dtype is torch.bfloat16 and wide.dtype is torch.float64
    out.float().sum().backward()
    assert a.grad.dtype is torch.float32


def test_derivatives_of_one_sample_each() -> None:
    one = torch.func.grad(lambda b: wt.fusedmm(A, C, b, D, edge="softmax").pow(2).sum())
    batch = torch.stack([B, 2 * B])
    close(torch.func.vmap(one)(batch), torch.stack([one(B), one(2 * B)]))


@pytest.mark.parametrize("edge", ["identity", "softmax"])
def test_a_graph_of_the_compiler_may_have_several_matrices(edge: str) -> None:
    other = wl.Csr(np.eye(6, 5) + np.eye(6, 5, k=2), executor="omp:2")

    def f(c: Any, b: Any, d: Any) -> Any:
        both = wt.fusedmm(A, c, b, d, edge=edge) + wt.fusedmm(other, c, b, d, edge=edge)
        return both + wt.spmm(other, d) - wt.spmm(A, d)

    compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
    close(compiled(C, B, D), f(C, B, D))


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_transforms_take_constant_sparse_tensors(layout: str) -> None:
    dense = torch.from_numpy(np.where(A.to_dense() != 0, 1.0, 0.0))[:4, :4].contiguous()
    sparse = getattr(dense, f"to_sparse_{layout}")(*([(2, 2)] if layout == "bsr" else []))
    x = leaf(4, 3)

    def f(x: Any) -> Any:
        return wt.spmm(sparse, x).sin()

    def g(x: Any) -> Any:
        return (dense @ x).sin()

    close(torch.func.jacrev(f)(x), torch.func.jacrev(g)(x))
    close(torch.vmap(f)(torch.stack([x, 2 * x]))[1], g(2 * x))
    close(torch.func.jvp(f, (x,), (x,))[1], torch.func.jvp(g, (x,), (x,))[1])


def test_logarithms_of_totals_have_gradients_in_transforms_and_compiled_functions() -> None:
    def f(c: Any, b: Any) -> Any:
        out, logs = wt.fusedmm(A, c, b, D, edge="softmax", return_lse=True)
        return out.sum(-1) + torch.where(logs.isinf(), 0, logs)

    plain = torch.func.grad(lambda c, b: f(c, b).sin().sum(), (0, 1))(C, B)
    batched = torch.func.grad(lambda c, b: torch.vmap(f)(c[None], b[None]).sin().sum(), (0, 1))
    close(batched(C, B), plain)
    leaves = (C.clone().requires_grad_(), B.clone().requires_grad_())
    compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
    close(torch.autograd.grad(compiled(*leaves).sin().sum(), leaves), plain)
