"""What CUDA and CuPy raise, in the words of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...core.errors import DeviceError, OutOfDeviceMemory, WollemiError

#: Codes after which a process cannot use the device any more (cudaError_t).
LOST = {
    700: "a kernel accessed memory that is not its own",
    702: "a kernel ran longer than the system allows",
    719: "a kernel failed",
    46: "the device is in use by somebody else, or not available",
    100: "there is no device any more",
    214: "the memory had an error that cannot be corrected",
    999: "the driver does not know",
}

_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB")


def human(nbytes: float) -> str:
    """Return a number of bytes for people."""
    for unit in _SIZES:
        if nbytes < 1024 or unit == _SIZES[-1]:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1024
    raise AssertionError


@contextmanager
def translated(where: str, what: str, nbytes: int = 0) -> Iterator[None]:
    """Raise what CUDA and CuPy raise as OutOfDeviceMemory or DeviceError.

    Parameters
    ----------
    where : str
        The executor's name.
    what : str
        What was being done.
    nbytes : int
        How much memory it asked for, if that is known.
    """
    try:
        yield
    except WollemiError:
        raise
    except Exception as error:
        made = translate(error, where, what, nbytes)
        if made is None:
            raise
        raise made from error


def translate(error: Exception, where: str, what: str, nbytes: int = 0) -> DeviceError | None:
    """Return an error of CUDA or CuPy as ours; None if it is neither's."""
    kind = type(error).__name__
    if kind == "OutOfMemoryError":
        asked = f"{human(nbytes)} for " if nbytes else ""
        return OutOfDeviceMemory(
            f"{where}: no memory left: {asked}{what} ({error}). Free arrays that are not needed, "
            "let CuPy's pool give back what it keeps "
            "(cupy.get_default_memory_pool().free_all_blocks()), or split the problem"
        )
    if kind not in ("CUDARuntimeError", "CUDADriverError"):
        return None
    status = int(getattr(error, "status", -1))
    if status == 2:
        return OutOfDeviceMemory(
            f"{where}: no memory left for {what}: {error}. Free arrays that are not needed"
        )
    why = LOST.get(status)
    remedy = (
        f"{why}; the process must be started anew to use the device again"
        if why
        else "see the error above; an earlier kernel may be the cause"
    )
    return DeviceError(f"{where}: {what} failed: {error} ({remedy})")
