"""Goals for batches of systems: the part ``batches``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import wollemi as wl
from wollemi.core.executor import Executor

from . import batches
from .acceptance import Goal, ratio, seconds, time_of
from .page.numbers import Spread

#: Milliseconds at most, by the first word of the family and the method.
MOST = {
    ("gri30", "bicgstab"): 2.0,
    ("gri30", "direct"): 2.0,
    ("collision", "bicgstab"): 6.0,
    ("stencil", "cg"): 2.0,
}


def goals(on: Executor, scale: int) -> Iterator[Goal]:
    """Yield the time of each family, of other ways to solve it, and of gradients."""
    for family in batches.families():
        found = batches.measured(family, on, scale)
        name = f"{family.name}, {family.method}, {found.count} systems"
        word = family.name.partition(",")[0]
        yield seconds(name, _exact(found.batch), "ms", most=MOST.get((word, family.method)))
        yield seconds(f"{name}, with new values", _exact(found.setup), "ms")
        yield Goal(
            f"{name}, converged", found.converged, found.converged, found.converged, "of all"
        )
        others = {
            "block diagonal": (found.block_diagonal, 5.0 if word == "collision" else None),
            "our loop": (found.own_loop, None),
            "spsolve": (found.scipy_loop, None),
            "dense LU of CuPy": (found.dense, None),
        }
        for other, (took, least) in others.items():
            if np.isfinite(took):
                yield ratio(f"{name}, {other} over it", _exact(took), _exact(found.batch),
                            least=least)  # fmt: skip
        if word == "tridiagonal":
            yield _over_copy(name, family, on, found)
    yield from _gradients(on, scale)


def _exact(value: float) -> Spread:
    return Spread(value, value, value)


def _over_copy(name: str, family: batches.Family, on: Executor, found: Any) -> Goal:
    """Return the time over the time of copying values, right-hand sides and solutions."""
    n = family.pattern.shape[0]
    data = on.xp.zeros(found.count * (family.pattern.nnz + 2 * n))
    return ratio(f"{name} over a copy of its data", _exact(found.batch), time_of(data.copy, on),
                 most=1.5)  # fmt: skip


def _gradients(on: Executor, scale: int) -> Iterator[Goal]:
    """Yield backward over forward of a batch of 54 rows, in PyTorch."""
    import torch

    from wollemi.interop import torch as wt

    family = next(f for f in batches.families() if f.name.startswith("collision"))
    count, S = max(4, 1000 // scale), family.pattern
    device = "cuda" if on.backend == "cuda" else "cpu"
    values = torch.from_numpy(batches.values_of(family, count)).to(device).requires_grad_()
    b = torch.ones((count, S.shape[0], 1), dtype=torch.float64, device=device, requires_grad=True)
    A = wl.Csr(S, executor=on)

    def forward() -> Any:
        return wt.solve(A, b, values=values, solver="bicgstab", M="jacobi", rtol=1e-10)

    x = forward()
    gradient = torch.ones_like(x)
    backward = time_of(lambda: torch.autograd.grad(x, (values, b), gradient, retain_graph=True), on)
    name = f"backward over forward, {count} systems of {S.shape[0]} rows"
    yield ratio(name, backward, time_of(forward, on), most=2.2)
