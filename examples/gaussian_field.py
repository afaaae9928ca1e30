"""Fit a Gaussian random field to measurements by maximum likelihood.

    python examples/gaussian_field.py [steps]

A field on a grid has the precision matrix ``Q = tau (K + kappa^2 I)``, with the Laplacian ``K`` of
the grid: a Gaussian Markov random field. The likelihood of a sample ``x`` is
``(log det Q - x^T Q x) / 2``. Its gradient needs the entries of the inverse of ``Q`` at the
positions of ``Q`` alone, which follow from sparse factors by Takahashi's equations. Needs PyTorch.
"""

import sys

import numpy as np
import torch

import wollemi as wl
from wollemi.interop.torch import log_determinant

CELLS, SAMPLES, TAU, KAPPA = 24, 40, 2.0, 0.6


def laplacian(n: int) -> np.ndarray:
    """Return the Laplacian of an n x n grid as a dense array."""
    line = np.diag(np.r_[1.0, np.full(n - 2, 2.0), 1.0]) - np.eye(n, k=1) - np.eye(n, k=-1)
    return np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)


def samples(Q: np.ndarray, count: int) -> np.ndarray:
    """Return samples of the field, one a column: ``L^-T`` times noise, with ``Q = L L^T``."""
    noise = np.random.default_rng(1).standard_normal((Q.shape[0], count))
    return np.linalg.solve(np.linalg.cholesky(Q).T, noise)


def main(steps: int = 60) -> None:
    dense = laplacian(CELLS)
    K = wl.Csr(dense + np.eye(CELLS**2))  # the pattern has the diagonal
    on_diagonal = torch.from_numpy(np.repeat(np.arange(K.shape[0]), np.diff(K.indptr)) == K.indices)
    stencil = torch.from_numpy(np.array(K.data)) - on_diagonal.double()
    x = samples(TAU * (dense + KAPPA**2 * np.eye(CELLS**2)), SAMPLES)
    # The mean of x^T Q x needs the mean products of neighbors alone.
    moments = torch.from_numpy(np.asarray(wl.sddmm(K, x, x).data) / SAMPLES)

    logarithms = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logarithms], max_iter=steps, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        tau, kappa = logarithms.exp()
        values = tau * (stencil + kappa**2 * on_diagonal)
        negative = (moments * values).sum() - log_determinant(K, values=values)
        negative.backward()
        return negative

    optimizer.step(loss)
    tau, kappa = logarithms.exp().tolist()
    print(f"tau   {tau:.3f}, of the samples {TAU}")
    print(f"kappa {kappa:.3f}, of the samples {KAPPA}")
    assert abs(tau / TAU - 1) < 0.05
    assert abs(kappa / KAPPA - 1) < 0.1


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
