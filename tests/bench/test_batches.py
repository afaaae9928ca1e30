"""The suite of batches: all ways solve all systems, and the page has a row for each family."""

from __future__ import annotations

import numpy as np
import pytest

from wollemi.core.registry import executor
from wollemi_bench import batches


def test_all_systems_of_the_suite_are_solved_by_every_way():
    on = executor("omp:2")
    found = list(batches.run(on, 1_000_000, None))
    assert all(m.converged == 1.0 and m.count == 4 for m in found)
    assert all(m.batch > 0 and m.own_loop > 0 and m.scipy_loop > 0 for m in found)
    assert all(np.isnan(m.dense) for m in found)
    page = batches.page(found, "Batches")
    assert page.count("\n| ") == len(found) + 2 and "| collision, 992 rows | 4 | bicgstab |" in page


def test_the_suite_ends_when_its_time_is_spent():
    assert not list(batches.run(executor("omp:1"), 1_000_000, -1.0))


@pytest.mark.parametrize("family", list(batches.families()), ids=lambda f: f"{f.name} {f.method}")
def test_values_of_a_family_fit_its_pattern(family):
    data = batches.values_of(family, 3)
    assert data.shape == (3, family.pattern.nnz) and np.isfinite(data).all()
