"""Kernel text to machine code: NVRTC, with its results in the wheel and on disk.

Nothing here needs a GPU or a driver, so that every source is compiled where there is none.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ....core.cache import CodeCache
from ....core.errors import ExecutorUnavailable, KernelCompileError
from ....core.kernel_text import without_comments
from .archive import shipped

#: C++17 is the version that the other three compilers support too. Sums have a fixed order: no fast
#: math.
OPTIONS = ("-std=c++17", "--extra-device-vectorization")


@cache
def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise ExecutorUnavailable(
            f"cuda.bindings could not be imported ({error}): "
            'pip install "wollemi[cuda]" brings it and NVRTC'
        ) from error
    try:
        version(nvrtc)
    except RuntimeError as error:
        raise ExecutorUnavailable(
            f"NVRTC, the run-time compiler, was not found ({error}): "
            'pip install "nvidia-cuda-nvrtc==13.0.*"'
        ) from error
    return nvrtc


def version(nvrtc: Any = None) -> tuple[int, int]:
    """Return NVRTC's version."""
    nvrtc = nvrtc or _nvrtc()
    _, major, minor = nvrtc.nvrtcVersion()
    return int(major), int(minor)


def compile_source(source: str, architecture: str, name: str = "wollemi") -> bytes:
    """Return the cubin of a source.

    Parameters
    ----------
    source : str
        CUDA C++ with no include that is not in it.
    architecture : str
        ``sm_90``.
    name : str
        The name of the source in error messages.

    Raises
    ------
    KernelCompileError
        With the compiler's log.
    """
    nvrtc = _nvrtc()

    def check(result: tuple[Any, ...]) -> Any:
        if int(result[0]) != 0:
            raise KernelCompileError(f"{name}: NVRTC failed with {result[0].name}")
        return result[1] if len(result) == 2 else None

    program = check(nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, None, None))
    try:
        options = [o.encode() for o in (*OPTIONS, f"--gpu-architecture={architecture}")]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if int(result) != 0:
            log = b" " * check(nvrtc.nvrtcGetProgramLogSize(program))
            check(nvrtc.nvrtcGetProgramLog(program, log))
            text = log.decode(errors="replace").strip("\0 \n")
            raise KernelCompileError(
                f"{name} does not compile for {architecture} with NVRTC "
                f"{'.'.join(map(str, version()))}:\n{text}"
            )
        cubin = b" " * check(nvrtc.nvrtcGetCUBINSize(program))
        check(nvrtc.nvrtcGetCUBIN(program, cubin))
        return cubin
    finally:
        nvrtc.nvrtcDestroyProgram(program)


#: Results of NVRTC, on disk.
CUBINS = CodeCache("cuda", ".cubin")


def cached_cubin(source: str, architecture: str, name: str = "wollemi") -> bytes:
    """Return the cubin of a source: from the wheel, from the disk, or else compiled.

    It is found by a hash of everything that it depends on. NVRTC is loaded if the wheel does not
    have it.
    """
    found = shipped(source, architecture, OPTIONS)
    return kept_cubin(source, architecture, name) if found is None else found


def kept_cubin(source: str, architecture: str, name: str = "wollemi") -> bytes:
    """Return the cubin of a source from the disk, compiling it if it is not there."""
    key = "\0".join([without_comments(source), architecture, *OPTIONS, repr(version())])
    return CUBINS.get(key, lambda: compile_source(source, architecture, name))
