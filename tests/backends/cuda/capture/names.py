"""The names of all public calls that captures are tried with; no GPU is needed to tell them."""

from __future__ import annotations

from .public_calls import calls_of, cases
from .public_functions import functions_of_arrays, functions_of_tensors

#: The executor on which the objects are made for their names.
ON_HOST = "reference"


def names() -> dict[str, list[str]]:
    """Return the calls of each object, and the functions of each module."""
    found = {
        case.name: [call.name for call in calls_of(case.kind or type(case.make()))]
        for case in cases(ON_HOST)
    }
    modules = functions_of_arrays() | functions_of_tensors()
    return found | {module: list(functions) for module, functions in modules.items()}
