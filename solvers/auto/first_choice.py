"""The method that ``wl.solve`` would try first, found without a solve."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.formats import Matrix
from ..least_squares.lsmr import Lsmr
from .candidates import DIRECT
from .dense import NOTES, PRECISION, is_small
from .methods import AUTO, parsed_method
from .plan import Question, planned
from .properties import Hints
from .rectangular import scaling_of

#: The default tolerance of ``wl.solve``.
RTOL = 1e-5


@dataclass(frozen=True)
class FirstChoice:
    """A method with its preconditioner, and the reasons for this choice.

    Parameters
    ----------
    method : str
        Name of the method, as ``wl.solve`` accepts it.
    M : str
        Name of the preconditioner; empty without one.
    notes : list of str
        The first notes that the result of a solve would have.
    """

    method: str
    M: str
    notes: list[str]


def first_choice(A: Matrix) -> FirstChoice:
    """Return the method that ``wl.solve(A, b)`` would try first for one right-hand side.

    Facts and plan are computed as in a solve, and kept with the matrix.

    Parameters
    ----------
    A : Matrix, shape (m, n)
        The matrix.

    Raises
    ------
    InvalidMatrix
        If the matrix has NaN or Inf.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> from wollemi.solvers.auto.first_choice import first_choice
    >>> first_choice(wl.Csr(np.ones((3, 2)))).method
    'lsmr'
    """
    method = parsed_method(AUTO, AUTO)
    if A.shape[0] != A.shape[1]:
        M, notes = scaling_of(A)
        name = Lsmr.__name__.lower()
        return FirstChoice(name, M or "", [f"{name}: the matrix is not square", *notes])
    question = Question(method, 1, RTOL, None, False, False, "normal", Hints())
    plan = planned(A, question)
    if is_small(A) and A.dtype.name in PRECISION:
        return FirstChoice(DIRECT, "", list(NOTES))
    notes = list(plan.notes)
    pool = plan.pool()
    if plan.first or pool is None:
        first = plan.first[0]
    else:
        candidate = pool.take(indefinite=False, over=(), spent=0.0)
        first = pool.first if candidate is None else candidate
        notes += pool.about(first)
    return FirstChoice(first.method, first.label, notes)
