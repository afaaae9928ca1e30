"""Kernel text to machine code: HIPRTC by CuPy's binding, with a cache on disk."""

from __future__ import annotations

from ...core.cache import CodeCache
from ...core.errors import KernelCompileError
from ...core.kernel_text import without_comments

#: C++17, which the other three compilers accept too.
OPTIONS = ("-std=c++17",)

#: Compiled code objects on disk.
CODE_OBJECTS = CodeCache("hip", ".hsaco")


def compile_source(source: str, architecture: str, name: str) -> bytes:
    """Return the code object of a source.

    Parameters
    ----------
    source : str
        HIP C++ with no include that is not in it.
    architecture : str
        ``gfx90a``.
    name : str
        The name of the source in error messages.

    Raises
    ------
    KernelCompileError
        With the compiler's log.
    """
    # CuPy for ROCm gives HIPRTC the names of NVRTC; ``getPTX`` returns its machine code.
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
    """Return the code object of a source from the disk, compiling it if it is not there."""
    from cupy.cuda import nvrtc, runtime

    # HIPRTC belongs to a release of ROCm, which the runtime's version tells apart
    versions = f"{nvrtc.getVersion()} {runtime.runtimeGetVersion()}"
    key = "\0".join([without_comments(source), architecture, *OPTIONS, versions])
    return CODE_OBJECTS.get(key, lambda: compile_source(source, architecture, name))
