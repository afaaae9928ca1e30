"""Find the masses of a string of beads from the tones that it makes: an inverse eigenvalue problem.

    python examples/inverse_eigenvalues.py [steps]

The squares of the frequencies of ``n`` beads on a string are the eigenvalues of a tridiagonal
matrix, ``M^-1/2 K M^-1/2``. Masses that are symmetric about the middle follow from the eigenvalues
(Hochstadt 1974). Newton's method for the lowest tones needs the derivatives of the eigenvalues,
which JAX computes through ``eigsh``. Needs JAX.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import wollemi as wl
from wollemi.interop.jax import eigsh

jax.config.update("jax_enable_x64", True)

BEADS, TONES = 12, 6


def main(steps: int = 8) -> None:
    K = 2 * np.eye(BEADS) - np.eye(BEADS, k=1) - np.eye(BEADS, k=-1)
    A = wl.Csr(K)
    rows = np.repeat(np.arange(BEADS), np.diff(A.indptr))
    columns, stiffness = np.asarray(A.indices), jnp.asarray(A.data)

    @jax.jit
    def tones(half: jax.Array) -> jax.Array:
        """Return the lowest squares of frequencies for the masses of one half."""
        masses = jnp.exp(jnp.concatenate([half, half[::-1]]))
        values = stiffness / jnp.sqrt(masses[rows] * masses[columns])
        return eigsh(A, k=TONES, which="SA", values=values)[0]

    wanted = jnp.log(jnp.array([1.0, 1.3, 0.9, 1.1, 1.2, 0.8]))
    heard = tones(wanted)
    half = jnp.zeros(TONES)
    derivative = jax.jit(jax.jacobian(tones))
    for step in range(steps):
        misfit = tones(half) - heard
        print(f"step {step}: misfit {float(jnp.abs(misfit).max()):.2e}")
        half = half - jnp.linalg.solve(derivative(half), misfit)
    error = float(jnp.abs(jnp.exp(half) - jnp.exp(wanted)).max())
    print(f"masses {np.round(np.exp(half), 4)}, largest error {error:.1e}")
    assert error < 1e-6


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
