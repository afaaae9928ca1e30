"""Machine code of programs is kept, loaded without a compiler, and compiled again if wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import wollemi as wl
from wollemi.backends.dpcpp import machine_code, programs
from wollemi.backends.unified.wrappers import maps_of
from wollemi.core.cache import CodeCache

from .needs_dpcpp import needs_dpcpp

pytestmark = needs_dpcpp


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The labels of programs that were compiled, with no machine code kept at the begin."""
    labels: list[str] = []
    build = programs.build_program

    def noted(place: int, source: str, options: tuple[str, ...], label: str) -> int:
        labels.append(label)
        return build(place, source, options, label)

    monkeypatch.setattr(programs, "build_program", noted)
    monkeypatch.setattr(machine_code, "_CODE", CodeCache("code", ".bin", folder=tmp_path))
    return labels


def kernel() -> programs.CompiledKernel:
    """Return a kernel of programs that nothing was loaded for yet."""
    executor = wl.executor("dpcpp:cpu")
    return programs.Programs(executor.place, executor.facts).of_map(maps_of("vector")[0], "f8")


def test_a_program_is_compiled_once(builds: list[str]) -> None:
    first, second = kernel(), kernel()
    assert len(builds) == 1
    assert first.slots.format == second.slots.format


@pytest.mark.parametrize("content", [b"", b"short", (1 << 40).to_bytes(8, "little"), bytes(64)])
def test_wrong_machine_code_is_compiled_again(
    builds: list[str], monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(machine_code._CODE, "load", lambda key: content)
    assert kernel().handle
    assert len(builds) == 1


def test_machine_code_of_another_driver_is_not_loaded(
    builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel()
    monkeypatch.setattr(machine_code.runtime, "version", lambda: "another")
    kernel()
    assert len(builds) == 2
