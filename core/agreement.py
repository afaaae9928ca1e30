"""Comparisons of the members' calls: all members of a group make the same calls with equal values.

The members exchange one message for a call. If the messages differ, each member raises the same
error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .checksums import Checksum
from .errors import GroupMismatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .linop import LinOp


class VectorMessage(NamedTuple):
    """The message of a member about its vectors."""

    #: The length of each vector, and a description of its dtype and columns.
    vectors: dict[str, tuple[int | None, str | None]]
    #: Other values that must be equal on all members.
    about: tuple[str, ...]
    #: The checksums of whole vectors.
    checksums: dict[str, Checksum]
    #: The text of an error; None without one.
    error: str | None


class CallMessage(NamedTuple):
    """The message of a member that constructs a solver or preconditioner."""

    #: The class and its options.
    about: tuple[str, ...]


def agree_on_call(operators: Iterable[LinOp], kind: type, options: Mapping[str, Any]) -> None:
    """Raise GroupMismatch on every rank unless all construct a class with equal options.

    The set-up of different preconditioners makes different exchanges. Members of one process get
    the same call, and exchange nothing here. Arrays and functions are compared by type alone.

    Parameters
    ----------
    operators : iterable of LinOp
        The operators among the operands.
    kind : type
        The class.
    options : mapping
        Its options by name.
    """
    shared = next((one for one in operators if one.partition is not None), None)
    links = None if shared is None else shared.executor.links
    if links is None or links.one_process or links.size == 1:
        return
    about = (kind.__name__, *(f"{name}={_shown(options[name])}" for name in sorted(options)))
    messages = links.all(CallMessage(about))
    require_calls_of_one_kind(messages)
    require_equal_values([message.about for message in messages], kind.__name__)


def _shown(option: Any) -> str:
    """Return an option as text that is equal on all ranks if the option is the same."""
    if isinstance(option, (float, np.floating)):
        return f"{option:.6g}"  # ranks may compute it with other rounding errors
    if (
        option is None
        or isinstance(option, (str, bool, int, np.integer))
        or hasattr(option, "to_dict")
    ):
        return repr(option)
    return type(option).__name__


def require_calls_of_one_kind(messages: Sequence[Any]) -> None:
    """Raise GroupMismatch if some members construct a solver and others pass vectors."""
    if len({type(message) for message in messages}) > 1:
        each = "; ".join(
            f"member {rank}: {message.about[0] if message.about else 'a product'}"
            for rank, message in enumerate(messages)
        )
        raise GroupMismatch(f"the members make different calls: {each}")


def require_equal_values(sent: list[tuple[str, ...]], label: str) -> None:
    """Raise an error with the different values unless all members sent the same values."""
    if all(values == sent[0] for values in sent):
        return
    if len({len(values) for values in sent}) == 1:
        differing = [at for at, column in enumerate(zip(*sent, strict=True)) if len({*column}) > 1]
        sent = [tuple(values[at] for at in differing) for values in sent]
    each = "; ".join(f"member {rank}: {', '.join(values)}" for rank, values in enumerate(sent))
    raise GroupMismatch(f"{label}: the members were given different things: {each}")


def require_equal_vectors(sums: list[Checksum | None], name: str) -> None:
    """Raise an error unless all members have the same whole vector."""
    differing = [r for r, one in enumerate(sums) if one and sums[0] and not one.agrees(sums[0])]
    if differing:
        raise GroupMismatch(
            f"{name}: a whole vector is the same on every rank, and the values of rank "
            f"{listed_numbers(differing)} differ from the values of rank 0; make it on one rank "
            f"and send it to the others, or pass each rank's own rows: A.scatter({name})"
        )


def listed_numbers(numbers: list[int]) -> str:
    """Return the first eight numbers as text."""
    shown = ", ".join(map(str, numbers[:8]))
    return shown + (", ..." if len(numbers) > 8 else "")
