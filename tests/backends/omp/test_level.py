"""Which native module is loaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from wollemi.backends.omp import level

PROGRAM = "import wollemi as wl; print(wl.executor('omp:1').properties['simd'])"


def loaded(**environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != level.OVERRIDE}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
    )


def built() -> list[str]:
    """Return the levels that are built and that this processor runs."""
    cpu = level._module("_cpu")
    has = level.GENERIC if cpu is None else cpu.level()
    return [one for one in level.usable(has) if level._module(f"_native_{one}") is not None]


@pytest.mark.parametrize(
    "has, runs",
    [
        ("v4", ("v4", "v3", "v2")),
        ("v3", ("v3", "v2")),
        ("v2", ("v2",)),
        ("generic", ("generic",)),
    ],
)
def test_a_processor_runs_its_level_and_those_below(has: str, runs: tuple[str, ...]) -> None:
    assert level.usable(has) == runs


def test_the_widest_level_is_taken() -> None:
    assert loaded().stdout.strip() == built()[0]


@pytest.mark.parametrize("name", built())
def test_the_environment_may_name_another(name: str) -> None:
    assert loaded(WOLLEMI_OMP_LEVEL=name).stdout.strip() == name


def test_a_level_that_the_processor_lacks_is_refused() -> None:
    run = loaded(WOLLEMI_OMP_LEVEL="v9")
    assert run.returncode != 0
    assert "InvalidArgument: WOLLEMI_OMP_LEVEL=v9: this processor runs" in run.stderr
