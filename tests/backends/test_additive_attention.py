"""Attention with scores that are sums of two numbers: against the definition, on every executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operations import attention as operations

from .test_rowwise import M, N, pattern
from .with_emulated import executor_of, named_and_emulated

REFERENCE = wl.executor("reference")
KINDS = (("float32", "int32"), ("float64", "int64"))
#: Heads and columns of each: whole vectors, parts of them, more than a tile, one number.
SHAPES = ((8, 8), (3, 5), (1, 1), (2, 64), (3, 100))
SLOPE = 0.2


@pytest.fixture(
    params=named_and_emulated(operations.csr_additive_attention),
    ids=str,
)
def on(request: Any) -> Any:
    return executor_of(request.param)


def drawn(shape: tuple[int, int], dtype: str) -> dict[str, np.ndarray[Any, Any]]:
    heads, columns = shape
    rng = np.random.default_rng(heads)
    sizes = {"target": (M, heads), "source": (N, heads), "D": (N, heads * columns)}
    sizes["G"] = (M, heads * columns)
    return {name: rng.standard_normal((2, *size)).astype(dtype) for name, size in sizes.items()}


def scale(x: dict[str, np.ndarray[Any, Any]]) -> float:
    """Return the largest finite number that is weighed."""
    return float(np.abs(x["D"][np.isfinite(x["D"])]).max())


def defined(A: wl.Csr, x: dict[str, np.ndarray[Any, Any]], b: int) -> dict[str, Any]:
    """Return the expected results of the operations, by dense matrices of each head in float64."""
    m, n = A.shape
    target, source, D, G = (
        x[name][b].astype(np.float64) for name in ("target", "source", "D", "G")
    )
    heads = target.shape[1]
    D, G = (y.reshape(y.shape[0], heads, -1) for y in (D, G))
    counts = np.zeros((m, n))  # an entry that is stored twice is two entries
    np.add.at(counts, (np.repeat(np.arange(m), np.diff(A.indptr)), A.indices), 1)
    z = target[:, None] + source[None]
    s = np.where(z > 0, z, SLOPE * z)
    powers = counts[:, :, None] * np.exp(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.nan_to_num(powers / powers.sum(1, keepdims=True))
        logs = np.log(powers.sum(1))
        logs[np.isneginf(logs)] = np.inf  # a row without weight
    E = np.einsum("mnh,nhc->mhc", p, D)
    of_p = np.einsum("mhc,nhc->mnh", G, D)
    mean = (G * E).sum(-1)
    of_z = p * (of_p - mean[:, None]) * np.where(z > 0, 1, SLOPE)
    return {
        "E": E.reshape(m, -1),
        "positive": np.einsum("mnh,nhc->mhc", np.where(z > 0, p, 0), D).reshape(m, -1),
        "log_totals": logs,
        "shares": np.where(z > 0, p, 0).sum(1),
        "means": mean,
        "of_target": of_z.sum(1),
        "of_source": of_z.sum(0),
        "of_D": np.einsum("mnh,mhc->nhc", p, G).reshape(n, -1),
    }


def computed(on: Any, A: wl.Csr, x: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    there = {name: on.from_host(given.copy()) for name, given in x.items()}
    target, source, D, G = there.values()
    heads, width = target.shape[2], D.shape[2]

    def made(*shape: int) -> Any:
        return on.from_host(np.full(shape, 7.0, x["D"].dtype))

    batch, matrix = D.shape[0], A if on is REFERENCE else A.to(on)
    E, positive = made(batch, M, width), made(batch, M, width)
    logs, shares = made(batch, M, heads), made(batch, M, heads)
    means, of_target = made(batch, M, heads), made(batch, M, heads)
    on.run(
        operations.csr_additive_attention, matrix, target, source, D, E, positive, logs, shares,
        SLOPE,
    )  # fmt: skip
    alone = made(batch, M, width)
    nothing = (None, None, None)
    on.run(operations.csr_additive_attention, matrix, target, source, D, alone, *nothing, SLOPE)
    eps = np.finfo(x["D"].dtype).eps  # the text of the two kernels may be contracted differently
    np.testing.assert_allclose(on.to_host(alone), on.to_host(E), rtol=0, atol=40 * eps * scale(x))
    for b in range(batch):
        rows = (y[b] for y in (G, E, positive, shares))
        on.run(operations.row_gradients, *rows, width // heads, SLOPE, means[b], of_target[b])
    of_source, of_D = made(batch, N, heads), made(batch, N, width)
    on.run(
        operations.csr_additive_attention_backward, matrix, target, source, D, G, logs, means,
        of_source, of_D, SLOPE,
    )  # fmt: skip
    found = {
        "E": E, "positive": positive, "log_totals": logs, "shares": shares, "means": means,
        "of_target": of_target, "of_source": of_source, "of_D": of_D,
    }  # fmt: skip
    return {name: np.asarray(on.to_host(array)) for name, array in found.items()}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_equals_the_definition(on: Any, dtype: str, index: str, shape: tuple[int, int]) -> None:
    A, x = pattern(index), drawn(shape, dtype)
    have = computed(on, A, x)
    eps = np.finfo(dtype).eps
    for b in range(2):
        for name, want in defined(A, x, b).items():
            # terms of a sum are some 3 in size, and a row has up to 1500 of them
            size = 1 + np.abs(np.nan_to_num(want, posinf=0.0)).max()
            np.testing.assert_allclose(
                have[name][b], want, rtol=0, atol=400 * eps * size, err_msg=name
            )


def test_extreme_scores_are_no_overflow(on: Any) -> None:
    A, x = pattern("int32"), drawn((2, 4), "float32")
    x["target"][:], x["source"][:] = 2000 * x["target"], 2000 * x["source"]
    have = computed(on, A, x)
    want = computed(REFERENCE, A, x)
    assert all(np.isfinite(have[name]).all() for name in ("E", "of_target", "of_source", "of_D"))
    for name in ("E", "positive", "log_totals", "of_D"):
        np.testing.assert_allclose(have[name], want[name], rtol=2e-3, atol=1e-4, err_msg=name)


def test_operands_may_be_strided(on: Any) -> None:
    A, x = pattern("int32"), drawn((4, 6), "float32")
    wide = {
        name: np.concatenate([given, np.full_like(given, np.nan)], -1) for name, given in x.items()
    }
    there = {name: on.from_host(given)[..., : x[name].shape[-1]] for name, given in wide.items()}
    E = on.from_host(np.zeros((2, M, 24), np.float32))
    given = (there["target"], there["source"], there["D"], E, None, None, None, SLOPE)
    on.run(operations.csr_additive_attention, A if on is REFERENCE else A.to(on), *given)
    eps = np.finfo(np.float32).eps  # other lanes have the columns
    want = computed(on, A, x)["E"]
    np.testing.assert_allclose(on.to_host(E), want, rtol=0, atol=40 * eps * scale(x))


def test_what_is_not_finite_stays_in_its_rows(on: Any) -> None:
    A, x = pattern("int32"), drawn((2, 4), "float64")
    x["D"][0, 5, 1], x["D"][0, 6, 6] = np.nan, np.inf
    have, want = (computed(e, A, x)["E"] for e in (on, REFERENCE))
    np.testing.assert_array_equal(np.isnan(have), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(have), np.isinf(want))
