"""Threads that share loops, under the sanitizers of the compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OMP = ROOT / "backends" / "omp"
COMPILER = shutil.which("g++") or shutil.which("clang++")


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler; CI has one")
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_loops_of_several_threads_have_no_races(sanitizer: str, tmp_path: Path) -> None:
    assert COMPILER is not None
    program = tmp_path / "stress"
    flags = ["-std=c++17", "-O1", "-g", "-pthread", f"-fsanitize={sanitizer}"]
    sources = [OMP / f"{name}.cpp" for name in ("team", "parallel", "crowding")]
    files = [Path(__file__).with_name("team_stress.cpp"), *sources]
    made = subprocess.run(
        [COMPILER, *flags, f"-I{ROOT / 'backends'}", *files, "-o", program],
        capture_output=True,
        text=True,
    )
    if made.returncode and "cannot find" in made.stderr:
        pytest.skip(f"the compiler has no sanitizer of {sanitizer}; CI's has")
    assert made.returncode == 0, made.stderr
    # A preloaded address sanitizer (make sanitize) and the one of threads end each other.
    alone = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    run = subprocess.run([program, "1"], capture_output=True, text=True, timeout=120, env=alone)
    if "unexpected memory mapping" in run.stderr:
        pytest.skip("the thread sanitizer does not run on this kernel; CI's does")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout == "0 wrong\n"


def test_no_loop_is_left_to_openmp() -> None:
    """It is not linked: such a loop would run on one thread."""
    texts = [*OMP.glob("*.[ch]pp"), *(ROOT / "backends" / "unified").glob("*.hpp")]
    assert texts
    assert not [path.name for path in texts if "#pragma omp parallel" in path.read_text()]
