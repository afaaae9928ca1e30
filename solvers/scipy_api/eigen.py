"""Eigenvalue and singular value functions with SciPy's signatures and return values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.caller import warn_caller
from ...core.errors import InvalidArgument, InvalidMatrix, NotConverged, ShapeMismatch
from ...core.notes import Topic, is_about
from ...core.operator import LinearOperator
from ...core.status import Stop
from ...core.suggest import checked_keywords
from ..eigen.bidiagonal_lanczos import SingularValues
from ..eigen.lanczos import Lanczos
from ..eigen.lobpcg import Lobpcg

Numbers = np.ndarray[Any, Any]


@checked_keywords()
def eigsh(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: float | None = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    mode: str = "normal",
    *,
    rng: Any = None,
) -> Any:
    """Compute Hermitian eigenpairs; see ``scipy.sparse.linalg.eigsh`` and :class:`Lanczos`.

    Parameters
    ----------
    A, k, sigma, which, v0, ncv, maxiter, return_eigenvectors, Minv, OPinv, mode
        As in SciPy. ``M`` is the right-hand side of the pencil ``A x = lambda M x``, not a
        preconditioner.
    tol : float
        Tolerance relative to the eigenvalues; 0 means the precision.
    rng : int, optional
        Of the random start.

    Returns
    -------
    w : array, shape (k,)
        Eigenvalues in ascending order.
    v : array, shape (n, k)
        Eigenvectors, normalized in the inner product of ``M``; left out without
        ``return_eigenvectors``.

    Raises
    ------
    NotConverged
        If a pair did not converge; its ``result`` has all pairs, with their residuals.
    InvalidMatrix
        If ``A`` is not Hermitian, ``M`` is not positive definite, or one of them has NaN or Inf.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.diag(np.arange(1.0, 101.0)))
    >>> np.round(wl.linalg.eigsh(A, k=2, which="LA", return_eigenvectors=False), 6)
    array([ 99., 100.])
    """
    solver = Lanczos(
        A, B=M, k=k, which=which, sigma=sigma, mode=mode, OPinv=OPinv, Binv=Minv, ncv=ncv,
        rtol=tol, maxiter=maxiter, seed=_seed(rng),
    )  # fmt: skip
    _require_finite("eigsh", solver.measures()[0].size)
    result = solver.solve(v0)
    if not result.converged:
        done = sum(stop == Stop.CONVERGED for stop in result.stops)
        notes = [note for note in result.notes if is_about(note, Topic.ASYMMETRY, Topic.REMEDY)]
        raise NotConverged(
            f"eigsh: {done} of {k} pairs converged after {result.iterations} restarts; "
            + ". ".join([result.reason, *notes]),
            result,
        )
    return tuple(result) if return_eigenvectors else result.eigenvalues


@checked_keywords()
def lobpcg(
    A: Any,
    X: Any,
    B: Any = None,
    M: Any = None,
    Y: Any = None,
    tol: float | None = None,
    maxiter: int | None = None,
    largest: bool = True,
    verbosityLevel: int = 0,
    retLambdaHistory: bool = False,
    retResidualNormsHistory: bool = False,
    restartControl: int = 20,
) -> tuple[Any, ...]:
    """Compute eigenpairs by LOBPCG; see ``scipy.sparse.linalg.lobpcg`` and :class:`Lobpcg`.

    Parameters
    ----------
    A, X, B, M, Y, tol, maxiter, largest, retLambdaHistory, retResidualNormsHistory
        As in SciPy: ``tol`` is the tolerance of residual norms, and ``maxiter`` is 20 by default.
        The default of ``tol`` is ``sqrt(1e-15) n``, times the norm of ``A`` if that is below 1: for
        a small ``A``, all vectors would meet SciPy's default.
    verbosityLevel : int
        If positive, print a line at the end.
    restartControl : int
        Accepted for compatibility: the basis is orthonormal here and needs no restarts.

    Returns
    -------
    w : array, shape (k,)
        Eigenvalues, in descending order if they are the largest.
    v : array, shape (n, k)
        Eigenvectors.
    lambdaHistory, ResidualNormsHistory : list of array, shape (k,)
        Values of every iteration, the initial ones first, if they are requested.

    Warns
    -----
    UserWarning
        If a pair did not converge.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.diag(np.arange(1.0, 101.0)))
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> w, v = wl.linalg.lobpcg(A, X, M="jacobi", largest=False, tol=1e-6, maxiter=100)
    >>> np.round(w, 6)
    array([1., 2., 3.])
    """
    shape = np.shape(X)
    if len(shape) != 2:
        raise ShapeMismatch(f"X: expected vectors of shape (n, k), got {shape}")
    n = int(shape[0])
    operator, B = (_operator(matrix, n, X) for matrix in (A, B))
    if callable(M) and not hasattr(M, "shape"):
        M = _operator(M, n, X)
    solver = Lobpcg(
        operator, M, B=B, k=max(int(shape[1]), 1), largest=largest, rtol=0.0,
        atol=0.0 if tol is None or tol <= 0 else tol,
        maxiter=20 if maxiter is None else maxiter,
    )  # fmt: skip
    tolerance = solver.atol = solver.atol or _default_tolerance(solver)
    result = solver.solve(X, Y=Y)
    if verbosityLevel > 0:
        print(result)
    if not result.converged:
        warn_caller(
            f"lobpcg: {result.reason}; the largest residual norm is "
            f"{float(np.max(result.residual_norms)):.3g}, tol is {tolerance:.3g}"
        )
    outputs: list[Any] = list(result)
    outputs += [list(result.eigenvalue_history)] if retLambdaHistory else []
    outputs += [list(result.residual_history)] if retResidualNormsHistory else []
    return tuple(outputs)


@checked_keywords()
def svds(
    A: Any,
    k: int = 6,
    ncv: int | None = None,
    tol: float = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: int | None = None,
    return_singular_vectors: bool | str = True,
    solver: str = "arpack",
    rng: Any = None,
    options: Any = None,
    *,
    random_state: Any = None,
) -> Any:
    """Compute singular triplets; see ``scipy.sparse.linalg.svds``.

    Parameters
    ----------
    A, k, ncv, tol, which, maxiter, return_singular_vectors
        As in SciPy; ``which`` is ``"LM"`` or ``"SM"``.
    v0 : array, optional
        Initial vector, with the smaller of the two dimensions.
    solver : str
        Accepted for compatibility: there is one method, thick-restart Golub-Kahan
        bidiagonalization.
    rng : int or numpy.random.Generator, optional
        Of the random start.
    options : dict, optional
        Must be empty.
    random_state : int, numpy.random.RandomState or numpy.random.Generator, optional
        The earlier name of ``rng``, which SciPy accepts too.

    Returns
    -------
    u : array, shape (m, k)
        Left singular vectors; None if they are not requested.
    s : array, shape (k,)
        Singular values in ascending order.
    vh : array, shape (k, n)
        Conjugate right singular vectors as rows; None if they are not requested.

    Raises
    ------
    NotConverged
        If a triplet did not converge; its ``result`` has all of them.
    InvalidMatrix
        If ``A`` has NaN or Inf.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.diag(np.arange(1.0, 51.0))[:40])
    >>> u, s, vh = wl.linalg.svds(A, k=2)
    >>> np.round(s, 6)
    array([39., 40.])
    """
    _check_options_of_svds(options, return_singular_vectors, solver)
    if random_state is not None:
        if rng is not None:
            raise InvalidArgument("svds: expected rng or random_state, got both: give rng alone")
        rng = random_state
    svd = SingularValues(A, k=k, which=which, ncv=ncv, rtol=tol, maxiter=maxiter, seed=_seed(rng))
    _require_finite("svds", svd.measures()[0])
    result = svd.solve(v0)
    if not result.converged:
        done = sum(stop == Stop.CONVERGED for stop in result.stops)
        raise NotConverged(
            f"svds: {done} of {k} triplets converged after {result.iterations} restarts; "
            f"{result.reason}",
            result,
        )
    u, s, vh = result
    if return_singular_vectors is False:
        return s
    return (
        None if return_singular_vectors == "vh" else u,
        s,
        None if return_singular_vectors == "u" else vh,
    )


def _check_options_of_svds(options: Any, return_singular_vectors: Any, solver: Any) -> None:
    """Raise an error for options that ``svds`` has not."""
    if options:
        raise InvalidArgument(f"options: expected none, got {options!r}")
    if return_singular_vectors not in (True, False, "u", "vh"):
        raise InvalidArgument(
            "return_singular_vectors: expected True, False, 'u' or 'vh', got "
            f"{return_singular_vectors!r}"
        )
    if solver not in ("arpack", "lobpcg", "propack"):
        raise InvalidArgument(f"solver: expected 'arpack', 'lobpcg' or 'propack', got {solver!r}")


def _default_tolerance(solver: Lobpcg) -> float:
    """Return SciPy's default, times the size of residuals of unit vectors if below 1."""
    of_A, of_B = solver.measures()
    size = float(np.ldexp(of_A.size, of_A.exponent - of_B.exponent // 2))
    return float(np.sqrt(1e-15)) * solver.shape[0] * min(size, 1.0)


def _require_finite(function: str, size: float) -> None:
    """Raise InvalidMatrix if an operator's size says that its products are not finite."""
    if not np.isfinite(size):
        raise InvalidMatrix(
            f"{function}: A has NaN or Inf, or its products have: it has no eigenvalues or "
            "singular values. Replace these entries; numpy.isfinite(A.data) shows them"
        )


def _operator(operator: Any, n: int, X: Any) -> Any:
    """Return SciPy's argument as an operator; a function of blocks is wrapped."""
    if callable(operator) and not hasattr(operator, "shape"):
        dtype = np.result_type(getattr(X, "dtype", np.float64), np.float32)

        def matvec(x: Any) -> Any:  # SciPy's functions receive blocks, even for one vector
            return operator(x.reshape(n, 1))

        return LinearOperator((n, n), matvec, matmat=operator, dtype=dtype)
    return operator


def _seed(rng: Any) -> int:
    """Return a seed for SciPy's argument ``rng``."""
    if rng is None:
        return 0
    if isinstance(rng, (int, np.integer)):
        return int(rng)
    if isinstance(rng, np.random.RandomState):  # default_rng takes one from NumPy 2.2 on
        return int(rng.randint(2**31))
    generator = np.random.default_rng(rng)
    return int(generator.integers(2**31))
