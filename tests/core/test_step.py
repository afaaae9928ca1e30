"""Steps: their traces, and refused steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operation import OPERATIONS
from wollemi.core.status import Stop
from wollemi.core.step import (
    BREAKDOWN,
    INDEFINITE,
    NOT_FINITE,
    Step,
    Steps,
    absolute,
    dot,
    functions,
    largest,
    norm2,
    sqrt,
    total,
    where,
)
from wollemi.core.step.groups import is_of_solvers
from wollemi.core.step.source import load_steps
from wollemi.solvers import registry

REFERENCE = wl.executor("reference")

with OPERATIONS.locally():  # each test of this module has them again
    step = Steps("test_step", vectors="x y", rows="d", scalars="rho", reals="big", flags="yes")
    plain = Steps("test_plain", vectors="x y", rows="d", numbers="alpha", status=False)

    @step
    def everything(w: Any) -> None:
        """Set all kinds of names."""
        w.x, w.y = w.y + w.d * w.x, w.x
        w.rho = total(w.x * w.y)
        w.big = largest(absolute(w.y))
        w.yes = w.big > 2
        w.halt(BREAKDOWN, when=w.yes)

    @plain
    def scale(w: Any) -> None:
        """Set y = alpha d x."""
        w.y = w.alpha * w.d * w.x


@pytest.fixture(autouse=True)
def _declared() -> None:
    for declared in (everything, scale):
        OPERATIONS.add(declared.operation)


def test_the_signature_is_what_the_step_reads_and_writes():
    said = [f"{p.name}: {p.intent} {p.kind}" for p in everything.operation.parameters]
    assert said == [
        "x: inout T",
        "y: inout T",
        "d: in T",
        "rho: out T",
        "big: out R",
        "yes: out u8",
        "status: inout Status",
    ]
    assert everything.operation.sums == ("T", "largest")
    assert scale.operation.sums == ()


def test_a_step_counts_its_operations():
    extents = {"n": 10, "k": 2}
    assert wl.solvers.krylov.cg.update.operation.flops(extents) == 120
    assert wl.solvers.krylov.bicgstab.update.operation.flops(extents) == 200


def test_a_step_says_what_it_must_know_before_its_first_element():
    assert wl.solvers.krylov.cg.update.traced.read_first == {"rho", "pq"}
    assert wl.solvers.krylov.bicgstab.stabilize.traced.read_first == frozenset()


def test_what_is_summed_twice_is_one_sum():
    assert len(wl.solvers.krylov.cg.update.traced.sums) == 1


def test_reasons_to_halt_are_stop_codes():
    assert all(why in Stop.__members__ for why in (BREAKDOWN, INDEFINITE, NOT_FINITE))


def refused(match: str) -> Any:
    return pytest.raises((TypeError, AttributeError), match=f"(?s)the step test_step.*{match}")


def test_a_step_cannot_branch():
    with refused("choose with where"):

        @step
        def branches(w: Any) -> None:
            if w.big > 0:
                w.x = w.y


def test_an_element_that_needs_a_sum_is_two_steps():
    with refused("make it two steps"):

        @step
        def normalizes(w: Any) -> None:
            w.x = w.x / sqrt(norm2(w.x))


def test_a_column_takes_no_element():
    with refused("use dot, norm2 or total"):

        @step
        def assigns(w: Any) -> None:
            w.rho = w.x


def test_names_are_those_of_the_declaration():
    with refused("no 'z' .have: x, y, d, rho, big, yes"):

        @step
        def asks(w: Any) -> None:
            w.x = w.z


def test_numpy_is_refused():
    with refused("functions of wollemi.extend"):

        @step
        def computes(w: Any) -> None:
            w.x = np.exp(w.y)


def test_a_real_name_takes_no_complex_value():
    with refused("big is real"):

        @step
        def stores(w: Any) -> None:
            w.big = w.rho + dot(w.x, w.y)


def test_a_step_without_status_cannot_halt():
    with pytest.raises(TypeError, match="declared without one"):

        @plain
        def halts(w: Any) -> None:
            w.y = w.x
            w.halt(BREAKDOWN, when=norm2(w.x) > 0)


def test_names_that_mean_something_else_are_refused():
    with pytest.raises(ValueError, match="'observe' cannot be the name"):
        Steps("test_names", vectors="x observe")
    with pytest.raises(ValueError, match="'x' is declared twice"):
        Steps("test_names", vectors="x", scalars="x")


def test_a_step_that_is_defined_again_takes_the_place_of_the_first():
    def make_step() -> Step:
        @plain
        def again(w: Any) -> None:
            """Set y = x."""
            w.y = w.x

        return again

    first, second = make_step(), make_step()
    assert OPERATIONS["test_plain.again"] is second.operation
    assert first.operation.symbol != second.operation.symbol


def test_two_steps_of_one_name_are_refused():
    def other(w: Any) -> None:
        w.y = w.x

    other.__name__ = "scale"
    with pytest.raises(ValueError, match=r"test_plain\.scale is declared twice"):
        plain(other)


def test_all_names_are_read_before_any_is_written():
    x, y = np.array([[1.0], [2.0]]), np.array([[10.0], [20.0]])

    @plain
    def swap(w: Any) -> None:
        """Set x, y = y, x."""
        w.x, w.y = w.y, w.x

    swap.run(REFERENCE, x=x, y=y)
    assert (x.ravel().tolist(), y.ravel().tolist()) == ([10, 20], [1, 2])


def test_adding_in_place_changes_no_other_name():
    x, y = np.array([[1.0]]), np.array([[5.0]])

    @plain
    def shift(w: Any) -> None:
        """Set x += 1, y = the x before."""
        before = w.x
        w.x += 1
        w.y = before

    shift.run(REFERENCE, x=x, y=y)
    assert (x.item(), y.item()) == (2, 1)


def test_arguments_are_given_by_the_names_of_the_step():
    with pytest.raises(TypeError, match=r"test_plain\.scale takes x, y, d, alpha; got x"):
        scale.run(REFERENCE, x=np.ones((2, 1)))


SOURCE = """
from __future__ import annotations
from ..core.step import Steps, dot
from .{beside} import helper
import numpy as np

step = Steps("{group}", vectors="x y", scalars="rho", status=False)

@step
def product(w: Unknown) -> None:
    '''Set rho = <x, y>.'''
    w.rho = helper(w.x, {y})

class Solver(np.ndarray):
    pass
"""


def test_the_build_finds_steps_without_what_solvers_import(tmp_path: Path):
    folder = tmp_path / "built"
    folder.mkdir()
    (folder / "one.py").write_text(SOURCE.format(beside="two", group="test_built", y="w.y"))
    (folder / "two.py").write_text(
        "import scipy\nfrom ..core.step import dot\n\ndef helper(x, y):\n    return dot(x, y)\n"
    )
    with OPERATIONS.locally():
        load_steps("wollemi", folder)
        found = OPERATIONS["test_built.product"]
    assert [p.name for p in found.parameters] == ["x", "y", "rho"]


def test_the_build_executes_the_records_of_steps(tmp_path: Path):
    folder = tmp_path / "records"
    folder.mkdir()
    text = SOURCE.format(beside="two", group="test_records", y="w.y")
    (folder / "one.py").write_text(text)
    (folder / "two.py").write_text(
        "from typing import Any, NamedTuple\n"
        "from ..core.step import dot\n\n"
        "class Pair(NamedTuple):\n    left: Any\n    right: Any = None\n\n"
        "def helper(x, y):\n    pair = Pair(x, y)\n    return dot(pair.left, pair.right)\n"
    )
    with OPERATIONS.locally():
        load_steps("wollemi", folder)
        found = OPERATIONS["test_records.product"]
    assert [p.name for p in found.parameters] == ["x", "y", "rho"]


def test_the_build_names_what_a_step_must_not_use(tmp_path: Path):
    folder = tmp_path / "broken"
    folder.mkdir()
    text = SOURCE.format(beside="two", group="test_broken", y="w.y")
    text = text.replace("from .two import helper", "from scipy.linalg import helper")
    (folder / "one.py").write_text(text)
    with pytest.raises(ImportError, match=r"a step uses helper of scipy\.linalg"):
        load_steps("wollemi", folder)


def test_the_build_says_how_steps_are_imported(tmp_path: Path):
    folder = tmp_path / "absolute"
    folder.mkdir()
    text = SOURCE.format(beside="two", group="test_absolute", y="w.y")
    text = text.replace("from ..core.step import", "from wollemi.core.step import")
    (folder / "one.py").write_text(text)
    with pytest.raises(ImportError, match=r"write from \.\.core\.step import .*Steps"):
        load_steps("wollemi", folder)


def test_functions_know_symbols_from_arrays():
    a = np.array([4.0, 9.0])
    assert functions.sqrt(a).tolist() == [2, 3]
    assert where(a > 5, 1, 0).tolist() == [0, 1]


def test_groups_of_solvers_are_known_before_the_solvers_are_imported():
    registry.discover()
    of_steps = {o.group for o in OPERATIONS if o.step is not None and not o.checked}
    of_tests = {group for group in of_steps if group.startswith("test_")}
    others = {group for group in of_steps if not is_of_solvers(group)}
    assert others == of_tests, "add them to core/step/groups.py"


@pytest.mark.parametrize("group", ["cg", "status", "ir", "idr4"])
def test_a_group_of_wollemi_is_refused(group):
    taken = Steps(group, vectors="x r")

    def mine(w: Any) -> None:
        """Set x = r."""
        w.x = w.r

    with pytest.raises(wl.errors.InvalidArgument, match=f"steps of the group '{group}'"):
        taken(mine)
    with pytest.raises(wl.errors.InvalidArgument, match=f"group '{group}'"):
        wl.extend.declare(f"{group}.mine", "x: in T[n,k]", "nothing")
