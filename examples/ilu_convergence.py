"""The number of sweeps that an incomplete factorization needs, compared with exact factors.

A sweep improves all entries of the factors at once (Chow and Patel), so that no row waits for
another. The question is how many sweeps are worth their time; the picture answers it.
"""

import numpy as np
import scipy.sparse as sp

import wollemi as wl

wind = sp.diags_array([-1.8, 2.0, -0.2], offsets=[-1, 0, 1], shape=(50, 50))
A = wl.Csr(sp.csr_array(sp.kronsum(wind, wind)))
b = np.ones(A.shape[0])


def iterations(M) -> int:
    """Return the iterations of BiCGSTAB with a preconditioner."""
    result = wl.solvers.Bicgstab(A, M, rtol=1e-8).solve(b)
    assert result.converged
    return result.iterations


exact = wl.preconditioners.Ilu(A, factor_sweeps="exact", apply="exact")
target = exact @ b
sweeps = range(1, 9)
errors, counts = [], []
for number in sweeps:
    M = wl.preconditioners.Ilu(A, factor_sweeps=number, apply="exact")
    errors.append(np.linalg.norm(M @ b - target) / np.linalg.norm(target))
    counts.append(iterations(M))
    print(f"{number} sweeps: differs by {errors[-1]:.1e}, {counts[-1]} iterations of BiCGSTAB")
print(f"exact factors: {iterations(exact)} iterations")
assert errors[-1] < errors[0]
assert counts[-1] <= iterations(exact) + 2

try:
    from matplotlib.figure import Figure
except ImportError:
    raise SystemExit from None
figure = Figure(figsize=(7.5, 3.0), layout="constrained")
left, right = figure.subplots(1, 2)
left.semilogy(sweeps, errors, "ko-", ms=4)
left.set(xlabel="sweeps", title="difference to the exact factors")
right.plot(sweeps, counts, "ko-", ms=4, label="factors by sweeps")
right.axhline(iterations(exact), color="0.5", ls="--", label="exact factors")
right.set(xlabel="sweeps", title="iterations of BiCGSTAB", ylim=(0, None))
right.legend(frameon=False)
figure.savefig("ilu-convergence.png", dpi=110)
