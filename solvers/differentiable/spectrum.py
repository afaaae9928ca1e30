"""Differentiable eigenpairs and singular triplets: simple ones, with a normalized sign."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ...core.errors import InvalidArgument, InvalidMatrix
from ...core.executor import Array
from ...core.formats import Csr
from ..scipy_api.eigen import eigsh, svds

#: Smallest gap of eigenvalues, relative to the largest computed one: with a smaller gap, the
#: vectors are not determined well enough for derivatives.
GAP = {"float32": 1e-3, "float64": 1e-7}


def describe_eigsh(k: int, which: str, sigma: float | None) -> str:
    """Return the description of the wanted eigenpairs as text."""
    if which not in ("LM", "SM", "LA", "SA"):
        raise InvalidArgument(f"which: expected LM, SM, LA or SA, got {which!r}")
    return json.dumps({"k": _counted(k), "which": which, "sigma": sigma})


def describe_svds(k: int, which: str) -> str:
    """Return the description of the wanted singular triplets as text."""
    if which not in ("LM", "SM"):
        raise InvalidArgument(f"which: expected LM or SM, got {which!r}")
    return json.dumps({"k": _counted(k), "which": which})


def count_of(request: str) -> int:
    """Return the number of pairs in a description."""
    return int(json.loads(request)["k"])


def _counted(k: int) -> int:
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidArgument(f"k: expected a positive integer, got {k!r}")
    return int(k)


def eigenpairs(A: Csr, request: str) -> Array:
    """Return eigenvectors, shape (n + 1, k), with ascending eigenvalues as the last row.

    Raises
    ------
    InvalidMatrix
        If a wanted eigenvalue is nearly equal to another one.
    InvalidArgument
        If there are fewer pairs.
    """
    description = json.loads(request)
    n, k, which, sigma = A.shape[0], description["k"], description["which"], description["sigma"]
    _require_fewer(k, n)
    # one more pair: its distance from the others shows whether these are simple
    values, vectors = eigsh(A, k=min(k + 1, n - 1), which=which, sigma=sigma)
    values = _on_host(A, values)
    measure = _rank(values, which, sigma)
    keep = np.sort(np.argsort(-measure, kind="stable")[:k])
    _refuse_degenerate(A, values, np.sort(values), "eigenvalues")
    return _packed(A, vectors, values, keep)


def _rank(values: Any, which: str, sigma: float | None) -> Any:
    """Return numbers that are largest for the most wanted eigenvalues."""
    if sigma is not None:
        values = 1 / (values - sigma)
    return {
        "LM": np.abs(values), "SM": -np.abs(values), "LA": values, "SA": -values,
    }[which]  # fmt: skip


def singular_triplets(A: Csr, request: str) -> Array:
    """Return ``(u, v) / sqrt(2)`` with singular values as the last row, shape (m + n + 1, k).

    Raises
    ------
    InvalidMatrix
        If a singular value is nearly 0, or nearly equal to another one.
    """
    description = json.loads(request)
    (m, n), k, which = A.shape, description["k"], description["which"]
    _require_fewer(k, min(m, n))
    u, s, vt = svds(A, k=min(k + 1, min(m, n) - 1), which=which)
    s = _on_host(A, s)
    keep = np.sort(np.argsort(-s if which == "LM" else s, kind="stable")[:k])
    # eigenvalues of [[0, A], [A^T, 0]]: plus and minus the singular values
    ordered = np.sort(np.concatenate([s, -s[keep]]))
    _refuse_degenerate(A, s, ordered, "singular values, or one and 0,")
    xp = A.executor.xp
    vectors = xp.concatenate([xp.asarray(u), xp.asarray(vt).T]) / np.sqrt(2).astype(A.dtype)
    return _packed(A, vectors, s, keep)


def _require_fewer(k: int, n: int) -> None:
    if k >= n:
        raise InvalidArgument(f"k: expected fewer than {n}, the smaller dimension of A, got {k}")


def _on_host(A: Csr, values: Any) -> Any:
    return values if isinstance(values, np.ndarray) else A.executor.to_host(values)


def _refuse_degenerate(A: Csr, values: Any, ordered: Any, label: str) -> None:
    size = max(float(np.abs(values).max()), np.finfo(values.dtype).tiny)
    gaps = np.diff(ordered)
    if gaps.size and gaps.min() <= GAP[A.dtype.name] * size:
        at = int(gaps.argmin())
        raise InvalidMatrix(
            f"two {label} are equal to working precision ({ordered[at]:.6g} and "
            f"{ordered[at + 1]:.6g}): their vectors have no derivatives. Ask for k of which none "
            "is multiple, or break the symmetry of the matrix"
        )


def _packed(A: Csr, vectors: Any, values: Any, keep: Any) -> Array:
    """Return vectors, with a positive component of largest modulus, and their values."""
    on = A.executor
    xp = on.xp
    vectors = xp.asarray(vectors)[:, keep]
    largest = xp.abs(vectors).argmax(axis=0)
    signs = xp.sign(vectors[largest, xp.arange(len(keep))])
    last = on.from_host(np.ascontiguousarray(values[keep], A.dtype))
    return xp.concatenate([vectors * signs, last[None]]).astype(A.dtype)
