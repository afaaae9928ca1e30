"""State why HIP is unavailable, in one line that names the package to install."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from collections.abc import Sequence
from functools import cache
from typing import Any

from ...core.errors import ExecutorUnavailable
from ..gpu.distributions import cupy_distributions

_INSTALL = 'pip install "wollemi[hip]"'
_INSTALL_ROCM = "install ROCm 7 (https://rocm.docs.amd.com, package rocm-hip-runtime)"

#: Names of the HIP runtime of ROCm 7, with which CuPy's wheel is linked.
RUNTIMES = ("libamdhip64.so.7", "libamdhip64.so")


def has_rocm() -> bool:
    """Return whether ROCm's runtime loads."""
    for library in RUNTIMES:
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return True
    return False


def reason(
    *, has_cupy: bool, loads: str, distributions: Sequence[str], is_hip: bool, rocm: bool
) -> str | None:
    """Return why HIP cannot be used, or None if it can.

    Parameters
    ----------
    has_cupy : bool
        Whether a package ``cupy`` is installed.
    loads : str
        The error message of its import; empty if the import succeeded.
    distributions : sequence of str
        The installed distributions that provide ``cupy``.
    is_hip : bool
        Whether CuPy is built for ROCm.
    rocm : bool
        Whether ROCm's runtime is installed.
    """
    if not has_cupy and not rocm:
        return f"neither ROCm nor CuPy for it is installed: {_INSTALL_ROCM}, then {_INSTALL}"
    if not has_cupy:
        return f"CuPy for ROCm is not installed: {_INSTALL}"
    if len(distributions) > 1:
        return (
            f"{' and '.join(distributions)} are installed and break each other: "
            f"uninstall all of them, then {_INSTALL}"
        )
    named = ", ".join(distributions) or "cupy"
    if loads and not rocm:
        return f"ROCm was not found, and {named} needs it ({loads}): {_INSTALL_ROCM}"
    if loads:
        return f"{named} does not load: {loads}; is it built for another ROCm? {_INSTALL}"
    if not is_hip:
        wanted = _INSTALL if rocm else f"{_INSTALL_ROCM}, {_INSTALL}"
        return (
            f"the CuPy that is installed ({named}) is built for CUDA: uninstall it, then {wanted}"
        )
    return None


@cache
def _checked() -> Any:
    """Return CuPy's runtime after checking that HIP can be used."""
    runtime: Any = None
    loads = ""
    has_cupy = importlib.util.find_spec("cupy") is not None
    if has_cupy:
        try:
            runtime = importlib.import_module("cupy.cuda").runtime
        except ImportError as error:
            loads = str(error).strip().splitlines()[0] if str(error).strip() else "ImportError"
    why = reason(
        has_cupy=has_cupy,
        loads=loads,
        distributions=cupy_distributions(),
        is_hip=bool(runtime is not None and runtime.is_hip),
        rocm=has_rocm(),
    )
    if why is not None:
        raise ExecutorUnavailable(f"hip: {why}")
    return runtime


def require_compiler() -> None:
    """Raise ExecutorUnavailable unless a CuPy for ROCm, which brings HIPRTC, is installed."""
    _checked()


def count() -> int:
    """Return the number of GPUs.

    Raises
    ------
    ExecutorUnavailable
        If there are no GPUs; the message says why.
    """
    return count_of(_checked())


def count_of(runtime: Any) -> int:
    """Return the number of devices that a CuPy for ROCm reports."""
    remedy = (
        "is there /dev/kfd, is the user in the groups render and video (in a container: "
        "--device /dev/kfd --device /dev/dri), and is HIP_VISIBLE_DEVICES set?"
    )
    try:
        result = int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        raise ExecutorUnavailable(
            f"hip: ROCm is here and shows no device: {error}; {remedy}"
        ) from error
    if result == 0:
        raise ExecutorUnavailable(f"hip: ROCm is here and shows no device; {remedy}")
    return result


def require(device: int) -> None:
    """Raise ExecutorUnavailable unless there is a device of this number."""
    found = count()
    if not 0 <= device < found:
        have = "hip:0" if found == 1 else f"hip:0 to hip:{found - 1}"
        raise ExecutorUnavailable(f"there is no hip:{device}; this machine has {have}")
