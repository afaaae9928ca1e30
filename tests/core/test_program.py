"""Recorded programs: the operations of an iteration, and the arrays that each reads and writes."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import ExecutorMismatch
from wollemi.core.operations import gmres, structure, vector
from wollemi.core.program import recording

from ..backends.recorded import FAKE, SOLVES, argument, recorded

REFERENCE = wl.executor("reference")


def test_recording_runs_nothing():
    x, y = np.ones((3, 1)), np.ones((3, 1))
    program = REFERENCE.record(lambda: REFERENCE.run(vector.axpby, x, y, 2.0, 1.0))
    assert [call.operation.name for call in program] == ["vector.axpby"]
    assert (y == 1).all()
    program.run()
    assert (y == 3).all()


def test_what_makes_something_runs_while_it_is_recorded():
    A = wl.Csr(np.eye(3), executor="reference")
    made = []
    program = REFERENCE.record(lambda: made.append(REFERENCE.run(structure.csr_transpose, A)))
    assert not program and made[0] is not None


def test_a_recording_ends_with_an_error():
    with pytest.raises(ZeroDivisionError):
        REFERENCE.record(lambda: 1 / 0)
    assert recording() is None


def test_a_recording_within_a_recording_is_refused():
    with pytest.raises(RuntimeError, match="recorded already"):
        REFERENCE.record(lambda: REFERENCE.record(lambda: None))


def test_another_executor_within_an_iteration_is_named():
    x = np.ones((3, 1))
    with pytest.raises(ExecutorMismatch, match=r"vector\.fill runs on reference .* on fake"):
        FAKE.record(lambda: REFERENCE.run(vector.fill, x, 1.0))


def test_calls_know_what_they_read_and_write():
    program = recorded("Cg")
    update = next(call for call in program if call.operation.name == "cg.update")

    def addresses(*names: str) -> set[int]:
        return {FAKE.address(argument(program, "cg.update", name)) for name in names}

    assert addresses("x", "r", "rho", "rho_old") <= program.writes(update)
    assert not addresses("p", "q", "pq") & program.writes(update)
    assert addresses("x", "r", "p", "q", "rho", "pq") <= program.reads(update)
    status = argument(program, "cg.update", "status")
    assert FAKE.address(status.stop) in program.writes(update)
    assert FAKE.address(status.threshold) not in program.writes(update)


def test_sums_are_where_a_total_would_stand():
    program = recorded("Cg")
    assert [program[at].operation.name for at in program.sums] == ["cg.curvature", "cg.update"]


@pytest.mark.parametrize(("name", "jacobi"), SOLVES)
def test_every_solver_is_recorded(name, jacobi):
    program = recorded(name, jacobi=jacobi)
    products = [call for call in program if call.operation.name == "csr.spmv"]
    assert products and len(program) > len(products)
    names = {call.operation.name for call in program}
    scaled = not names.isdisjoint({"vector.scale_rows", "cg.update_scaled"})
    assert scaled == (jacobi or name == "Multigrid")  # its smoother is Jacobi's


def test_a_composite_operation_is_what_it_is_made_of():
    program = recorded("Gmres")
    parts = [call.operation for call in program.expanded()][1:]
    assert parts == list(gmres.extend.parts)


def test_sums_of_composite_operations_are_declared():
    for operation in gmres.extend.parts:
        for name, kind in operation.totals.items():
            assert kind in ("sum", "norm", "largest")
            assert any(p.name == name and p.intent != "in" for p in operation.parameters)
