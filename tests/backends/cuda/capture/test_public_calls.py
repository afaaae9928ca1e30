"""Each public call on a GPU is recorded as a CUDA graph, or refused before any recording."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ...needs import cuda, package
from .public_calls import Case, bound, calls_of, cases, vector
from .public_functions import functions_of_arrays, functions_of_tensors
from .recording import FIRST, NOT_CALLED, RECORDED, REFUSED, Outcome, record, record_in_torch

pytestmark = pytest.mark.gpu

CASES = list(cases())
#: The calls that docs/cuda-graphs.md promises for every operator.
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


def leave(name: str, found: dict[str, Outcome]) -> None:
    """Write outcomes into the folder of ``WOLLEMI_CAPTURE_TABLE``, which makes the docs' table."""
    folder = os.environ.get("WOLLEMI_CAPTURE_TABLE")
    if folder:
        kinds = {call: [outcome.kind, outcome.told] for call, outcome in found.items()}
        file = Path(folder, f"{name.replace(' ', '_').replace('*', 'x')}.json")
        file.write_text(json.dumps({"name": name, "outcomes": kinds}))


def require_no_wrong(name: str, found: dict[str, Outcome]) -> None:
    """Fail with all wrong outcomes of an object."""
    wrong = [f"{name}.{c}: {o.kind}: {o.told}" for c, o in found.items() if o.wrong]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_public_calls_are_recorded_or_refused(xp: Any, case: Case) -> None:
    found = outcomes_of(xp, case)
    leave(case.name, found)
    recorded = {name for name, outcome in found.items() if outcome.kind == RECORDED}
    assert recorded <= PROMISED, recorded - PROMISED
    if not case.name.startswith("solvers."):
        assert recorded >= ALWAYS & set(found), (ALWAYS & set(found)) - recorded
    require_no_wrong(case.name, found)
    assert {o.kind for o in found.values()} & {RECORDED, REFUSED, FIRST, NOT_CALLED}


MODULES = ("wollemi", "wollemi.linalg", "wollemi.masks", "wollemi.reorder", "wollemi.sparse")


@pytest.mark.parametrize("module", MODULES)
def test_public_functions_are_recorded_or_refused(xp: Any, module: str) -> None:
    found: dict[str, Outcome] = {}
    for name, (shapes, make) in functions_of_arrays()[module].items():
        given = [vector(*shape) for shape in shapes]
        call = partial(_call_of, make, given)
        outcome = record(xp, call, given, warm=False)
        if not outcome.wrong and outcome.kind in (FIRST, RECORDED):
            outcome = record(xp, call, given, warm=True)
        found[name] = outcome
    leave(module, found)
    require_no_wrong(module, found)
    recorded = {name for name, outcome in found.items() if outcome.kind == RECORDED}
    assert recorded == ({"fusedmm", "sddmm", "spmm"} if module == "wollemi" else set())


def _call_of(make: Callable[[], Callable[..., Any]], given: list[Any]) -> Callable[[], Any]:
    return partial(make(), *given)


@pytest.mark.parametrize("module", ["wollemi.graph", "wollemi.interop.torch", "wollemi.nn"])
def test_functions_of_tensors_are_recorded_with_their_gradients(xp: Any, module: str) -> None:
    torch = package("torch", in_ci=False)
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA; this runs where it has")
    found = {
        name: record_in_torch(partial(_step_of, make, leaves := _leaves(torch, shapes)), leaves)
        for name, (shapes, make) in functions_of_tensors()[module].items()
    }
    leave(module, found)
    require_no_wrong(module, found)
    recorded = {name for name, outcome in found.items() if outcome.kind == RECORDED}
    assert recorded >= OF_TENSORS[module], found


#: Functions of tensors that are recorded, by module.
OF_TENSORS = {
    "wollemi.graph": {"additive_attention", "edge_softmax", "gsddmm", "gspmm"},
    "wollemi.interop.torch": {"fusedmm", "sddmm", "spmm"},
    "wollemi.nn": {"GraphAttention", "GraphConv", "SparseAttention", "SparseLinear"},
}


def _leaves(torch: Any, shapes: tuple[tuple[int, ...], ...]) -> list[Any]:
    return [torch.as_tensor(vector(*shape), device="cuda").requires_grad_() for shape in shapes]


def _step_of(make: Callable[[], Callable[..., Any]], leaves: list[Any]) -> Callable[[], Any]:
    """Return a call with the gradients of the sum of squares of its results."""
    import torch

    function = make()

    def step() -> Any:
        made = function(*leaves)
        outs = made if isinstance(made, tuple) else (made,)
        outs = [out for out in outs if isinstance(out, torch.Tensor) and out.requires_grad]
        if not outs:
            return made
        loss = sum((out**2).sum() for out in outs)
        return [*(out.detach() for out in outs), *torch.autograd.grad(loss, leaves)]

    return step
