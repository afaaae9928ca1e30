"""Compile kernel text to machine code with HIPRTC (through CuPy), with a cache on disk."""

from __future__ import annotations

from ...core.cache import CodeCache
from ...core.errors import KernelCompileError
from ...core.kernel_text import without_comments

#: C++17 is the standard of the other three compilers too.
OPTIONS = ("-std=c++17",)

#: Compiled code objects on disk.
CODE_OBJECTS = CodeCache("hip", ".hsaco")


def compile_source(source: str, architecture: str, name: str) -> bytes:
    """Return the code object compiled from a source.

    Parameters
    ----------
    source : str
        HIP C++ without unresolved includes.
    architecture : str
        The target, such as ``gfx90a``.
    name : str
        The name of the source in error messages.

    Raises
    ------
    KernelCompileError
        With the compiler's log.
    """
    # CuPy for ROCm exposes HIPRTC under NVRTC's names; ``getPTX`` returns machine code.
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(source, f"{name}.hip", (), ())
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"--offload-arch={architecture}"))
        return bytes(nvrtc.getPTX(program))
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise KernelCompileError(
            f"{name} does not compile for {architecture} with HIPRTC: {error}\n{log}"
        ) from error
    finally:
        nvrtc.destroyProgram(program)


def cached_code(source: str, architecture: str, name: str) -> bytes:
    """Return the code object of a source from the disk cache; compile it if it is missing."""
    from cupy.cuda import nvrtc, runtime

    # HIPRTC is part of a ROCm release, which the runtime's version identifies.
    versions = f"{nvrtc.getVersion()} {runtime.runtimeGetVersion()}"
    key = "\0".join([without_comments(source), architecture, *OPTIONS, versions])
    return CODE_OBJECTS.get(key, lambda: compile_source(source, architecture, name))
