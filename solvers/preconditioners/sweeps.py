"""Triangles solved by sweeps: a few products in place of one row after the other."""

from __future__ import annotations

from ...core.executor import Array
from ...core.formats import Csr
from ...core.operations import vector


def solve_by_sweeps(N: Csr, sweeps: int, b: Array, z: Array, free: Array) -> None:
    """Solve ``(I - N) z = b`` in ``b`` by Jacobi sweeps ``z = b + N z``, which begin with ``b``.

    Parameters
    ----------
    N : Csr, shape (n, n)
        A triangle without its diagonal: as many sweeps as it has levels are exact.
    sweeps : int
        How many, at least 1. The last one adds to ``b`` itself, so that it needs no copy.
    b, z, free : array, shape (n, k)
        The right-hand sides and the solution, and memory for two others.

    References
    ----------
    H. Anzt, E. Chow, J. Dongarra, Iterative sparse triangular solves for preconditioning, Euro-Par
    2015, LNCS 9233.
    """
    before = b
    for sweep in range(1, max(sweeps, 2)):
        N.executor.run(vector.axpby, b, z, 1.0, 0.0)
        if sweep < sweeps:
            N._apply(before, z, 1.0, 1.0)
        before, z, free = z, free, z
    N._apply(before, b, 1.0, 1.0)
