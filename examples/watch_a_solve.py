"""Watch a solve: residuals as they come, and a logger of your own."""

import sys

import numpy as np
import scipy.sparse as sp

import wollemi as wl


class Rate(wl.loggers.Logger):
    """Prints by how much ten iterations reduce the residual."""

    every = 10  # in between, the executor is not interrupted

    def start(self, snapshot):
        self.last = snapshot.norm[0]

    def iteration(self, snapshot):
        norm = snapshot.norm[0]
        print(
            f"  iteration {snapshot.iteration:3d}: ten iterations reduce by {norm / self.last:.2f}"
        )
        self.last = norm

    def finish(self, result):
        print(f"  {result.reason}")


line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(30, 30))
A = wl.Csr(sp.csr_array(sp.kronsum(line, line)))
b = np.ones(900)
solver = wl.solvers.Cg(A, rtol=1e-8)

print("a logger of your own:")
solver.solve(b, loggers=[Rate()])

# true_residual=True also computes b - A x: with it you see whether the solver's own norm is right
print("as a stream of lines:")
stream = wl.loggers.Stream(sys.stdout, every=20, true_residual=True)
counts = wl.loggers.Counts()
result = solver.solve(b, loggers=[stream, counts])
print(f"{counts.applications['A']} products with A, {counts.allocated_bytes} bytes allocated")
assert result.converged and counts.applications["A"] >= result.iterations
