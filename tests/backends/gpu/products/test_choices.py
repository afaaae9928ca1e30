"""The rule repeats its recorded choices: 900 products on two GPUs that are not here.

A rule that is meant to change records its choices again:
``python -m pytest tests/backends/gpu/products/test_choices.py`` with ``WOLLEMI_RECORD_CHOICES=1``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.cuda.table import algorithms as of_cuda
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.backends.hip.table import algorithms as of_hip
from wollemi.core.algorithm import Selection, candidates, facts_of
from wollemi.core.devices import named

from ...lockstep.executor import LockstepExecutor

RECORDED = Path(__file__).with_name("choices.json")
DEVICES: dict[str, dict[str, Any]] = {
    "h200": {
        "multiprocessors": 132,
        "warp": 32,
        "shared_bytes": 232448,
        "capability": (9, 0),
        "peak_bandwidth": 4.92e12,
    },
    "mi300": {"multiprocessors": 304, "warp": 64, "shared_bytes": 0},
}
COLUMNS = (1, 4, 32, 128, 512)
DTYPES = ("float32", "float64", "float16")


def matrices() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(7)
    for m, n, density in (
        (64, 64, 0.3),
        (512, 512, 0.05),
        (1024, 512, 0.3),
        (2048, 2048, 0.1),
        (20_000, 20_000, 5e-4),
        (100, 100_000, 1e-3),
    ):
        yield f"{m}x{n}", sp.random_array((m, n), density=density, rng=rng, format="csr")
    weights = np.arange(1, 16_385) ** -0.6
    row, column = (rng.choice(16_384, 200_000, p=weights / weights.sum()) for _ in range(2))
    yield "power law", sp.coo_array((np.ones(row.size), (row, column)), (16_384, 16_384)).tocsr()
    one = sp.lil_array((30_000, 20_000))
    one[7, :] = 1.0
    yield "one long row", (one.tocsr() + sp.eye_array(30_000, 20_000)).tocsr()
    yield "no entries", sp.csr_array((50, 50))
    yield "tridiagonal", sp.diags_array([1.0] * 3, offsets=[-1, 0, 1], shape=(40_000, 40_000))


def chosen(device: str) -> dict[str, str]:
    """Return the algorithm of each product on an emulation of a device, without preparing it."""
    facts = dict(DEVICES[device])
    executor = LockstepExecutor(facts.pop("warp"))
    for name, value in facts.items():
        setattr(executor.device, name, value)
    executor.constants = named("h200" if device == "h200" else "unknown-amd")
    table = of_cuda if device == "h200" else of_hip
    found = {}
    for label, S in matrices():
        A = wl.Csr(sp.csr_array(S, dtype=np.float32), executor=executor)
        for product in ("spmm", "sddmm", "fusedmm"):
            for dtype in DTYPES:
                for k in COLUMNS:
                    on = Selection(CupyAdapter(executor), facts_of(A, k, dtype))
                    algorithm = next(candidates(table, on, A, product)).algorithm
                    found[f"{device} {product} {label} {dtype} {k}"] = algorithm.name
    return found


@pytest.mark.parametrize("device", DEVICES)
def test_choices_are_as_recorded(device: str) -> None:
    now = chosen(device)
    kept = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    if os.environ.get("WOLLEMI_RECORD_CHOICES"):
        RECORDED.write_text(json.dumps(kept | now, indent=0, sort_keys=True) + "\n")
        pytest.skip("recorded; without WOLLEMI_RECORD_CHOICES they are compared")
    differing = {key: (kept.get(key), name) for key, name in now.items() if kept.get(key) != name}
    assert not differing
