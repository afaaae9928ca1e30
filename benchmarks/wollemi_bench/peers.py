"""Other libraries that do the same, as far as they are installed."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, files, version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from wollemi.core.errors import InvalidArgument
from wollemi.core.executor import Executor

from .clocks import Capture
from .memory import Meter, NoMeter

if TYPE_CHECKING:
    from .sides import Side

#: A dense matrix of this many entries is still compared with, 1 GB in float32, if it has no more
#: zeros than this for each entry: above them a dense product is no alternative.
DENSE_ENTRIES, DENSE_ZEROS = 1 << 28, 200


class Absent(Exception):
    """A peer that is not installed, or cannot do the request; the message says why."""


class SolveCase(NamedTuple):
    """A number of iterations from zero, which a solver of a library is to do.

    Attributes
    ----------
    method : str
        ``"cg"``, as the libraries name it.
    S : csr_array
        The matrix.
    b : array, shape (n,)
        The right-hand side.
    iterations, restart : int
        Iterations, and iterations of a cycle of GMRES.
    tick : callable, optional
        Called after each iteration, if :meth:`Peer.counts` says so.
    """

    method: str
    S: sp.csr_array
    b: np.ndarray[Any, Any]
    iterations: int
    restart: int
    tick: Callable[..., None] | None = None


class Peer(ABC):
    """A library to compare with.

    ``spmv`` and ``solve`` take SciPy's matrix and NumPy's vectors, copy them to the library's
    device, and return the function to time.

    Attributes
    ----------
    name : str
        Its name in records.
    capture : callable or None
        On a GPU: the function that captures its calls for replay.
    host_clock : bool
        On a GPU: calls wait by themselves, on streams of their own.
    keeps_kernels : bool
        On a GPU: it compiles kernels and keeps them on disk.
    """

    name: str
    capture: Capture | None = None
    host_clock: bool = False
    keeps_kernels: bool = False

    @abstractmethod
    def version(self) -> str:
        """Return the version; raises Absent if the library is not installed."""

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return a function that computes ``S @ x``."""
        raise Absent("its SpMV is not compared")

    def solve(self, case: SolveCase) -> Callable[[], Any]:
        """Return a function that does this number of iterations from zero and returns ``x``."""
        raise Absent(f"its {case.method} is not compared")

    def counts(self, method: str) -> bool:
        """Whether iterations of a method can be counted."""
        return False

    def has(self, kind: str) -> bool:
        """Whether it takes part in a kind of contest: ``spmv``, ``solve``, ``ml``, ``side``."""
        return getattr(type(self), kind) is not getattr(Peer, kind)

    def ml(
        self, operation: str, S: sp.csr_array, operands: list[np.ndarray[Any, Any]]
    ) -> dict[str, Callable[[], Any]]:
        """Return by name the functions that compute spmm, sddmm or fusedmm."""
        raise Absent(f"its {operation} is not compared")

    def side(self) -> Side:
        """Return its interface for the work besides iterations."""
        raise Absent("its work besides iterations is not compared")

    def meter(self) -> Meter:
        """Return a meter of its memory on a GPU."""
        return NoMeter()

    def synchronize(self) -> None:  # noqa: B027  on a CPU there is nothing to wait for
        """Wait for submitted work."""

    def to_host(self, result: Any) -> Any:
        """Return a result as a NumPy array."""
        return np.asarray(result)


def version_of(*names: str) -> str:
    """Return the version of the first of these packages that is installed."""
    for name in names:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    raise Absent(f"not installed: pip install {names[0]}")


def worth_a_dense_product(S: sp.csr_array) -> bool:
    """Whether storing all zeros is a realistic alternative."""
    size = S.shape[0] * S.shape[1]
    return bool(size <= min(DENSE_ENTRIES, DENSE_ZEROS * S.nnz))


def no_halves(operands: Sequence[np.ndarray[Any, Any]]) -> None:
    """Raise Absent for operands in half precision."""
    if operands[0].dtype.itemsize < np.dtype(np.float32).itemsize:
        raise Absent("has no half precision here")


class SciPy(Peer):
    """SciPy: one thread."""

    name = "scipy"

    def version(self) -> str:
        """Return SciPy's version."""
        return version_of("scipy")

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return ``S @ x``."""
        return lambda: S @ x

    def ml(
        self, operation: str, S: sp.csr_array, operands: list[np.ndarray[Any, Any]]
    ) -> dict[str, Callable[[], Any]]:
        """Return ``S @ B``, and the product with all zeros where it fits."""
        no_halves(operands)
        if operation != "spmm":
            raise Absent(f"has no {operation}")
        B = operands[0]
        calls: dict[str, Callable[[], Any]] = {"scipy": lambda: S @ B}
        if worth_a_dense_product(S):
            D = S.toarray()
            calls["dense (numpy)"] = lambda: D @ B
        return calls

    def solve(self, case: SolveCase) -> Callable[[], Any]:
        """Return a solve that cannot converge, so that it does all iterations."""
        method, S, b = case.method, case.S, case.b
        function = getattr(sla, method)
        more: dict[str, Any] = {"maxiter": case.iterations, "callback": case.tick}
        if method == "gmres":  # it counts cycles
            more |= {"maxiter": case.iterations // case.restart, "restart": case.restart}
            more |= {"callback_type": "pr_norm"}

        def call() -> Any:
            # NumPy's warnings come where a residual has come down to nothing
            with np.errstate(all="ignore"):
                return function(S, b, rtol=0.0, atol=0.0, **more)[0]

        return call

    def counts(self, method: str) -> bool:
        """Whether iterations of a method can be counted: SciPy calls back after each."""
        return True

    def side(self) -> Side:
        """Return SciPy's spelling."""
        from .sides import Side

        return Side()


class Mkl(Peer):
    """Intel's MKL through ``sparse_dot_mkl``, with as many threads as the executor has."""

    name = "mkl"

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def version(self) -> str:
        """Return the versions of the wrapper and of MKL."""
        wrapper = version_of("sparse_dot_mkl")
        return f"{wrapper}, MKL {version_of('mkl')}, {self.threads} threads"

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
        no_halves(operands)
        if operation != "spmm":
            raise Absent(f"has no {operation}")
        product = self._library().dot_product_mkl
        out = np.zeros((S.shape[0], operands[0].shape[1]), S.dtype)
        return {"mkl": lambda: product(S, operands[0], out=out, out_scalar=0.0)}


class TorchTensors(Peer):
    """PyTorch over CSR tensors, wherever :meth:`_sent` puts them."""

    name = "torch"

    def _library(self) -> Any:
        """Return PyTorch, ready to compute; raises Absent if it cannot."""
        import torch

        return torch

    def _sent(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a tensor of an array."""
        return self._library().from_numpy(array)

    def _tensor(self, S: sp.csr_array, dtype: Any) -> Any:
        parts = [self._sent(np.array(a)) for a in (S.indptr, S.indices, S.data.astype(dtype))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that sparse CSR is in beta
            return self._library().sparse_csr_tensor(*parts, size=S.shape)

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return the product of a CSR tensor and a vector."""
        tensor, vector = self._tensor(S, S.dtype), self._sent(x)
        return lambda: tensor @ vector

    def ml(
        self, operation: str, S: sp.csr_array, operands: list[np.ndarray[Any, Any]]
    ) -> dict[str, Callable[[], Any]]:
        """Return torch.sparse.mm, sampled_addmm, or the one after the other."""
        sparse, tensor = self._library().sparse, self._tensor(S, operands[0].dtype)
        dense = [self._sent(x) for x in operands]
        if operation == "spmm":
            return {"torch": lambda: sparse.mm(tensor, dense[0])}

        def sampled() -> Any:
            return sparse.sampled_addmm(tensor, dense[0], dense[1].t(), beta=0.0)

        if operation == "sddmm":
            return {"torch": lambda: sampled().values()}
        return {"torch": lambda: sparse.mm(sampled(), dense[2])}


class Torch(TorchTensors):
    """PyTorch on the CPU, CSR."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def version(self) -> str:
        """Return PyTorch's version."""
        return f"{version_of('torch')}, {self.threads} threads"

    def _library(self) -> Any:
        torch = super()._library()
        torch.set_num_threads(self.threads)
        return torch

    def ml(
        self, operation: str, S: sp.csr_array, operands: list[np.ndarray[Any, Any]]
    ) -> dict[str, Callable[[], Any]]:
        """Return torch.sparse.mm, sampled_addmm, or the one after the other."""
        no_halves(operands)
        return super().ml(operation, S, operands)


class PyAmg(Peer):
    """PyAMG's Krylov solvers, over SciPy's products."""

    name = "pyamg"

    def version(self) -> str:
        """Return PyAMG's version."""
        return version_of("pyamg")

    def solve(self, case: SolveCase) -> Callable[[], Any]:
        """Return a solve that cannot converge, so that it does all iterations."""
        method, S, b = case.method, case.S, case.b
        from pyamg import krylov

        if method not in ("cg", "bicgstab", "gmres"):
            raise Absent(f"has no {method}")
        function = getattr(krylov, method)
        more: dict[str, Any] = {"maxiter": case.iterations, "callback": case.tick}
        if method == "gmres":  # by modified Gram-Schmidt, as SciPy's and wollemi's
            more |= {
                "maxiter": case.iterations // case.restart,
                "restart": case.restart,
                "orthog": "mgs",
            }

        def call() -> Any:
            # it says that it did not converge, and NumPy where a residual comes down to nothing
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return function(S, b, tol=0.0, **more)[0]

        return call

    def counts(self, method: str) -> bool:
        """Whether iterations can be counted: PyAMG calls back after each."""
        return method != "gmres"


class Numba(Peer):
    """Loops over rows that Numba compiles, with as many threads as the executor has."""

    name = "numba"

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def version(self) -> str:
        """Return Numba's version."""
        return f"{version_of('numba')}, {self.threads} threads"

    def _kernels(self) -> dict[str, Any]:
        import numba

        from .peers_numba import kernels

        numba.set_num_threads(min(self.threads, numba.config.NUMBA_NUM_THREADS))
        return kernels()

    def spmv(self, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Return the product into one and the same array."""
        kernel, y = self._kernels()["spmv"], np.empty(S.shape[0], S.dtype)

        def call() -> Any:
            kernel(S.indptr, S.indices, S.data, x, y)
            return y

        return call

    def ml(
        self, operation: str, S: sp.csr_array, operands: list[np.ndarray[Any, Any]]
    ) -> dict[str, Callable[[], Any]]:
        """Return spmm, sddmm, or the one after the other, into the same arrays."""
        no_halves(operands)
        kernels = self._kernels()
        values = S.data if operation == "spmm" else np.empty_like(S.data)
        out = np.empty((S.shape[0], operands[-1].shape[1]), S.dtype)

        def call() -> Any:
            if operation != "spmm":
                kernels["sddmm"](S.indptr, S.indices, operands[0], operands[1], values)
            if operation == "sddmm":
                return values
            kernels["spmm"](S.indptr, S.indices, values, operands[-1], out)
            return out

        return {self.name: call}


def peers(executor: Executor, names: Sequence[str] | None = None) -> list[Peer]:
    """Return the libraries that an executor is compared with, installed or not.

    Parameters
    ----------
    executor : Executor
        The executor of wollemi.
    names : sequence of str, optional
        Only these.

    Raises
    ------
    InvalidArgument
        If there is none of such a name.
    """
    threads = int(executor.properties.get("threads", 1))
    known: list[Peer] = [SciPy(), Mkl(threads), Torch(threads), PyAmg(), Numba(threads)]
    if executor.backend == "cuda":
        from .peers_gpu import CuPy, Jax, TorchGpu, Warp

        known = [CuPy(), TorchGpu(), Warp(), Jax()]
    elif executor.backend == "dpcpp":
        from .peers_omp import Omp

        known.insert(0, Omp(threads))
    for name in names or ():
        if name not in [peer.name for peer in known]:
            listed = ", ".join(peer.name for peer in known)
            raise InvalidArgument(f"no peer of {executor.name} is called {name!r}; known: {listed}")
    return [peer for peer in known if not names or peer.name in names]
