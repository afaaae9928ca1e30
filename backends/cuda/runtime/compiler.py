"""Kernel text to machine code: NVRTC, with its results in the wheel and on disk.

Nothing here needs a GPU or a driver, so that every source is compiled where there is none.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from ....core.cache import CodeCache, checksum
from ....core.errors import ExecutorUnavailable, KernelCompileError
from ....core.kernel_text import without_comments
from .archive import shipped, shipped_as

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


class CubinPlace(NamedTuple):
    """Where a cubin lies: in the wheel's archive, or in a file of the cache."""

    #: The key of the archive, or the name of the file.
    name: str
    #: The checksum of the file's cubin; "" for the archive.
    checksum: str

    @property
    def of_compiler(self) -> bool:
        """Whether it was compiled here, by the NVRTC that was installed then."""
        return bool(self.checksum)


def cached_cubin(source: str, architecture: str, name: str = "wollemi") -> bytes:
    """Return the cubin of a source: from the wheel, from the disk, or else compiled.

    It is found by a hash of everything that it depends on. NVRTC is loaded if the wheel does not
    have it.
    """
    return placed_cubin(source, architecture, name)[0]


def placed_cubin(source: str, architecture: str, name: str) -> tuple[bytes, CubinPlace]:
    """Return the cubin of a source as :func:`cached_cubin` does, and where it lies."""
    found = shipped(source, architecture, OPTIONS)
    if found is not None:
        return found[1], CubinPlace(found[0], "")
    key = _key_on_disk(source, architecture)
    code = CUBINS.get(key, lambda: compile_source(source, architecture, name))
    return code, CubinPlace(CUBINS.file_name(key), checksum(code))


def cubin_at(place: CubinPlace, architecture: str) -> bytes | None:
    """Return the cubin of a place, or None if it is not there any more."""
    if not place.of_compiler:
        return shipped_as(place.name, architecture)
    return CUBINS.load_file(place.name, place.checksum)


def kept_cubin(source: str, architecture: str, name: str = "wollemi") -> bytes:
    """Return the cubin of a source from the disk, compiling it if it is not there."""
    return CUBINS.get(
        _key_on_disk(source, architecture), lambda: compile_source(source, architecture, name)
    )


def _key_on_disk(source: str, architecture: str) -> str:
    return "\0".join([without_comments(source), architecture, *OPTIONS, repr(version())])
