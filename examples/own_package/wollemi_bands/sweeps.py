"""Two sweeps of weighted Jacobi as a preconditioner."""

import wollemi as wl
from wollemi.extend import Temporary, inverse_diagonal, vector


class Sweeps(wl.preconditioners.Preconditioner):
    """Two sweeps of weighted Jacobi: u = w D^-1 x, M x = u + w D^-1 (x - A u)."""

    parts = ("A", "inverse")

    def __init__(self, A, weight=0.8, *, executor=None):
        if not 0 < weight < 2:
            raise wl.errors.InvalidArgument(f"weight: expected 0 < weight < 2, got {weight}")
        self.weight = float(weight)
        super().__init__(A, executor=executor)

    def setup(self, A):
        """Make the parts."""
        self.A, self.inverse = A, inverse_diagonal(A, "Sweeps")
        self._temporaries = Temporary(), Temporary()

    def apply_block(self, x, y, alpha, beta):
        """Set y = alpha M x + beta y."""
        w, run = self.weight, self.executor.run
        first, second = self._temporaries
        n, k = x.shape
        with (
            first.block(self.executor, n, k, self.dtype) as u,
            second.block(self.executor, n, k, self.dtype) as r,
        ):
            self.inverse.apply_block(x, u, w, 0.0)
            run(vector.axpby, x, r, 1.0, 0.0)
            self.A.apply_block(u, r, -1.0, 1.0)
            self.inverse.apply_block(r, u, w, 1.0)
            run(vector.axpby, u, y, alpha, beta)
