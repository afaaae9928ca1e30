"""Attention by slabs and its gradients: kernels by emulated tensor cores, and all on a GPU."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from wollemi.backends.cuda.products import slab_attention as attention
from wollemi.backends.cuda.products.slab_lists import (
    BATCH,
    LAST,
    PANEL,
    PLACES,
    ROW_BITS,
    Lists,
    make_lists,
    places_of,
)
from wollemi.backends.unified.wrappers import SimtKernel

from ...lockstep.build import compiler
from ...needs import tool
from .attention_cases import (
    Expected,
    Operands,
    close,
    expected,
    logs_of_totals,
    operands,
    place,
    random_mask,
    run,
)

emulated = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

# ---- lists


def entries_of(lists: Lists, width: int) -> list[tuple[int, int]]:
    """Return the row and the column of each entry."""
    found = []
    column_at = {int(place): c for c, place in enumerate(places_of(np.arange(lists.height), width))}
    each = lists.entries.reshape(-1, BATCH)[:, PLACES]
    for pair in range(lists.pairs + 1):
        at = lists.starts[pair]
        for slab, panel in product(range(lists.slabs), range(2)):
            last = False
            while not last:
                last = bool((each[at] & LAST).all())
                assert last == bool((each[at] & LAST).any())
                for entry in each[at].astype(int) % LAST:
                    row = entry % 2**ROW_BITS
                    if row < PANEL:
                        column = slab * lists.height + column_at[entry - row]
                        found.append(((2 * pair + panel) * PANEL + row, column))
                at += 1
        assert pair == lists.pairs or at == lists.starts[pair + 1]
    return found


@pytest.mark.parametrize(("m", "n"), [(1, 1), (16, 48), (130, 200), (300, 47), (5, 1000)])
@pytest.mark.parametrize("width", [32, 64, 128])
def test_lists_have_every_entry(m: int, n: int, width: int) -> None:
    rows, columns = np.nonzero(random_mask(m, n))
    shuffled = np.random.default_rng(0).permutation(rows.size)
    lists = make_lists(np, rows[shuffled], columns[shuffled], (m, n), 48, width)
    assert sorted(entries_of(lists, width)) == list(zip(rows, columns, strict=True))
    assert lists.entries.size == (lists.batches + 1) * BATCH


def test_a_pattern_without_entries_has_empty_batches() -> None:
    lists = make_lists(np, np.zeros(0, int), np.zeros(0, int), (300, 70), 16, 64)
    assert lists.batches == lists.slabs * 2 * (lists.pairs + 1)
    assert entries_of(lists, 64) == []


def test_an_entry_may_be_stored_twice() -> None:
    lists = make_lists(np, np.array([1, 0, 1]), np.array([2, 2, 2]), (3, 3), 16, 32)
    assert sorted(entries_of(lists, 32)) == [(0, 2), (1, 2), (1, 2)]


@pytest.mark.parametrize("width", [32, 64, 128])
def test_neighbours_are_in_different_banks(width: int) -> None:
    rows, columns = np.nonzero(np.ones((8, 48), bool))
    lists = make_lists(np, rows, columns, (8, 48), 48, width)
    chunks = lists.entries.reshape(-1, BATCH)[: rows.size // BATCH, PLACES] % LAST // 16 % 8
    eights = chunks.reshape(-1, 8)
    assert all(np.unique(eight).size == 8 for eight in eights)
    halves = chunks.reshape(-1, 2) // 4
    assert np.all(halves[:, 0] != halves[:, 1])


# ---- kernels by emulated tensor cores


def listed(mask: Any, height: int, width: int) -> tuple[Lists, Lists]:
    rows, columns = np.nonzero(mask)
    return (
        make_lists(np, rows, columns, mask.shape, height, width),
        make_lists(np, columns, rows, mask.shape[::-1], height, width),
    )


def emulate(
    given: Operands,
    alpha: float,
    *,
    width: int,
    whole: int,
    schedule: int = 0,
    shared: int = 24 << 10,
    warps: int = 2,
    lists: tuple[Lists, Lists] | None = None,
) -> Expected:
    """Do what the launches of a GPU do, with slabs for so much shared memory."""
    mask, C, B, D, G = given
    (batch, m, k), (n, p) = C.shape, D.shape[1:]
    height = attention.height_of(shared, width)
    of_rows, of_columns = lists or listed(mask, height, width)
    E, of_C, of_B, of_D = (np.full_like(x, 7) for x in (G, C, B, D))
    padded = of_columns.slabs * height
    facts = np.full((batch, padded, 2), np.nan, np.float32)
    log_totals = np.full((batch, m + 3), np.nan, np.float32)
    sources = (*place(C), *place(B), *place(D))

    def launch(kernel: SimtKernel, lists: Lists, *arguments: Any) -> None:
        made = attention.made_for(kernel, shared, width, warps)
        count = n if lists is of_columns else m
        shares = -(-count // made.rows)
        between = () if kernel is attention.slab_attention else (padded,)
        run(
            made.kernel, shares * batch,
            (m, n, k, p, shares, lists.slabs, *between, lists.starts, lists.entries, *arguments),
            schedule, **made.constants, WHOLE=whole,
        )  # fmt: skip

    launch(
        attention.slab_attention, of_rows, *sources, *place(E), log_totals, m + 3, alpha
    )
    np.testing.assert_allclose(
        log_totals[:, :m], logs_of_totals(given, alpha), rtol=1e-5, atol=2e-4, equal_nan=True
    )
    launch(
        attention.slab_row_gradients, of_rows,
        *sources, *place(G), *place(E), log_totals, m + 3, facts, *place(of_C), alpha,
    )  # fmt: skip
    launch(
        attention.slab_column_gradients, of_columns,
        *sources, *place(G), facts, *place(of_B), *place(of_D), alpha,
    )  # fmt: skip
    return Expected(E, of_C, of_B, of_D)


@emulated
@pytest.mark.parametrize(
    ("m", "n", "k", "p", "width", "whole"),
    [
        (150, 200, 64, 64, 64, 1),
        (300, 70, 24, 32, 32, 1),
        (140, 90, 5, 33, 64, 0),
        (1, 1, 1, 1, 32, 0),
    ],
)
def test_they_are_the_products_entry_by_entry(
    m: int, n: int, k: int, p: int, width: int, whole: int
) -> None:
    given = operands(m, n, k, p)
    alpha = -0.4 / k**0.5 if k > 20 else 0.7
    have = emulate(given, alpha, width=width, whole=whole)
    close(have, expected(given, alpha))
