"""Other libraries on GPUs, as far as they are installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .clocks import capture_by_cupy, capture_by_torch
from .memory import Meter, PoolMeter, TorchMeter
from .peers import Absent, Peer, SolveCase, TorchTensors, version_of, worth_a_dense_product

if TYPE_CHECKING:
    from .sides import Side


def without_tolerance(function: Callable[..., Any]) -> dict[str, float]:
    """Return the option that makes a solver of CuPy do all iterations: tol before CuPy 14."""
    return {"rtol" if "rtol" in signature(function).parameters else "tol": 0.0}


class CuPy(Peer):
    """CuPy: cuSPARSE, and solvers over it."""

    name = "cupy"
    capture = staticmethod(capture_by_cupy)
    keeps_kernels = True

    def version(self) -> str:
        """Return CuPy's version."""
        return version_of("cupy-cuda13x", "cupy-cuda12x", "cupy")

    def _placed(self, S: sp.csr_array) -> Any:
        import cupyx.scipy.sparse

        return cupyx.scipy.sparse.csr_matrix(sp.csr_matrix(S))

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return cuSPARSE's product into one and the same array."""
        import cupy
        from cupyx import cusparse

        matrix, vector = self._placed(S), cupy.asarray(x)
        out = cupy.zeros(S.shape[0], S.dtype)
        return lambda: cusparse.spmv(matrix, vector, y=out, alpha=1.0, beta=0.0)

    def ml(
        self, operation: str, S: sp.csr_array, operands: list[np.ndarray[Any, Any]]
    ) -> dict[str, Callable[[], Any]]:
        """Return cuSPARSE's product with a column-major operand, and the product with all zeros."""
        import cupy
        from cupyx import cusparse

        if operation != "spmm":
            raise Absent(f"has no {operation}")
        matrix, B = self._placed(S), cupy.asfortranarray(cupy.asarray(operands[0]))
        calls: dict[str, Callable[[], Any]] = {}
        if B.dtype == S.dtype:  # its matrices have no half precision
            calls["cupy"] = lambda: cusparse.spmm(matrix, B)
        if worth_a_dense_product(S):
            rows = cupy.asarray(operands[0])
            D = matrix.toarray().astype(rows.dtype)
            out = cupy.empty((S.shape[0], rows.shape[1]), rows.dtype)
            calls["dense (cupy)"] = lambda: cupy.matmul(D, rows, out=out)
        return calls

    def solve(self, case: SolveCase) -> Callable[[], Any]:
        """Return a solve that cannot converge, so that it does all iterations."""
        method, S, b = case.method, case.S, case.b
        import cupy
        import cupyx.scipy.sparse.linalg as namespace

        if method not in ("cg", "cgs", "gmres"):
            raise Absent(f"has no {method}")
        function = getattr(namespace, method)
        matrix, vector = self._placed(S), cupy.asarray(b)
        more: dict[str, Any] = {"maxiter": case.iterations, **without_tolerance(function)}
        if method == "gmres":
            more["restart"] = case.restart
        return lambda: function(matrix, vector, **more)[0]

    def side(self) -> Side:
        """Return CuPy's spelling."""
        from .sides import CuPySide

        return CuPySide()

    def meter(self) -> Meter:
        """Return a meter of CuPy's pool."""
        return PoolMeter()

    def synchronize(self) -> None:
        """Wait for the device."""
        import cupy

        cupy.cuda.get_current_stream().synchronize()

    def to_host(self, result: Any) -> Any:
        """Return a device array as a NumPy array."""
        return result.get()


class TorchGpu(TorchTensors):
    """PyTorch on a GPU, CSR: cuSPARSE behind other names."""

    capture = staticmethod(capture_by_torch)

    def version(self) -> str:
        """Return PyTorch's version."""
        return version_of("torch")

    def _library(self) -> Any:
        torch = super()._library()
        if not torch.cuda.is_available():
            raise Absent("is a build without CUDA, or sees no GPU")
        return torch

    def _sent(self, array: np.ndarray[Any, Any]) -> Any:
        return super()._sent(array).cuda()

    def meter(self) -> Meter:
        """Return a meter of PyTorch's memory."""
        return TorchMeter()

    def synchronize(self) -> None:
        """Wait for the device."""
        import torch

        torch.cuda.synchronize()

    def to_host(self, result: Any) -> Any:
        """Return a tensor as a NumPy array."""
        return result.cpu().numpy()


class Warp(Peer):
    """NVIDIA Warp's solvers over its block-sparse rows, with blocks of one entry."""

    name = "warp"
    keeps_kernels = True

    def version(self) -> str:
        """Return Warp's version."""
        return version_of("warp-lang")

    def solve(self, case: SolveCase) -> Callable[[], Any]:
        """Return a solve that cannot converge, so that it does all iterations."""
        method, S, b = case.method, case.S, case.b
        import warp
        import warp.optim.linear as linear
        import warp.sparse

        if method not in ("cg", "bicgstab", "gmres"):
            raise Absent(f"has no {method}")
        warp.config.quiet = True
        device = "cuda"
        where = sp.coo_array(S)
        rows, columns = (warp.array(i, dtype=int, device=device) for i in (where.row, where.col))
        values = warp.array(where.data, device=device)
        A = warp.sparse.bsr_zeros(*S.shape, block_type=values.dtype, device=device)
        warp.sparse.bsr_set_from_triplets(A, rows, columns, values)
        right = warp.array(b, device=device)
        x = warp.zeros_like(right)
        more: dict[str, Any] = {"restart": case.restart} if method == "gmres" else {}
        function = getattr(linear, method)

        def call() -> Any:
            x.zero_()
            function(A, right, x, tol=0.0, atol=0.0, maxiter=case.iterations, check_every=0, **more)
            return x

        return call

    def synchronize(self) -> None:
        """Wait for the device."""
        import warp

        warp.synchronize()

    def to_host(self, result: Any) -> Any:
        """Return an array of Warp's as a NumPy array."""
        return result.numpy()


class Jax(Peer):
    """JAX: a BCSR matrix and its solvers, compiled."""

    name = "jax"
    host_clock = True

    def version(self) -> str:
        """Return JAX's version."""
        return version_of("jax")

    def _placed(self, S: sp.csr_array) -> tuple[Any, Any]:
        # it would take three quarters of the device's memory when it is loaded
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax
        from jax.experimental import sparse

        if jax.default_backend() != "gpu":
            raise Absent(f"computes on {jax.default_backend()} here")
        jax.config.update("jax_enable_x64", True)
        parts = (jax.numpy.asarray(a) for a in (S.data, S.indices, S.indptr))
        return jax, sparse.BCSR(tuple(parts), shape=S.shape)

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return the product, compiled."""
        jax, A = self._placed(S)
        vector = jax.numpy.asarray(x)
        product = jax.jit(lambda A, v: A @ v)
        return lambda: product(A, vector).block_until_ready()

    def solve(self, case: SolveCase) -> Callable[[], Any]:
        """Return a solve that cannot converge, so that it does all iterations."""
        method, S, b = case.method, case.S, case.b
        jax, A = self._placed(S)
        if method not in ("cg", "bicgstab", "gmres"):
            raise Absent(f"has no {method}")
        function = getattr(jax.scipy.sparse.linalg, method)
        more: dict[str, Any] = {"maxiter": case.iterations}
        if method == "gmres":
            more = {"maxiter": case.iterations // case.restart, "restart": case.restart}
        right = jax.numpy.asarray(b)
        solve = jax.jit(lambda A, v: function(lambda u: A @ u, v, tol=0.0, atol=0.0, **more)[0])
        return lambda: solve(A, right).block_until_ready()
