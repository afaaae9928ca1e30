"""Attention in training, by one operation and by three: ``python -m wollemi_bench.training``.

Forward and backward on tensors of PyTorch's: ``fusedmm`` with softmax, ``sddmm``, ``edge_softmax``
and ``spmm`` with stored weights, and ``fusedmm`` with a mask of ``wl.masks`` where the pattern is
one. Each runs once a round, in turns. The table is Markdown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import wollemi as wl

from .generators import rmat


class Attention(NamedTuple):
    """A pattern, heads and their width, and the mask that has the pattern if there is one."""

    name: str
    pattern: Callable[[], sp.csr_array]
    heads: int
    columns: int
    mask: Callable[[], Any] | None = None


def _of_mask(name: str, mask: Callable[[], Any]) -> Attention:
    """Return attention with a mask, four heads of 64 columns."""
    return Attention(name, lambda: mask().to_scipy(), 4, 64, mask)


def window(tokens: int, width: int) -> sp.csr_array:
    """Return the pattern of tokens that see themselves and the ``width - 1`` before them.

    Examples
    --------
    >>> from wollemi_bench.training import window
    >>> window(3, 2).toarray()
    array([[1., 0., 0.],
           [1., 1., 0.],
           [0., 1., 1.]], dtype=float32)
    """
    lengths = np.minimum(np.arange(1, tokens + 1), width)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    indices = np.arange(indptr[-1]) - np.repeat(
        indptr[:-1] - np.arange(tokens) + lengths - 1, lengths
    )
    ones = np.ones(indptr[-1], np.float32)
    return sp.csr_array((ones, indices.astype(np.int32), indptr), shape=(tokens, tokens))


def random(tokens: int, share: float) -> sp.csr_array:
    """Return the pattern of tokens that see a random share of all."""
    rng = np.random.default_rng(0)
    return sp.random_array((tokens, tokens), density=share, rng=rng, dtype="f4").tocsr()


def graph(scale: int, edges: int) -> sp.csr_array:
    """Return a graph of 2^scale nodes with the degrees of a power law."""
    return sp.csr_array(rmat(scale, edges))


CASES = (
    _of_mask("window 128 of 2048", lambda: wl.masks.sliding_window(2048, 128)),
    _of_mask("window 64 of 8192", lambda: wl.masks.sliding_window(8192, 64)),
    _of_mask("window 256 of 4096", lambda: wl.masks.sliding_window(4096, 256)),
    _of_mask("causal, 2048", lambda: wl.masks.causal(2048)),
    _of_mask("causal, 8 documents of 512", lambda: wl.masks.documents([512] * 8, causal=True)),
    Attention("random 5 % of 2048", lambda: random(2048, 0.05), 4, 64),
    Attention("R-MAT, 2^14 nodes, 300,000 edges", lambda: graph(14, 300_000), 4, 16),
    Attention("R-MAT, 2^16 nodes, 1,000,000 edges", lambda: graph(16, 1_000_000), 1, 64),
)


def _calls(case: Attention, dtype: str) -> dict[str, Callable[[], float]]:
    """Return the functions that take a step and return its seconds, by name."""
    import torch

    from wollemi.interop.torch import Pattern, fusedmm, sddmm, spmm

    S = case.pattern()
    S.sort_indices()
    pattern = Pattern(torch.from_numpy(S.indptr), torch.from_numpy(S.indices), S.shape)
    generator = torch.Generator().manual_seed(0)
    shape = (case.heads, S.shape[0], case.columns)
    q, k, v, gradient = (
        torch.randn(shape, generator=generator).to(getattr(torch, dtype)) for _ in range(4)
    )
    operands = [x.requires_grad_() for x in (q, k, v)]
    alpha = case.columns**-0.5

    def one() -> Any:
        return fusedmm(pattern, q, k, v, edge="softmax", alpha=alpha)

    def three() -> Any:
        scores = sddmm(pattern, q, k, alpha=alpha)
        weights = wl.graph.edge_softmax(pattern, scores.movedim(-1, 0)).movedim(0, -1)
        return spmm(pattern, v, values=weights)

    def timed(forward: Callable[[], Any]) -> Callable[[], float]:
        def step() -> float:
            for x in operands:
                x.grad = None
            begun = time.perf_counter()
            forward().backward(gradient)
            return time.perf_counter() - begun

        return step

    calls = {"fusedmm": timed(one), "steps": timed(three)}
    if case.mask is not None:
        mask = case.mask()
        calls["mask"] = timed(lambda: fusedmm(mask, q, k, v, edge="softmax", alpha=alpha))
    return calls


def main(rounds: int = 11, dtype: str = "float32", only: str = "") -> None:
    """Print the table: medians, and of the ratios of each round the median and the range."""
    print("| attention | heads | fusedmm, ms | three steps, ms | ratio | a mask, ms | ratio |")
    print("|---|---|---:|---:|---|---:|---|")
    for case in CASES:
        if only not in case.name:
            continue
        calls = _calls(case, dtype)
        times: dict[str, list[float]] = {name: [] for name in calls}
        for turn in range(rounds + 2):
            for name in list(calls)[:: 1 if turn % 2 else -1]:
                taken = calls[name]() * 1e3
                if turn >= 2:  # the first ones make plans and transposes
                    times[name].append(taken)
        ours = np.array(times["fusedmm"])
        cells = [case.name, f"{case.heads} of {case.columns}", f"{np.median(ours):.1f}"]
        for name in ("steps", "mask"):
            others = np.array(times.get(name, []))
            cells += _compared(others, ours) if others.size else ["", ""]
        print(f"| {' | '.join(cells)} |", flush=True)


def _compared(times: Any, ours: Any) -> list[str]:
    """Return the median of times, and their ratio to ``fusedmm``'s."""
    ratio = times / ours
    spread = f"{np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})"
    return [f"{np.median(times):.1f}", spread]


if __name__ == "__main__":
    import typer

    typer.run(main)
