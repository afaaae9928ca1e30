"""The table of recorded calls in the docs is that of the outcomes that were found on a GPU."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from website import captures

from ..api.record import MODULES, names_of, public_module
from ..backends.cuda.capture import public_functions
from ..backends.cuda.capture.names import ON_HOST, names
from ..backends.cuda.capture.public_calls import NOT_CALLED, calls_of, cases, unmade
from ..backends.needs import package

package("torch")

REMEDY = "run: python -m website.captures"


@pytest.fixture(scope="module")
def present() -> Any:
    return names()


def test_the_record_has_only_calls_that_are_there(present: Any) -> None:
    """An object that is new is tried by the next run on a GPU; until then the record lacks it."""
    record = captures.recorded()
    assert captures.completed(record.outcomes, present) == record.outcomes, REMEDY
    assert captures.text_of(record) == captures.RECORD.read_text(encoding="utf-8"), REMEDY


def test_the_table_is_that_of_the_record() -> None:
    page = captures.PAGE.read_text(encoding="utf-8")
    assert captures.page_with(captures.table(captures.recorded()), page) == page, REMEDY


def test_each_public_class_is_tried_and_each_member_called_or_named() -> None:
    assert unmade() == []
    left = {
        f"{case.name}.{member}"
        for case in cases(ON_HOST)
        for kind in (case.kind or type(case.make()),)
        for called in ({call.member for call in calls_of(kind)} | set(NOT_CALLED),)
        for member in dir(kind)
        if not member.startswith("_") and member not in called
    }
    assert left == set()


def test_each_public_function_is_tried_or_named() -> None:
    tried = public_functions.functions_of_arrays() | public_functions.functions_of_tensors()
    assert set(MODULES) == set(tried) | set(public_functions.WITHOUT_ARRAYS)
    for module, functions in tried.items():
        public = public_module(module)
        found = {name for name in names_of(public) if inspect.isfunction(getattr(public, name))}
        if module == "wollemi.nn":
            found = set(names_of(public))
        of_the_host = public_functions.OF_THE_HOST.get(module, set())
        assert found == set(functions) | of_the_host, module


def test_objects_of_a_kind_are_named_together() -> None:
    outcomes = {
        "Csr": {"apply": "recorded", "sum": "refused"},
        "preconditioners.Ic": {"apply": "recorded"},
        "preconditioners.Amg": {"apply": "recorded", "shape": "no work for the device"},
        "solvers.Cg": {"apply": "recorded"},
        "solvers.Gmres": {"apply": "recorded"},
        "solvers.Direct": {"apply": "refused"},
        "wollemi": {"spmm": "recorded", "solve": "refused"},
    }
    made = captures.table(captures.Record("GPU", "today", outcomes))
    named = "| `apply` | `Csr`, all 2 preconditioners, solvers other than `Direct` |"
    assert named in made
    assert "| `wollemi` | `spmm` |" in made
    assert " ".join(made.split()).endswith(
        "As tried on one GPU (today): 10 calls of 7 objects and modules. Besides the recorded "
        "ones, 3 refused by name, 1 without work for the device."
    )


def test_outcomes_of_former_calls_are_dropped() -> None:
    outcomes = {"Csr": {"apply": "recorded", "gone": "refused"}, "Gone": {}}
    made = captures.completed(outcomes, {"Csr": ["apply", "new"], "New": ["apply"]})
    assert made == {"Csr": {"apply": "recorded"}}
