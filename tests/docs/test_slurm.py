"""The jobs for SLURM of the pages are shell programs with options that SLURM has, and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

from .test_commands import ROOT, plain_programs

#: Options of sbatch and of srun, from the manual of SLURM 23.11.
SBATCH = {"nodes", "ntasks-per-node", "gpus-per-node", "cpus-per-task", "time"}
SRUN = {"cpus-per-task", "mpi", "ntasks-per-node"}

BLOCKS = {
    f"{page.stem}-{number}": block
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for number, block in enumerate(
        re.findall(r"^```(?:sh|bash)\n(.*?)^```", page.read_text(), re.M | re.S)
    )
    if "srun" in block
}


def job() -> str:
    (found,) = [block for block in BLOCKS.values() if "#SBATCH" in block]
    return found


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_for_slurm_is_a_shell_program_with_options_that_slurm_has(name: str) -> None:
    block = BLOCKS[name]
    checked = subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stderr
    asked = [line for line in block.splitlines() if line.startswith("#SBATCH")]
    assert all(re.fullmatch(r"#SBATCH( --[a-z-]+=[\w:]+)+", line) for line in asked)
    assert set(re.findall(r"--([a-z-]+)=", " ".join(asked))) <= SBATCH
    for options in re.findall(r"^srun ((?:--\S+ )*)", block, re.M):
        assert set(re.findall(r"--([a-z-]+)", options)) <= SRUN


def test_the_job_asks_for_its_hosts_before_its_first_command() -> None:
    lines = job().splitlines()
    assert lines[0] == "#!/bin/bash"
    commands = [line for line in lines if line and not line.startswith("#")]
    assert lines.index(commands[0]) > max(n for n, x in enumerate(lines) if "#SBATCH" in x)


def test_the_job_runs_with_an_srun_that_starts_two_ranks(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="make test installs it")
    programs = Path(sys.executable).parent
    mpiexec = shutil.which("mpiexec", path=str(programs)) or shutil.which("mpiexec")
    wl.write(tmp_path / "A.mtx", sp.diags_array([2.5] * 60).tocsr())
    check = 'print(f"<{group.size}><{np.abs(x).max()}><{len(y)}>")'
    (tmp_path / "solve.py").write_text(f"{plain_programs('distributed.md')[1]}\n{check}\n")
    (tmp_path / "solve.slurm").write_text(job())
    activate = tmp_path / ".venv/bin/activate"
    activate.parent.mkdir(parents=True)
    activate.write_text(f"PATH={programs}:$PATH\n")
    srun = tmp_path / "bin/srun"
    srun.parent.mkdir()
    srun.write_text(
        '#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\ntest "$OMP_NUM_THREADS" = 1\n'
        f'exec {mpiexec} -n 2 "$@"\n'
    )
    srun.chmod(0o755)
    (tmp_path / "functions").write_text("module() { test $1 = load; }\n")
    done = subprocess.run(
        ["bash", "-e", "solve.slurm"],
        cwd=tmp_path,
        env=os.environ
        | {
            "PATH": f"{srun.parent}:{os.environ['PATH']}",
            "BASH_ENV": str(tmp_path / "functions"),
            "SLURM_CPUS_PER_TASK": "1",
        },
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    told = np.array(re.findall("<(.*?)><(.*?)><(.*?)>", done.stdout), float)
    np.testing.assert_allclose(told, [[2, 0.4, 30]] * 2, rtol=1e-4)
