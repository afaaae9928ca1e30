"""The inverse of the coarsest level: by blocks, by LAPACK, and the pseudo-inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wollemi.solvers.preconditioners.multigrid import coarsest


def matrix(name: str, n: int) -> Any:
    """Return a matrix of a kind."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, n))
    if name == "definite":
        return X @ X.T / n + np.eye(n)
    if name == "complex":
        return X + 1j * rng.standard_normal((n, n)) + n * np.eye(n)
    if name == "exchanged":  # without pivots on the diagonal
        return np.eye(n)[rng.permutation(n)]
    line = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    line[0, 0] = line[-1, -1] = 1  # the constant vector becomes zero
    return line


@pytest.mark.parametrize("n", [1, 79, 80, 193, 256])
@pytest.mark.parametrize("name", ["definite", "complex", "exchanged"])
def test_inverses_of_all_sizes(name: str, n: int) -> None:
    S = matrix(name, n)
    np.testing.assert_allclose(coarsest.inverted(S) @ S, np.eye(n), atol=1e-12)


@pytest.mark.parametrize("n", [20, 100])
def test_a_singular_matrix_has_its_pseudo_inverse(n: int) -> None:
    S = matrix("singular", n)
    np.testing.assert_allclose(S @ coarsest.inverted(S) @ S, S, atol=1e-9)


def test_definite_matrices_are_inverted_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """LAPACK would use all threads for some hundred rows, which wait for each other."""
    largest = []
    inverse = np.linalg.inv

    def noting(S: Any) -> Any:
        largest.append(S.shape[0])
        return inverse(S)

    monkeypatch.setattr(np.linalg, "inv", noting)
    coarsest.inverted(matrix("definite", 250))
    assert max(largest) == coarsest.BLOCK
