"""The executors that the tests of batches run on."""

from __future__ import annotations

from typing import Any

import wollemi as wl


def _of_sycl() -> tuple[str, ...]:
    found = [place.name for place in wl.available_executors() if place.available]
    return tuple(name for name in found if name == "dpcpp:cpu")


#: Where batches are tested; kernels of SYCL devices are compiled when they are first needed.
EXECUTORS = ("reference", "omp", *_of_sycl())


def host(array: Any) -> Any:
    """Return an array of any executor as NumPy's."""
    return array.asnumpy() if hasattr(array, "asnumpy") else array
