"""Where arrays are in memory does not change a bit of a solve."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.omp.executor import OmpExecutor

#: Bytes of the memory that arrays are put into one after the other.
POOL = 1 << 18


class Packed:
    """Allocates arrays one below the other, a few elements apart."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.memory = rng, np.zeros(POOL, np.uint8)
        self.top = POOL

    def __call__(self, shape, dtype):
        kind = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        self.top -= count * kind.itemsize + 8 * int(self.rng.integers(0, 3))
        self.top -= (self.memory.ctypes.data + self.top) % min(kind.itemsize, 8)
        assert self.top >= 0
        return self.memory[self.top :][: count * kind.itemsize].view(kind).reshape(shape)


def placing(patch: pytest.MonkeyPatch, rng: np.random.Generator) -> Packed:
    """Let an executor allocate that way."""
    placed = Packed(rng)
    patch.setattr(OmpExecutor, "allocate", lambda self, *given: placed(*given))
    patch.setattr(OmpExecutor, "zeros", lambda self, *given: placed(*given))
    return placed


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    "name", ["Cg", "Fcg", "Bicgstab", "Cgs", "Tfqmr", "Minres", "Idr", "Gmres"]
)
def test_neighbours_in_memory_leave_the_bits_of_a_solve(name, dtype, rng, monkeypatch):
    for n in (8, 9, 14, 15, 31):
        a = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
        a = a if dtype.startswith("c") else a.real
        a = (a + a.conj().T + 4 * np.sqrt(n) * np.eye(n)).astype(dtype)
        sides = [rng.standard_normal(n).astype(dtype) for _ in range(2)]
        found = set()
        for _ in range(6):
            with monkeypatch.context() as patch:
                placed = placing(patch, rng)
                b, x0 = (placed(v.shape, v.dtype) + v for v in sides)
                A = wl.Csr(sp.csr_array(a), executor="omp:1")
                solver = getattr(wl.solvers, name)(A, M="jacobi", maxiter=20, rtol=1e-6)
                found.add(solver.solve(b, x0).x.tobytes())
        assert len(found) == 1, n
