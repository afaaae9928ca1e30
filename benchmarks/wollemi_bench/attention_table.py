"""Attention on a GPU compared with PyTorch's: ``python -m wollemi_bench.attention_table``.

``fusedmm`` with softmax on tensors of 16 bits, forward and with its gradients, compared with
FlexAttention, compiled with a mask of blocks, and ``scaled_dot_product_attention`` with a dense
mask. Windows are a pattern of entries and, separately, a mask of ``wl.masks``. All work on the same
tensors, by turns. A turn is a replay of a graph of calls, without the host's time of a call;
``--eager`` times calls back to back. The table is Markdown: microseconds, forward / forward and
backward, and errors against float32: of the mask where there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import wollemi as wl

from .training import random, window


class Attention(NamedTuple):
    """A pattern, heads and their width, and the pattern as a rule and as a mask if it is one."""

    name: str
    pattern: Callable[[], sp.csr_array]
    heads: int
    columns: int
    rule: Callable[[Any, Any], Any] | None = None
    mask: Callable[[], Any] | None = None


def blocks(tokens: int, size: int, share: float) -> sp.csr_array:
    """Return the pattern of a random share of all blocks.

    Examples
    --------
    >>> from wollemi_bench.attention_table import blocks
    >>> blocks(4, 2, 0.5).toarray().sum() % 4 == 0
    np.True_
    """
    count = tokens // size
    rng = np.random.default_rng(0)
    there = (rng.random((count, count)) < share).astype(np.float32)
    return sp.csr_array(np.kron(there, np.ones((size, size), np.float32)))


CASES = (
    Attention(
        "causal window 256 of 4096",
        lambda: window(4096, 256),
        *(16, 64),
        lambda i, j: (i >= j) & (i - j < 256),
        lambda: wl.masks.sliding_window(4096, 256),
    ),
    Attention(
        "causal window 512 of 16384",
        lambda: window(16384, 512),
        *(8, 128),
        lambda i, j: (i >= j) & (i - j < 512),
        lambda: wl.masks.sliding_window(16384, 512),
    ),
    Attention("random 5 % of 4096", lambda: random(4096, 0.05), 16, 64),
    Attention("random 1 % of 4096", lambda: random(4096, 0.01), 16, 64),
    Attention("random 64 x 64 blocks, 12 % of 4096", lambda: blocks(4096, 64, 0.12), 16, 64),
)

#: Tokens up to which a dense mask is made.
MOST_DENSE = 8192
#: Calls of a turn.
CALLS = 10


def _contenders(case: Attention, S: Any, operands: list[Any]) -> dict[str, Callable[[], Any]]:
    """Return the ways to attend, by name."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    from wollemi.interop.torch import Pattern, fusedmm

    q, k, v = operands
    tokens, alpha = S.shape[0], case.columns**-0.5
    indptr, indices = (torch.from_numpy(x).cuda() for x in (S.indptr, S.indices))
    pattern = Pattern(indptr, indices, S.shape)
    rule = case.rule
    found = {"wollemi": lambda: fusedmm(pattern, q, k, v, edge="softmax", alpha=alpha)}
    if case.mask is not None:
        intervals = case.mask().to("cuda")
        found["mask"] = lambda: fusedmm(intervals, q, k, v, edge="softmax", alpha=alpha)
    if tokens <= MOST_DENSE:
        mask = torch.from_numpy(S.toarray() != 0).cuda()
        rule = rule or (lambda i, j: mask[i, j])
        dense = torch.nn.functional.scaled_dot_product_attention
        found["dense"] = lambda: dense(q[None], k[None], v[None], attn_mask=mask, scale=alpha)[0]
    if rule is not None:
        blocks_of = create_block_mask(
            lambda b, h, i, j: rule(i, j), None, None, tokens, tokens, device="cuda"
        )
        flex = torch.compile(flex_attention, dynamic=False)
        found["flex"] = lambda: flex(q[None], k[None], v[None], block_mask=blocks_of, scale=alpha)[
            0
        ]
    return found


def timed(call: Callable[[], Any], *, eager: bool, calls: int = CALLS) -> Callable[[], float]:
    """Return a function that runs some calls and returns the microseconds of one."""
    import torch

    def many() -> None:
        for _ in range(calls):
            call()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # plans and programs are made before a graph is
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    run = many
    if not eager:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            many()
        run = graph.replay

    def once() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) * 1e3 / calls

    return once


def _errors(case: Attention, S: Any, operands: list[Any], gradient: Any, ours: Any) -> list[float]:
    """Return the errors of the result and the gradients of one head, relative 2-norms."""
    import torch

    for x in operands:
        x.grad = None
    ours().backward(gradient)
    mask = torch.from_numpy(S.toarray() != 0).cuda()
    q, k, v = (x[0].detach().float().requires_grad_() for x in operands)
    scores = (q @ k.T * case.columns**-0.5).masked_fill(~mask, -torch.inf)
    out = torch.softmax(scores, -1).nan_to_num() @ v
    out.backward(gradient[0].float())
    pairs = [
        (ours()[0], out),
        *((x.grad[0], y.grad) for x, y in zip(operands, (q, k, v), strict=True)),
    ]
    return [((a.float() - b).norm() / b.norm()).item() for a, b in pairs]


def _row(case: Attention, rounds: int, dtype: str, *, eager: bool) -> str:
    import torch

    S = case.pattern()
    S.sort_indices()
    shape = (case.heads, S.shape[0], case.columns)
    kind = getattr(torch, dtype)
    torch.manual_seed(0)
    *operands, gradient = (torch.randn(shape, device="cuda", dtype=kind) for _ in range(4))
    for x in operands:
        x.requires_grad_()
    contenders = _contenders(case, S, operands)

    def backward(forward: Callable[[], Any]) -> None:
        for x in operands:
            x.grad = None
        forward().backward(gradient)

    def without(forward: Callable[[], Any]) -> None:
        with torch.no_grad():
            forward()

    measured = {
        (name, which): timed(partial(how, forward), eager=eager)
        for name, forward in contenders.items()
        for which, how in enumerate((without, backward))
    }
    times: dict[tuple[str, int], list[float]] = {key: [] for key in measured}
    for _ in range(rounds):
        for key, once in measured.items():
            times[key].append(once())

    def cell(name: str) -> str:
        if name not in contenders:
            return ""
        parts = (np.percentile(times[name, which], (50, 25, 75)) for which in (0, 1))
        return " / ".join(f"{m:.0f} ({low:.0f} to {high:.0f})" for m, low, high in parts)

    ours = contenders.get("mask", contenders["wollemi"])
    errors = _errors(case, S, operands, gradient, ours)
    shown = ", ".join(f"{error:.1e}" for error in errors)
    cells = " | ".join(cell(name) for name in ("wollemi", "mask", "flex", "dense"))
    return f"| {case.name} | {case.heads} of {case.columns} | {cells} | {shown} |"


def main(rounds: int = 9, dtype: str = "float16", only: str = "", eager: bool = False) -> None:
    """Print the table: medians and quartiles."""
    print("| attention | heads | wollemi | the same, a mask | FlexAttention | dense | errors |")
    print("|---|---|---|---|---|---|---|")
    for case in CASES:
        if only in case.name:
            print(_row(case, rounds, dtype, eager=eager), flush=True)


if __name__ == "__main__":
    import typer

    typer.run(main)
