"""The product of a matrix by bands: its declaration, its definition, and its text in C++."""

from pathlib import Path

import numpy as np

from wollemi.extend import declare, kernel_table

bands_product = declare(
    "bands.product",
    "data: in T[d,m], offsets: in i64[d], x: in T[n,k], y: inout T[m,k], alpha: T, beta: T, "
    "bands: int, columns: int",
    "y = alpha A x + beta y; beta = 0 does not read y",
    flops=lambda extents: 2 * extents["d"] * extents["m"] * extents["k"],
    over=("m", "k"),
    functor=Path(__file__).with_name("bands.hpp"),
)


@kernel_table("reference")(bands_product)
def multiply(executor, data, offsets, x, y, alpha, beta, bands, columns):
    """Define the product, as the formula reads."""
    m = y.shape[0]
    total = np.zeros_like(y)
    for offset, values in zip(offsets, data, strict=True):
        rows = slice(max(0, -offset), max(0, min(m, columns - offset)))
        factor, part = values[rows, None], x[rows.start + offset : rows.stop + offset]
        np.add(total[rows], factor * part, out=total[rows], where=factor != 0)
    y[...] = alpha * total if beta == 0 else alpha * total + beta * y
