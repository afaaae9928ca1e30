"""Formatting of numbers in messages."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, in the singular or in the plural: with an s by default.

    Examples
    --------
    >>> counted(1, "iteration"), counted(3724, "iteration")
    ('1 iteration', '3724 iterations')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {plural or f'{noun}s'}"


def percentage(part: float) -> str:
    """Return a fraction as a percentage with two digits.

    Examples
    --------
    >>> percentage(0.7231), percentage(0.00123), percentage(1.0)
    ('72 %', '0.12 %', '100 %')
    """
    percent = 100 * part
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


#: Maximum number of rows that a message lists.
MOST_NAMED = 5


def named_rows(rows: Sequence[int]) -> str:
    """Return row numbers as text; of many rows only the first few.

    Examples
    --------
    >>> named_rows([3]), named_rows([3, 7])
    ('row 3', 'rows 3 and 7')
    >>> named_rows(range(10, 18))
    'rows 10, 11, 12, 13, 14 and 3 more'
    """
    shown = [str(int(row)) for row in rows[:MOST_NAMED]]
    if len(rows) == 1:
        return f"row {shown[0]}"
    if len(rows) > MOST_NAMED:
        return f"rows {', '.join(shown)} and {len(rows) - MOST_NAMED} more"
    return f"rows {', '.join(shown[:-1])} and {shown[-1]}"
