"""Processes started by a launcher: torchrun, a SLURM batch script, or a program."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import ExecutorUnavailable, InvalidArgument
from ..libraries import ranks_handler

if TYPE_CHECKING:
    from ..executor import Executor
    from .ranks import RankGroup

#: The environment variables that launchers set.
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR")


def was_launched() -> bool:
    """Return whether a launcher has given this process a rank."""
    return all(name in os.environ for name in VARIABLES)


def require_launched() -> None:
    """Raise InvalidArgument unless a launcher has given this process a rank."""
    if not was_launched():
        raise InvalidArgument(
            f"from_torch: no launcher has set {', '.join(VARIABLES)} for this process; start it by "
            "torchrun --nproc-per-node=4 solve.py, or call "
            "torch.distributed.init_process_group first"
        )


def from_torch(
    process_group: Any = None,
    executor: Executor | str | None = None,
    *,
    reproducible: bool = False,
) -> RankGroup:
    """Return the ranks of a PyTorch process group as a group; collective.

    All ranks of the process group must call this function.

    Parameters
    ----------
    process_group : torch.distributed.ProcessGroup, optional
        The ranks; by default the group of ``torch.distributed.init_process_group``, which is called
        here if needed. Any backend is accepted: hosts communicate by gloo, NVIDIA GPUs by NCCL.
    executor : Executor or str, optional
        Executor of this rank. If the host has a GPU for each of its ranks, the default is the GPU
        of number ``LOCAL_RANK``; otherwise it is ``omp`` with this rank's share of the cores.
    reproducible : bool
        As for :class:`wollemi.distributed.Group`.

    Raises
    ------
    ExecutorUnavailable
        If PyTorch is missing, or does not include gloo.
    InvalidArgument
        If this process is not in the process group, or was not started by a launcher.

    Examples
    --------
    >>> import wollemi as wl
    >>> group = wl.distributed.from_torch()  # doctest: +SKIP
    >>> A = wl.read("A.mtx", executor=group)  # doctest: +SKIP
    """
    try:
        ranks = ranks_handler()
    except ImportError:
        raise ExecutorUnavailable(
            "groups of PyTorch's processes need PyTorch: pip install torch, or start the ranks by "
            "MPI (mpiexec -n 4 python -m mpi4py solve.py)"
        ) from None
    return ranks.group_of(process_group, executor, reproducible)
