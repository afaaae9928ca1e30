"""Recorded solves within captures of CuPy and PyTorch: a conditional node of the user's graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

from ...needs import cuda, package
from .public_calls import LINE, N, csr, vector

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def xp() -> Any:
    return cuda().xp


@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize(
    ("name", "M", "options"),
    [
        ("Cg", None, {}),
        ("Cg", "jacobi", {}),
        ("Cg", "amg", {}),
        ("Bicgstab", None, {}),
        ("Minres", None, {}),
        ("Gmres", None, {"restart": N}),
    ],
)
def test_replays_solve_for_the_numbers_in_b(
    xp: Any, library: str, name: str, M: str | None, options: dict[str, int]
) -> None:
    torch = package("torch") if library == "torch" else None
    A = csr()
    solver = getattr(wl.solvers, name)(A, M=M, rtol=1e-10, **options)
    b, x = vector(N), xp.zeros(N)
    solve = solver.recorded(b, out=x)
    xp.cuda.Device().synchronize()
    if torch is not None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            solve()
        replay = graph.replay
    else:
        stream = xp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            solve()
            graph = stream.end_capture()
        replay = graph.launch
    rng, dense = np.random.default_rng(LINE), A.to_dense()
    for scale in (1.0, 1e-3, 1e3):
        for _ in range(10):
            rhs = scale * rng.standard_normal(N)
            b.set(rhs)
            xp.cuda.Device().synchronize()
            replay()
            xp.cuda.Device().synchronize()
            status = solve.status()
            assert status.converged and status.iterations > 0
            residual = np.linalg.norm(rhs - dense @ x.get())
            assert residual <= 1.01e-10 * np.linalg.norm(rhs)
