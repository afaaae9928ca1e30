"""Mistakes in classes of users are named when the class is defined, or an instance is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

A = wl.Csr(np.eye(2), executor="reference")
InvalidArgument = wl.errors.InvalidArgument


class Weighted(wl.preconditioners.Preconditioner):
    """A preconditioner that sets its option too late."""

    def __init__(self, A: Any, *, weight: float = 1.0, **options: Any) -> None:
        super().__init__(A, **options)
        self.weight = weight

    def setup(self, A: Any) -> None:
        self.d = self.weight

    def refresh(self, A: Any) -> None:
        pass

    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        pass


class Forgetful(Weighted):
    """A preconditioner without the constructor of its base."""

    def __init__(self, A: Any) -> None:
        pass


@pytest.mark.parametrize("base", [wl.solvers.KrylovSolver, wl.solvers.Cg])
def test_methods_of_solvers_are_checked_when_the_class_is_defined(base: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"Wrong\.iterate\(self\).*iterate\(self, work\)"):
        type("Wrong", (base,), {"iterate": lambda self: None})
    with pytest.raises(InvalidArgument, match=r"finish\(self, work\)"):
        type("Wrong", (base,), {"finish": lambda self, work, more: None})


def test_an_option_that_is_set_too_late_is_named() -> None:
    with pytest.raises(InvalidArgument, match=r"no attribute 'weight' yet.*before it") as caught:
        Weighted(A)
    assert isinstance(caught.value.__cause__, AttributeError)


def test_a_forgotten_constructor_of_the_base_is_named() -> None:
    with pytest.raises(InvalidArgument, match=r"Forgetful\.__init__ does not call super\(\)"):
        Forgetful(A)


def test_a_class_that_is_not_complete_names_the_methods() -> None:
    with pytest.raises(InvalidArgument, match="define allocate, initialize, iterate"):
        wl.solvers.KrylovSolver(A)
