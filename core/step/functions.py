"""The functions that steps may call, for symbols and NumPy arrays."""

from __future__ import annotations

from functools import cache
from typing import Any

from .symbols import (
    CONDITION,
    ELEMENT,
    REAL,
    VALUE,
    Symbol,
    call,
    common,
    symbol,
)

#: Reasons for halting a column; they are names of :class:`wollemi.core.status.Stop`.
INDEFINITE, BREAKDOWN, NOT_FINITE = "INDEFINITE", "BREAKDOWN", "NOT_FINITE"
#: For a solver's own stopping rule, in addition to ``observe``.
CONVERGED = "CONVERGED"


@cache
def _numeric() -> Any:
    from . import numeric  # imports NumPy

    return numeric


def _symbolic(*values: Any) -> bool:
    return any(isinstance(value, Symbol) for value in values)


def sqrt(a: Any) -> Any:
    """Return the square root of a real value."""
    if not _symbolic(a):
        return _numeric().sqrt(a)
    if a.type != REAL:
        raise TypeError("sqrt takes a real value, such as norm2(r) or real(a)")
    return call("square_root", a, type=REAL)


def conj(a: Any) -> Any:
    """Return the complex conjugate."""
    return call("conj", a, type=a.type) if _symbolic(a) else _numeric().conj(a)


def real(a: Any) -> Any:
    """Return the real part."""
    return call("real", a, type=REAL) if _symbolic(a) else _numeric().real(a)


def absolute(a: Any) -> Any:
    """Return ``|a|``, a real value."""
    return call("magnitude", a, type=REAL) if _symbolic(a) else _numeric().absolute(a)


def finite(a: Any) -> Any:
    """Return whether a value is neither infinite nor NaN."""
    return call("finite", a, type=CONDITION) if _symbolic(a) else _numeric().finite(a)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return ``a`` where a condition is true, and ``b`` elsewhere."""
    if not _symbolic(condition, a, b):
        return _numeric().where(condition, a, b)
    a, b = symbol(a), symbol(b)
    if condition.type != CONDITION:
        raise TypeError(f"where: expected a condition such as a < b, got {condition!r}")
    return call("where", condition, a, b, type=common(a, b))


def total(terms: Any) -> Any:
    """Return the sum of each column."""
    return _sum("sum", terms) if _symbolic(terms) else _numeric().total(terms)


def largest(terms: Any) -> Any:
    """Return the maximum of each column's nonnegative real values; NaN if any is NaN."""
    if not _symbolic(terms):
        return _numeric().largest(terms)
    if terms.type != REAL:
        raise TypeError("largest takes real values, such as absolute(x)")
    return _sum("largest", terms)


def dot(u: Any, v: Any) -> Any:
    """Return the inner product ``sum_i conj(u_i) v_i`` of each column."""
    return _sum("sum", conj(u) * v) if _symbolic(u, v) else _numeric().dot(u, v)


def norm2(u: Any) -> Any:
    """Return the squared norm of each column, a real value."""
    if not _symbolic(u):
        return _numeric().norm2(u)
    return _sum("sum", call("square", u, type=REAL))


def _sum(kind: str, terms: Symbol) -> Symbol:
    if terms.place != ELEMENT:
        raise TypeError(f"{kind} is over the elements of a column; {terms!r} has none")
    if terms.type not in (VALUE, REAL):
        raise TypeError("conditions are counted with total(where(condition, 1, 0))")
    return Symbol(kind, (terms,), "column", terms.type)
