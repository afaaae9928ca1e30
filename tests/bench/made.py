"""Records as a run would write them, without a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wollemi_bench import Report
from wollemi_bench.report import Record

ENVIRONMENT: dict[str, Any] = {
    "date": "2026-11-21T10:00:00Z",
    "versions": {"wollemi": "0.1.0", "numpy": "2.4.6", "scipy": "1.17.1"},
    "python": "3.12.3",
    "machine": "Linux x86_64",
    "cores": 2,
    "executor": "omp:2",
    "device": {"name": "A processor", "threads": 2, "simd": "v4", "memory": 10**9},
    "peers": {"scipy": "1.17.1", "mkl": "absent: not installed: pip install mkl"},
}


def timed(seconds: float, noise: float = 0.02, count: int = 15, seed: int = 0) -> dict[str, Any]:
    """Return the fields of a timing with a spread about a median."""
    rng = np.random.default_rng(seed)
    return of_samples(*(seconds * (1 + noise * rng.standard_normal(count))))


def of_samples(*samples: float) -> dict[str, Any]:
    """Return the fields of a timing from its samples."""
    low, median, high = (float(q) for q in np.percentile(samples, (25, 50, 75)))
    return {"seconds": median, "low": low, "high": high, "samples": [float(s) for s in samples]}


def record(contender: str = "wollemi", seconds: float | None = 1e-3, **given: Any) -> Record:
    """Return a record of SpMV that took so long; a noise, a count and a seed may be given."""
    spread = {k: given.pop(k) for k in ("noise", "count", "seed") if k in given}
    fields: dict[str, Any] = {
        "benchmark": "spmv",
        "case": "stencil7:100",
        "executor": "omp:2",
        "format": "csr",
        "dtype": "float64",
        "rows": 1_000_000,
        "columns": 1_000_000,
        "entries": 6_940_000,
        "ours": contender == "wollemi",
        "bytes": 100_000_000,
        "flops": 13_880_000,
        "read": 2e11,
        "triad": 1.5e11,
        **({} if seconds is None else timed(seconds, **spread)),
        **given,
    }
    return Record(contender=contender, **fields)


def write(path: Path, records: Sequence[Record], **environment: Any) -> Path:
    """Write records into a file as a run does, and return its path."""
    report = Report({**ENVIRONMENT, **environment}, path)
    for made in records:
        report.add(made)
    return path
