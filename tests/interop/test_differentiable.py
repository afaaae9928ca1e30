"""Derivatives of every public function that has some, in both libraries and in every dtype."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..backends.needs import package
from .differentiable import NARROW, ROWS, table

PAGE = Path(__file__).parents[2] / "docs/derivatives.md"
IN_JAX = [name for name, row in ROWS.items() if row.jax]
STEP = 1e-5


def numbers(x: Any) -> Any:
    return np.asarray(x.detach().double() if hasattr(x, "detach") else x, np.float64)


def loss_of(function: Callable[..., Any], sin: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a sum of sines of all results."""

    def loss(*leaves: Any) -> Any:
        made = function(*leaves)
        parts = made if isinstance(made, tuple) else (made,)
        return sum((sin(part) * (k + 1)).sum() for k, part in enumerate(parts))

    return loss


def require_derivatives(
    loss: Callable[..., Any],
    leaves: tuple[Any, ...],
    gradient: Callable[..., Any],
    jvp: Callable[..., Any],
    *,
    second: bool,
) -> Any:
    """Compare both modes, and derivatives of gradients, with differences; return the gradients."""
    directions = tuple(x * x - 0.3 for x in leaves)
    ahead, behind = (
        tuple(x + sign * STEP * t for x, t in zip(leaves, directions, strict=True))
        for sign in (1, -1)
    )
    difference = (numbers(loss(*ahead)) - numbers(loss(*behind))) / (2 * STEP)
    found, (value, tangent) = gradient(*leaves), jvp(loss, leaves, directions)
    dots = sum(float((g * t).sum()) for g, t in zip(found, directions, strict=True))
    scale = 1 + abs(numbers(value))
    np.testing.assert_allclose(dots, difference, rtol=1e-6, atol=1e-8 * scale)
    np.testing.assert_allclose(numbers(tangent), difference, rtol=1e-6, atol=1e-8 * scale)
    if not second:
        return found
    _, moved = jvp(gradient, leaves, directions)
    for got, after, before in zip(moved, gradient(*ahead), gradient(*behind), strict=True):
        want = (numbers(after) - numbers(before)) / (2 * STEP)
        np.testing.assert_allclose(numbers(got), want, rtol=1e-5, atol=1e-6)
    return found


def require_gradients_in(dtype: str, got: Any, want: Any) -> None:
    """Compare gradients of numbers of a dtype with gradients in float64."""
    tolerance = 0.1 if dtype in NARROW else 2e-3
    for mine, exact in zip(got, want, strict=True):
        assert dtype in str(mine.dtype)
        mine, exact = numbers(mine), numbers(exact)
        assert np.linalg.norm(mine - exact) <= tolerance * np.linalg.norm(exact)


@pytest.mark.parametrize("name", ROWS)
def test_functions_of_pytorch_have_derivatives(name: str) -> None:
    torch = package("torch")
    row = ROWS[name]
    loss = loss_of(row.make(package("wollemi.interop.torch")), torch.sin)
    leaves = tuple(torch.tensor(x) for x in row.leaves)
    gradient = torch.func.grad(loss, tuple(range(len(leaves))))
    exact = require_derivatives(loss, leaves, gradient, torch.func.jvp, second=True)
    for dtype in row.dtypes[1:]:
        narrow = tuple(x.to(getattr(torch, dtype)) for x in leaves)
        require_gradients_in(dtype, gradient(*narrow), exact)


@pytest.mark.parametrize("name", ROWS)
def test_gradcheck_of_both_orders(name: str) -> None:
    torch = package("torch")
    row = ROWS[name]
    function = row.make(package("wollemi.interop.torch"))
    leaves = tuple(torch.tensor(x, requires_grad=True) for x in row.leaves)
    assert torch.autograd.gradcheck(function, leaves, fast_mode=True, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.usefixtures("jax_in_doubles")
@pytest.mark.parametrize("name", IN_JAX)
def test_functions_of_jax_have_derivatives(name: str) -> None:
    jax, jnp = package("jax"), package("jax.numpy")
    row = ROWS[name]
    loss = loss_of(row.make(package("wollemi.interop.jax")), jnp.sin)
    leaves = tuple(jnp.asarray(x) for x in row.leaves)
    gradient = jax.jit(jax.grad(loss, tuple(range(len(leaves)))))
    # test_jax.py, test_jax_solves.py and test_jax_derivatives.py have second derivatives.
    exact = require_derivatives(loss, leaves, gradient, jax.jvp, second=False)
    for dtype in row.dtypes[1:]:
        require_gradients_in(dtype, gradient(*(x.astype(dtype) for x in leaves)), exact)


def test_the_docs_have_the_table_of_these_functions() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")
