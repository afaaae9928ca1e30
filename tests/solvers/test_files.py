"""A solver, and a preconditioner, is the file of its name."""

from __future__ import annotations

import inspect

import pytest

import wollemi as wl

#: Files with the name of a method or of a group, and their classes.
GROUPS = {
    "bidiagonal_lanczos": ["SingularValues"],
    "composite": ["Additive", "Multiplicative"],
    "solver": ["Direct"],
}


def classes(module: object) -> dict[str, list[str]]:
    """Return the public classes by the files that define them."""
    found: dict[str, list[str]] = {}
    for name in dir(module):
        member = getattr(module, name)
        if inspect.isclass(member) and member.__module__.startswith("wollemi.solvers."):
            found.setdefault(member.__module__.rpartition(".")[2], []).append(name)
    return {stem: names for stem, names in found.items() if stem != "base"}


@pytest.mark.parametrize("module", [wl.solvers, wl.preconditioners], ids=lambda m: m.__name__)
def test_a_file_has_the_name_of_its_class(module: object) -> None:
    for stem, names in classes(module).items():
        if names != GROUPS.get(stem):
            assert stem.replace("_", "") in [name.lower() for name in names], (stem, names)


def test_a_solver_has_a_file_of_its_own() -> None:
    assert {stem: names for stem, names in classes(wl.solvers).items() if len(names) > 1} == {}
