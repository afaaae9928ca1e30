"""Names and selectors of SYCL devices, and messages about missing parts."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.dpcpp import devices, runtime, shim

from .needs_dpcpp import needs_dpcpp

FACTS = devices.DeviceProperties(
    name="Intel(R) Arc(TM) A770",
    kind="gpu",
    backend="level_zero",
    units=512,
    memory=16 << 30,
    local_memory=64 << 10,
    sub_groups=(8, 16, 32),
    largest_block=1024,
    fp64=False,
)


@needs_dpcpp
@pytest.mark.parametrize("selector", ["cpu", "cpu:0", "opencl:cpu", "opencl:cpu:0"])
def test_selectors_of_one_device_make_one_executor(selector: str) -> None:
    executor = wl.executor(f"dpcpp:{selector}")
    assert executor is wl.executor("dpcpp:cpu")
    assert executor.name == "dpcpp:cpu"


@needs_dpcpp
def test_the_default_device_is_one_of_those_that_are_listed() -> None:
    names = {line.name for line in wl.available_executors() if line.available}
    assert wl.DpcppExecutor().name in names


@needs_dpcpp
def test_a_device_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(wl.errors.ExecutorUnavailable, match=r'"dpcpp:gpu:7".*dpcpp:cpu'):
        wl.DpcppExecutor("gpu:7")


class FakeDpctl:
    """Two GPUs seen through two backends, as on a machine with Intel's drivers."""

    def __init__(self) -> None:
        names = ("opencl:gpu:0", "opencl:cpu:0", "level_zero:gpu:0", "level_zero:gpu:1")
        self.devices = [
            SimpleNamespace(filter_string=name, has_aspect_usm_device_allocations=True)
            for name in names
        ]
        self.by_short_name = {"cpu": 1, "gpu:0": 2, "gpu:1": 3}

    def SyclDevice(self, selector: str) -> Any:
        return self.devices[self.by_short_name[selector]]


def test_names_are_as_short_as_sycl_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeDpctl()
    monkeypatch.setattr(runtime, "load", lambda: fake)
    assert [devices.name_of(device) for device in fake.devices] == [
        "dpcpp:opencl:gpu:0",
        "dpcpp:cpu",
        "dpcpp:gpu:0",
        "dpcpp:gpu:1",
    ]


@pytest.mark.parametrize(("dtype", "remedy"), [("float64", "float32"), ("complex128", "complex64")])
def test_a_device_without_double_precision_says_so(dtype: str, remedy: str) -> None:
    with pytest.raises(wl.errors.UnsupportedOperation, match=rf"A770.*{dtype}.*{remedy}"):
        FACTS.require(np.dtype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision_works_without_double(dtype: str) -> None:
    FACTS.require(np.dtype(dtype))


@needs_dpcpp
def test_a_solve_in_double_precision_is_refused_where_there_is_none() -> None:
    from wollemi.backends.dpcpp.executor import DpcppExecutor

    device = devices.select("cpu")
    executor = DpcppExecutor(device, dataclasses.replace(devices.facts(device), fp64=False))
    double = wl.Csr(np.eye(3)).to(executor)
    with pytest.raises(wl.errors.UnsupportedOperation, match="no double precision"):
        double @ np.ones(3)
    single = double.astype(np.float32)
    assert (single @ np.ones(3, np.float32)).tolist() == [1, 1, 1]
    assert np.dtype(np.float64) not in executor.properties["dtypes"]


@pytest.mark.parametrize(
    ("sub_groups", "wave"), [((8, 16, 32), 16), ((16, 32), 16), ((32,), 32), ((8,), 8)]
)
def test_the_width_of_waves_is_one_that_the_device_runs(
    sub_groups: tuple[int, ...], wave: int
) -> None:
    facts = dataclasses.replace(FACTS, sub_groups=sub_groups)
    assert facts.wave == wave
    assert facts.block % wave == 0


def test_a_width_without_kernels_is_said_to_be() -> None:
    with pytest.raises(wl.errors.UnsupportedOperation, match="64"):
        _ = dataclasses.replace(FACTS, sub_groups=(64,)).wave


def test_a_cpu_has_work_groups_of_one_item() -> None:
    cpu = dataclasses.replace(FACTS, kind="cpu")
    assert (cpu.wave, cpu.block) == (1, 1)


def test_a_missing_dpctl_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dpctl", None)
    with pytest.raises(wl.errors.ExecutorUnavailable, match="pip install"):
        runtime.load()


def test_a_missing_compiler_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(wl.errors.ExecutorUnavailable, match=r"g\+\+"):
        shim.find_compiler(shim.PURPOSE)


@needs_dpcpp
def test_missing_headers_are_said_to_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runtime, "library", lambda: tmp_path / "lib" / "libsycl.so")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(runtime, "installed_file", lambda package, name: None)
    with pytest.raises(wl.errors.ExecutorUnavailable, match="intel-sycl-rt"):
        runtime.headers.__wrapped__()


@needs_dpcpp
def test_what_the_compiler_says_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(shim, "SOURCE", tmp_path / "broken.cpp")
    shim.SOURCE.write_text("this is not C++")
    with pytest.raises(wl.errors.ExecutorUnavailable, match=r"broken\.cpp"):
        shim.shim.__wrapped__()
    assert not list(tmp_path.rglob("*.so"))


@needs_dpcpp
def test_a_truncated_link_is_built_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A library that ends too early would end the process: SIGBUS."""
    shim.shim()  # it is in the cache
    good = max(shim.LIBRARIES.folder().glob("*.so"), key=lambda path: path.stat().st_mtime)
    cut = tmp_path / "dpcpp" / good.name
    cut.parent.mkdir(mode=0o700)
    cut.write_bytes(good.read_bytes()[:20_000])
    cut.chmod(0o600)
    built = []

    def build(library: Path, include: Path, folder: Path) -> Path:
        built.append(folder)
        return Path(shutil.copy(good, folder / "shim.so"))

    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(shim, "_build", build)
    assert shim.shim.__wrapped__().wl_error() == b""
    assert len(built) == 1


@needs_dpcpp
def test_a_kernel_that_is_refused_shows_the_log() -> None:
    executor: Any = wl.executor("dpcpp:cpu")
    with pytest.raises(wl.errors.KernelCompileError, match="undeclared_name"):
        shim.build_program(executor.place.address, "int f() { return undeclared_name; }", (), "it")


@needs_dpcpp
def test_the_environment_is_prepared_by_the_library() -> None:
    program = (
        "import os; [os.environ.pop(n, None) for n in ('OCL_ICD_FILENAMES', 'SYCL_CACHE_DIR')];"
        "import wollemi as wl; print(wl.executor('dpcpp:cpu').name)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "dpcpp:cpu", done.stderr
