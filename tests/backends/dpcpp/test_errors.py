"""Errors of SYCL devices, provoked: errors that a call meets, and errors that come later."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.dpcpp import launch, runtime, shim
from wollemi.core.operations import vector

from .needs_dpcpp import needs_dpcpp

pytestmark = needs_dpcpp

SOURCE = Path(__file__).with_name("host_task_fails.cpp")


@pytest.fixture(scope="module")
def device() -> wl.Executor:
    return wl.executor("dpcpp:cpu")


@pytest.fixture(scope="module")
def fail(device: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], None]:
    """Return a function that submits work that fails once it runs."""
    built = tmp_path_factory.mktemp("sycl") / "fails.so"
    library = runtime.library()
    subprocess.run(
        [
            shim.find_compiler(shim.PURPOSE), "-std=c++17", "-fPIC", "-shared", "-w", SOURCE,
            f"-I{runtime.headers()}", library, f"-Wl,-rpath,{library.parent}", "-o", built,
        ],
        check=True,
    )  # fmt: skip
    submit = ctypes.CDLL(str(built)).submit_failure
    submit.argtypes = [ctypes.c_void_p]
    return lambda: submit(device.place.queue.addressof_ref())


def test_a_late_error_surfaces_where_the_host_waits(device: Any, fail: Callable[[], None]) -> None:
    fail()
    with pytest.raises(wl.errors.DeviceError, match="ran into a wall"):
        device.synchronize()
    device.synchronize()


def test_a_late_error_surfaces_in_a_copy(device: Any, fail: Callable[[], None]) -> None:
    x = device.from_host(np.ones(3))
    fail()
    with pytest.raises(wl.errors.DeviceError, match=r"copy failed.*wall"):
        device.to_host(x)
    assert device.to_host(x).tolist() == [1.0, 1.0, 1.0]


def test_a_late_error_surfaces_in_the_solve_that_meets_it(
    device: Any, fail: Callable[[], None]
) -> None:
    A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]])).to(device)
    b = device.from_host(np.array([1.0, 2.0]))
    fail()
    with pytest.raises(wl.errors.DeviceError, match="wall"):
        wl.solve(A, b)
    np.testing.assert_allclose(11 * device.to_host(wl.solve(A, b).x), [1.0, 7.0], rtol=1e-5)


def test_late_errors_are_said_together(device: Any, fail: Callable[[], None]) -> None:
    fail()
    fail()
    with pytest.raises(wl.errors.DeviceError, match=r"wall; the task"):
        device.synchronize()


def test_a_launch_that_is_refused_names_its_kernel(device: Any) -> None:
    kernel = device.programs.of_map(vector.fill, "f8")
    with pytest.raises(wl.errors.DeviceError, match=r"vector_fill__f8 failed on .*work.group"):
        device.launcher.submit(kernel, 1, 3, 1, 1, 0, 1, 0.0, 0, 0)


def test_launches_that_are_waited_for_name_the_kernel(
    device: Any, fail: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(launch.WAIT, "1")
    monkeypatch.setattr(device, "launcher", launch.Launcher(device.place))
    x = device.from_host(np.ones((3, 1)))
    device.run(vector.fill, x, 1.0)
    fail()
    with pytest.raises(wl.errors.DeviceError, match="vector_fill__f8 failed"):
        device.run(vector.fill, x, 2.0)
    device.run(vector.fill, x, 3.0)
    assert device.to_host(x).tolist() == [[3.0]] * 3


def test_too_large_a_work_group_is_refused_before_it_runs(device: Any) -> None:
    kernel = device.programs.of_map(vector.fill, "f8")
    with pytest.raises(wl.errors.DeviceError, match="vector_fill__f8"):
        device.launcher.submit(kernel, 1, 1 << 24, 1, 1, 0, 1, 0.0, 0, 0)
