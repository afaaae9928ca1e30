"""Mixed precision: nearly all of the work in float32, and an answer that is right in float64."""

import numpy as np
import scipy.sparse as sp

import wollemi as wl

line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50))
A = wl.Csr(sp.csr_array(sp.kronsum(line, line)))
x = np.sin(np.arange(2500))
b = A @ x


def relative_residual(found: np.ndarray) -> float:
    """Return the norm of b - A x in double precision, relative to that of b."""
    return float(np.linalg.norm(b - A @ found.astype(float)) / np.linalg.norm(b))


# float32 alone ends where its digits end, and says that it did not get further
single = wl.solvers.Cg(A.astype("float32"), rtol=1e-12).solve(b.astype("float32"))
print(f"float32 alone:    {relative_residual(single.x):.0e}, {single.reason}")

# each correction is computed in float32, the residual between corrections in float64
inner = wl.solvers.Cg(rtol=1e-4, dtype="float32")
refined = wl.solvers.Ir(A, inner=inner, rtol=1e-12).solve(b)
print(
    f"with refinement:  {relative_residual(refined.x):.0e}, {refined.iterations} corrections, "
    f"{refined.reason}"
)
assert not single.converged and refined.converged
assert relative_residual(refined.x) <= 1e-12 * (1 + 1e-6)
