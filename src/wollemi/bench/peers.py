"""Other libraries that do the same, as far as they are installed."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, files, version
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from ..core.errors import InvalidArgument
from ..core.executor import Executor
from .clocks import Capture, capture_by_cupy

#: A dense matrix of this many entries is still compared with: 1 GB in float32.
DENSE_ENTRIES = 1 << 28


class Absent(Exception):
    """A peer that is not here, or cannot do what is asked; the message says why."""


class Peer(ABC):
    """A library to compare with.

    ``spmv`` and ``solve`` take SciPy's matrix and NumPy's vectors, bring them where the library
    wants them, and return what is then timed.

    Attributes
    ----------
    name : str
        What records call it.
    capture : callable or None
        On a GPU: what captures its calls for replay.
    """

    name: str
    capture: Capture | None = None

    @abstractmethod
    def version(self) -> str:
        """Return the version; raises Absent if the library is not installed."""

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return what computes ``S @ x``."""
        raise Absent("its SpMV is not compared")

    def solve(
        self,
        method: str,
        S: sp.csr_array,
        b: np.ndarray[Any, Any],
        iterations: int,
        restart: int,
        tick: Callable[..., None] | None = None,
    ) -> Callable[[], Any]:
        """Return what does so many iterations from zero and returns ``x``.

        ``tick`` is called after each iteration, if :meth:`counts` says so.
        """
        raise Absent(f"its {method} is not compared")

    def counts(self, method: str) -> bool:
        """Whether iterations of a method can be counted."""
        return False

    def ml(
        self, operation: str, S: sp.csr_array, operands: list[np.ndarray[Any, Any]]
    ) -> dict[str, Callable[[], Any]]:
        """Return by name what computes spmm, sddmm or fusedmm."""
        raise Absent(f"its {operation} is not compared")

    def synchronize(self) -> None:  # noqa: B027  on a CPU there is nothing to wait for
        """Wait for what was submitted."""

    def to_host(self, result: Any) -> Any:
        """Return a result as a NumPy array."""
        return np.asarray(result)


def _version(*names: str) -> str:
    for name in names:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    raise Absent(f"not installed: pip install {names[0]}")


class SciPy(Peer):
    """SciPy: one thread."""

    name = "scipy"

    def version(self) -> str:
        """Return SciPy's version."""
        return _version("scipy")

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return ``S @ x``."""
        return lambda: S @ x

    def ml(
        self, operation: str, S: sp.csr_array, operands: list[np.ndarray[Any, Any]]
    ) -> dict[str, Callable[[], Any]]:
        """Return ``S @ B``, and the product with all zeros where it fits."""
        if operation != "spmm":
            raise Absent(f"has no {operation}")
        B = operands[0]
        calls: dict[str, Callable[[], Any]] = {"scipy": lambda: S @ B}
        if S.shape[0] * S.shape[1] <= DENSE_ENTRIES:
            D = S.toarray()
            calls["dense (numpy)"] = lambda: D @ B
        return calls

    def solve(
        self,
        method: str,
        S: sp.csr_array,
        b: np.ndarray[Any, Any],
        iterations: int,
        restart: int,
        tick: Callable[..., None] | None = None,
    ) -> Callable[[], Any]:
        """Return a solve that cannot converge, so that it does all iterations."""
        function = getattr(sla, method)
        more: dict[str, Any] = {"maxiter": iterations, "callback": tick}
        if method == "gmres":  # it counts cycles
            more |= {"maxiter": iterations // restart, "restart": restart}
            more |= {"callback_type": "pr_norm"}

        def call() -> Any:
            # NumPy's warnings come where a residual has come down to nothing
            with np.errstate(all="ignore"):
                return function(S, b, rtol=0.0, atol=0.0, **more)[0]

        return call

    def counts(self, method: str) -> bool:
        """Whether iterations of a method can be counted: SciPy calls back after each."""
        return True


class Mkl(Peer):
    """Intel's MKL through ``sparse_dot_mkl``, with as many threads as the executor has."""

    name = "mkl"

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def version(self) -> str:
        """Return the versions of the wrapper and of MKL."""
        wrapper = _version("sparse_dot_mkl")
        return f"{wrapper}, MKL {_version('mkl')}, {self.threads} threads"

    def _library(self) -> Any:
        # its threads would spin for 200 ms after each call, on the cores of who comes next
        os.environ.setdefault("KMP_BLOCKTIME", "1")
        for file in files("mkl") or []:
            if file.name.startswith("libmkl_rt.so"):
                # the wrapper looks in the system's folders alone
                os.environ.setdefault("MKL_RT", str(file.locate()))
        try:
            import sparse_dot_mkl
        except (ImportError, OSError) as error:
            raise Absent(f"does not load: {error}") from error
        sparse_dot_mkl.mkl_set_num_threads(self.threads)
        return sparse_dot_mkl

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return ``S @ x`` into one and the same array."""
        product = self._library().dot_product_mkl
        out = np.zeros(S.shape[0], S.dtype)
        return lambda: product(S, x, out=out, out_scalar=0.0)

    def ml(
        self, operation: str, S: sp.csr_array, operands: list[np.ndarray[Any, Any]]
    ) -> dict[str, Callable[[], Any]]:
        """Return ``S @ B`` into one and the same array."""
        if operation != "spmm":
            raise Absent(f"has no {operation}")
        product = self._library().dot_product_mkl
        out = np.zeros((S.shape[0], operands[0].shape[1]), S.dtype)
        return {"mkl": lambda: product(S, operands[0], out=out, out_scalar=0.0)}


class Torch(Peer):
    """PyTorch on the CPU, CSR."""

    name = "torch"

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def version(self) -> str:
        """Return PyTorch's version."""
        return f"{_version('torch')}, {self.threads} threads"

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return the product of a CSR tensor and a vector."""
        import torch

        torch.set_num_threads(self.threads)
        parts = (torch.from_numpy(np.array(a)) for a in (S.indptr, S.indices, S.data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that sparse CSR is in beta
            tensor = torch.sparse_csr_tensor(*parts, size=S.shape)
        vector = torch.from_numpy(x)
        return lambda: tensor @ vector

    def ml(
        self, operation: str, S: sp.csr_array, operands: list[np.ndarray[Any, Any]]
    ) -> dict[str, Callable[[], Any]]:
        """Return torch.sparse.mm, sampled_addmm, or the one after the other."""
        import torch

        torch.set_num_threads(self.threads)
        parts = (torch.from_numpy(np.array(a)) for a in (S.indptr, S.indices, S.data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that sparse CSR is in beta
            tensor = torch.sparse_csr_tensor(*parts, size=S.shape)
        dense = [torch.from_numpy(x) for x in operands]
        if operation == "spmm":
            return {"torch": lambda: torch.sparse.mm(tensor, dense[0])}

        def sampled() -> Any:
            return torch.sparse.sampled_addmm(tensor, dense[0], dense[1].t(), beta=0.0)

        if operation == "sddmm":
            return {"torch": lambda: sampled().values()}
        return {"torch": lambda: torch.sparse.mm(sampled(), dense[2])}


class PyAmg(Peer):
    """PyAMG's Krylov solvers, over SciPy's products."""

    name = "pyamg"

    def version(self) -> str:
        """Return PyAMG's version."""
        return _version("pyamg")

    def solve(
        self,
        method: str,
        S: sp.csr_array,
        b: np.ndarray[Any, Any],
        iterations: int,
        restart: int,
        tick: Callable[..., None] | None = None,
    ) -> Callable[[], Any]:
        """Return a solve that cannot converge, so that it does all iterations."""
        from pyamg import krylov

        if method not in ("cg", "bicgstab"):
            raise Absent(f"has no comparable {method}")
        function = getattr(krylov, method)
        return lambda: function(S, b, tol=0.0, maxiter=iterations)[0]


class CuPy(Peer):
    """CuPy: cuSPARSE, and solvers over it."""

    name = "cupy"
    capture = staticmethod(capture_by_cupy)

    def version(self) -> str:
        """Return CuPy's version."""
        return _version("cupy-cuda13x", "cupy-cuda12x", "cupy")

    def _placed(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> tuple[Any, Any]:
        import cupy
        import cupyx.scipy.sparse

        return cupyx.scipy.sparse.csr_matrix(sp.csr_matrix(S)), cupy.asarray(x)

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return cuSPARSE's product."""
        matrix, vector = self._placed(S, x)
        return lambda: matrix @ vector

    def solve(
        self,
        method: str,
        S: sp.csr_array,
        b: np.ndarray[Any, Any],
        iterations: int,
        restart: int,
        tick: Callable[..., None] | None = None,
    ) -> Callable[[], Any]:
        """Return a solve that cannot converge, so that it does all iterations."""
        import cupyx.scipy.sparse.linalg as namespace

        if method not in ("cg", "cgs", "gmres"):
            raise Absent(f"has no {method}")
        function = getattr(namespace, method)
        matrix, vector = self._placed(S, b)
        extra = {"restart": restart} if method == "gmres" else {}
        return lambda: function(matrix, vector, tol=0.0, maxiter=iterations, **extra)[0]

    def synchronize(self) -> None:
        """Wait for the device."""
        import cupy

        cupy.cuda.get_current_stream().synchronize()

    def to_host(self, result: Any) -> Any:
        """Return a device array as a NumPy array."""
        return result.get()


def peers(executor: Executor, names: Sequence[str] | None = None) -> list[Peer]:
    """Return the libraries that an executor is compared with, installed or not.

    Parameters
    ----------
    executor : Executor
        Ours.
    names : sequence of str, optional
        Only these.

    Raises
    ------
    InvalidArgument
        If there is none of such a name.
    """
    threads = int(executor.properties.get("threads", 1))
    known: list[Peer] = [SciPy(), Mkl(threads), Torch(threads), PyAmg()]
    if executor.backend == "cuda":
        known = [CuPy()]
    for name in names or ():
        if name not in [peer.name for peer in known]:
            listed = ", ".join(peer.name for peer in known)
            raise InvalidArgument(f"no peer of {executor.name} is called {name!r}; known: {listed}")
    return [peer for peer in known if not names or peer.name in names]
