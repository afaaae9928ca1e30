# %% [markdown]
# # A GPU in five minutes
#
# A program names an executor once, where it makes the matrix. This page takes the first GPU that works, and the cores of the
# CPU where there is none.

# %%
import numpy as np
import scipy.sparse as sp

import wollemi as wl

for found in wl.available_executors():
    print(found)

# %%
here = [found.name for found in wl.available_executors() if found.available]
place = next((name for name in here if name.startswith(("cuda", "hip"))), "omp")
print("This page was run on", place)

# %% [markdown]
# If you have an NVIDIA GPU and it is not in the list: `pip install "wollemi[cuda]"`, then `wollemi doctor`. [NVIDIA
# GPUs](../cuda.md) shows the necessary output of `nvidia-smi`.
#
# ## Place a matrix, and compute

# %%
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100))
S = sp.csr_array(sp.kronsum(line, line))
A = wl.Csr(S, executor=place)
A

# %% [markdown]
# A product with an array of NumPy gives an array of NumPy: on a GPU it travels there and back. An array of the executor (on
# `cuda` a `cupy.ndarray`) stays.

# %%
x = np.ones(S.shape[0])
there = A.executor.from_host(x)
y = A @ there
print(type(y), type(A @ x))

# %% [markdown]
# ## Solve

# %%
solver = wl.solvers.Cg(A, M="jacobi", rtol=1e-8)
result = solver.solve(there)
print(result)

# %% [markdown]
# The first product and the first solve also compile kernels and make plans, which are kept. Time the second one, and wait for
# the device before and after:

# %%
import time

A.executor.synchronize()
began = time.perf_counter()
result = solver.solve(there)
A.executor.synchronize()
print(f"{1e3 * (time.perf_counter() - began):.1f} ms, {result.iterations} iterations")

# %% [markdown]
# ## Nothing travels unasked
#
# Operands on two executors are an error that names the remedy:

# %%
other = wl.Csr(S, executor="reference")
try:
    A + other
except wl.errors.ExecutorMismatch as error:
    print(error)

# %%
print((A + other.to(place)).shape)

# %% [markdown]
# Next: [several GPUs](several_gpus.py).
