"""A described GPU: its programs can be generated and compiled on machines without it."""

from __future__ import annotations

from typing import NamedTuple

from ..backends.cuda.runtime.device import CudaDevice


class TargetSpec(NamedTuple):
    """The properties of a GPU on which the text of programs depends."""

    capability: tuple[int, int]
    multiprocessors: int
    #: Shared memory available to a block, in bytes.
    shared_bytes: int


#: The GPUs with precompiled kernels in wheels: A100, H100 and H200, B200.
TARGETS = {
    "sm_80": TargetSpec((8, 0), 108, 163 << 10),
    "sm_90": TargetSpec((9, 0), 132, 227 << 10),
    "sm_100": TargetSpec((10, 0), 148, 227 << 10),
}


class Target(CudaDevice):
    """A GPU that is only described: it generates programs, and runs none.

    Parameters
    ----------
    name : str
        One of :data:`TARGETS`.

    Examples
    --------
    >>> from wollemi.precompile.target import Target
    >>> Target("sm_90").architecture
    'sm_90a'
    """

    def __init__(self, name: str) -> None:  # replaces GpuDevice's, which queries CuPy
        known = TARGETS[name]
        major, minor = known.capability
        self.name = name
        self.facts = {"major": major, "minor": minor}
        self.warp = 32
        self.multiprocessors = known.multiprocessors
        self.shared_bytes = known.shared_bytes
