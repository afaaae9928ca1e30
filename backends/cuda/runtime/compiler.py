"""Compile kernel text to machine code with NVRTC; results come from the wheel or the disk cache.

This module needs neither a GPU nor a driver, so it can compile every source on any machine.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from ....core.cache import CodeCache, checksum
from ....core.errors import ExecutorUnavailable, KernelCompileError
from ....core.kernel_text import without_comments
from .archive import shipped, shipped_as

#: C++17 is the version that the other three compilers support too. No fast math: sums have a fixed
#: order.
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
        CUDA C++ without unresolved includes.
    architecture : str
        The target, such as ``sm_90``.
    name : str
        The name of the source in error messages.

    Raises
    ------
    KernelCompileError
        If compilation fails; the message contains the compiler's log.
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


#: Disk cache of NVRTC's results.
CUBINS = CodeCache("cuda", ".cubin")


class CubinPlace(NamedTuple):
    """The location of a cubin: the wheel's archive, or a file of the cache."""

    #: The key in the archive, or the name of the file.
    name: str
    #: The checksum of the cubin in the file; "" for the archive.
    checksum: str

    @property
    def of_compiler(self) -> bool:
        """Whether this machine's NVRTC compiled the cubin."""
        return bool(self.checksum)


def cached_cubin(source: str, architecture: str, name: str = "wollemi") -> bytes:
    """Return the cubin of a source from the wheel or the disk cache, or compile it.

    A hash of everything that the cubin depends on identifies it. NVRTC is loaded if the wheel lacks
    the cubin.
    """
    return placed_cubin(source, architecture, name)[0]


def placed_cubin(source: str, architecture: str, name: str) -> tuple[bytes, CubinPlace]:
    """Return the cubin of a source, as :func:`cached_cubin` does, and its location."""
    found = shipped(source, architecture, OPTIONS)
    if found is not None:
        return found[1], CubinPlace(found[0], "")
    key = _key_on_disk(source, architecture)
    code = CUBINS.get(key, lambda: compile_source(source, architecture, name))
    return code, CubinPlace(CUBINS.file_name(key), checksum(code))


def cubin_at(place: CubinPlace, architecture: str) -> bytes | None:
    """Return the cubin at a location, or None if it no longer exists."""
    if not place.of_compiler:
        return shipped_as(place.name, architecture)
    return CUBINS.load_file(place.name, place.checksum)


def kept_cubin(source: str, architecture: str, name: str = "wollemi") -> bytes:
    """Return the cubin of a source from the disk cache; compile it if it is missing."""
    return CUBINS.get(
        _key_on_disk(source, architecture), lambda: compile_source(source, architecture, name)
    )


def _key_on_disk(source: str, architecture: str) -> str:
    return "\0".join([without_comments(source), architecture, *OPTIONS, repr(version())])
