"""The steps of the stabilized bi-conjugate gradient method."""

from ..operation import declare

ROWS = ("n", "k")

start = declare(
    "bicgstab.start",
    "r: in T[n,k], shadow: out T[n,k], p: out T[n,k], v: out T[n,k], "
    "rho: out T[k], rho_old: out T[k], alpha: out T[k], omega: out T[k], scale: out R[k], "
    "status: in Status[k]",
    "shadow = r, p = v = 0, rho = |r|^2, rho_old = alpha = omega = 1, scale = |r|",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
)

direction = declare(
    "bicgstab.direction",
    "p: inout T[n,k], r: in T[n,k], v: in T[n,k], "
    "rho: in T[k], rho_old: in T[k], alpha: in T[k], omega: in T[k], status: in Status[k]",
    "p = r + beta (p - omega v) with beta = (rho / rho_old) (alpha / omega)",
    flops=lambda e: 4 * e["n"] * e["k"],
    over=ROWS,
)

length = declare(
    "bicgstab.length",
    "shadow: in T[n,k], v: in T[n,k], rho: in T[k], alpha: out T[k], status: inout Status[k]",
    "alpha = rho / <shadow, v>; a column where that is 0 or not finite halts as broken down",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
)

half = declare(
    "bicgstab.half",
    "r: inout T[n,k], v: in T[n,k], alpha: in T[k], halfway: out u8[k], status: in Status[k]",
    "r -= alpha v; halfway = whether |r| is at its threshold already",
    flops=lambda e: 4 * e["n"] * e["k"],
    over=ROWS,
)

stabilize = declare(
    "bicgstab.stabilize",
    "t: in T[n,k], r: in T[n,k], omega: out T[k], halfway: in u8[k], status: inout Status[k]",
    "omega = <t, r> / <t, t>, or 0 if halfway; a column where that is 0 or not finite breaks down",
    flops=lambda e: 4 * e["n"] * e["k"],
    over=ROWS,
)

update = declare(
    "bicgstab.update",
    "x: inout T[n,k], r: inout T[n,k], y: in T[n,k], z: in T[n,k], t: in T[n,k], "
    "shadow: in T[n,k], alpha: in T[k], omega: in T[k], rho: inout T[k], rho_old: out T[k], "
    "scale: in R[k], "
    "status: inout Status[k]",
    "x += alpha y + omega z, r -= omega t; rho_old = rho, rho = <shadow, r>; observes |r|, then "
    "a running column with |rho| <= eps^2 |shadow| |r| halts as broken down",
    flops=lambda e: 10 * e["n"] * e["k"],
    over=ROWS,
)
