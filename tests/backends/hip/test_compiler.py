"""Results of HIPRTC are kept on disk; CuPy for ROCm gives it NVRTC's names."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from wollemi.backends.hip import compiler
from wollemi.core import cache
from wollemi.core.errors import KernelCompileError


class Nvrtc(ModuleType):
    """CuPy's binding."""

    class NVRTCError(RuntimeError):
        """What it raises."""

    def __init__(self) -> None:
        super().__init__("cupy.cuda.nvrtc")
        self.programs: dict[int, str] = {}
        self.compiled: list[tuple[str, ...]] = []

    def getVersion(self) -> tuple[int, int]:
        return 7, 0

    def createProgram(self, source: str, name: str, headers: Any, names: Any) -> int:
        self.programs[1] = source
        return 1

    def compileProgram(self, program: int, options: tuple[str, ...]) -> None:
        self.compiled.append(options)
        if "nonsense" in self.programs[program]:
            raise self.NVRTCError("HIPRTC_ERROR_COMPILATION")

    def getPTX(self, program: int) -> bytes:
        return b"code of " + self.programs[program].encode()

    def getProgramLog(self, program: int) -> str:
        return "k.hip:1: error: unknown type name"

    def destroyProgram(self, program: int) -> None:
        del self.programs[program]


@pytest.fixture
def nvrtc(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Nvrtc:
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_refused", set())
    made, cuda = Nvrtc(), ModuleType("cupy.cuda")
    cuda.nvrtc = made  # type: ignore[attr-defined]
    cuda.runtime = SimpleNamespace(runtimeGetVersion=lambda: 70000000)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
    return made


def test_a_program_is_compiled_once_for_each_target(nvrtc: Nvrtc) -> None:
    for _ in range(2):
        assert compiler.cached_code("kernel", "gfx90a", "k") == b"code of kernel"
    assert compiler.cached_code("kernel", "gfx942", "k") == b"code of kernel"
    assert nvrtc.compiled == [
        ("-std=c++17", "--offload-arch=gfx90a"),
        ("-std=c++17", "--offload-arch=gfx942"),
    ]
    assert not nvrtc.programs


def test_a_compile_error_names_the_source_and_keeps_the_log(nvrtc: Nvrtc) -> None:
    with pytest.raises(KernelCompileError, match=r"(?s)broken .* gfx90a .*unknown type name"):
        compiler.compile_source("nonsense", "gfx90a", "broken")
    assert not nvrtc.programs
