"""The kernels of single operations compile with NVRTC 12, which users of CuPy for CUDA 12 have.

``pip install nvidia-cuda-nvrtc-cu12`` brings it; without it the tests are skipped.
"""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

import pytest

from wollemi.backends.cuda.runtime.compiler import OPTIONS
from wollemi.backends.unified import wrappers

from ... import simt_programs as simt

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


def _library() -> ctypes.CDLL | None:
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        return None
    for folder in found.submodule_search_locations or () if found else ():
        path = Path(folder) / "lib" / "libnvrtc.so.12"
        if path.exists():
            # Its other half, the built-in functions, is found by its name.
            for builtins in path.parent.glob("libnvrtc-builtins.so.12*"):
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(path))
    return None


NVRTC = _library()

pytestmark = [
    pytest.mark.rare,
    pytest.mark.skipif(NVRTC is None, reason="this runs after: pip install nvidia-cuda-nvrtc-cu12"),
]


def assert_compiles(source: str, architecture: str) -> None:
    assert NVRTC is not None
    program = ctypes.c_void_p()
    text = source.encode()
    assert NVRTC.nvrtcCreateProgram(ctypes.byref(program), text, b"wollemi", 0, None, None) == 0
    try:
        options = [o.encode() for o in (*OPTIONS, f"--gpu-architecture={architecture}")]
        failed = NVRTC.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*options)
        )
        size = ctypes.c_size_t()
        NVRTC.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        NVRTC.nvrtcGetProgramLog(program, log)
        assert not failed, log.value.decode(errors="replace")
        assert NVRTC.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0 and size.value > 0
    finally:
        NVRTC.nvrtcDestroyProgram(ctypes.byref(program))


def test_the_version_is_12():
    assert NVRTC is not None
    major, minor = ctypes.c_int(), ctypes.c_int()
    NVRTC.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    assert major.value == 12


@pytest.mark.parametrize("value", ["f8", "c8"])
@pytest.mark.parametrize("group", list(wrappers.map_groups()))
def test_map_operations_compile(group, value):
    assert_compiles(wrappers.map_program("CUDA", wrappers.maps_of(group), value), "sm_90")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("group", simt.simt_groups(), ids=lambda group: f"{group[0]}-{group[1]}")
def test_warp_kernels_compile(group, architecture):
    assert_compiles(simt.simt_program("CUDA", group, "f8", "i4"), architecture)


@pytest.mark.parametrize("value", wrappers.STORED_TYPES)
def test_kernels_that_convert_stored_values_compile(value):
    for group in filter(simt.converts, simt.simt_groups()):
        assert_compiles(simt.simt_program("CUDA", group, value, "i4"), "sm_90")
