"""A solver of your own, with steps of your own, on every executor that is here.

A step is written once, as a function over the names of a workspace. On the reference executor it
runs as it is; the compiled backends compile its trace, and omp, which has no compiler at run time,
runs it as a list of instructions in native code. Nothing is rebuilt.
"""

import numpy as np
import scipy.sparse as sp

import wollemi as wl
from wollemi.extend import INDEFINITE, NOT_FINITE, Steps, dot, finite, norm2, real, sqrt

step = Steps("descent", vectors="x r q", scalars="rho curvature")


@step
def measure(w):
    """Set rho = <r, r>, curvature = <r, q>; halts where the curvature is not positive."""
    w.rho, w.curvature = norm2(w.r), dot(w.r, w.q)
    w.halt(NOT_FINITE, when=~finite(w.curvature))
    w.halt(INDEFINITE, when=~(real(w.curvature) > 0))


@step
def descend(w):
    """Set x += alpha r, r -= alpha q with alpha = rho / curvature; observes |r|."""
    alpha = w.rho / w.curvature
    w.x += alpha * w.r
    w.r -= alpha * w.q
    w.observe(sqrt(norm2(w.r)))


class SteepestDescent(wl.solvers.KrylovSolver):
    """Go down the residual as far as it pays."""

    def allocate(self, work):
        work.make(step)

    def initialize(self, work):
        pass  # the residual is all that an iteration needs

    def iterate(self, work):
        work.A.apply_block(work.r, work.q, 1.0, 0.0)  # q = A r
        measure(work)
        descend(work)


# An operator with a step of its own: damped Jacobi as a preconditioner.

own = Steps("damping", vectors="x y", rows="d", numbers="alpha beta", status=False)


@own
def damp(w):
    """Set y = alpha d x + beta y."""
    w.y = w.alpha * w.d * w.x + w.beta * w.y


class Damped(wl.LinOp):
    """The inverse diagonal of a matrix, times a factor."""

    def __init__(self, d, executor, factor=0.8):
        self.d, self.executor, self.factor = d, executor, factor
        self.shape, self.dtype = (d.size, d.size), np.dtype(d.dtype)

    def apply_block(self, x, y, alpha, beta):
        damp.run(self.executor, x=x, y=y, d=self.d, alpha=alpha * self.factor, beta=beta)

    def to(self, executor):
        executor = wl.executor(executor)
        return Damped(executor.from_host(self.executor.to_host(self.d)), executor, self.factor)

    def astype(self, dtype):
        return (
            self
            if np.dtype(dtype) == self.dtype
            else Damped(self.d.astype(dtype), self.executor, self.factor)
        )


n = 500
S = sp.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(n, n)).tocsr()
b = np.ones(n)

for available in wl.available_executors():
    if not available.available:
        continue
    A = wl.Csr(S, executor=available.name)
    alone = SteepestDescent(A, rtol=1e-8).solve(b)
    M = Damped(A.executor.from_host(1 / S.diagonal()), A.executor)
    damped = wl.solvers.Cg(A, M, rtol=1e-8).solve(b)
    print(
        f"{available.name}: {alone.iterations} iterations, with CG and damping {damped.iterations}"
    )
    assert alone.converged and damped.converged
    assert np.linalg.norm(b - S @ alone.x) < 1e-7 * np.linalg.norm(b)
