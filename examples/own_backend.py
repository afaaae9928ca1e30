"""A sixth backend: NumPy that counts its operations.

A package would declare it as an entry point, and it would be found by its name everywhere:

    [project.entry-points."wollemi.backends"]
    counting = "my_package:BACKEND"
"""

from collections import Counter

import numpy as np

import wollemi as wl
from wollemi.extend import (
    Backend,
    KernelTable,
    ReferenceExecutor,
    kernel_table,
    register_backend,
    vector,
)

# Kernels that are not in this table are looked up in the parent's.
kernel = KernelTable("counting", parent=kernel_table("reference"))


@kernel(vector.norm)
def norm(executor, x, value):
    """Take the norm with scaling, so that nothing overflows."""
    largest = np.abs(x).max(axis=0, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    value[:] = scale * np.sqrt((np.abs(x / scale) ** 2).sum(axis=0))


class CountingExecutor(ReferenceExecutor):
    """The reference executor, with a record of its operations."""

    kernels = kernel

    def __init__(self):
        self.counts = Counter()

    @property
    def name(self):
        return "counting"

    def run(self, operation, *arguments):
        self.counts[operation.name] += 1
        return super().run(operation, *arguments)


ONLY = CountingExecutor()

BACKEND = Backend(
    name="counting",
    make=lambda device: ONLY,
    devices=lambda: ["counting"],
    kernels=lambda: kernel,
)
register_backend(BACKEND)

A = wl.Csr(np.diag([2.0, 3.0, 4.0]) + 0.1, executor="counting")
result = wl.solve(A, np.ones(3), method="cg", M="none", rtol=1e-10)
print(result)
for name, count in ONLY.counts.most_common():
    print(f"{count:4} {name}")
assert result.converged and result.executor == "counting"
