"""Each public call on a GPU is recorded as a CUDA graph, or refused before any recording."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ...needs import cuda
from . import public_calls
from .public_calls import Case, bound, calls_of, cases
from .recording import FIRST, NOT_CALLED, RECORDED, REFUSED, Outcome, record

pytestmark = pytest.mark.gpu

CASES = list(cases())
#: The calls that docs/machine-learning.md promises for every operator.
ALWAYS = {"apply", "matvec", "matmat", "__matmul__ of a vector", "__matmul__ of a block"}
#: All that it says are recorded.
PROMISED = ALWAYS | {"rmatvec", "rmatmat", "__rmatmul__ of a vector", "solve_triangular"}


@pytest.fixture(scope="module")
def xp() -> Any:
    return cuda().xp


def outcomes_of(xp: Any, case: Case) -> dict[str, Outcome]:
    """Return the outcome of each public call of an object, at first and after a first call."""
    found: dict[str, Outcome] = {}
    for call in calls_of(type(case.make())):
        given = [argument() for argument in call.arguments or ()]
        make = bound(case, call, given)
        inputs = [x for x in given if isinstance(x, xp.ndarray)]
        outcome = record(xp, make, inputs, warm=False)
        if not outcome.wrong and case.warm and outcome.kind in (FIRST, RECORDED):
            outcome = record(xp, make, inputs, warm=True)
        found[call.name] = outcome
    return found


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_public_calls_are_recorded_or_refused(xp: Any, case: Case) -> None:
    found = outcomes_of(xp, case)
    folder = os.environ.get("WOLLEMI_CAPTURE_TABLE")
    if folder:
        kinds = {name: [outcome.kind, outcome.told] for name, outcome in found.items()}
        name = case.name.replace(" ", "_").replace("@", "at").replace("*", "x")
        Path(folder, f"{name}.json").write_text(json.dumps(kinds))
    recorded = {name for name, outcome in found.items() if outcome.kind == RECORDED}
    assert recorded <= PROMISED, recorded - PROMISED
    if not case.name.startswith("solvers."):
        assert recorded >= ALWAYS & set(found), (ALWAYS & set(found)) - recorded
    wrong = {name: outcome for name, outcome in found.items() if outcome.wrong}
    assert not wrong, "\n".join(
        f"{case.name}.{name}: {o.kind}: {o.told}" for name, o in wrong.items()
    )
    assert {o.kind for o in found.values()} & {RECORDED, REFUSED, FIRST, NOT_CALLED}


def test_every_public_class_is_tried() -> None:
    assert public_calls.unmade() == []
