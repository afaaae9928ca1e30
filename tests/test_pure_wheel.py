"""The wheel without native modules: its contents, and a program without the calls of Linux."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from wollemi.backends.unified import program_text

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel, which takes a second: nothing is compiled."""
    pytest.importorskip("scikit_build_core", reason="make test installs it")
    folder = tmp_path_factory.mktemp("pure")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]
    command += ["--no-index", "--wheel-dir", str(folder), str(ROOT)]
    hidden = {
        **os.environ,
        "WOLLEMI_PURE": "1",
        "CXX": "/nonexistent",
        "PIP_CONFIG_FILE": os.devnull,
    }
    subprocess.run(command, check=True, env=hidden)
    (file,) = folder.glob("*.whl")
    return file


def test_the_pure_wheel_is_for_every_platform_and_has_the_text_of_kernels(wheel):
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith((".so", ".pyd", ".dylib"))]
    for folder in ("simt", "unified", "cpu", "cuda", "dpcpp"):  # GPUs and SYCL compile it
        text = {
            f"wollemi/backends/{file.relative_to(ROOT / 'backends').as_posix()}"
            for file in (ROOT / "backends" / folder).rglob("*.hpp")
        }
        assert text <= set(names), folder
    # the machine's compiler needs these for functors of other packages
    of_functors = program_text.flatten("omp/map.hpp", "omp/library.hpp")
    needed = re.findall(r'#line 1 "([\w/]+\.hpp)"', of_functors)
    assert {f"wollemi/backends/{name}" for name in needed} <= set(names)


def test_the_pure_wheel_works_without_native_modules_and_without_the_calls_of_linux(
    wheel, tmp_path
):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    # The interpreter below the virtual environment does not see the editable installation.
    python = getattr(sys, "_base_executable", sys.executable)
    path = os.pathsep.join([str(tmp_path / "site"), sysconfig.get_path("purelib")])
    done = subprocess.run(
        [python, "-P", ROOT / "packaging/pure_program.py"],
        env={"PATH": str(tmp_path), "PYTHONPATH": path, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "without native modules: all is well" in done.stdout


def test_eight_threads_share_matrices():
    """`make release-check` runs the same program on free-threaded Python."""
    done = subprocess.run(
        [sys.executable, "-P", ROOT / "packaging/threads_program.py"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "all is well" in done.stdout
