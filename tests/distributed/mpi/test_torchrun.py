"""Groups of torchrun's ranks, each test a run of two processes: the programs in ranks.py."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

import wollemi as wl

from ...backends.needs import rarely, tool
from .launched import Done, launch, require_heard, require_interrupted, require_success


def has_gloo() -> bool:
    try:
        import torch.distributed as found
    except ImportError:
        return False
    return bool(found.is_available() and found.is_gloo_available())


pytestmark = tool(has_gloo(), "no PyTorch with gloo: pip install torch")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def run(ranks: int, *arguments: str) -> Done:
    """Run a program on ranks."""
    launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}"]
    return launch([*launcher, f"--master-port={free_port()}"], *arguments)


@pytest.mark.parametrize(("ranks", "kind"), [(2, "omp:1"), rarely((3, "reference"))])
def test_products_solvers_and_mismatches(ranks: int, kind: str) -> None:
    require_success(run(ranks, "everything", kind))


@pytest.mark.skipif(sys.platform != "linux", reason="ranks share memory on Linux")
def test_a_rank_that_ends_is_missed_by_one_that_waits_for_its_total() -> None:
    done = run(2, "ended")
    assert "heard of it" in done.stdout, done.stderr


@pytest.mark.rare
def test_ctrl_c_on_one_rank_ends_the_solve_on_all() -> None:
    require_interrupted(run(2, "interrupt"))


def test_ranks_that_catch_errors_hear_of_the_one_that_failed() -> None:
    require_heard(run(3, "caught"))


@pytest.mark.rare
def test_a_rank_that_is_killed_ends_all() -> None:
    assert run(2, "killed").returncode != 0


def test_messages_name_the_rank_that_failed() -> None:
    done = run(2, "outside")
    told = done.stdout + done.stderr
    assert done.returncode != 0
    assert "another rank failed: rank 1 of 2" in told, told
    assert "ValueError: outside of everything; this group" in told
    _, _, first = told.partition("Root Cause (first observed failure)")
    assert first.partition("rank      : ")[2].startswith("1 "), told


def test_a_process_group_of_the_user(tmp_path: Path) -> None:
    """Of three ranks, the last two are a group, and the first has one of its own."""
    done = run(3, "parts_of_a_process_group")
    require_success(done)
    assert done.stdout.count("solved") == 3


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted on Linux")
@pytest.mark.parametrize("program", ["ended_at_once", "ended_by_the_user"])
def test_threads_of_gloo_end_before_the_interpreter(program: str) -> None:
    """The interpreter aborts a thread that waits for its lock, and the process with the thread."""
    done = run(2, program)
    require_success(done)
    assert done.stdout.count("released") == 2


def test_without_a_launcher_the_error_says_so(monkeypatch: Any) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(wl.errors.InvalidArgument, match="torchrun --nproc-per-node"):
        wl.distributed.from_torch()
