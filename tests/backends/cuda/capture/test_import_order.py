"""A captured training step in a process that imports PyTorch or CuPy first, and its memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ...needs import cuda, package

torch = package("torch", in_ci=False)

pytestmark = pytest.mark.gpu

PROGRAM = """
import {first}
import gc
import cupy, torch
import numpy as np, scipy.sparse as sp
import wollemi as wl
from wollemi.interop import torch as wt

n = 2000
S = sp.random_array((n, n), density=0.005, rng=np.random.default_rng(0), format="csr")
A = wl.Csr(S.astype("float32"), executor="cuda")
generator = torch.Generator("cuda").manual_seed(0)
x = [torch.randn(n, 16, device="cuda", generator=generator).requires_grad_() for _ in range(3)]

def step():
    out = wt.fusedmm(A, *x, edge="softmax")
    return (out.detach(), *torch.autograd.grad((out ** 2).sum(), x))

def used():
    gc.collect()  # both counts are without garbage
    return torch.cuda.memory_allocated() + cupy.get_default_memory_pool().used_bytes()

side = torch.cuda.Stream()
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    held = step()
for turn in range(100):
    for one in x:
        one.data.copy_(torch.randn(n, 16, device="cuda", generator=generator))
    graph.replay()
    for got, want in zip([one.clone() for one in held], step()):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5 * float(want.abs().max()))
    del got, want
    if turn == 9:
        early = used()
assert used() <= early, (used(), early)
print("equal")
"""


@pytest.mark.parametrize("first", ["torch", "cupy"])
def test_a_training_step_is_replayed_whichever_library_is_first(first: str) -> None:
    """Replays equal eager steps 100 times, and hold no more memory after 100 than after 10."""
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA; this runs where it has")
    cuda()
    program = PROGRAM.format(first=first)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1:] == ["equal"]
