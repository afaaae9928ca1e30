"""Operands of attention, expected results, and its kernels by emulated tensor cores."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from wollemi.backends.cuda.products.tile_pattern import COLUMNS, ROWS
from wollemi.backends.unified.wrappers import SimtKernel, program, simt_wrapper

from ...lockstep.build import ROOTS, Library


def random_mask(m: int, n: int, density: float = 0.3, seed: int = 3) -> Any:
    rng = np.random.default_rng(seed)
    mask = rng.random((m, n)) < density
    mask[:, n // 2 :][m // 3 : m // 3 + 1] = False
    mask[m // 2] = False
    if m > 2 * ROWS and n > COLUMNS:
        mask[:ROWS, :COLUMNS] = False
    return mask


class Operands(NamedTuple):
    mask: Any
    C: Any
    B: Any
    D: Any
    G: Any


def operands(m: int, n: int, k: int, p: int, batch: int = 2, mask: Any = None) -> Operands:
    rng = np.random.default_rng(m + n + k)
    made = [
        rng.standard_normal((batch, rows, columns)).astype(np.float16)
        for rows, columns in ((m, k), (n, k), (n, p), (m, p))
    ]
    return Operands(random_mask(m, n) if mask is None else mask, *made)


class Expected(NamedTuple):
    E: Any
    of_C: Any
    of_B: Any
    of_D: Any


def expected(given: Operands, alpha: float) -> Expected:
    """Return the result and the gradients, in float64 and by entries."""
    mask, *arrays = given
    C, B, D, G = (x.astype(np.float64) for x in arrays)
    with np.errstate(all="ignore"):
        s = np.where(mask, alpha * C @ B.swapaxes(1, 2), -np.inf)
        most = s.max(2, keepdims=True)
        w = np.where(mask, np.exp(s - np.where(np.isneginf(most), 0, most)), 0)
        totals = w.sum(2, keepdims=True)
        w = np.where(mask, w / np.where(totals == 0, 1, totals), 0)

        def times(weights: Any, X: Any, allowed: Any) -> Any:
            terms = weights[..., None] * X[:, None]
            return np.where(allowed[None, :, :, None], terms, 0).sum(2)

        E = times(w, D, mask)
        of_w = np.where(mask, G @ D.swapaxes(1, 2), 0)
        of_s = np.where(mask, w * (of_w - (w * of_w).sum(2, keepdims=True)), 0)
        turned = w.swapaxes(1, 2), of_s.swapaxes(1, 2)
        of_D = times(turned[0], G, mask.T)
        return Expected(E, alpha * times(of_s, B, mask), alpha * times(turned[1], C, mask.T), of_D)


def logs_of_totals(given: Operands, alpha: float) -> Any:
    """Return log sum exp(s) of each row: infinity without any, NaN of an infinite score or NaN."""
    C, B = (x.astype(np.float64) for x in (given.C, given.B))
    with np.errstate(all="ignore"):
        s = alpha * C @ B.swapaxes(1, 2)
        totals = logsumexp(np.where(given.mask, s, -np.inf), axis=2)
        lost = (given.mask & ~(s < np.inf)).any(2)
    return np.where(lost, np.nan, np.where(np.isneginf(totals), np.inf, totals))


@cache
def library(kernel: SimtKernel, **constants: int) -> Library:
    wrapper = simt_wrapper(kernel, "f2", "i4", **constants)
    text = program("LOCKSTEP", [kernel.header], [wrapper], block=kernel.block, roots=ROOTS)
    return Library(text, kernel.name)


def run(kernel: SimtKernel, blocks: int, arguments: Any, schedule: int, **constants: int) -> None:
    given: list[Any] = []
    for argument in arguments:
        if isinstance(argument, float):
            given.append(ctypes.c_float(argument))
        elif isinstance(argument, int):
            given.append(ctypes.c_longlong(argument))
        else:
            given.append(ctypes.c_void_p(argument.ctypes.data))
    symbol = kernel.symbol("f2", "i4", **constants)
    library(kernel, **constants).run(symbol, blocks, *given, schedule=schedule)


def place(array: Any) -> tuple[Any, int, int]:
    item = array.itemsize
    return array, array.strides[1] // item, array.strides[0] // item


def close(have: Expected, want: Expected, tolerance: float = 2e-3) -> None:
    for name, mine, right in zip(Expected._fields, have, want, strict=True):
        assert np.linalg.norm(mine - right) <= tolerance * np.linalg.norm(right), name
