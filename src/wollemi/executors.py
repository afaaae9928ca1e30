"""The executors by class name; calling one of them loads its backend."""

from __future__ import annotations

from .core.executor import Executor
from .core.registry import backend


def ReferenceExecutor() -> Executor:
    """Return the executor that defines correct results: NumPy, one operation at a time."""
    return backend("reference").make("")


def OmpExecutor(threads: int | None = None) -> Executor:
    """Return an executor on the cores of this machine.

    Parameters
    ----------
    threads : int, optional
        The number of threads; by default, all cores that this process may use.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.OmpExecutor(threads=2)
    <OmpExecutor omp:2>
    """
    return backend("omp").make("" if threads is None else str(threads))


def CudaExecutor(device: int = 0) -> Executor:
    """Return the executor of an NVIDIA GPU.

    Raises
    ------
    ExecutorUnavailable
        If there is none, or if its driver is missing; the message says how to install it.
    """
    return backend("cuda").make(str(device))


def HipExecutor(device: int = 0) -> Executor:
    """Return the executor of an AMD GPU.

    Raises
    ------
    ExecutorUnavailable
        If there is none, or if its driver is missing; the message says how to install it.
    """
    return backend("hip").make(str(device))


def DpcppExecutor(device: str = "default") -> Executor:
    """Return the executor of a SYCL device.

    Parameters
    ----------
    device : str
        ``default``, ``gpu``, ``cpu``, or a selector such as ``level_zero:gpu:0``.

    Raises
    ------
    ExecutorUnavailable
        If there is none, or if its driver is missing; the message says how to install it.
    """
    return backend("dpcpp").make("" if device == "default" else device)
