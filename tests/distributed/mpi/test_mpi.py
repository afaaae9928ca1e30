"""Groups of MPI's ranks, each test a run of mpiexec: programs in ranks.py."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("ranks.py")
BESIDE_PYTHON = Path(sys.executable).with_name("mpiexec")
MPIEXEC = str(BESIDE_PYTHON) if BESIDE_PYTHON.exists() else shutil.which("mpiexec")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or MPIEXEC is None,
    reason='no MPI: pip install "wollemi[mpi]" mpich; runs where the test extra is installed',
)


def run(ranks: int, *arguments: str, module: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program on ranks."""
    python = [sys.executable, *(["-m", "mpi4py"] if module else [])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [str(MPIEXEC), "-n", str(ranks), *python, str(PROGRAMS), *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment,
        check=False,
    )


@pytest.mark.parametrize(("ranks", "kind"), [(2, "omp:1"), (3, "omp:1"), (2, "reference")])
def test_products_solvers_and_mismatches(ranks: int, kind: str) -> None:
    done = run(ranks, "everything", kind)
    assert done.returncode == 0, done.stderr[-3000:]


def test_reproducible_sums_have_the_bits_of_one_process() -> None:
    done = run(2, "reproducible")
    assert done.returncode == 0, done.stderr[-3000:]


def test_ctrl_c_on_one_rank_ends_the_solve_on_all() -> None:
    done = run(2, "interrupt")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("interrupted") == 2


def test_ranks_that_catch_errors_hear_of_the_one_that_failed() -> None:
    done = run(3, "caught")
    assert done.stdout.count("heard of it") == 2 and done.stdout.count("failed") == 1, done.stderr


@pytest.mark.parametrize("program", ["uncaught", "outside"])
@pytest.mark.parametrize("module", [True, False], ids=["-m mpi4py", "plain"])
def test_an_error_ends_all_ranks(program: str, module: bool) -> None:
    done = run(2, program, module=module)
    assert done.returncode != 0
    assert "on purpose" in done.stderr or "outside of everything" in done.stderr


def test_a_rank_that_is_killed_ends_all() -> None:
    assert run(2, "killed").returncode != 0
