"""How many threads there are, and that results do not depend on chance."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.omp.threads import default_threads, quota
from wollemi.core.operations import gmres, vector
from wollemi.core.status import Status

N = 50_000  # large enough for a parallel region


def test_the_name_carries_the_number() -> None:
    assert wl.executor("omp:3").name == "omp:3"
    assert wl.executor("omp").name == f"omp:{default_threads()}"
    assert wl.OmpExecutor(threads=3) == wl.executor("omp:3")


@pytest.mark.parametrize("name", ["omp:0", "omp:-1", "omp:two", "omp:1.5"])
def test_a_name_without_a_number_is_refused(name: str) -> None:
    with pytest.raises(wl.errors.ExecutorUnavailable, match=r'write "omp"'):
        wl.executor(name)


def test_fewer_than_one_thread_is_refused() -> None:
    from wollemi.backends.omp.executor import OmpExecutor

    with pytest.raises(wl.errors.InvalidArgument, match="at least 1"):
        OmpExecutor(0)


def test_the_environment_sets_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")
    assert default_threads() == 5


def test_an_environment_that_says_nothing_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert 1 <= default_threads() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    "files, cores",
    [
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
)
def test_the_share_of_a_container_counts(
    tmp_path: Path, files: dict[str, str], cores: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert quota(tmp_path) == cores


def rough(rows: int, columns: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).standard_normal((rows, columns))


def results(executor: wl.Executor, columns: int) -> list[np.ndarray[Any, Any]]:
    """Return a norm, a product and the projections of GMRES."""
    x = rough(N, columns)
    norm, y = np.empty(columns), np.empty_like(x)
    executor.run(vector.norm, x, norm)
    i = np.arange(N)
    A = wl.Csr._from_arrays(
        executor, (N, N), rough(3 * N, 1)[:, 0],
        np.stack([i, (7 * i) % N, (i + 1) % N], axis=1).reshape(-1).astype(np.int32),
        (3 * np.arange(N + 1)).astype(np.int32),
    )  # fmt: skip
    A._apply(x, y, 1.0, 0.0)
    basis, h, before = rough(5 * N, columns).reshape(5, N, columns), rough(5, columns), norm.copy()
    status = Status(executor, columns, np.float64)
    executor.run(gmres.project, basis, x, h, before, np.array([3]), status)
    return [norm, y, h, before]


@pytest.mark.parametrize("columns", [1, 3, 4])
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_results_repeat_bit_for_bit(threads: int, columns: int) -> None:
    executor = wl.executor(f"omp:{threads}")
    first = results(executor, columns)
    for _ in range(3):
        for a, b in zip(first, results(executor, columns), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("columns", [1, 3, 4])
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_any_number_of_threads_is_right(threads: int, columns: int) -> None:
    serial = results(wl.executor("omp:1"), columns)
    for a, b in zip(serial, results(wl.executor(f"omp:{threads}"), columns), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-10)


def together(work: Any, calls: int) -> list[Any]:
    """Return the results of ``calls`` simultaneous calls."""
    with ThreadPoolExecutor(calls) as pool:
        return [future.result() for future in [pool.submit(work) for _ in range(calls)]]


@pytest.mark.parametrize("threads", [2, 5])
def test_python_threads_may_compute_at_the_same_time(threads: int) -> None:
    executor = wl.executor(f"omp:{threads}")
    alone = results(executor, 3)
    for found in together(lambda: results(executor, 3), 6):
        for a, b in zip(alone, found, strict=True):
            np.testing.assert_array_equal(a, b)


def test_executors_of_several_sizes_take_turns() -> None:
    alone = {n: results(wl.executor(f"omp:{n}"), 1) for n in (3, 7, 2)}
    for n in (2, 3, 7, 3, 2):
        for a, b in zip(alone[n], results(wl.executor(f"omp:{n}"), 1), strict=True):
            np.testing.assert_array_equal(a, b)


def run_script(script: str) -> None:
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


ONE_CORE = """
import os, numpy as np, wollemi as wl
from wollemi.core.operations import vector

x = np.random.default_rng(1).standard_normal((100_000, 1))
executor, value = wl.executor("omp:6"), np.zeros(1)
executor.run(vector.norm, x, value)
expected = value.copy()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for thread in os.listdir("/proc/self/task"):
    os.sched_setaffinity(int(thread), os.sched_getaffinity(0))
for _ in range(200):
    executor.run(vector.norm, x, value)
    assert (value == expected).all()
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not pin threads")
def test_all_threads_on_one_core_come_to_the_same() -> None:
    run_script(ONE_CORE)


LIBRARIES = """
from pathlib import Path
import numpy as np, wollemi as wl

A = wl.Csr(np.eye(3), executor="omp:2")
assert (A @ np.ones(3) == 1).all()
mapped = Path("/proc/self/maps").read_text()
native = next(line.split()[-1] for line in mapped.splitlines() if "_native_" in line)
assert b"libgomp" not in Path(native).read_bytes()
"""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system has no /proc")
def test_no_library_of_openmp_is_needed() -> None:
    """Two of them in one process, ours and PyTorch's, wait for each other's cores."""
    run_script(LIBRARIES)


IDLE = """
import time, numpy as np, wollemi as wl
from wollemi.core.operations import vector

executor, x, value = wl.executor("omp:4"), np.ones((100_000, 1)), np.zeros(1)
executor.run(vector.norm, x, value)
time.sleep(0.05)
before = time.process_time()
time.sleep(0.3)
assert time.process_time() - before < 0.1, time.process_time() - before
"""


def test_threads_without_work_sleep() -> None:
    run_script(IDLE)


FORK = """
import os, numpy as np, wollemi as wl
from wollemi.core.operations import vector

executor, x, value = wl.executor("omp:2"), np.ones((100_000, 1)), np.zeros(1)
executor.run(vector.norm, x, value)
child = os.fork()
if child == 0:
    value[:] = 0
    executor.run(vector.norm, x, value)
    tasks = "/proc/self/task"
    threads = len(os.listdir(tasks)) if os.path.exists(tasks) else 2
    os._exit(0 if threads >= 2 and value[0] == 100_000**0.5 else 1)
executor.run(vector.norm, x, value)
assert value[0] == 100_000**0.5
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    run_script(FORK)


def test_large_arrays_begin_a_cache_line() -> None:
    executor = wl.executor("omp:2")
    for shape in [(1,), (7, 3), (0, 2), (100_001, 1)]:
        for make in (executor.allocate, executor.zeros):
            array = make(shape, np.float32)
            assert array.shape == shape
            assert array.flags.c_contiguous and array.flags.writeable
            assert array.nbytes < 16384 or array.ctypes.data % 64 == 0


def test_foreign_byte_orders_come_in_as_the_machines() -> None:
    executor = wl.executor("omp:2")
    given = np.arange(3.0).astype(np.dtype("f8").newbyteorder("S"))
    assert not executor.owns(given)
    taken = executor.from_host(given)
    assert executor.owns(taken)
    np.testing.assert_array_equal(taken, [0.0, 1.0, 2.0])
