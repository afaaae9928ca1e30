"""The host's time of a call on PyTorch's tensors: ``python -m wollemi_bench.call_table``.

Matrices are so small that computing is negligible, so the time is that of the calls: products of
ours, PyTorch's own of sparse tensors, and an operator that does nothing, registered as ours are.
All go by turns; on a GPU a turn ends with a wait for the device. The table is Markdown:
microseconds a call, median (quartiles).

PyTorch's compiler does not take sparse tensors: it compiles nothing of a function with
``torch.sparse.mm``, and its row is the plain call and the guards before it. So there is no CUDA
graph of it in the mode ``reduce-overhead`` either.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import wollemi as wl

#: Rows, density and columns on each kind of device: a GPU's launches hide small products.
SIZES = {"cpu": (200, 0.03, 8), "cuda": (2000, 0.003, 32)}

Call = Callable[[], Any]


def _empty() -> Callable[[Any, Any], Any]:
    """Return an operator of two tensors that computes nothing."""
    import torch

    library = torch.library.Library("wollemi_bench", "FRAGMENT")
    library.define("empty(Tensor X, Tensor like) -> Tensor")
    for key in ("CPU", "CUDA", "Meta"):
        library.impl("empty", lambda X, like: torch.empty_like(like), key)
    library.impl("empty", torch.library.fallthrough_kernel, "Autograd")
    operator = torch.ops.wollemi_bench.empty.default

    def call(X: Any, like: Any, keep: Any = library) -> Any:
        return operator(X, like)

    return call


def contenders(device: str) -> dict[str, Call]:
    """Return the calls, by name."""
    import torch

    from wollemi.interop.torch import fusedmm, sddmm

    n, density, k = SIZES[device]
    S = sp.csr_array(sp.random(n, n, density, dtype=np.float32, random_state=0))
    A = wl.Csr(S, executor="omp" if device == "cpu" else "cuda")
    T = torch.sparse_csr_tensor(
        torch.from_numpy(S.indptr), torch.from_numpy(S.indices), torch.from_numpy(S.data), S.shape
    ).to(device)
    X, Y = (torch.rand(n, k, device=device) for _ in range(2))
    G = torch.ones(n, k, device=device)
    W = X.clone().requires_grad_()
    empty = _empty()

    def ours(X: Any) -> Any:
        return wl.spmm(A, X)

    def theirs(X: Any) -> Any:
        return torch.sparse.mm(T, X)

    def backward(product: Callable[[Any], Any]) -> None:
        W.grad = None
        product(W).backward(G)

    def nothing(X: Any) -> Any:
        return empty(X, G)

    compiled = torch.compile(ours, fullgraph=True)
    calls: dict[str, Call] = {
        "spmm": partial(ours, X),
        "torch.sparse.mm": partial(theirs, X),
        "an empty operator": partial(empty, X, G),
        "spmm, compiled": partial(compiled, X),
        "torch.sparse.mm, compiled": partial(torch.compile(theirs), X),
        "an empty operator, compiled": partial(torch.compile(nothing, fullgraph=True), X),
        "spmm and gradient": partial(backward, ours),
        "torch.sparse.mm and gradient": partial(backward, theirs),
        "spmm and gradient, compiled": partial(backward, compiled),
        "sddmm": lambda: sddmm(A, X, Y),
        "torch.sparse.sampled_addmm": lambda: torch.sparse.sampled_addmm(T, X, Y.T, beta=0.0),
        "fusedmm, softmax": lambda: fusedmm(A, X, Y, Y, edge="softmax"),
    }
    if device == "cuda":
        of = {"spmm": ours, "torch.sparse.mm": theirs, "an empty operator": nothing}
        calls |= {f"{name}, reduce-overhead": _in_a_graph(call, X) for name, call in of.items()}
    return calls


def _in_a_graph(call: Callable[[Any], Any], X: Any) -> Call:
    """Return a call in the mode that puts compiled code into CUDA graphs."""
    import torch

    compiled = torch.compile(call, mode="reduce-overhead")

    def step() -> Any:
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(X)

    return step


def main(device: str = "cpu", rounds: int = 15, calls: int = 300) -> None:
    """Print the table."""
    import torch

    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    torch.set_num_threads(1)
    found = contenders(device)
    times: dict[str, list[float]] = {name: [] for name in found}
    for call in found.values():
        for _ in range(20):
            call()
    for _ in range(rounds):
        for name, call in found.items():
            wait()
            begun = time.perf_counter()
            for _ in range(calls):
                call()
            wait()
            times[name].append((time.perf_counter() - begun) * 1e6 / calls)
    print(f"| call on {device} | us |\n|---|---|")
    for name, each in times.items():
        median, low, high = np.percentile(each, (50, 25, 75))
        print(f"| {name} | {median:.1f} ({low:.1f} to {high:.1f}) |", flush=True)


if __name__ == "__main__":
    import typer

    typer.run(main)
