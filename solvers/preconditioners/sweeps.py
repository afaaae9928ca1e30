"""Triangular solves by sweeps: a few products instead of sequential substitution."""

from __future__ import annotations

from ...core.executor import Array
from ...core.formats import Csr
from ...core.operations import vector


def solve_by_sweeps(
    N: Csr, sweeps: int, b: Array, z: Array, free: Array, scale: Array | None = None
) -> None:
    """Solve ``(I - N) z = b`` by Jacobi sweeps ``z = b + N z``, which begin with ``b``.

    A product and the element-wise operation after it are one kernel in the loops of GPUs, so that a
    sweep takes as many launches as its product.

    Parameters
    ----------
    N : Csr, shape (n, n)
        A triangle without its diagonal: as many sweeps as it has levels are exact.
    sweeps : int
        How many, at least 1.
    b, z, free : array, shape (n, k)
        The right-hand sides, which stay as they are, the solution, and memory for another one; no
        two share memory.
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
