"""Compile the C++ of the omp backend for macOS on arm64 and Windows on x64, by ziglang.

The wheel ``ziglang`` of PyPI holds clang and the C++ libraries of both systems. Every source
becomes an object; nothing is linked or run, so this finds code that only Linux or GCC accepts, and
no defect of a running program. The headers of Python are this interpreter's, with a ``pyconfig.h``
for Windows. ``make release-check`` runs it.

    python packaging/zig_check.py          # five minutes on two cores
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
OMP = ROOT / "backends/omp"

#: The version of the compiler: another one may warn about other code.
REQUIREMENT = "ziglang==0.17.*"

#: The options of CMakeLists.txt, without optimization, which finds no further errors.
OPTIONS = (
    *("-std=c++17", "-O0", "-fopenmp-simd", "-fno-math-errno", "-ffp-contract=fast"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-unused-const-variable"),
)

#: The answers to the questions of Python's headers, for Windows on x64.
WINDOWS = {
    **dict.fromkeys(("MS_WINDOWS", "MS_WIN32", "MS_WIN64", "NT_THREADS", "WITH_THREAD"), ""),
    **dict.fromkeys(("HAVE_DECLSPEC_DLL", "Py_ENABLE_SHARED", "HAVE_WCHAR_H", "HAVE_IO_H"), "1"),
    **dict.fromkeys(("HAVE_STDINT_H", "HAVE_STDDEF_H", "HAVE_SYS_TYPES_H", "HAVE_SIGNAL_H"), "1"),
    **dict.fromkeys(("HAVE_SYS_STAT_H", "HAVE_ERRNO_H", "HAVE_FCNTL_H"), "1"),
    **dict.fromkeys(("SIZEOF_INT", "SIZEOF_LONG", "SIZEOF_FLOAT", "SIZEOF_OFF_T"), "4"),
    **dict.fromkeys(("SIZEOF_LONG_LONG", "SIZEOF_DOUBLE", "SIZEOF_VOID_P"), "8"),
    **dict.fromkeys(("SIZEOF_SIZE_T", "SIZEOF_TIME_T", "SIZEOF_FPOS_T"), "8"),
    **{"SIZEOF_SHORT": "2", "SIZEOF_WCHAR_T": "2", "SIZEOF_PID_T": "4", "SIZEOF__BOOL": "1"},
    **{"ALIGNOF_SIZE_T": "8", "ALIGNOF_MAX_ALIGN_T": "8"},
}


@dataclass(frozen=True)
class Target:
    """A system to compile for.

    Parameters
    ----------
    name : str
        As zig names it.
    level : str
        The instruction set of a level, as zig names it; empty for the system's own.
    modules : tuple of str
        The native modules: that of the level first. ``_cpu`` reads the level of an x86 processor.
    """

    name: str
    level: str
    modules: tuple[str, ...]

    def options(self) -> tuple[str, ...]:
        """Return the options of the compiler."""
        return ("-target", self.name, *((f"-march={self.level}",) if self.level else ()))


TARGETS = (
    Target("aarch64-macos", "", ("_native_generic",)),
    Target("x86_64-windows-gnu", "x86_64_v3", ("_native_v3", "_cpu")),
)


def python_headers(target: Target, folder: Path) -> Path:
    """Return the folder of Python's headers for a system."""
    own = Path(sysconfig.get_path("include"))
    if "windows" not in target.name:
        return own
    shutil.copytree(own, folder)
    lines = [f"#define {name} {value}".rstrip() for name, value in WINDOWS.items()]
    (folder / "pyconfig.h").write_text("\n".join(lines) + "\n")
    return folder


def generated_sources(folder: Path) -> list[Path]:
    """Return the wrappers of operations, which the build generates."""
    subprocess.run([sys.executable, OMP / "generate.py", folder], check=True)
    return sorted(folder.glob("*.cpp"))


def commands(target: Target, folder: Path) -> Iterator[list[str]]:
    """Yield the commands that compile all sources for a system."""
    import pybind11

    generated = folder / "generated"
    sources = [file for file in sorted(OMP.glob("*.cpp")) if file.name != "cpu.cpp"]
    sources += generated_sources(generated)
    sources += [OMP / "cpu.cpp"] * ("_cpu" in target.modules)
    sources.append(ROOT / "backends/gpu/device_calls.cpp")
    system = (
        pybind11.get_include(),
        ROOT / "third_party",
        python_headers(target, folder / "python"),
    )
    own = (ROOT / "backends", generated)
    includes = [f"-I{path}" for path in own] + [f"-isystem{path}" for path in system]
    for number, source in enumerate(sources):
        yield [
            *(sys.executable, "-m", "ziglang", "c++", *target.options(), *OPTIONS, *includes),
            f"-DWOLLEMI_NATIVE_MODULE={target.modules[0]}",
            *("-c", str(source), "-o", str(folder / f"{number}.o")),
        ]


def compiled(command: list[str]) -> str:
    """Run a command; return the compiler's complaints, or nothing."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def check(target: Target) -> None:
    """Compile every source for a system.

    Raises
    ------
    SystemExit
        If one does not compile; the message has the compiler's.
    """
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(compiled, commands(target, Path(folder))))
    if any(complaints):
        sys.exit("\n".join(filter(None, complaints)))
    took = time.perf_counter() - began
    print(f"zig: {len(complaints)} objects for {target.name} ({took:.0f} s)", flush=True)


def main() -> None:
    """Compile for all systems; the first that fails ends the program."""
    for target in TARGETS:
        check(target)


if __name__ == "__main__":
    main()
