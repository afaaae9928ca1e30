"""The ways in which backends solve the systems of a batch, for the support matrix."""

from __future__ import annotations

from collections.abc import Mapping

ALONE = "one after the other"
NONE = "refused"
_BLOCK = "a block each"
_THREAD = "a thread each"
_LANE = "a vector lane each"
_ALL = "yes"

#: The reason for which a backend refuses batches.
REFUSAL = "`dpcpp` refuses batches: its arrays have no array functions. Use `omp` on the host."

#: By task and backend.
WAYS: Mapping[str, Mapping[str, str]] = {
    "products `A @ X`": {
        "reference": _ALL, "omp": _ALL, "cuda": _ALL, "hip": _ALL, "dpcpp": NONE,
    },
    "Krylov methods without `M` or with Jacobi": {
        "reference": ALONE, "omp": _LANE, "cuda": _BLOCK, "hip": ALONE, "dpcpp": NONE,
    },
    "`Gmres`, `Fgmres`": {
        "reference": ALONE, "omp": _THREAD, "cuda": ALONE, "hip": ALONE, "dpcpp": NONE,
    },
    "`Ilu`, `Ic`, `BlockJacobi`, `Isai` of each matrix": {
        "reference": ALONE, "omp": _THREAD, "cuda": ALONE, "hip": ALONE, "dpcpp": NONE,
    },
    "`Bicg`, `Qmr`": {
        "reference": ALONE, "omp": ALONE, "cuda": ALONE, "hip": ALONE, "dpcpp": NONE,
    },
    "`Direct`: bands, and up to 200 dense rows": {
        "reference": ALONE, "omp": _THREAD, "cuda": _BLOCK, "hip": _BLOCK, "dpcpp": NONE,
    },
    "`Direct`: larger matrices": {
        "reference": ALONE, "omp": ALONE, "cuda": ALONE, "hip": ALONE, "dpcpp": NONE,
    },
}  # fmt: skip
