"""A wheel's kernels are the ones that a device asks for: equal names, texts and so keys."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wollemi import Csr, solve
from wollemi.backends.cuda.loop import loop
from wollemi.backends.cuda.loop.schedule import phases_of
from wollemi.backends.cuda.runtime import archive, compiler
from wollemi.backends.cuda.runtime.device import CudaDevice
from wollemi.backends.gpu import ahead
from wollemi.backends.gpu.tape import steps_of
from wollemi.backends.reference import ReferenceExecutor
from wollemi.backends.simt import kernels as simt
from wollemi.backends.simt.fused import Kernel
from wollemi.core.devices import named
from wollemi.precompile import build, recording, target
from wollemi.precompile.programs import DTYPES, programs

from ..backends.lockstep.build import compiler as host_compiler
from ..backends.lockstep.executor import LockstepExecutor
from ..backends.needs import nvrtc, tool
from .known import known

#: The driver's values for an H200, as far as the code reads them.
H200 = {
    "name": b"NVIDIA H200",
    "major": 9,
    "minor": 0,
    "totalGlobalMem": 150_000_000_000,
    "multiProcessorCount": 132,
    "warpSize": 32,
    "l2CacheSize": 62_914_560,
    "sharedMemPerBlockOptin": 232_448,
}


@pytest.fixture
def h200(monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    """Return the device that a process on an H200 has, of a CuPy that knows its facts alone."""
    runtime = SimpleNamespace(getDevice=lambda: 0, getDeviceProperties=lambda ordinal: H200)
    made: Any = ModuleType("cupy")
    made.cuda = SimpleNamespace(runtime=runtime, Device=lambda ordinal: ordinal)
    monkeypatch.setitem(sys.modules, "cupy", made)
    return CudaDevice(0)


def test_a_described_device_is_the_one_that_is_there(h200):
    described = target.Target("sm_90")
    for name in ("architecture", "capability", "warp", "multiprocessors", "shared_bytes"):
        assert getattr(described, name) == getattr(h200, name), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_have_the_texts_that_a_device_asks_for(h200, dtype):
    names = {operation.name for operation in ahead.OPERATIONS}
    asked = {
        symbol: text()
        for symbol, text in ahead.of_operations(h200, names, np.dtype(dtype), np.dtype(np.int32))
    }
    assert len(asked) > 200
    assert asked.items() <= known(dtype).items()


@pytest.mark.parametrize("value", ["f8", "f4"])
def test_kernels_for_a_width_have_the_texts_that_a_device_asks_for(h200, value):
    dtype = np.dtype(value).name
    for constants in ({"CODE": 2, "WIDTH": 7}, {"CODE": 0, "WIDTH": 0}):
        symbol, text = h200.simt_program(simt.sell_packed, value, "i4", **constants)
        assert known(dtype)[symbol] == text()
    for symbol, text in loop.loop_programs():
        assert known(dtype)[symbol] == text()


class Recorder(LockstepExecutor):
    """Emulated waves with the plans of a GPU; keeps the programs of iterations."""

    def __init__(self) -> None:
        super().__init__(32)
        self.programs: list[Any] = []

    def drive(self, iteration: Any, limit: int) -> None:
        self.programs.append(self.record(iteration.body))
        super().drive(iteration, min(limit, 1))


def kernels_of(executor: Recorder, device: Any) -> Iterator[tuple[str, str]]:
    """Yield the parts of the graphs of recorded programs."""
    for program in executor.programs:
        steps = steps_of(program.expanded())
        graph: Any = SimpleNamespace(
            executor=SimpleNamespace(device=device, constants=named("h200")),
            steps=steps,
            _totals=lambda step: None,
        )
        for at, step in enumerate(steps):
            kernel: Kernel | None = loop.LoopGraph._kernel(graph, at)
            if kernel is not None:
                yield kernel.symbol, kernel.source
            else:
                yield from ((name, text()) for name, text in ahead.of_calls(device, step.calls))


@tool(host_compiler() is not None, "no C++ compiler: install g++, or set CXX")
@pytest.mark.parametrize(("method", "M"), [("cg", "amg"), ("bicgstab", "jacobi"), ("cg", "jacobi")])
def test_loops_on_plans_of_a_gpu_are_made_of_kernels_of_the_wheel(h200, method, M):
    executor = Recorder()
    A = Csr._from_arrays(executor, *recording.square(executor, "float64"))  # type: ignore[arg-type]
    solve(A, np.ones(A.shape[0]), method=method, M=M, maxiter=2, rtol=1e-12)
    asked = dict(kernels_of(executor, h200))
    assert any(name.startswith("shared_") for name in asked)
    assert asked.items() <= known("float64").items()


@tool(host_compiler() is not None, "no C++ compiler: install g++, or set CXX")
@pytest.mark.parametrize(
    ("method", "M"), [("cg", "jacobi"), ("cg", None), ("bicgstab", "jacobi"), ("gmres", "jacobi")]
)
def test_small_stencils_are_solved_by_kernels_of_the_wheel(h200, monkeypatch, method, M):
    executor = Recorder()
    A = Csr._from_arrays(executor, *recording.square(executor, "float64"))  # type: ignore[arg-type]
    solve(A, np.ones(A.shape[0]), method=method, M=M, maxiter=2, rtol=1e-12)
    asked: dict[str, str] = {}
    monkeypatch.setattr(
        h200, "function", lambda symbol, text: asked.update({symbol: text()}), raising=False
    )
    monkeypatch.setattr(h200, "allow_shared", lambda function, nbytes: None)
    monkeypatch.setattr(h200, "holds_cluster", lambda *given: True)
    program = executor.programs[0]
    phases = phases_of(steps_of(program))
    status = next(given for parameter, given in program.arguments() if parameter.is_status)
    there: Any = SimpleNamespace(device=h200, xp=executor.xp)
    loop.PersistentKernel(there, phases, status)
    assert len(asked) == 1
    assert asked.items() <= known("float64").items()


def test_what_a_solve_compiles_ahead_is_in_the_wheel(h200, monkeypatch):
    named: set[Any] = set()
    monkeypatch.setattr(
        ReferenceExecutor,
        "compile_ahead",
        lambda self, names, dtype, index=np.int32: named.add((*names, np.dtype(dtype))),
    )
    executor = recording.Recorder()
    A = Csr._from_arrays(executor, *recording.square(executor, "float64"))
    solve(A, np.ones(A.shape[0]), M="amg", maxiter=3)
    assert len(named) >= 3
    for *names, dtype in named:
        asked = ahead.of_operations(h200, names, dtype, np.dtype(np.int32))
        assert {name for name, _ in asked} <= known("float64").keys()


def test_an_archive_serves_a_device(h200, tmp_path, monkeypatch):
    nvrtc()
    some = list(programs(target.Target("sm_90"), "float64"))[::60]
    monkeypatch.setattr(build, "programs", lambda device, dtype: some)
    monkeypatch.setattr(archive, "FOLDER", tmp_path / "kernels")
    path = build.build("sm_90", tmp_path / "kernels", ["float64"])
    assert path.name == "sm_90a.zip"
    monkeypatch.setattr(compiler, "compile_source", lambda *given: pytest.fail("not in the wheel"))
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path / "empty"))
    for symbol, text in some:
        assert h200.compile(text(), symbol).startswith(b"\x7fELF")


def test_a_gpu_that_is_not_known_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(SystemExit, match="for sm_80, sm_90, sm_100, not sm_70"):
        build.main([str(tmp_path), "sm_90", "sm_70"])
