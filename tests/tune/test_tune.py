"""``wollemi tune``: constants of a device are measured, stored, continued, used and removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cpu.slices import SellConstants
from wollemi.core import devices
from wollemi.core.errors import InvalidArgument, OutOfDeviceMemory
from wollemi.solvers.auto.costs import SolveConstants
from wollemi.tune import fit
from wollemi.tune.experiments import EXPERIMENTS, Experiment, band, grid, packed_gains, uneven
from wollemi.tune.timing import combination, line

from ..backends.lockstep.build import compiler
from ..backends.lockstep.executor import LockstepExecutor


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path / "cache"))
    devices.constants_of.cache_clear()
    yield tmp_path
    devices.constants_of.cache_clear()


@pytest.fixture
def omp() -> Any:
    return wl.executor("omp")


def known(**constants: float) -> Experiment:
    return Experiment("known", "sell", "nothing", lambda executor, rows: constants)


def test_lines_and_combinations_are_those_of_exact_times() -> None:
    assert line([1.0, 5.0, 9.0], [2.5, 4.5, 6.5]) == pytest.approx((2.0, 0.5))
    table = [[1.0, 10.0, 3.0], [1.0, 20.0, 1.0], [1.0, 50.0, 9.0], [1.0, 70.0, 2.0]]
    times = [2.0 + 0.1 * a + 0.5 * b for _, a, b in table]
    assert combination(table, times) == pytest.approx([2.0, 0.1, 0.5])


def test_no_constant_is_negative() -> None:
    assert line([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])[1] == 0.0


def test_systems_are_what_experiments_expect() -> None:
    assert grid(100).shape == (100, 100) and grid(100).nnz == 460
    assert band(20, 2).nnz == 94
    lengths = np.diff(uneven(3_000, 8.0).indptr)
    assert 6 < lengths.mean() < 10 and lengths.std() > 0.5 * lengths.mean()


def test_every_experiment_of_a_processor_measures_constants_that_rules_take(omp: Any) -> None:
    outcomes = list(fit.tune(omp, rows=4_000))
    assert [o.experiment for o in outcomes] == [e.name for e in EXPERIMENTS if e.section != "spmv"]
    assert {o.status for o in outcomes} == {"measured"}
    made = omp.constants
    assert made.title.endswith("(tuned)")
    measured = {name for o in outcomes for name in o.constants}
    assert {"call", "factor", "triangle"} <= measured  # the others are slopes of lines
    assert all(value > 0 for value in (*made.of(SolveConstants), *made.of(SellConstants)))
    for section, constants in json.loads(fit.file_of(omp).read_text())["constants"].items():
        for name, constant in constants.items():
            assert made.sections[section][name].value == constant["value"]
            assert constant["record"].startswith("tune-")


def test_rules_follow_the_file(omp: Any) -> None:
    rng = np.random.default_rng(3)
    lengths = np.where(np.arange(30_000) % 2, 2, 30)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = rng.integers(0, 30_000, indptr[-1])
    A = (np.ones(indptr[-1]), columns, indptr)
    before = wl.Csr(A, shape=(30_000, 30_000), executor=omp).plan.kernel
    end = {"sell": 0.2, "row-blocks": 60.0}[before]  # the other kernel's
    list(fit.tune(omp, experiments=[known(row_end=end, row_end_of_one=end)]))
    after = wl.Csr(A, shape=(30_000, 30_000), executor=omp).plan.kernel
    assert {before, after} == {"sell", "row-blocks"}
    fit.forget(omp)
    assert wl.Csr(A, shape=(30_000, 30_000), executor=omp).plan.kernel == before


def test_a_call_goes_on_where_the_last_one_ended(omp: Any) -> None:
    ran: list[str] = []

    def experiment(name: str) -> Experiment:
        def measure(executor: Any, rows: int) -> dict[str, float]:
            ran.append(name)
            return {"row_end": 15.0}

        return Experiment(name, "sell", "", measure)

    both = [experiment("one"), experiment("two")]
    assert [o.status for o in fit.tune(omp, experiments=both, seconds=-1)] == ["measured", "left"]
    assert [o.status for o in fit.tune(omp, experiments=both)] == ["known", "measured"]
    assert ran == ["one", "two"]
    assert [o.status for o in fit.tune(omp, experiments=both, again=True)] == ["measured"] * 2
    assert ran == ["one", "two", "one", "two"]


def test_a_disturbed_measurement_is_dropped(omp: Any) -> None:
    usual = omp.constants.of(SellConstants)
    (outcome,) = fit.tune(omp, experiments=[known(row_end=1e9, sliced_entry=1.25)])
    assert outcome.dropped == {"row_end": 1e9} and outcome.constants == {"sliced_entry": 1.25}
    assert omp.constants.of(SellConstants) == usual._replace(sliced_entry=1.25)


def test_an_experiment_that_fails_is_reported_and_runs_again(omp: Any) -> None:
    def measure(executor: Any, rows: int) -> dict[str, float]:
        raise OutOfDeviceMemory("no memory")

    failing = Experiment("failing", "sell", "", measure)
    (outcome,) = fit.tune(omp, experiments=[failing])
    assert (outcome.status, outcome.reason) == ("failed", "no memory")
    assert not fit.file_of(omp).exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"title": "x"}', '{"title": 1, "base": "no"}'])
def test_a_damaged_file_is_named_and_replaced(omp: Any, text: str) -> None:
    file = fit.file_of(omp)
    file.parent.mkdir(parents=True)
    file.parent.parent.chmod(0o700)
    file.write_text(text)
    devices.constants_of.cache_clear()
    with pytest.warns(RuntimeWarning, match="wollemi tune --forget"):
        assert omp.constants.of(SellConstants)
    list(fit.tune(omp, experiments=[known(row_end=15.0)]))
    assert omp.constants.of(SellConstants).row_end == 15.0


def test_the_reference_has_nothing_to_fit() -> None:
    with pytest.raises(InvalidArgument, match="expected omp, cuda or hip"):
        list(fit.tune(wl.executor("reference")))


@pytest.mark.skipif(compiler() is None, reason="no C++ compiler: install g++, or set CXX")
def test_gains_of_packed_copies_are_measured_on_an_emulated_device() -> None:
    executor = LockstepExecutor(32)
    found = packed_gains(executor, 300)
    assert set(found) == {"bandwidth", "slices_gain", "near_gain"}
    assert all(value > 0 for value in found.values())
    gains = next(e for e in EXPERIMENTS if e.section == "spmv")
    assert gains.suits(executor)
    (outcome,) = fit.tune(executor, rows=300, experiments=[gains])
    assert outcome.status == "measured"
    assert fit.file_of(executor).is_file()
