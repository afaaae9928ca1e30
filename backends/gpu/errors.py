"""Translate errors of CUDA and CuPy to errors of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import DeviceError, OutOfDeviceMemory, WollemiError

if TYPE_CHECKING:
    from .types import DeviceHandle

#: Error codes (cudaError_t) after which the process cannot use the device any more.
REASONS_OF_LOST_DEVICE = {
    700: "a kernel accessed memory that is not its own",
    702: "a kernel ran longer than the system allows",
    719: "a kernel failed",
    46: "another process uses the device, or it is not available",
    100: "there is no device any more",
    214: "the memory had an error that cannot be corrected",
    999: "the driver does not know",
}

_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB")


def human(nbytes: float) -> str:
    """Format a number of bytes for messages."""
    for unit in _SIZES:
        if nbytes < 1024 or unit == _SIZES[-1]:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1024
    raise AssertionError


class Here:
    """A context with a current device that translates errors.

    It is a class, because a product of a small matrix takes only as long as a few generators.

    Parameters
    ----------
    device : cupy.cuda.Device or None
        The device to make current; None if it is current already.
    where : str
        The executor's name, for messages.
    label : str
        The action, for messages.
    nbytes : int
        The requested amount of memory, if known.
    """

    __slots__ = ("device", "label", "nbytes", "where")

    def __init__(
        self, device: DeviceHandle | None, where: str, label: str, nbytes: int = 0
    ) -> None:
        self.device, self.where, self.label, self.nbytes = device, where, label, nbytes

    def __enter__(self) -> None:
        if self.device is None:
            return
        try:
            self.device.__enter__()
        except Exception as error:
            self._translate(error)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.device is not None:
            self.device.__exit__(kind, error, trace)
        if isinstance(error, Exception) and not isinstance(error, WollemiError):
            self._translate(error)

    def _translate(self, error: Exception) -> None:
        made = translate(error, self.where, self.label, self.nbytes)
        if made is not None:
            raise made from error


def translate(error: Exception, where: str, label: str, nbytes: int = 0) -> DeviceError | None:
    """Translate an error of CUDA or CuPy; return None for other errors."""
    kind = type(error).__name__
    if kind == "OutOfMemoryError":
        asked = f"{human(nbytes)} for " if nbytes else ""
        return OutOfDeviceMemory(
            f"{where}: no memory left: {asked}{label} ({error}). Free arrays that are not needed, "
            "let CuPy's pool give back label it keeps "
            "(cupy.get_default_memory_pool().free_all_blocks()), or split the problem"
        )
    if kind not in ("CUDARuntimeError", "CUDADriverError"):
        return None
    status = int(getattr(error, "status", -1))
    if status == 2:
        return OutOfDeviceMemory(
            f"{where}: no memory left for {label}: {error}. Free arrays that are not needed"
        )
    why = REASONS_OF_LOST_DEVICE.get(status)
    remedy = (
        f"{why}; the process must be started anew to use the device again"
        if why
        else "see the error above; an earlier kernel may be the cause"
    )
    return DeviceError(f"{where}: {label} failed: {error} ({remedy})")
