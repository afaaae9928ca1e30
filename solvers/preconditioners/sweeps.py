"""Triangular solves by sweeps: a few products instead of sequential substitution."""

from __future__ import annotations

from ...core.executor import Array
from ...core.formats import Csr
from ...core.operations import vector


def solve_by_sweeps(
    N: Csr, sweeps: int, b: Array, z: Array, free: Array, scale: Array | None = None
) -> None:
    """Solve ``(I - N) z = b`` by Jacobi sweeps ``z = b + N z``, from ``z = b``.

    In loops of GPUs, a product and the subsequent element-wise operation are one kernel, so that a
    sweep takes as many launches as its product.

    Parameters
    ----------
    N : Csr, shape (n, n)
        A strictly triangular matrix: sweeps are exact if they are as many as its levels.
    sweeps : int
        Number of sweeps, at least 1.
    b, z, free : array, shape (n, k)
        The right-hand sides, which are not changed, the solution, and memory for another one; no
        two of them share memory.
    scale : array, shape (n,), optional
        The factors of the solution, row by row.

    References
    ----------
    H. Anzt, E. Chow, J. Dongarra, Iterative sparse triangular solves for preconditioning, Euro-Par
    2015, LNCS 9233.
    """
    run, before = N.executor.run, b
    for left in reversed(range(sweeps)):
        to = free if left % 2 else z
        N._apply(before, to, 1.0, 0.0)
        if left or scale is None:
            run(vector.axpby, b, to, 1.0, 1.0)
        else:
            run(vector.scaled_sum, scale, b, to)
        before = to
