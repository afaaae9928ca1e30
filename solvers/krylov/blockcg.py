"""Block conjugate gradients: several right-hand sides share one Krylov space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...core.dtypes import is_complex
from ...core.step import INDEFINITE, NOT_FINITE, Steps, finite, norm2, sqrt
from ..driver.workspace import Workspace
from .base import KrylovSolver

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.links import Links

Small = np.ndarray[Any, Any]

step = Steps("blockcg", vectors="x dx r", reals="curvature")

#: Eigenvalues of a Gram matrix below this many unit roundoffs of the largest one are rounding
#: errors.
DEFICIENT = 100.0


#: Up to this many multiplications, hosts do not call BLAS: its threads would wait for each other.
FEW_MULTIPLICATIONS = 2**20


@step
def advance(w: Workspace) -> None:
    """Set x += dx; observe |r|; halt where the curvature is negative or NaN."""
    w.x += w.dx
    w.observe(sqrt(norm2(w.r)))
    w.halt(NOT_FINITE, when=~finite(w.curvature))
    w.halt(INDEFINITE, when=w.curvature < 0)


class BlockCg(KrylovSolver):
    """Block conjugate gradients, for Hermitian positive definite operators and up to 32 columns.

    All right-hand sides share one search space: with ``k`` columns, an iteration adds ``k``
    directions for each. The more columns there are, the fewer iterations it takes compared with
    :class:`Cg`; each has dense products of ``n k^2`` operations. Use it if products with ``A`` and
    ``M`` take most of the time.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        A Hermitian positive definite operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``; also Hermitian positive definite.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`.

    Notes
    -----
    The block of residuals is stored as an orthonormal block (in the inner product of ``M``) times a
    small matrix, so that dependent or equal columns do no harm: directions of rounding size are
    dropped.

    The host drives the loop and factorizes matrices of ``k`` rows. Products of blocks use the array
    library of the executor (BLAS on hosts and on GPUs with CuPy; on ``dpcpp``, the host computes
    them). An iteration reads the matrix once and some 12 blocks, and waits for the device three
    times.

    References
    ----------
    D. P. O'Leary, The block conjugate gradient algorithm and related methods, Linear Algebra Appl.
    29 (1980); A. A. Dubrulle, Retooling the method of block conjugate gradients, Electron. Trans.
    Numer. Anal. 12 (2001), algorithm BCGrQ.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> x, info = wl.solvers.BlockCg(A, rtol=1e-10).solve(np.array([[1.0, 4.0], [2.0, 1.0]]))
    >>> np.round(11 * x, 6), info
    (array([[ 1., 11.],
           [ 7.,  0.]]), 0)
    """

    FLEXIBLE_KIN: ClassVar[str] = "Fcg"
    HERMITIAN: ClassVar[tuple[str, ...]] = ("A", "M")

    BY_HOST: ClassVar[bool] = True

    def allocate(self, work: Workspace) -> None:
        """Allocate the orthonormal block, the directions, and their inputs."""
        work.make(step)
        work.vectors("q", "p", "ap")
        if work.M is None:
            work.z = work.q
        else:
            work.vectors("z")
        #: The residuals are ``q xi``.
        work.xi = np.zeros((work.k, work.k), work.dtype)

    def initialize(self, work: Workspace) -> None:
        """Set q xi = r with q^H M q = I, p = M q, without columns that have stopped."""
        w = work
        stop, norm = w.status.read_together("stop", "norm")
        running = (stop == 0) & (norm > 0)
        # columns of equal norm: small columns must not count as rounding errors of large ones
        over = np.divide(1.0, norm, out=np.zeros_like(norm), where=running)
        self._set(w, "q", self._times(w, w.r, np.diag(over)))
        w.xi = self._orthonormalize(w) * np.where(running, norm, 0)
        w.executor.copy_into(w.p, w.z)

    def iterate(self, work: Workspace) -> None:
        """Set x += p delta xi, q zeta = q - A p delta, p = M q + p zeta^H, xi = zeta xi."""
        w, executor = work, work.executor
        w.A._apply(w.p, w.ap, 1.0, 0.0)
        curvature = self._gram(w, w.p, w.ap)
        delta, least = _inverse(curvature)
        self._set(w, "dx", self._times(w, w.p, delta @ w.xi))
        executor.copy_into(w.ap, w.q - self._times(w, w.ap, delta))
        executor.copy_into(w.q, w.ap)
        zeta = self._orthonormalize(w)
        w.xi = zeta @ w.xi
        executor.copy_into(w.p, w.z + self._times(w, w.p, zeta.conj().T))
        self._set(w, "r", self._times(w, w.q, w.xi))
        lowest = np.full(w.k, least, w.curvature.dtype)
        executor.copy_into(w.curvature, lowest)
        advance(w)

    def _orthonormalize(self, work: Workspace) -> Small:
        """Set q zeta = q with q^H M q = I and z = M q; return zeta. Done twice, for all digits."""
        w = work
        zeta = np.eye(w.k, dtype=w.dtype)
        for _ in range(2):
            if w.M is not None:
                w.M._apply(w.q, w.z, 1.0, 0.0)
            root, inverse = _root(self._gram(w, w.q, w.z))
            for name in ("q",) if w.M is None else ("q", "z"):
                self._set(w, name, self._times(w, getattr(w, name), inverse))
            zeta = root @ zeta
        return zeta

    def _gram(self, work: Workspace, x: Array, y: Array) -> Small:
        """Return ``x^H y`` on the host."""
        executor, xp = work.executor, work.executor.xp
        left = xp.conj(x) if is_complex(work.dtype) else x
        if xp is np and x.size * work.k <= FEW_MULTIPLICATIONS:
            made = np.einsum("ni,nj->ij", left, y)
        else:
            made = xp.matmul(xp.transpose(left), y)
        if executor.links is not None:
            made = self._total(work, executor.links, made)
        return np.asarray(executor.to_host(made))

    @staticmethod
    def _total(work: Workspace, links: Links, partial_sums: Array) -> Array:
        """Return the sum of the members' products, bitwise equal on each."""
        parts = links.all(np.asarray(work.executor.to_host(partial_sums)))
        total: Array = work.executor.from_host(sum(parts[1:], start=np.array(parts[0])))
        return total

    def _times(self, work: Workspace, block: Array, small: Small) -> Array:
        """Return a block times a small host matrix."""
        executor = work.executor
        if executor.xp is np and block.size * work.k <= FEW_MULTIPLICATIONS:
            return np.einsum("ni,ij->nj", block, small.astype(work.dtype))
        there = executor.from_host(np.ascontiguousarray(small.astype(work.dtype)))
        return executor.xp.matmul(block, there)

    def _set(self, work: Workspace, name: str, block: Array) -> None:
        work.executor.copy_into(getattr(work, name), block)


def _eigen(gram: Small) -> tuple[Small, Small, Small]:
    """Return eigenvalues and vectors of a Hermitian matrix, and a mask of significant ones."""
    if not np.all(np.isfinite(gram)):
        return np.zeros(len(gram)), np.eye(len(gram), dtype=gram.dtype), np.zeros(len(gram), bool)
    values, vectors = np.linalg.eigh((gram + gram.conj().T) / 2)
    large = np.max(np.abs(values), initial=0.0)
    return values, vectors, np.abs(values) > DEFICIENT * np.finfo(gram.dtype).eps * large


def _inverse(gram: Small) -> tuple[Small, float]:
    """Return the inverse on the significant directions, and their smallest eigenvalue."""
    values, vectors, kept = _eigen(gram)
    if not np.all(np.isfinite(gram)):
        return np.zeros_like(gram), np.nan
    with np.errstate(all="ignore"):  # extreme values end the iteration, and are scaled
        over = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
        inverse = (vectors * over) @ vectors.conj().T
    return inverse, float(np.min(values[kept], initial=np.inf))


def _root(gram: Small) -> tuple[Small, Small]:
    """Return a factor ``c`` with ``gram = c^H c``, and its inverse on significant directions."""
    values, vectors, kept = _eigen(gram)
    lengths = np.sqrt(np.where(kept, np.maximum(values, 0), 0))
    over = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return (vectors * lengths).conj().T, vectors * over
