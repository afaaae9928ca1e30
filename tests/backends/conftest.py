"""The executors under test: one of each installed backend, or the ones that the environment names.

``WOLLEMI_TEST_EXECUTORS=omp:1,omp:3`` tests these two.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec

import pytest

import wollemi as wl

from .compiled import keeping_cubins

GPUS = {"cuda", "hip"}


@cache
def executor_names() -> list[str]:
    """Return the names of the executors to be held against the reference."""
    named = os.environ.get("WOLLEMI_TEST_EXECUTORS")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    first_of_backend: dict[str, str] = {}
    for line in wl.available_executors():
        if line.available:
            first_of_backend.setdefault(line.name.partition(":")[0], line.name)
    return [name for name in first_of_backend.values() if name != "reference"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "executor" in metafunc.fixturenames:
        parameters = [
            pytest.param(name, marks=[pytest.mark.gpu] * (name.partition(":")[0] in GPUS))
            for name in executor_names()
        ]
        metafunc.parametrize("executor", parameters, indirect=True, scope="session")


@pytest.fixture(scope="session")
def executor(request: pytest.FixtureRequest) -> wl.Executor:
    return wl.executor(request.param)


@pytest.fixture(scope="module")
def published_algorithms() -> Iterator[None]:
    """Have the published algorithms of wollemi_bench in the tables of GPUs."""
    from wollemi.backends.cuda.table import algorithms as of_cuda
    from wollemi.backends.gpu.table import algorithms as of_gpus
    from wollemi_bench import published

    tables = (of_cuda, of_gpus)
    before = [dict(table._registered) for table in tables]
    published.register()
    yield
    for table, own in zip(tables, before, strict=True):
        table._registered = own


@pytest.fixture(scope="session", autouse=True)
def cubins_are_kept() -> Iterator[None]:
    """Let no test compile a program for NVIDIA's GPUs that an earlier run has compiled.

    Tests call ``compiler.compile_source``: a name that a test file imports is not replaced here.
    """
    try:
        found = find_spec("cuda.bindings") is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        yield
        return
    from wollemi.backends.cuda.runtime import compiler

    with pytest.MonkeyPatch.context() as patch:
        with suppress(wl.errors.ExecutorUnavailable):
            patch.setattr(compiler, "compile_source", keeping_cubins(compiler))
        yield
