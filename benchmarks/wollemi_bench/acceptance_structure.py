"""Goals for operations on structure, compared with a copy of the result: the part ``structure``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.executor import Executor

from .acceptance import Goal, ratio, seconds, time_of
from .cases import case


def goals(on: Executor, scale: int) -> Iterator[Goal]:
    """Yield each operation over a copy of its result, and products of unsorted rows."""
    n = max(1000, 1_000_000 // scale)
    side = round(n ** (1 / 3))
    A = wl.Csr(case(f"stencil7:{side}").matrix(), executor=on)
    B = 1.5 * A
    mask = np.zeros(A.shape[1], bool)
    mask[::2] = True
    placed = on.from_host(mask)  # the other mask goes across the bus in each call
    small = wl.Csr(sp.eye_array(8, format="csr"), executor=on)
    part = A[: A.shape[0] // 8]
    calls = {
        "vstack": lambda: wl.sparse.vstack([A, B]),
        "A[:, mask]": lambda: A[:, mask],
        "A[:, mask of the device]": lambda: A[:, placed],
        "A[:, half]": lambda: A[:, : A.shape[1] // 2],
        "kron": lambda: wl.sparse.kron(small, part),
        "A > 0": lambda: A > 0,
        "A < B": lambda: A < B,
        "A != B": lambda: A != B,
    }
    for name, call in calls.items():
        made: Any = call()
        copied = time_of(made.copy, on)
        yield ratio(f"{name} over a copy", time_of(call, on), copied, most=1.2)
    yield from _products(on, n)


def _products(on: Executor, n: int) -> Iterator[Goal]:
    """Yield products with rows as SciPy's products leave them, unsorted, and with sorted ones."""
    rng = np.random.default_rng(0)
    side = round(n ** (1 / 3))
    S = case(f"stencil7:{side}").matrix()
    rows = S.shape[0]
    P = sp.csr_array((np.ones(rows), (np.arange(rows), np.arange(rows) // 8)))
    unsorted = _shuffled(S, rng)
    sorted_A, unsorted_A = (wl.Csr(one, executor=on) for one in (S, unsorted))
    coarse = wl.Csr(P, executor=on)
    for name, call in {
        "A @ P": lambda A: A @ coarse,
        "galerkin": lambda A: wl.galerkin(coarse, A),
    }.items():
        times = [time_of(partial(call, A), on) for A in (sorted_A, unsorted_A)]
        yield seconds(f"{name}, sorted rows", times[0], "ms")
        yield ratio(f"{name}, unsorted rows over sorted rows", times[1], times[0], most=1.1)


def _shuffled(S: Any, rng: np.random.Generator) -> sp.csr_array:
    """Return the matrix with the entries of each row in a random order."""
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    order = np.lexsort((rng.random(S.nnz), rows))
    return sp.csr_array((S.data[order], S.indices[order], S.indptr), shape=S.shape)
