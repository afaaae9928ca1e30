"""The stopping status of a solve."""

from ..operation import declare

start = declare(
    "status.start",
    "r: in T[n,k], status: inout Status[k]",
    "norm_c = |r_c|; a running column halts as converged at its threshold, or as not finite",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=("n", "k"),
)
