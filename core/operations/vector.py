"""Element-wise operations on blocks of vectors, and their sums."""

from ..operation import declare

ROWS = ("n", "k")

fill = declare(
    "vector.fill",
    "y: out T[n,k], value: T",
    "y = value",
    over=ROWS,
)

axpby = declare(
    "vector.axpby",
    "x: in T[n,k], y: inout T[n,k], alpha: T, beta: T",
    "y = alpha x + beta y; beta = 0 does not read y",
    flops=lambda e: 3 * e["n"] * e["k"],
    over=ROWS,
)

scale_rows = declare(
    "vector.scale_rows",
    "d: in T[n], x: in T[n,k], y: inout T[n,k], alpha: T, beta: T",
    "y_i = alpha d_i x_i + beta y_i; beta = 0 does not read y",
    flops=lambda e: 4 * e["n"] * e["k"],
    over=ROWS,
)

scaled_sum = declare(
    "vector.scaled_sum",
    "d: in T[n], x: in T[n,k], y: inout T[n,k]",
    "y_i = d_i (x_i + y_i)",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
)

gather = declare(
    "vector.gather",
    "index: in I[m], x: in T[n,k], y: inout T[m,k], alpha: T, beta: T",
    "y_i = alpha x_index(i) + beta y_i; beta = 0 does not read y",
    flops=lambda e: 3 * e["m"] * e["k"],
    over=("m", "k"),
)

dot = declare(
    "vector.dot",
    "x: in T[n,k], y: in T[n,k], value: out T[k]",
    "value_c = sum_i conj(x_ic) y_ic",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
    sums=("T",),
)

norm = declare(
    "vector.norm",
    "x: in T[n,k], value: out R[k]",
    "value_c = sqrt(sum_i |x_ic|^2)",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
    sums=("R",),
)

largest = declare(
    "vector.largest",
    "x: in T[n,k], value: out R[k]",
    "value_c = max_i |x_ic|, NaN if any is NaN",
    flops=lambda e: e["n"] * e["k"],
    over=ROWS,
    sums=("largest",),
)

enter = declare(
    "vector.enter",
    "r: in T[n,k], x: out T[n,k], relative: in R[k], absolute: in R[k], least: in R[k], "
    "most: in R[k], first: out R[k], threshold: out R[k], status: inout Status[k]",
    "x = 0, first_c = norm_c = |r_c|, threshold_c = max(relative_c |r_c|, absolute_c); a column "
    "halts where its norm meets that, or is not between least_c and most_c",
    flops=lambda e: 2 * e["n"] * e["k"],
    over=ROWS,
    sums=("R",),
)

keep = declare(
    "vector.keep",
    "x: in T[n,k], kept: inout T[n,k], best: inout R[k], status: in Status[k]",
    "kept = x, best = the status's norm in running columns with a norm below best",
    over=ROWS,
    sums=("R",),  # sums nothing: ``best`` is written after all rows
)
