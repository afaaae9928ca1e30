"""The steps of the conjugate gradient squared method.

Its step length is :data:`bicgstab.length`.
"""

from ..operation import declare

ROWS = ("n", "k")

start = declare(
    "cgs.start",
    "r: in T[n,k], shadow: out T[n,k], p: out T[n,k], q: out T[n,k], "
    "rho: out T[k], rho_old: out T[k], scale: out R[k], status: in Status[k]",
    "shadow = r, p = q = 0, rho = |r|^2, rho_old = 1, scale = |r|",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
)

direction = declare(
    "cgs.direction",
    "u: out T[n,k], p: inout T[n,k], q: in T[n,k], r: in T[n,k], "
    "rho: in T[k], rho_old: in T[k], status: in Status[k]",
    "u = r + beta q, p = u + beta (q + beta p) with beta = rho / rho_old",
    flops=lambda e: 6 * e["n"] * e["k"],
    over=ROWS,
)

half = declare(
    "cgs.half",
    "u: inout T[n,k], q: out T[n,k], v: in T[n,k], alpha: in T[k], status: in Status[k]",
    "q = u - alpha v, u += q",
    flops=lambda e: 3 * e["n"] * e["k"],
    over=ROWS,
)

update = declare(
    "cgs.update",
    "x: inout T[n,k], r: inout T[n,k], w: in T[n,k], t: in T[n,k], shadow: in T[n,k], "
    "alpha: in T[k], rho: inout T[k], rho_old: out T[k], scale: in R[k], status: inout Status[k]",
    "x += alpha w, r -= alpha t; rho_old = rho, rho = <shadow, r>; observes |r|, then "
    "a running column with |rho| <= eps^2 |shadow| |r| halts as broken down",
    flops=lambda e: 8 * e["n"] * e["k"],
    over=ROWS,
)
