"""Substitution by levels, run by emulated waves."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core import triangle_rules
from wollemi.core.formats.triangular import segments
from wollemi.core.triangle_rules import TriangleRules

from ..needs import tool
from .build import compiler
from .executor import WIDTHS, LockstepExecutor

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("least", "most"), [(1, 0), (2, 1000), (1000, 0)])
def test_levels_follow_one_another(
    width: int,
    dtype: str,
    least: int,
    most: int,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = TriangleRules(level_rows=least, joined_rows=most)
    monkeypatch.setattr(triangle_rules, "rules_of", lambda executor: rules)
    n = 700
    S = sp.csr_array(sp.random_array((n, n), density=0.004, rng=rng) + 4 * sp.eye_array(n))
    S = (S * (1 + 0.1j) if dtype == "complex128" else S).astype(dtype)
    b = rng.standard_normal((n, 3)).astype(dtype)
    A = wl.Csr(S, executor=LockstepExecutor(width))
    exact = wl.Csr(S, executor="reference")
    joined = [bounds is not None for _, bounds in segments(A, upper=True)]
    assert any(joined) == (most > 0 or least == 1000)
    for lower in (True, False):
        found = np.asarray(A.solve_triangular(b, lower=lower))
        expected = exact.solve_triangular(b, lower=lower)
        np.testing.assert_allclose(found, expected, rtol=0, atol=20 * np.finfo(dtype).eps)
