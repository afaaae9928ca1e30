"""State why CUDA is unavailable, in one line that names the package to install."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from collections.abc import Sequence
from functools import cache
from typing import Any

from ....core.errors import ExecutorUnavailable
from ...gpu.distributions import cupy_distributions

#: The version of the oldest CUDA with WHILE nodes in graphs.
OLDEST_CUDA = 12040

_INSTALL = 'pip install "wollemi[cuda]"'

_NO_DRIVER = (
    "no NVIDIA driver was found (libcuda.so.1): install the driver of your GPU, and in a "
    "container start it with access to the GPU (docker run --gpus all)"
)


def driver_version() -> int | None:
    """Return the newest CUDA version that the driver supports, as 13000; None without a driver."""
    for library in ("libcuda.so.1", "nvcuda.dll"):
        try:
            driver = ctypes.CDLL(library)
        except OSError:
            continue
        version = ctypes.c_int()
        if driver.cuDriverGetVersion(ctypes.byref(version)) == 0:
            return version.value
    return None


def spelled(version: int) -> str:
    """Format 13000 as ``13.0``."""
    return f"{version // 1000}.{version % 1000 // 10}"


def reason(
    *,
    has_cupy: bool,
    has_bindings: bool,
    distributions: Sequence[str],
    is_hip: bool,
    built_for: int,
    driver: int | None,
) -> str | None:
    """Return why CUDA cannot be used, or None if it can."""
    if not has_cupy:
        if driver is None:
            return f"{_NO_DRIVER}, and install CuPy: {_INSTALL}"
        extra = "cuda" if driver >= 13000 else "cuda12"
        return f'CuPy is not installed: pip install "wollemi[{extra}]"'
    if len(distributions) > 1:
        return (
            f"{' and '.join(distributions)} are installed and break each other: "
            f"uninstall all of them, then {_INSTALL}"
        )
    if is_hip:
        return (
            f"the CuPy that is installed ({', '.join(distributions)}) is built for ROCm: "
            f"uninstall it, then {_INSTALL}"
        )
    if driver is None:
        return _NO_DRIVER
    if driver < OLDEST_CUDA:
        return (
            f"the NVIDIA driver knows CUDA {spelled(driver)}; "
            f"{spelled(OLDEST_CUDA)} or newer is needed: update the driver"
        )
    if driver // 1000 < built_for // 1000:
        return (
            f"CuPy is built for CUDA {spelled(built_for)} and the NVIDIA driver knows CUDA "
            f"{spelled(driver)}: update the driver, or uninstall "
            f"{', '.join(distributions) or 'cupy'}, then "
            f'pip install "wollemi[cuda{driver // 1000}]"'
        )
    if not has_bindings:
        return f"cuda.bindings is not installed: {_INSTALL}"
    return None


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


@cache
def _checked() -> Any:
    """Return CuPy's runtime after checking that CUDA can be used."""
    has_cupy = _has("cupy")
    runtime: Any = None
    if has_cupy:
        try:
            runtime = importlib.import_module("cupy.cuda").runtime
        except ImportError as error:
            raise ExecutorUnavailable(
                f"CuPy ({', '.join(cupy_distributions())}) does not load: {error}; "
                f"is it built for another CUDA? {_INSTALL}"
            ) from error
    why = reason(
        has_cupy=has_cupy,
        has_bindings=_has("cuda.bindings.runtime"),
        distributions=cupy_distributions(),
        is_hip=bool(has_cupy and runtime.is_hip),
        built_for=int(runtime.runtimeGetVersion()) if has_cupy else 0,
        driver=driver_version(),
    )
    if why is not None:
        raise ExecutorUnavailable(f"cuda: {why}")
    return runtime


def count() -> int:
    """Return the number of GPUs.

    Raises
    ------
    ExecutorUnavailable
        If there are no GPUs; the message says why.
    """
    runtime = _checked()
    try:
        result = int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        raise ExecutorUnavailable(
            f"cuda: the driver shows no device: {error}; is CUDA_VISIBLE_DEVICES set?"
        ) from error
    if result == 0:
        raise ExecutorUnavailable("cuda: the driver shows no device")
    return result


def require(device: int) -> None:
    """Raise ExecutorUnavailable unless a device with this number exists."""
    found = count()
    if not 0 <= device < found:
        have = "cuda:0" if found == 1 else f"cuda:0 to cuda:{found - 1}"
        raise ExecutorUnavailable(f"there is no cuda:{device}; this machine has {have}")
