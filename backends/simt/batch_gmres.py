"""The steps of GMRES in a batch kernel: the operands and the statement of each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.operations import gmres as operations

if TYPE_CHECKING:
    from ...core.operation import Operation
    from ...core.program import Call

HEADER = "simt/one_gmres.hpp"

#: Parameters with one element per row.
_VECTORS = ("r", "v", "w", "z", "u")

#: Arrays that may be long, and of which each cycle reads a small part at a time.
_LONG = ("basis", "hessenberg")

#: Scratch arrays of the kernel, with one column's length, and their C types.
_SCRATCH: Mapping[str, str] = {"left": "{value}", "sizes": "{real}"}


@dataclass(frozen=True)
class BasisStep:
    """A function of ``one_gmres.hpp`` that implements an operation.

    Attributes
    ----------
    function : str
        The name of the function.
    takes : str
        Names of the parameters passed after the work-item; ``n`` and ``s`` are sizes.
    repeat : int, optional
        The value of the template parameter REPEAT.
    of_rows : bool
        Whether it has the template parameter OWN_ROW, and so can take a work-item's own elements.
    """

    function: str
    takes: str
    repeat: int | None = None
    of_rows: bool = False


STEPS: Mapping[Operation, BasisStep] = {
    operations.start: BasisStep("start_basis", "s n r v basis g count step status", of_rows=True),
    operations.project: BasisStep(
        "project_on_basis", "n basis w h before before step status", repeat=0
    ),
    operations.subtract: BasisStep(
        "subtract_projection", "n basis w h h after after step status", repeat=0
    ),
    operations.reproject: BasisStep(
        "project_on_basis", "n basis w correction before after step status", repeat=1
    ),
    operations.resubtract: BasisStep(
        "subtract_projection", "n basis w correction h before after step status", repeat=1
    ),
    operations.rotate: BasisStep(
        "rotate_in_block", "s h after before hessenberg cosine sine g count step status"
    ),
    operations.append: BasisStep("append_to_basis", "n w after v basis step status", of_rows=True),
    operations.augment: BasisStep("keep_direction", "n z basis step status", of_rows=True),
    operations.solve: BasisStep("solve_triangle", "s hessenberg g count y left sizes"),
    operations.combine: BasisStep("combine_basis", "n basis y count u", of_rows=True),
}  # fmt: skip

#: Steps in which work-items read elements of ``w`` from other rows.
_READS_ALL = (operations.project, operations.reproject)


def is_step(call: Call) -> bool:
    """Return whether an operation is a step of GMRES."""
    return call.operation in STEPS


def adds_vectors(call: Call) -> bool:
    """Return whether a step takes directions from other arrays, which blocks cannot access."""
    if call.operation is not operations.augment:
        return False
    named = {parameter.name: argument for parameter, argument in call.named}
    return bool(named["first"] < named["basis"].shape[0])


def vectors_of_step(call: Call) -> Iterator[tuple[Any, bool]]:
    """Yield the arrays with one element per row, and whether the step writes each of them."""
    for parameter, array in call.named:
        if parameter.name in _VECTORS:
            yield array, parameter.intent != "in"


def gathered_by_step(call: Call) -> Iterator[Any]:
    """Yield the vectors from which work-items read elements of other rows."""
    if call.operation in _READS_ALL:
        yield next(array for parameter, array in call.named if parameter.name == "w")


def arrays_of_step(call: Call) -> Iterator[tuple[Any, bool]]:
    """Yield the step's remaining arrays (without scalars), and whether each of them is long."""
    taken = STEPS[call.operation].takes.split()
    for parameter, array in call.named:
        if parameter.name in taken and len(parameter.dims) > 1 and parameter.name not in _VECTORS:
            yield array, parameter.name in _LONG


def scratch_of_step(call: Call, value: str, real: str) -> dict[str, str]:
    """Return the names and C types of the scratch arrays that a step uses."""
    taken = STEPS[call.operation].takes.split()
    return {
        name: kind.format(value=value, real=real)
        for name, kind in _SCRATCH.items()
        if name in taken
    }


def length_of(call: Call) -> int:
    """Return the number of vectors that the arrays of a step have memory for."""
    return next(
        int(array.shape[0])
        for parameter, array in call.named
        if parameter.dims[:1] in (("s",), ("l",)) and parameter.is_array
    )


def statement(call: Call, own_row: bool, expression: Callable[[str], str]) -> str:
    """Return the C++ statement that runs a step.

    Parameters
    ----------
    call : Call
        The operation.
    own_row : bool
        Whether a work-item has only its own row.
    expression : callable
        Returns the C expression of the step's operand with a given name.
    """
    step = STEPS[call.operation]
    constants = [] if step.repeat is None else [str(step.repeat)]
    constants += [str(int(own_row))] if step.of_rows else []
    of = f"<{', '.join(constants)}>" if constants else ""
    taken = ", ".join(["it", *(expression(name) for name in step.takes.split())])
    return f"wl::{step.function}{of}({taken});\n"
