"""A new operation with a kernel of your own, on the executors of the CPU.

The operation is soft thresholding, which makes vectors sparse: y = sign(x) max(|x| - t, 0).
"""

import numpy as np

import wollemi as wl
from wollemi.extend import declare, kernel_table

on_omp, on_reference = kernel_table("omp"), kernel_table("reference")

# Declared once: name, typed signature, one sentence, cost. Bytes follow from the signature.
shrink = declare(
    "example.shrink",
    "x: in T[n,k], y: inout T[n,k], t: T",
    "y = sign(x) max(|x| - t, 0)",
    flops=lambda extents: 3 * extents["n"] * extents["k"],
    over=("n", "k"),
)


# A kernel is a function that takes the executor and the arguments of the signature.
@on_omp(shrink)
@on_reference(shrink)
def shrink_numpy(executor, x, y, t):
    np.maximum(np.abs(x) - t, 0, out=y)
    np.copysign(y, x, out=y)


x = np.array([[3.0], [-0.5], [-2.0]])
y = np.empty_like(x)
for name in ("reference", "omp"):
    executor = wl.executor(name)
    executor.run(shrink, x, y, 1.0)
    print(executor.name, y.ravel())
    assert np.array_equal(y.ravel(), [2.0, -0.0, -1.0])

# An operation without a kernel is refused with a remedy.
missing = declare("example.missing", "x: in T[n,k]", "nothing", over=("n", "k"))
try:
    wl.executor("reference").run(missing, x)
except wl.errors.UnsupportedOperation as error:
    print(error)
