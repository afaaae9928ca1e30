"""Solvers and preconditioners of other packages are found by name."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.solvers import registry, third_party
from wollemi.solvers.preconditioners.names import BY_NAME

A = wl.Csr(np.diag([2.0, 3.0, 4.0]) - np.eye(3, k=1) - np.eye(3, k=-1), executor="reference")
b = np.ones(3)


class Patient(wl.solvers.Cg):
    """Conjugate gradients under another name."""


class Scaling(wl.preconditioners.Jacobi):
    """The diagonal under another name."""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that declares entry points for one test."""
    for table in (third_party.SOLVERS, third_party.PRECONDITIONERS):
        monkeypatch.setattr(table, "_registered", {})
        monkeypatch.setitem(table.__dict__, "_points", {})
    for kind in (Patient, Scaling):
        monkeypatch.setattr(kind, "registered_name", kind.__name__.lower(), raising=False)

    def declare(table: third_party.ThirdParty, name: str, value: str) -> None:
        table._points[name.lower()] = EntryPoint(name, value, table._group)

    return declare


def test_entry_points_are_solvers_and_preconditioners(installed):
    installed(third_party.SOLVERS, "Patient", f"{__name__}:Patient")
    installed(third_party.PRECONDITIONERS, "scaling", f"{__name__}:Scaling")
    result = wl.solve(A, b, method="patient", M="scaling")
    assert result.converged
    assert "patient" in registry.SOLVERS and "scaling" in BY_NAME
    assert "patient" not in registry.LEAST_SQUARES
    settings = wl.solvers.from_settings({"solver": "patient", "M": {"preconditioner": "scaling"}})
    solver = settings.on(A)
    assert type(solver).__name__ == "Patient" and type(solver.M).__name__ == "Scaling"


def test_settings_of_registered_classes_are_read_back(installed):
    wl.solvers.register(Patient)
    wl.preconditioners.register(Scaling, "my-scaling")
    settings = Patient(A, M=wl.preconditioners.Jacobi(A), rtol=1e-9).settings
    again = wl.solvers.from_settings(settings.to_dict())
    assert type(again.on(A)) is Patient
    assert wl.solvers.Cg(A, M="my-scaling").solve(b).converged
    assert Scaling().to_dict() == {"preconditioner": "my-scaling"}


def test_the_name_of_an_entry_point_is_that_of_settings(installed, monkeypatch):
    monkeypatch.delattr(Patient, "registered_name")
    monkeypatch.delattr(Scaling, "registered_name")
    installed(third_party.SOLVERS, "mine", f"{__name__}:Patient")
    installed(third_party.PRECONDITIONERS, "scales", f"{__name__}:Scaling")
    written = Patient(rtol=1e-9, M=Scaling()).to_dict()
    assert written == {"solver": "mine", "rtol": 1e-9, "M": {"preconditioner": "scales"}}
    assert wl.solvers.from_settings(written) == Patient(rtol=1e-9, M=Scaling())


def _table(monkeypatch, *points):
    found = [EntryPoint(name, value, "wollemi.solvers") for name, value in points]
    monkeypatch.setattr(third_party, "entry_points", lambda group: found)
    table = third_party.ThirdParty("wollemi.solvers")
    monkeypatch.setattr(table, "is_own", third_party.SOLVERS.is_own)
    return table


def test_names_that_two_packages_declare_are_reported(monkeypatch):
    table = _table(monkeypatch, ("mine", "one:A"), ("Mine", "two:B"))
    with pytest.warns(UserWarning, match=r"one \(one:A\) and two \(two:B\) both declare 'Mine'"):
        assert "mine" in table
    with pytest.raises(wl.errors.InvalidArgument, match="pass the class itself"):
        table["mine"]


def test_a_solver_is_registered_under_another_name(installed):
    wl.solvers.register(Patient, "very-patient")
    assert wl.solve(A, b, method="very-patient").converged
    assert Patient(rtol=1e-3).to_dict()["solver"] == "very-patient"
    with pytest.raises(wl.errors.InvalidArgument, match="letters, digits"):
        wl.solvers.register(Patient, "patient:more")
    with pytest.raises(wl.errors.InvalidArgument, match=r"register\(Class\)"):
        wl.solvers.from_settings({"solver": "impatient"})


def test_entry_points_with_names_of_wollemi_are_reported(monkeypatch):
    table = _table(monkeypatch, ("cg", "one:A"))
    with pytest.warns(UserWarning, match="one declares 'cg', which is a name of wollemi's own"):
        assert "cg" in table


def test_names_of_other_packages_are_taken(installed):
    installed(third_party.SOLVERS, "patient", "another:Patient")
    with pytest.raises(wl.errors.InvalidArgument, match=r"another has a solver called 'patient'"):
        wl.solvers.register(Patient)


def test_names_of_wollemi_are_taken(installed):
    class Cg(wl.solvers.Gmres):
        """Another solver of a name that there is."""

    class Jacobi(wl.preconditioners.Jacobi):
        """Another preconditioner of a name that there is."""

    with pytest.raises(wl.errors.InvalidArgument, match="has a solver called 'cg'"):
        wl.solvers.register(Cg)
    with pytest.raises(wl.errors.InvalidArgument, match="has a preconditioner called 'jacobi'"):
        wl.preconditioners.register(Jacobi)


@pytest.mark.parametrize("given", [wl.Csr, "cg", wl.solvers.KrylovSolver, 3], ids=str)
def test_what_is_no_solver_is_not_registered(installed, given):
    with pytest.raises(wl.errors.InvalidArgument, match="expected a class derived from"):
        wl.solvers.register(given)
    with pytest.raises(wl.errors.InvalidArgument, match="expected a class derived from"):
        wl.preconditioners.register(given)


def test_a_broken_package_says_so_and_harms_nothing(installed):
    installed(third_party.SOLVERS, "broken", "no_such_module:Solver")
    installed(third_party.PRECONDITIONERS, "number", "math:pi")
    assert wl.solve(A, b).converged and wl.solve(A, b, method="cg", M="jacobi").converged
    with pytest.raises(wl.errors.InvalidArgument, match="no_such_module"):
        wl.solve(A, b, method="broken")
    with pytest.raises(wl.errors.InvalidArgument, match="is no class"):
        wl.solve(A, b, method="cg", M="number")
    assert "cg" in list(registry.SOLVERS) and "broken" not in list(registry.SOLVERS)
