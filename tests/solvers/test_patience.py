"""The criterion that ends an attempt where another candidate is expected to be done sooner."""

import numpy as np
import pytest

from wollemi.core.stopping import State
from wollemi.solvers.auto.patience import Patience


def state(norm, iteration=40, seconds=1e-3):
    one = np.ones(1)
    return State(iteration, np.array([norm]), one, one, seconds)


@pytest.mark.parametrize(
    ("norm", "rtol", "diverged"),
    [
        (1e30, 1e-8, True),
        (np.inf, 1e-8, True),
        (1e9, 1e-8, True),  # its roundings are larger than the threshold
        (1e7, 1e-8, False),
        (1e5, 0.0, False),  # no tolerance is asked for: it may fall again
        (1e30, 0.0, True),
    ],
)
def test_a_residual_with_roundings_above_the_tolerance_ends_the_attempt(norm, rtol, diverged):
    patience = Patience(np.inf, 1e-5, rtol, 0.0)
    assert patience.done(state(norm)) == diverged
    assert patience.diverged == diverged
    assert not patience.gave_up


def test_slow_iterations_are_looked_at_as_often_in_time():
    quick, slow = (Patience(5e-3, 1e-5, 1e-8, 0.0) for _ in range(2))
    quick.done(state(0.9, 40, 4e-4))
    slow.done(state(0.9, 40, 3.2e-3))
    assert slow.every < quick.every


def test_a_cheap_alternative_is_looked_at_more_often():
    assert Patience(2e-3, 1e-5, 1e-8, 0.0).every < Patience(1.0, 1e-5, 1e-8, 0.0).every
