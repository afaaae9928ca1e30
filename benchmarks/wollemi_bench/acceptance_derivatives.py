"""Goals for backward over forward of PyTorch's functions: the part ``derivatives``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.executor import Executor

from .acceptance import Goal, ratio, seconds, time_of
from .cases import case

#: Backward over forward at most.
MOST = 2.2


def goals(on: Executor, scale: int) -> Iterator[Goal]:
    """Yield the times of each function, and of its gradients over them."""
    import torch

    device = "cuda" if on.backend == "cuda" else "cpu"
    for name, (S, call) in _functions(on, scale).items():
        values = torch.from_numpy(S.data).to(device).requires_grad_()
        forward = time_of(partial(_of_new_values, torch, call, values), on)
        out = call(values)
        gradient = torch.ones_like(out)
        backward = time_of(partial(_gradient, torch, out, values, gradient), on)
        yield seconds(f"{name}, forward", forward, "ms")
        yield ratio(f"{name}, backward over forward", backward, forward, most=MOST)


def _of_new_values(torch: Any, call: Callable[[Any], Any], values: Any) -> Any:
    """Return the result for other values, since factors of the same values are kept."""
    with torch.no_grad():
        values.mul_(1.0 + 1e-9)
    return call(values)


def _gradient(torch: Any, out: Any, values: Any, gradient: Any) -> Any:
    return torch.autograd.grad(out, values, gradient, retain_graph=True)


def _functions(on: Executor, scale: int) -> dict[str, tuple[sp.csr_array, Callable[[Any], Any]]]:
    """Return a matrix and a function of its values, by name."""
    from wollemi.interop import torch as wt

    S = case(f"stencil7:{max(6, round(64 / scale ** (1 / 3)))}").matrix()
    n = S.shape[0]
    P = sp.csr_array((np.ones(n), (np.arange(n), np.arange(n) // 8)))
    small = case(f"stencil5:{max(8, round(100 / scale**0.5))}").matrix()
    small.data += 1e-3 * np.random.default_rng(0).standard_normal(small.nnz)
    small = sp.csr_array(small + small.T)
    tall = sp.csr_array(sp.vstack([S, 0.5 * sp.eye_array(n)], format="csr"))
    A, coarse, little, high = (wl.Csr(one, executor=on) for one in (S, P, small, tall))
    b = _tensor(on, np.ones(n))
    rights = _tensor(on, np.ones(2 * n))
    return {
        "matmul": (S, lambda v: wt.matmul(A, coarse, A_values=v).values),
        "galerkin": (S, lambda v: wt.galerkin(A, coarse, A_values=v).values),
        "solve": (S, lambda v: wt.solve(A, b, values=v, solver="cg", M="amg", rtol=1e-8)),
        "least_squares": (tall, lambda v: wt.least_squares(high, rights, values=v)),
        "log_determinant": (small, lambda v: wt.log_determinant(little, values=v)),
        "eigsh": (small, lambda v: wt.eigsh(little, k=4, which="LA", values=v)[0]),
        "svds": (small, lambda v: wt.svds(little, k=4, values=v)[1]),
    }


def _tensor(on: Executor, array: np.ndarray[Any, Any]) -> Any:
    import torch

    return torch.from_numpy(array).to("cuda" if on.backend == "cuda" else "cpu")
