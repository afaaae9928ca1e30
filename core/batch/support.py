"""How each backend solves the systems of a batch, for the support matrix."""

from __future__ import annotations

from collections.abc import Mapping

ALONE = "one after the other"
_BLOCK = "a block each"
_THREAD = "a thread each"
_LANE = "a vector lane each"
_ALL = "yes"

#: The exception to the table.
NOTE = "A SYCL device without double precision solves all systems one after the other."

#: The entries of the table, by task and backend.
WAYS: Mapping[str, Mapping[str, str]] = {
    "products `A @ X`": {
        "reference": _ALL, "omp": _ALL, "cuda": _ALL, "hip": _ALL, "dpcpp": _ALL,
    },
    "Krylov methods without `M` or with Jacobi": {
        "reference": ALONE, "omp": _LANE, "cuda": _BLOCK, "hip": _BLOCK, "dpcpp": _BLOCK,
    },
    "`Gmres`, `Fgmres`": {
        "reference": ALONE, "omp": _THREAD, "cuda": _BLOCK, "hip": _BLOCK, "dpcpp": _BLOCK,
    },
    "`BlockJacobi`, `Isai` of each matrix": {
        "reference": ALONE, "omp": _THREAD, "cuda": _BLOCK, "hip": _BLOCK, "dpcpp": _BLOCK,
    },
    "`Ilu`, `Ic` of each matrix": {
        "reference": ALONE, "omp": _THREAD, "cuda": ALONE, "hip": ALONE, "dpcpp": ALONE,
    },
    "`Bicg`, `Qmr`": {
        "reference": ALONE, "omp": ALONE, "cuda": ALONE, "hip": ALONE, "dpcpp": ALONE,
    },
    "`Direct`: bands, and up to 200 dense rows": {
        "reference": ALONE, "omp": _THREAD, "cuda": _BLOCK, "hip": _BLOCK, "dpcpp": _BLOCK,
    },
    "`Direct`: larger matrices": {
        "reference": ALONE, "omp": ALONE, "cuda": ALONE, "hip": ALONE, "dpcpp": ALONE,
    },
}  # fmt: skip
