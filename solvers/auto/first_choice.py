"""The method that ``wl.solve`` would try first, without a solve."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.formats import Matrix
from ..least_squares.lsmr import Lsmr
from .candidates import DIRECT
from .dense import NOTES, PRECISION, is_small
from .methods import AUTO, asked_method
from .plan import Question, planned
from .properties import Hints
from .rectangular import scaling_of

#: The tolerance of ``wl.solve`` where none is given.
RTOL = 1e-5


@dataclass(frozen=True)
class FirstChoice:
    """A method with its preconditioner, and the reasons.

    Parameters
    ----------
    method : str
        Its name, as ``wl.solve`` takes it.
    M : str
        The preconditioner; empty without one.
    notes : list of str
        The notes that the result of a solve would begin with.
    """

    method: str
    M: str
    notes: list[str]


def first_choice(A: Matrix) -> FirstChoice:
    """Return the method that ``wl.solve(A, b)`` would try first for one right-hand side.

    It asks for the facts and the plan as a solve does, and keeps them with the matrix.

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
    asked = asked_method(AUTO, AUTO)
    if A.shape[0] != A.shape[1]:
        M, notes = scaling_of(A)
        name = Lsmr.__name__.lower()
        return FirstChoice(name, M or "", [f"{name}: the matrix is not square", *notes])
    question = Question(asked, 1, RTOL, None, False, False, "normal", Hints())
    plan = planned(A, question)
    if is_small(A) and A.dtype.name in PRECISION:
        return FirstChoice(DIRECT, "", list(NOTES))
    notes = list(plan.notes)
    pool = plan.pool()
    if plan.first or pool is None:
        first = plan.first[0]
    else:
        taken = pool.take(indefinite=False, over=(), spent=0.0)
        first = pool.first if taken is None else taken
        notes += pool.about(first)
    return FirstChoice(first.method, first.label, notes)
