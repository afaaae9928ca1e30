"""Numbers in messages."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the singular or with an s.

    Examples
    --------
    >>> counted(1, "iteration"), counted(3724, "iteration")
    ('1 iteration', '3724 iterations')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def percentage(part: float) -> str:
    """Return a part of a whole in percent, with two digits.

    Examples
    --------
    >>> percentage(0.7231), percentage(0.00123), percentage(1.0)
    ('72 %', '0.12 %', '100 %')
    """
    percent = 100 * part
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"
