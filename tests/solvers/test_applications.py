"""A user's method that never applies its preconditioner says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operation import OPERATIONS
from wollemi.extend import Steps, dot, norm2, sqrt

with OPERATIONS.locally():  # each test of this module has them again
    steps = Steps("test_applications", vectors="x r z q", scalars="rho curvature")

    @steps
    def measure(w: Any) -> None:
        """Set rho = <r, z>, curvature = <z, q>."""
        w.rho, w.curvature = dot(w.r, w.z), dot(w.z, w.q)

    @steps
    def descend(w: Any) -> None:
        """Set x += alpha z, r -= alpha q with alpha = rho / curvature; observes |r|."""
        alpha = w.rho / w.curvature
        w.x += alpha * w.z
        w.r -= alpha * w.q
        w.observe(sqrt(norm2(w.r)))


@pytest.fixture(autouse=True)
def _declared() -> None:
    OPERATIONS.add(measure.operation)
    OPERATIONS.add(descend.operation)


class Plain(wl.solvers.KrylovSolver):
    """Steepest descent that never applies M."""

    def __init__(self, A: Any, M: Any = None, *, omega: float = 1.0, **options: Any) -> None:
        super().__init__(A, M, **options)
        self.is_short = omega < 1

    def allocate(self, work: Any) -> None:
        work.z = work.r
        work.make(steps)

    def initialize(self, work: Any) -> None:
        pass

    def iterate(self, work: Any) -> None:
        work.A.apply_block(work.z, work.q, 1.0, 0.0)
        measure(work)
        descend(work)


class Declared(Plain):
    """The same, which says so."""

    TAKES_M = False


class Preconditioned(Plain):
    """Steepest descent with M."""

    def allocate(self, work: Any) -> None:
        if work.M is None:
            work.z = work.r
        work.make(steps)

    def iterate(self, work: Any) -> None:
        if work.M is not None:
            work.M.apply_block(work.r, work.z, 1.0, 0.0)
        super().iterate(work)


class Driven(Preconditioned):
    """The same with Python in each iteration."""

    BY_HOST = True


b = np.array([1.0, 2.0])


@pytest.fixture(params=["reference", "omp"])
def A(request: Any) -> wl.Csr:
    return wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]), executor=request.param)


@pytest.fixture
def by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from wollemi.solvers import third_party

    monkeypatch.setattr(third_party.SOLVERS, "_registered", {})
    wl.solvers.register(Plain)
    wl.solvers.register(Declared)


def test_a_method_that_never_applies_M_is_refused(A: wl.Csr, by_name: None) -> None:
    message = r"Plain\.iterate never applies work\.M, so that M \(Jacobi\)"
    solver = Plain(A, M="jacobi")
    for _ in range(2):
        with pytest.raises(wl.errors.InvalidArgument, match=message):
            solver.solve(b)
    with pytest.raises(wl.errors.InvalidArgument, match=message):
        wl.solve(A, b, method="plain", M="jacobi")
    assert solver.solve(0 * b).converged  # no iteration
    assert Plain(A).solve(b).converged


def test_a_chosen_M_that_has_no_effect_is_left_out(A: wl.Csr, by_name: None) -> None:
    result = wl.solve(A, b, method="plain")
    assert result.converged and [a.M for a in result.attempts] == ["jacobi", ""]
    assert any("without jacobi: Plain.iterate never applies" in note for note in result.notes)


def test_a_class_may_declare_that_it_takes_none(A: wl.Csr, by_name: None) -> None:
    with pytest.raises(wl.errors.InvalidArgument, match="TAKES_M = False"):
        Declared(A, M="jacobi")
    with pytest.raises(wl.errors.InvalidArgument, match="TAKES_M = False"):
        wl.solve(A, b, method="declared", M="jacobi")
    result = wl.solve(A, b, method="declared")
    assert result.converged and [a.M for a in result.attempts] == [""]


@pytest.mark.parametrize("kind", [Preconditioned, Driven])
def test_methods_that_apply_M_are_left_alone(A: wl.Csr, kind: Any) -> None:
    for M in ("jacobi", lambda x: x / 4.0):
        solver = kind(A, M=M)
        assert solver.solve(b).converged and solver.solve(2 * b).converged
        assert "_apply" not in vars(solver.M)


def test_errors_of_a_constructor_name_the_options(A: wl.Csr, by_name: None) -> None:
    with pytest.raises(wl.errors.InvalidArgument, match=r"Plain\(omega='abc'.*'<'") as caught:
        wl.solve(A, b, method="plain:omega=abc", M="none")
    assert isinstance(caught.value.__cause__, TypeError)
