"""Training steps of PyTorch, and products, as CUDA graphs: replays equal eager results."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import CaptureRefused

from ...needs import cuda, package

torch = package("torch", in_ci=False)

pytestmark = pytest.mark.gpu

M, N, K = 192, 128, 32
#: How often a graph is replayed with new numbers.
REPLAYS = 100
DTYPES = ("float32", "float64", "float16", "bfloat16")


@pytest.fixture(scope="module", autouse=True)
def xp() -> Any:
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA; this runs where it has")
    return cuda().xp


def pattern(kind: str, dtype: str = "float32") -> wl.Csr:
    """Return a pattern: blocks, entries at random, or the neighbours of a line."""
    rng = np.random.default_rng(3)
    if kind == "blocks":
        mask = np.kron(rng.random((M // 16, N // 16)) < 0.4, np.ones((16, 16), bool))
    elif kind == "stencil":
        mask = abs(np.arange(M)[:, None] - np.arange(N)) < 3
    else:
        mask = rng.random((M, N)) < 0.1
    rows, columns = mask.nonzero()
    numbers = rng.uniform(0.5, 1.5, len(rows)).astype("float32")
    indptr = np.searchsorted(rows, np.arange(M + 1)).astype(np.int32)
    A = wl.Csr((numbers, columns.astype(np.int32), indptr), shape=(M, N), executor="cuda:0")
    if dtype == "float32":
        return A
    values = torch.as_tensor(A.data, device="cuda").to(getattr(torch, dtype))
    sparse = torch.sparse_csr_tensor(
        torch.as_tensor(A.indptr, device="cuda"),
        torch.as_tensor(A.indices, device="cuda"),
        values,
        (M, N),
    )
    return wl.Csr(sparse, executor="cuda:0")


def leaf(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    generator = torch.Generator(device="cuda").manual_seed(seed + sum(shape))
    made = torch.rand(*shape, generator=generator, device="cuda").to(getattr(torch, dtype))
    return made.requires_grad_()


class Step:
    """A function of leaves with its gradients, captured by PyTorch after three calls."""

    def __init__(self, function: Callable[..., Any], leaves: list[Any]) -> None:
        self.function, self.leaves = function, leaves
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.eager()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.captured = self.eager()

    def eager(self) -> list[Any]:
        out = self.function(*self.leaves)
        asked = [x for x in self.leaves if x.requires_grad]
        if not asked:
            return [out]
        return [out.detach(), *torch.autograd.grad((out.float() ** 2).sum(), asked)]

    def replays_equal_eager(self, times: int) -> None:
        """Replay with new numbers in place, among other work that allocates."""
        for seed in range(times):
            with torch.no_grad():
                for at, x in enumerate(self.leaves):
                    x.copy_(leaf(*x.shape, seed=7 * seed + at))
            want = [x.float().clone() for x in self.eager()]
            self.graph.replay()
            got = [x.float().clone() for x in self.captured]
            torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3)


STEPS: dict[str, Callable[..., Any]] = {
    "spmm": lambda A, w, c, b, d: wl.interop.torch.spmm(A, b, values=w),
    "sddmm": lambda A, w, c, b, d: wl.interop.torch.sddmm(A, c, b),
    "fusedmm": lambda A, w, c, b, d: wl.interop.torch.fusedmm(A, c, b, d),
    "softmax": lambda A, w, c, b, d: wl.interop.torch.fusedmm(A, c, b, d, edge="softmax"),
    "softmax of values": lambda A, w, c, b, d: wl.interop.torch.fusedmm(
        A, c, b, d, edge="softmax", values=w, alpha=0.2
    ),
    "sigmoid": lambda A, w, c, b, d: wl.interop.torch.fusedmm(A, c, b, d, edge="sigmoid"),
    "function": lambda A, w, c, b, d: wl.interop.torch.fusedmm(
        A, c, b, d, edge=lambda s, e: e.softmax(s.tanh()), bias=w
    ),
}


@pytest.fixture(autouse=True)
def _torch_is_loaded() -> Iterator[None]:
    import wollemi.interop.torch  # noqa: F401

    yield
    gc.collect()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["blocks", "random", "stencil"])
@pytest.mark.parametrize("name", STEPS)
def test_training_steps_are_captured(name: str, kind: str, dtype: str) -> None:
    A = pattern(kind)
    leaves = [leaf(A.nnz, dtype=dtype), *(leaf(r, K, dtype=dtype, seed=r) for r in (M, N, N))]
    every = name in ("softmax of values", "function")
    used = {"spmm": (0, 2), "sddmm": (1, 2)}.get(name, (0, 1, 2, 3) if every else (1, 2, 3))
    for at, x in enumerate(leaves):
        x.requires_grad_(at in used)
    step = Step(lambda *given: STEPS[name](A, *given), leaves)
    step.replays_equal_eager(REPLAYS if (kind, dtype) == ("random", "float32") else 5)


def test_layers_are_captured() -> None:
    with wl.default_executor("reference"):  # modules begin with tensors of the host
        _capture_layers()


def _capture_layers() -> None:
    from wollemi.nn import GraphAttention, GraphConv, SparseAttention, SparseLinear

    rng = np.random.default_rng(1)
    edges = torch.as_tensor(rng.integers(0, N, (2, 700)))
    graph = wl.graph.from_edges(edges.cuda(), num_nodes=N)
    window = wl.masks.sliding_window(N, 9, executor="reference")
    square = wl.Csr((rng.random((N, N)) < 0.1).astype("f4"), executor="reference")
    layers: dict[str, tuple[Any, Callable[[Any], Any]]] = {}
    for conv in (GraphConv(K, 16, norm=norm) for norm in ("both", "gcn", "mean")):
        conv = conv.cuda()
        layers[f"conv {conv.norm}"] = conv, lambda x, f=conv: f(graph, x)
    for scores in ("additive", "dot"):
        attention = GraphAttention(K, 8, 2, scores=scores).cuda()
        layers[f"graph attention {scores}"] = attention, lambda x, f=attention: f(graph, x)
    for name, shape in (("pattern", square), ("mask", window)):
        attend = SparseAttention(K, 2, shape).cuda()
        layers[f"attention {name}"] = attend, lambda x, f=attend: f(x[None])
    linear = SparseLinear(torch.rand(16, K).cuda() < 0.3)
    layers["linear"] = linear, linear
    for name, (layer, function) in layers.items():
        x = leaf(N, K)
        parameters = list(layer.parameters())
        try:
            step = Step(lambda *given, f=function: f(given[0]), [x, *parameters])
            step.replays_equal_eager(5)
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error


def test_graphed_callables_train() -> None:
    A = pattern("random")

    class Layer(torch.nn.Module):
        def forward(self, c: Any, b: Any, d: Any) -> Any:
            return wl.interop.torch.fusedmm(A, c, b, d, edge="softmax")

    layer = Layer().cuda()
    samples = tuple(leaf(r, K, seed=r) for r in (M, N, N))
    graphed = torch.cuda.make_graphed_callables(Layer().cuda(), samples)
    for seed in range(5):
        given = [leaf(r, K, seed=r + seed) for r in (M, N, N)]
        want = torch.autograd.grad(layer(*given).pow(2).sum(), given)
        got = torch.autograd.grad(graphed(*given).pow(2).sum(), given)
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("by", ["torch", "cupy"])
def test_ten_products_by_the_dense_one_are_captured(xp: Any, by: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    n, k = 1024, 128
    mask = np.kron(rng.random((n // 16, n // 16)) < 0.3, np.ones((16, 16), bool))
    dense = torch.as_tensor(mask * rng.standard_normal((n, n)), device="cuda")
    A = wl.Csr(dense.to(getattr(torch, dtype)).to_sparse_csr(), executor="cuda:0")
    B = leaf(n, k, dtype=dtype).detach()
    if by == "torch":
        step = Step(lambda b: [wl.spmm(A, b, kernel="dense") for _ in range(10)][-1], [B])
        step.replays_equal_eager(5)
        return
    held = wl.executor("cuda:0").adopt(B)
    outs = [xp.zeros((n, k), A.dtype) for _ in range(10)]
    stream = xp.cuda.Stream(non_blocking=True)
    with stream:
        wl.spmm(A, held, kernel="dense", out=outs[0])
        stream.begin_capture()
        for out in outs:
            wl.spmm(A, held, kernel="dense", out=out)
        graph = stream.end_capture()
        for out in outs:
            out.fill(0)
        graph.launch(stream)
        stream.synchronize()
    want = torch.as_tensor(dense, device="cuda").to(B.dtype).float() @ B.float()
    for out in outs:
        got = torch.from_dlpack(out.view(np.uint16)).view(B.dtype).float()
        torch.testing.assert_close(got, want, rtol=2e-2, atol=0.5)


def test_graphs_share_no_memory_and_give_it_back(xp: Any) -> None:
    A, on = pattern("random"), wl.executor("cuda:0")
    x, stream, graphs = xp.ones(N, np.float32), xp.cuda.Stream(non_blocking=True), []
    S = wl.Csr(A.to_scipy(), executor="cuda:0")
    with stream:
        lazy = (2.0 * wl.Identity(M, executor="cuda:0")) @ S
        _ = S @ x, lazy @ x
        for _ in range(3):
            stream.begin_capture()
            y = lazy @ x
            graphs.append((stream.end_capture(), y))
        for graph, y in graphs:
            y.fill(0)
            graph.launch(stream)
        stream.synchronize()
        want = 2 * (A.to_scipy() @ np.ones(N, np.float32))
        for _, y in graphs:
            np.testing.assert_allclose(y.get(), want, rtol=1e-5)
        del graph, y
        graphs.clear()
        gc.collect()
        for _ in range(20):
            stream.begin_capture()
            y = lazy @ x
            graph = stream.end_capture()
            graph.launch(stream)
            stream.synchronize()
            del graph, y
            gc.collect()
    assert len(on._captures) < 12  # the driver tells of lost graphs in a thread of its own


def test_work_within_torchs_capture_is_recorded_whatever_cupys_stream_is(xp: Any) -> None:
    A = pattern("random")
    x = xp.ones(N, np.float32)
    _ = A @ x
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = A @ x
    x[...] = 3
    torch.cuda.synchronize()
    xp.cuda.Device().synchronize()
    graph.replay()
    torch.cuda.synchronize()
    np.testing.assert_allclose(y.get(), A.to_scipy() @ np.full(N, 3.0, np.float32), rtol=1e-5)


def test_solves_are_refused_by_name_in_torchs_capture() -> None:
    A = wl.Csr(np.diag(np.arange(1.0, 9.0)), executor="cuda:0")
    b = torch.ones(8, dtype=torch.float64, device="cuda")
    solver = wl.solvers.Cg(A)
    solver.solve(b)
    for call, name in (
        (lambda: solver.solve(b), "Cg.solve"),
        (lambda: wl.interop.torch.solve(A, b), "interop.torch.solve"),
        (lambda: A @ A, "Csr.__matmul__"),
        (lambda: A.sum(), "Csr.sum"),
    ):
        torch.cuda.synchronize()
        refused = pytest.raises(CaptureRefused, match=name.replace(".", r"\."))
        with refused, torch.cuda.graph(torch.cuda.CUDAGraph()):
            call()
