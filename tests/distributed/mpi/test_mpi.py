"""Groups of MPI's ranks, each test a run of mpiexec: programs in ranks.py."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import wollemi as wl
from wollemi.core.distributed import mpi

from .launched import Done, launch, require_heard, require_interrupted, require_success

BESIDE_PYTHON = Path(sys.executable).with_name("mpiexec")
MPIEXEC = str(BESIDE_PYTHON) if BESIDE_PYTHON.exists() else shutil.which("mpiexec")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or MPIEXEC is None,
    reason='no MPI: pip install "wollemi[mpi]" mpich; runs where the test extra is installed',
)


def run(ranks: int, *arguments: str, module: bool = True) -> Done:
    """Run a program on ranks."""
    python = [sys.executable, *(["-m", "mpi4py"] if module else [])]
    return launch([str(MPIEXEC), "-n", str(ranks), *python], *arguments)


@pytest.mark.parametrize(("ranks", "kind"), [(2, "omp:1"), (3, "omp:1"), (2, "reference")])
def test_products_solvers_and_mismatches(ranks: int, kind: str) -> None:
    require_success(run(ranks, "everything", kind))


def test_ranks_with_different_matrices_or_vectors_are_told() -> None:
    require_success(run(2, "different"))


@pytest.mark.skipif(sys.platform != "linux", reason="ranks share memory on Linux")
@pytest.mark.parametrize("program", ["memory", "no_memory"])
def test_ranks_of_one_host_share_memory_where_they_can(program: str) -> None:
    require_success(run(2, program))


def test_reproducible_sums_have_the_bits_of_one_process() -> None:
    require_success(run(2, "reproducible"))


def test_ctrl_c_on_one_rank_ends_the_solve_on_all() -> None:
    require_interrupted(run(2, "interrupt"))


def test_ranks_that_catch_errors_hear_of_the_one_that_failed() -> None:
    require_heard(run(3, "caught"))


@pytest.mark.parametrize("program", ["uncaught", "outside"])
@pytest.mark.parametrize("module", [True, False], ids=["-m mpi4py", "plain"])
def test_an_error_ends_all_ranks(program: str, module: bool) -> None:
    done = run(2, program, module=module)
    assert done.returncode != 0
    assert "on purpose" in done.stderr or "outside of everything" in done.stderr


def test_a_rank_that_is_killed_ends_all() -> None:
    assert run(2, "killed").returncode != 0


def test_the_command_solves_on_ranks_and_one_of_them_prints(tmp_path: Path) -> None:
    (tmp_path / "A.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 4\n2 2 4\n3 3 4\n1 3 1\n"
    )
    command = [str(MPIEXEC), "-n", "2", sys.executable, "-m", "wollemi", "solve", "A.mtx"]
    done = subprocess.run(
        [*command, "--on", "mpi"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("3 x 3, 4 entries") == 1
    assert " on each of 2 ranks" in done.stdout


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"])
def test_a_launcher_of_another_mpi_is_named(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank would solve the whole problem alone, and print its result once more."""
    alone = SimpleNamespace(
        COMM_WORLD=SimpleNamespace(size=1), Get_library_version=lambda: "MPICH Version: 4.3\n\0"
    )
    monkeypatch.setattr(mpi, "_mpi", lambda: alone)
    monkeypatch.setenv(variable, "4")
    with pytest.raises(
        wl.errors.ExecutorUnavailable, match=r"started 4 ranks.*MPICH Version: 4\.3"
    ):
        wl.distributed.world()
