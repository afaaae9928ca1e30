"""The function of a user-defined operator as an operation, so that loops can record it."""

from __future__ import annotations

from typing import Any

from ..operation import Cost, Operation, parse_signature


def _by_python(executor: Any, A: Any, x: Any, y: Any, alpha: complex, beta: complex) -> None:
    A.call(x, y, alpha, beta)


def _cost(A: Any, x: Any, y: Any, alpha: complex, beta: complex) -> Cost:
    return Cost(x.nbytes + (1 if beta == 0 else 2) * y.nbytes, 0)


#: Python calls the function, unless the executor has a kernel for it.
apply_function = Operation(
    "function.apply",
    parse_signature("A: in Function[m,n], x: in T[n,k], y: inout T[m,k], alpha: T, beta: T"),
    "y = alpha f(x) + beta y by the function of a LinearOperator; beta = 0 does not read y",
    lambda extents: 0,
    cost_of=_cost,
    everywhere=_by_python,
)
