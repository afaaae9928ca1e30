"""The compilers that make code for AMD GPUs here, and the programs that they compile."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from wollemi.backends.unified import wrappers
from wollemi.core.kernel_text import without_comments

from ... import simt_programs as simt
from ...compiled import MADE, keeping_texts
from .hiprtc import load

HERE = Path(__file__).parent

#: Programs that Debian's HIPRTC compiles (5.2; it crashes on newer ones); clang 19 compiles the
#: rest.
HIPRTC_TARGETS = ("gfx906", "gfx908", "gfx90a", "gfx1030")
CLANG_TARGETS = ("gfx942", "gfx1100", "gfx1201")
OPTIONS = ("-std=c++17", "-Wall", "-Werror")

WITHOUT_HIPRTC = "no HIPRTC: apt install libamdhip64-5 libhiprtc-builtins5"
WITHOUT_CLANG = "no clang-19: apt install clang-19"


@cache
def has_hiprtc() -> bool:
    """Return whether HIPRTC is here."""
    return load() is not None


def has_clang() -> bool:
    """Return whether clang 19 is here."""
    return shutil.which("clang-19") is not None


def width(target: str) -> int:
    """Return the lanes of a wave: 64 on GCN and CDNA, 32 on RDNA."""
    return 64 if target.startswith("gfx9") else 32


def programs(value: str, index: str, warp: int) -> Iterator[tuple[str, str]]:
    """Yield the names and sources of all programs that an executor may ask for."""
    for group in wrappers.map_groups() if "_" not in value else ():
        yield (
            f"{group}-{value}",
            wrappers.map_program("HIP", wrappers.maps_of(group), value, index, warp=warp),
        )
    for header, block, indexed in simt.simt_groups():
        if "_" in value and not simt.converts((header, block, indexed)):
            continue
        name = f"{Path(header).stem}-{block}-{value}" + f"-{index}" * indexed
        yield name, simt.simt_program("HIP", (header, block, indexed), value, index, warp=warp)


def compile_with_hiprtc(target: str, sources: dict[str, str], folder: Path) -> dict[str, bytes]:
    """Return code objects by name.

    Raises
    ------
    AssertionError
        With the compiler's logs, or if it crashed.
    """
    keys = {
        name: "\0".join((target, *OPTIONS, without_comments(source), _hiprtc()))
        for name, source in sources.items()
    }
    made = {name: MADE.load(key) for name, key in keys.items()}
    missing = {name: source for name, source in sources.items() if made[name] is None}
    if missing:
        for name, code in _compiled_with_hiprtc(target, missing, folder).items():
            MADE.save(keys[name], code)
            made[name] = code
    return {name: code for name, code in made.items() if code is not None}


def _compiled_with_hiprtc(target: str, sources: dict[str, str], folder: Path) -> dict[str, bytes]:
    asked = {
        "target": target,
        "options": list(OPTIONS),
        "programs": sources,
        "folder": str(folder),
    }
    done = subprocess.run(
        [sys.executable, str(HERE / "hiprtc.py")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"HIPRTC ended with {done.returncode} on {target}: {done.stderr}"
    failed = json.loads(done.stdout)
    assert not failed, "\n".join(f"{name} for {target}: {log}" for name, log in failed.items())
    return {name: (folder / f"{name}.hsaco").read_bytes() for name in sources}


def compile_with_clang(target: str, source: str) -> str:
    """Return the assembly of a source, written in the words of ``prelude.hpp``."""
    command = [
        "clang-19", "-x", "hip", "--offload-device-only", f"--offload-arch={target}",
        "-nogpulib", "-nogpuinc", "-nostdinc", "-fdeclspec", "-O2", *OPTIONS,
        "-include", str(HERE / "prelude.hpp"), "-S", "-o", "-", "-",
    ]  # fmt: skip

    def compiled() -> str:
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"clang for {target}:\n{done.stderr[:4000]}"
        return done.stdout

    prelude = (HERE / "prelude.hpp").read_text(encoding="utf-8")
    texts = map(without_comments, (prelude, source))
    return keeping_texts("\0".join((*command, *texts, _clang())), compiled)


@cache
def _clang() -> str:
    command = ["clang-19", "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@cache
def _hiprtc() -> str:
    """Return the version of HIPRTC, and its functions."""
    library = load()
    assert library is not None
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.hiprtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}\0{(HERE / 'hiprtc.py').read_text(encoding='utf-8')}"
