import numpy as np

from wollemi.core.operations import status as operations
from wollemi.core.status import Stop
from wollemi.core.step.events import observe

from .helpers import columns


def test_start_takes_the_norm_and_goes_on_above_the_threshold(do, make_status):
    status = make_status(4.9)
    do(operations.start, r=columns([3, 4]), status=status)
    assert status.norm.tolist() == [5]
    assert status.stop.tolist() == [Stop.RUNNING]
    assert status.running.tolist() == [1]


def test_a_norm_at_its_threshold_has_converged(do, make_status):
    status = make_status(5.0)
    do(operations.start, r=columns([3, 4]), status=status)
    assert status.stop.tolist() == [Stop.CONVERGED]
    assert status.running.tolist() == [0]


def test_start_counts_no_iteration(do, make_status):
    status = make_status(0.0)
    do(operations.start, r=columns([3, 4]), status=status)
    assert status.iterations.tolist() == [0]
    assert not status.history.any()


def test_a_norm_that_is_no_number_stops_its_column_alone(do, make_status):
    status = make_status(0.0, 0.0, 0.0)
    do(operations.start, r=columns([1, np.nan], [3, 4], [np.inf, 1]), status=status)
    assert status.stop.tolist() == [Stop.NOT_FINITE, Stop.RUNNING, Stop.NOT_FINITE]
    assert status.running.tolist() == [1]


def test_a_stopped_column_is_not_looked_at(do, make_status):
    status = make_status(9.0, 9.0, stop=[Stop.BREAKDOWN, Stop.RUNNING])
    do(operations.start, r=columns([np.nan], [1]), status=status)
    assert status.stop.tolist() == [Stop.BREAKDOWN, Stop.CONVERGED]
    assert status.norm.tolist() == [0, 1]
    assert status.running.tolist() == [0]


def test_observing_counts_and_writes_the_history_as_a_ring(make_status):
    status = make_status(0.0, capacity=2)
    for norm in (30.0, 20.0, 10.0):
        observe(status, np.array([0]), np.array([norm]))
    assert status.iterations.tolist() == [3]
    assert status.history.tolist() == [[10], [20]]
    assert status.norm.tolist() == [10]


def test_no_rows_converge_at_once(do, make_status):
    status = make_status(0.0)
    do(operations.start, r=np.zeros((0, 1)), status=status)
    assert status.stop.tolist() == [Stop.CONVERGED]
