"""The warning of a slow search for small eigenvalues without an inverse."""

from __future__ import annotations

from typing import Any

from ...core.caller import warn_caller
from ...core.formats import Matrix
from ...core.notes import Note, Topic

#: Warn when products and orthogonalization have read this many elements: about a second of two
#: cores. A matrix of 40,000 rows with a basis of 20 vectors reaches it after 9 restarts.
LONG = 3e8

#: Passes over the basis for each product: Gram-Schmidt twice.
PASSES = 4


def is_long(products: int, n: int, ncv: int, entries: int) -> bool:
    """Return whether a search has been slow.

    Parameters
    ----------
    products : int
        Products with the operator so far.
    n, ncv : int
        The length and the number of the vectors of the basis.
    entries : int
        Number of entries of the operator; 0 if unknown.

    Examples
    --------
    >>> is_long(50, 40_000, 20, 200_000), is_long(100, 40_000, 20, 200_000)
    (False, True)
    """
    return float(products) * (PASSES * float(n) * ncv + entries) >= LONG


def remedy(which: str, A: Any, k: int) -> str:
    """Return a faster method for small eigenvalues than products with ``A`` alone.

    Parameters
    ----------
    which : {"SM", "SA"}
        The smallest by modulus, or the smallest.
    A : LinOp
        The operator; only a matrix on one executor can be factorized.
    k : int
        Pairs.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> remedy("SM", wl.Csr(np.eye(3)), 2).partition(",")[0]
    'sigma=0 factorizes A and finds the same pairs in a few iterations'
    """
    if not isinstance(A, Matrix) or A.partition is not None:
        return f"wl.solvers.Lobpcg(A, M, k={k}) takes a preconditioner M"
    lobpcg = f'wl.solvers.Lobpcg(A, M="amg", k={k}) needs no factors'
    if which == "SM":
        return f"sigma=0 factorizes A and finds the same pairs in a few iterations, and {lobpcg}"
    return f"{lobpcg}, and sigma=s with a number s below them factorizes A - s I"


def warn_of_slowness(search: str, done: int, k: int, products: int, words: str) -> str:
    """Warn that a search is slow, and return the remedy as a note of its result.

    Parameters
    ----------
    search : str
        The call, ``Lanczos(which="SM")``.
    done, k : int
        Number of converged pairs, and of all pairs.
    products : int
        Products with the operator so far.
    words : str
        The remedy.
    """
    warn_caller(
        f"{search}: {done} of {k} have converged after {products} products with A. Without an "
        f"inverse small eigenvalues converge slowly: {words}"
    )
    return Note(f"small eigenvalues converge slowly without an inverse: {words}", Topic.REMEDY)
