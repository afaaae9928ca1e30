# %% [markdown]
# # A step, a preconditioner and a backend of your own
#
# Everything here is a few lines of Python. Compiled backends compile a step; nothing is rebuilt.

# %%
import numpy as np
import scipy.sparse as sp

import wollemi as wl

n = 400
S = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
A = wl.Csr(S)
b = np.ones(n)

# %% [markdown]
# ## A preconditioner
#
# Name its parts; it then moves between executors, changes its dtype and follows new values as the others do.


# %%
class Averaged(wl.preconditioners.Preconditioner):
    """The inverse of the diagonal's mean."""

    parts = ("inverse",)  # attributes that hold operators

    def setup(self, A):
        mean = A.diagonal().mean()
        self.inverse = wl.Identity(A.shape[0], dtype=A.dtype, executor=A.executor) * (1 / mean)

    def apply_block(self, x, y, alpha, beta):  # y = alpha M x + beta y
        self.inverse.apply_block(x, y, alpha, beta)


print(wl.solvers.Cg(A, M=Averaged(), rtol=1e-8).solve(b))

# %% [markdown]
# ## A step, and a solver made of it
#
# A step is a function over the names of a workspace: `x`, `r` and `q` are vectors, `rho` and `curvature` numbers of each
# column. On `reference` it runs as it stands; the other executors run its trace.

# %%
from wollemi.extend import INDEFINITE, Steps, dot, norm2, real, sqrt

step = Steps("tutorial", vectors="x r q", scalars="rho curvature")


@step
def measure(w):
    """Set rho = <r, r>, curvature = <r, q>; halts where the curvature is not positive."""
    w.rho, w.curvature = norm2(w.r), dot(w.r, w.q)
    w.halt(INDEFINITE, when=~(real(w.curvature) > 0))


@step
def descend(w):
    """Set x += alpha r, r -= alpha q; observes |r|."""
    alpha = w.rho / w.curvature
    w.x += alpha * w.r
    w.r -= alpha * w.q
    w.observe(sqrt(norm2(w.r)))


# %%
class SteepestDescent(wl.solvers.KrylovSolver):
    """Go down the residual as far as it pays."""

    def allocate(self, work):
        work.make(step)

    def initialize(self, work):
        pass

    def iterate(self, work):
        work.A.apply_block(work.r, work.q, 1.0, 0.0)  # q = A r
        measure(work)
        descend(work)


for place in ("reference", "omp"):
    result = SteepestDescent(A.to(place), rtol=1e-8).solve(b)
    print(place, result.iterations, result.reason)

# %% [markdown]
# ## A backend
#
# A backend is a class that says which kernels it has. This one runs NumPy's kernels of `reference`, and counts the
# calls: a beginning for a device that has an array library of its own.

# %%
from collections import Counter

from wollemi.extend import (
    Backend,
    KernelTable,
    ReferenceExecutor,
    kernel_table,
    register_backend,
)

# Kernels that are not in this table are looked up in the parent's.
kernel = KernelTable("tutorial", parent=kernel_table("reference"))


class CountingExecutor(ReferenceExecutor):
    """The reference executor, with a record of its operations."""

    kernels = kernel
    name = "tutorial"
    counts = Counter()

    def run(self, operation, *arguments):
        self.counts[operation.name] += 1
        return super().run(operation, *arguments)


ONLY = CountingExecutor()
register_backend(
    Backend(
        name="tutorial",
        make=lambda device: ONLY,
        devices=lambda: ["tutorial"],
        kernels=lambda: kernel,
    )
)

# %%
result = wl.solve(A.to("tutorial"), b, method="cg", M="none", rtol=1e-8)
print(result)
print(ONLY.counts.most_common(4))

# %% [markdown]
# [Add a solver](../add-a-solver.md), [add a preconditioner](../add-a-preconditioner.md) and [add a
# backend](../add-a-backend.md) have the rest.
