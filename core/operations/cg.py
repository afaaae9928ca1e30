"""The steps of the conjugate gradient method."""

from ..operation import declare

ROWS = ("n", "k")

start = declare(
    "cg.start",
    "r: in T[n,k], z: in T[n,k], p: out T[n,k], rho: out T[k], status: inout Status[k]",
    "p = z, rho = <r, z>; a column with rho <= 0 halts as indefinite",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
)

curvature = declare(
    "cg.curvature",
    "p: in T[n,k], q: in T[n,k], pq: out T[k], status: inout Status[k]",
    "pq = <p, q>; a column with pq <= 0 halts as indefinite",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
)

update = declare(
    "cg.update",
    "x: inout T[n,k], r: inout T[n,k], p: in T[n,k], q: in T[n,k], "
    "rho: inout T[k], rho_old: out T[k], pq: in T[k], status: inout Status[k]",
    "x += alpha p, r -= alpha q with alpha = rho / pq; rho_old = rho, rho = |r|^2; observes |r|",
    flops=lambda e: 6 * e["n"] * e["k"],
    over=ROWS,
)

weigh = declare(
    "cg.weigh",
    "r: in T[n,k], z: in T[n,k], rho: inout T[k], status: inout Status[k]",
    "rho = <r, z>; a column with rho <= 0 halts as indefinite",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
)

direction = declare(
    "cg.direction",
    "p: inout T[n,k], z: in T[n,k], rho: in T[k], rho_old: in T[k], status: in Status[k]",
    "p = z + beta p with beta = rho / rho_old",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
)
