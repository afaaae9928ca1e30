"""CG that estimates the condition number and the error of its solution from its own scalars.

CG computes the Cholesky factor of the tridiagonal matrix of the Lanczos process. To track the norm
of the inverse of that factor, one vector is extended by an element in each iteration; its few
scalars suffice, and no vector of length n is read.

References
----------
G. Meurant and P. Tichy, Approximating the extreme Ritz values and upper bounds for the A-norm of
the error in CG, Numer. Algorithms 82 (2019), section 3; C. H. Bischof, Incremental condition
estimation, SIAM J. Matrix Anal. Appl. 11 (1990).
"""

from __future__ import annotations

from math import inf, isfinite
from math import sqrt as sqrt_of
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.dtypes import real_dtype
from ...core.operations import vector
from ...core.result import Result, changed
from ...core.step import Step, Steps, dot, real, sqrt, where
from ...core.vector_conversions import vector_converter
from ..driver.workspace import Workspace
from ..krylov.cg import Cg, require_positive
from ..preconditioners import Jacobi

#: ``inverse`` is the squared norm of the inverse factor, the reciprocal of the smallest eigenvalue;
#: ``last`` is the squared norm of its last row, ``cross`` the product of this row with the vector
#: that attains ``inverse``. ``most`` and ``top`` are the maxima over the solve, including all
#: restarts, of ``inverse`` and of the diagonal of the tridiagonal matrix.
step = Steps(
    "estimating",
    vectors="r z p q",
    scalars="rho rho_old pq",
    reals="inverse last cross top most gamma_old",
)


@step
def start(w: Workspace) -> None:
    """Set p = z, rho = <r, z>, and the scalars of the factor to 0."""
    w.p = w.z
    w.rho = dot(w.r, w.z)
    require_positive(w, w.rho)
    w.inverse, w.last, w.cross, w.gamma_old = 0, 0, 0, 0


@step
def curvature(w: Workspace) -> None:
    """Set pq = <p, q>, and extend the factor by a row; update ``inverse`` and ``last``."""
    w.pq = dot(w.p, w.q)
    require_positive(w, w.pq)
    gamma = real(w.rho) / real(w.pq)
    first = ~(w.gamma_old > 0)
    below = where(first, 0, real(w.rho) / real(w.rho_old) / w.gamma_old)
    last = (below * w.last + 1) * gamma
    mixed = -sqrt(below * gamma) * w.cross
    half = (w.inverse - last) / 2
    root = sqrt(half * half + mixed * mixed)
    largest = (w.inverse + last) / 2 + root
    # the eigenvector of [[inverse, mixed], [mixed, last]] for its larger eigenvalue
    along = where(half > 0, half + root, mixed)
    across = where(half > 0, mixed, root - half)
    size = sqrt(along * along + across * across)
    usable = size > 0
    along, across = where(usable, along / size, 0), where(usable, across / size, 1)
    diagonal = 1 / gamma + below
    w.cross = along * mixed + across * last
    w.inverse, w.last = largest, last
    w.most = where(largest > w.most, largest, w.most)
    w.top = where(diagonal > w.top, diagonal, w.top)
    w.gamma_old = gamma


class Estimates(NamedTuple):
    """Estimates for one system: the values of its worst column.

    Attributes
    ----------
    condition : float
        The condition number of the matrix, which is scaled by its diagonal if ``M`` is Jacobi.
    error : float
        An estimate from above of the relative error of the solution.
    """

    condition: float
    error: float


class EstimatingCg(Cg):
    """Conjugate gradients that also computes the estimates; ``M`` is None or Jacobi."""

    START: ClassVar[Step] = start
    CURVATURE: ClassVar[Step] = curvature

    def allocate(self, work: Workspace) -> None:
        """Allocate the scalars of the estimates as well."""
        super().allocate(work)
        work.array("extremes", (2, work.k), real_dtype(work.dtype))
        work.most, work.top = work.extremes[0], work.extremes[1]
        work.make(step)

    def begin(self, work: Workspace) -> None:
        """Reset the estimates of the previous solve."""
        super().begin(work)
        self.executor.run(vector.fill, work.extremes, 0.0)

    def estimated(self, result: Result) -> Result:
        """Add the estimates to the result of the last solve, which names ``Cg`` as its solver."""
        if not result.converged or min(result.column_iterations.tolist(), default=0) < 1:
            return changed(result, solver=Cg.__name__)
        estimates = self._estimates(result)
        return changed(
            result, solver=Cg.__name__, condition=estimates.condition, error=estimates.error
        )

    def _estimates(self, result: Result) -> Estimates:
        x = result.x
        if not isinstance(x, np.ndarray):
            (block,) = vector_converter(self).to_blocks(x=x)
            assert block is not None
            x = np.asarray(self.executor.to_host(block))
        x = x.reshape(self.shape[0], -1)
        work = self.workspace(x.dtype, int(x.shape[1]))
        arrays = [work.most, work.top, work.rho_old]
        if isinstance(self.M, Jacobi):
            arrays.append(self.M.inverse.data)
        most, top, before, *scales = (np.asarray(a) for a in self.executor.transfer(*arrays).read())
        norm = result.residual_norm
        norms = [norm] if isinstance(norm, float) else norm.tolist()
        if scales:
            norms = _in_inner_product(norms, before.real.tolist(), result)
        lengths = _lengths(x, *scales)
        eps = float(np.finfo(x.dtype).eps)
        columns = zip(norms, most.tolist(), top.tolist(), lengths, strict=True)
        estimates = [_of_column(*column, eps) for column in columns]
        if len(estimates) == 1:
            return estimates[0]
        return Estimates(
            max(one.condition for one in estimates), max(one.error for one in estimates)
        )


def _in_inner_product(norms: list[float], squares: list[float], result: Result) -> list[float]:
    """Estimate the norms of the residuals in M's inner product.

    Parameters
    ----------
    norms : list of float, length k
        Euclidean norms of the residuals.
    squares : list of float, length k
        Squared norms in M's inner product one iteration earlier.
    result : Result
        The result of the solve: its history has the Euclidean norms of that iteration.
    """
    history = result.residuals.reshape(result.residuals.shape[0], -1)
    coefficients = []
    for c, done in enumerate(result.column_iterations.tolist()):
        earlier = float(history[done - 1, c])
        coefficients.append(sqrt_of(max(squares[c], 0.0)) * norms[c] / earlier if earlier else inf)
    return coefficients


def _lengths(x: np.ndarray[Any, Any], inverse: np.ndarray[Any, Any] | None = None) -> list[float]:
    """Return the norms of columns, in the inner product of M's inverse if it is given."""
    with np.errstate(all="ignore"):
        squares = x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x
        if inverse is not None:
            squares /= np.abs(inverse)[:, None]
        lengths: list[float] = np.sqrt(squares.sum(axis=0)).tolist()
    return lengths


def _of_column(norm: float, inverse: float, top: float, length: float, eps: float) -> Estimates:
    """Return the estimates of one column; an error that is not finite counts as rounding."""
    error = norm * inverse / length if length else inf
    error = min(max(error, eps), 1.0) if isfinite(error) else eps
    return Estimates(max(top * inverse, 1.0), error)
