"""The libraries of the suite races: each solves a system to a residual, set-up included.

A library takes part in a contest for each method that it has: ``cg-jacobi``, ``cg-amg``,
``bicgstab-jacobi`` and ``direct``. The clock starts with the matrix in compressed rows as arrays
of the library's device, and ends when the solution is there.
"""

from __future__ import annotations

import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import files
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import wollemi as wl
from wollemi.core.executor import Executor

from . import petsc
from .peers import Absent, version_of

#: Iterations of a solve at most.
MOST = 20_000

#: Methods of contests, in the order of tables.
METHODS = ("cg-jacobi", "cg-amg", "bicgstab-jacobi", "solve")

HostArray = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Solved:
    """The outcome of one solve, set-up included.

    Attributes
    ----------
    setup, solve : float
        Seconds of the set-up and of the solve.
    x : callable
        Returns the solution as a NumPy array.
    iterations : int or None
        None if the library does not tell them.
    note : str
        The method and preconditioner that the library chose, or "".
    """

    setup: float
    solve: float
    x: Callable[[], HostArray]
    iterations: int | None = None
    note: str = ""

    @property
    def seconds(self) -> float:
        """Set-up and solve together."""
        return self.setup + self.solve


#: Makes the solver of a placed matrix; the solver returns the solution and the iterations.
SetUp = Callable[[], Callable[[], tuple[Any, int | None]]]


class RacePeer(ABC):
    """A library.

    Attributes
    ----------
    name : str
        Its name in records.
    methods : tuple of str
        That it takes part in.
    most_rows : int
        It takes no part in larger systems, where one solve takes tens of seconds.
    """

    name: str
    methods: tuple[str, ...]
    most_rows: int = 2_000_000

    @cached_property
    def begun(self) -> set[str]:
        """The methods that it has solved a system by."""
        return set()

    @abstractmethod
    def version(self) -> str:
        """Return the version; raises Absent if the library is not installed."""

    @abstractmethod
    def placed(self, method: str, S: sp.csr_array, b: HostArray, rtol: float) -> SetUp:
        """Copy a system to the library's device, and return the timed set-up.

        Raises
        ------
        Absent
            If the library has no such method here.
        """

    def synchronize(self) -> None:  # noqa: B027  on a CPU there is nothing to wait for
        """Wait for submitted work."""

    def to_host(self, x: Any) -> HostArray:
        """Return a solution as a NumPy array."""
        return np.asarray(x)

    def entry(
        self, method: str, S: sp.csr_array, b: HostArray, rtol: float
    ) -> Callable[[], Solved]:
        """Return the function that solves a system once from its arrays, and times that."""
        set_up = self.placed(method, S, b, rtol)

        def call() -> Solved:
            self.synchronize()
            times = [time.perf_counter()]
            solver = set_up()
            self.synchronize()
            times.append(time.perf_counter())
            x, iterations = solver()
            self.synchronize()
            times.append(time.perf_counter())
            setup, solve = np.diff(times)
            return Solved(float(setup), float(solve), lambda: self.to_host(x), iterations)

        return call


class Wollemi(RacePeer):
    """wollemi on an executor."""

    name = "wollemi"
    methods = METHODS
    most_rows = 2**31

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def version(self) -> str:
        """Return the version."""
        return version_of("wollemi")

    def synchronize(self) -> None:
        """Wait for the executor."""
        self.executor.synchronize()

    def to_host(self, x: Any) -> HostArray:
        """Return a solution as a NumPy array."""
        return np.asarray(self.executor.to_host(x))

    def placed(self, method: str, S: sp.csr_array, b: HostArray, rtol: float) -> SetUp:
        """Copy the arrays to the executor."""
        parts = tuple(self.executor.from_host(a) for a in (S.data, S.indices, S.indptr))
        right = self.executor.from_host(b)

        def matrix() -> wl.Csr:
            return wl.Csr(parts, S.shape, executor=self.executor)

        if method == "solve":

            def choose() -> Callable[[], tuple[Any, int | None]]:
                A = matrix()

                def solve() -> tuple[Any, int | None]:
                    result = wl.solve(A, right, rtol=rtol)
                    return result.x, result.iterations

                return solve

            return choose
        kind, _, M = method.partition("-")
        stop = {"rtol": rtol, "maxiter": MOST}

        def set_up() -> Callable[[], tuple[Any, int | None]]:
            solver = getattr(wl.solvers, kind.capitalize())(matrix(), M, **stop)

            def solve() -> tuple[Any, int | None]:
                result = solver.solve(right)
                return result.x, result.iterations

            return solve

        return set_up


class _Counter:
    """A callback that counts iterations."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_: Any) -> None:
        self.count += 1


def _scaled(diagonal: Any) -> Callable[[Any], Any]:
    """Return the product with the inverse of a diagonal."""
    inverse = 1.0 / diagonal
    return lambda r: inverse * r


class SciPy(RacePeer):
    """SciPy: one thread; SuperLU."""

    name = "scipy"
    methods = ("cg-jacobi", "bicgstab-jacobi", "solve")
    most_rows = 300_000

    def version(self) -> str:
        """Return SciPy's version."""
        return version_of("scipy")

    def placed(self, method: str, S: sp.csr_array, b: HostArray, rtol: float) -> SetUp:
        """Return the set-up; the factorization is part of a direct solve."""
        if method == "solve":
            return lambda: lambda: (sla.spsolve(S.tocsc(), b), None)
        function = getattr(sla, method.partition("-")[0])

        def set_up() -> Callable[[], tuple[Any, int | None]]:
            M = sla.LinearOperator(S.shape, _scaled(S.diagonal()), dtype=S.dtype)
            tick = _Counter()

            def solve() -> tuple[Any, int | None]:
                x = function(S, b, rtol=rtol, atol=0.0, maxiter=MOST, M=M, callback=tick)[0]
                return x, tick.count

            return solve

        return set_up


class PyAmg(RacePeer):
    """PyAMG: smoothed aggregation with its default settings, accelerated by CG."""

    name = "pyamg"
    methods = ("cg-amg",)

    def version(self) -> str:
        """Return PyAMG's version."""
        return version_of("pyamg")

    def placed(self, method: str, S: sp.csr_array, b: HostArray, rtol: float) -> SetUp:
        """Return the set-up of the hierarchy."""
        import pyamg

        matrix = sp.csr_matrix(S)

        def set_up() -> Callable[[], tuple[Any, int | None]]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                hierarchy = pyamg.smoothed_aggregation_solver(matrix)

            def solve() -> tuple[Any, int | None]:
                norms: list[float] = []
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    x = hierarchy.solve(b, tol=rtol, maxiter=500, accel="cg", residuals=norms)
                return x, len(norms) - 1

            return solve

        return set_up


class Pardiso(RacePeer):
    """MKL's PARDISO through pypardiso."""

    name = "pypardiso"
    methods = ("solve",)
    most_rows = 300_000

    def version(self) -> str:
        """Return the versions of pypardiso and of MKL."""
        found = f"{version_of('pypardiso')}, MKL {version_of('mkl')}"
        library = next((f for f in files("mkl") or [] if f.name.startswith("libmkl_rt.so")), None)
        if library is not None:
            os.environ.setdefault("PYPARDISO_MKL_RT", str(library.locate()))
        try:
            import pypardiso  # noqa: F401
        except ImportError as error:
            raise Absent(f"its MKL is not found: {error}") from error
        return found

    def placed(self, method: str, S: sp.csr_array, b: HostArray, rtol: float) -> SetUp:
        """Return the set-up, which includes the factorization."""
        import pypardiso

        matrix = sp.csr_matrix(S)

        def set_up() -> Callable[[], tuple[Any, int | None]]:
            solver = pypardiso.PyPardisoSolver()
            solver.factorize(matrix)
            return lambda: (solver.solve(matrix, b), None)

        return set_up


class Petsc(RacePeer):
    """PETSc on one thread with its Jacobi, its GAMG, or hypre's BoomerAMG."""

    def __init__(self, name: str, methods: tuple[str, ...], options: dict[str, str]) -> None:
        self.name, self.methods, self._options = name, methods, options

    def version(self) -> str:
        """Return PETSc's version."""
        found = petsc.version()
        return found if self.name == "petsc" else f"through PETSc {found}"

    def placed(self, method: str, S: sp.csr_array, b: HostArray, rtol: float) -> SetUp:
        """Raise Absent: a process of its own tells its times, see :meth:`entry`."""
        raise Absent("runs in a process of its own")

    def entry(
        self, method: str, S: sp.csr_array, b: HostArray, rtol: float
    ) -> Callable[[], Solved]:
        """Return the function that runs PETSc in a process of its own."""
        options = {"ksp_type": "cg" if method.startswith("cg") else "bcgs", **self._options}

        def call() -> Solved:
            done = petsc.cg(S, b, options, rtol)
            return Solved(done.setup, done.solve, lambda: done.x, done.iterations)

        return call


class CuPy(RacePeer):
    """CuPy's solvers on cuSPARSE's products."""

    name = "cupy"
    methods = ("cg-jacobi",)
    most_rows = 2**31

    def version(self) -> str:
        """Return CuPy's version."""
        return version_of("cupy-cuda13x", "cupy-cuda12x", "cupy")

    def synchronize(self) -> None:
        """Wait for the device."""
        import cupy

        cupy.cuda.Device().synchronize()

    def to_host(self, x: Any) -> HostArray:
        """Return a solution as a NumPy array."""
        return np.asarray(x.get())

    def placed(self, method: str, S: sp.csr_array, b: HostArray, rtol: float) -> SetUp:
        """Copy the arrays to the device."""
        import cupy
        import cupyx.scipy.sparse as csp
        import cupyx.scipy.sparse.linalg as csla

        from .peers_gpu import without_tolerance

        parts = tuple(cupy.asarray(a) for a in (S.data, S.indices, S.indptr))
        right = cupy.asarray(b)
        name = next(iter(without_tolerance(csla.cg)))

        def set_up() -> Callable[[], tuple[Any, int | None]]:
            A = csp.csr_matrix(parts, shape=S.shape)
            M = csla.LinearOperator(S.shape, _scaled(A.diagonal()), dtype=S.dtype)
            tick = _Counter()

            def solve() -> tuple[Any, int | None]:
                stop = {name: rtol, "atol": 0.0, "maxiter": MOST}
                return csla.cg(A, right, M=M, callback=tick, **stop)[0], tick.count

            return solve

        return set_up


class Warp(RacePeer):
    """NVIDIA Warp's solvers, captured: the loop with its test of convergence is one graph."""

    name = "warp"
    methods = ("cg-jacobi", "bicgstab-jacobi")

    def __init__(self, device: str = "cuda") -> None:
        self.device = device
        # its sums take 30 ms an iteration on a CPU, of 16,000 unknowns
        self.most_rows = 2**31 if device == "cuda" else 20_000

    def version(self) -> str:
        """Return Warp's version."""
        return version_of("warp-lang")

    def synchronize(self) -> None:
        """Wait for the device."""
        import warp

        warp.synchronize()

    def to_host(self, x: Any) -> HostArray:
        """Return a solution as a NumPy array."""
        return np.asarray(x.numpy())

    def placed(self, method: str, S: sp.csr_array, b: HostArray, rtol: float) -> SetUp:
        """Copy the arrays to the device."""
        import warp
        import warp.optim.linear as linear
        import warp.sparse

        warp.config.quiet = True
        function = getattr(linear, method.partition("-")[0])
        columns, offsets = (
            warp.array(a, dtype=int, device=self.device) for a in (S.indices, S.indptr)
        )
        values, right = (warp.array(a, device=self.device) for a in (S.data, b))

        def set_up() -> Callable[[], tuple[Any, int | None]]:
            A = warp.sparse.bsr_zeros(*S.shape, block_type=values.dtype, device=self.device)
            A.offsets, A.columns, A.values = offsets, columns, values
            A.notify_nnz_changed(nnz=S.nnz)
            x = warp.zeros_like(right)
            stop = {"tol": rtol, "atol": 0.0, "maxiter": MOST}
            M = linear.preconditioner(A, "diag")
            # a graph tests convergence on the device; a CPU has no graphs
            every = 0 if self.device == "cuda" else 10
            solver = function(A, right, x, M=M, check_every=every, run=False, **stop)

            def solve() -> tuple[Any, int | None]:
                iterations = solver()[0]
                return x, int(iterations if every else iterations.numpy()[0])

            return solve

        return set_up


class TorchSla(RacePeer):
    """torch-sla's own iterative solvers on PyTorch's tensors."""

    name = "torch-sla"
    methods = ("cg-jacobi", "bicgstab-jacobi")
    most_rows = 2**31

    def __init__(self, device: str = "cuda") -> None:
        self.device = device

    def version(self) -> str:
        """Return the versions of torch-sla and of PyTorch."""
        return f"{version_of('torch-sla')}, torch {version_of('torch')}"

    def synchronize(self) -> None:
        """Wait for the device."""
        import torch

        if self.device == "cuda":
            torch.cuda.synchronize()

    def to_host(self, x: Any) -> HostArray:
        """Return a solution as a NumPy array."""
        return np.asarray(x.cpu().numpy())

    def placed(self, method: str, S: sp.csr_array, b: HostArray, rtol: float) -> SetUp:
        """Copy coordinates to the device."""
        import torch
        from torch_sla.backends import pytorch_backend

        if self.device == "cuda" and not torch.cuda.is_available():
            raise Absent("PyTorch sees no GPU")
        where = sp.coo_array(S)
        data, row, col, right = (
            torch.as_tensor(a).to(self.device)
            for a in (S.data, where.row.astype(np.int64), where.col.astype(np.int64), b)
        )
        given = (data, row, col, S.shape, right)
        stop = {"atol": 0.0, "rtol": rtol, "maxiter": MOST, "preconditioner": "jacobi"}

        def conjugate() -> tuple[Any, int | None]:
            found = pytorch_backend.pcg_solve_fused(*given, **stop)
            return found.x, int(found.num_iters)

        def stabilized() -> tuple[Any, int | None]:
            x, iterations, _ = pytorch_backend.pbicgstab_solve(*given, **stop)
            return x, int(iterations)

        return lambda: conjugate if method.startswith("cg") else stabilized


class Jax(RacePeer):
    """JAX's solvers, compiled, on products of BCOO or BCSR, whichever the platform compiles."""

    name = "jax"
    methods = ("cg-jacobi", "bicgstab-jacobi")

    def version(self) -> str:
        """Return JAX's version."""
        return version_of("jax")

    def placed(self, method: str, S: sp.csr_array, b: HostArray, rtol: float) -> SetUp:
        """Copy the arrays to JAX's device."""
        # JAX would take three quarters of the device's memory when it is loaded
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax
        from jax.experimental import sparse

        jax.config.update("jax_enable_x64", True)
        function = getattr(jax.scipy.sparse.linalg, method.partition("-")[0])
        parts = tuple(jax.numpy.asarray(a) for a in (S.data, S.indices, S.indptr))
        right, diagonal = jax.numpy.asarray(b), jax.numpy.asarray(S.diagonal())
        stop = {"tol": rtol, "atol": 0.0, "maxiter": MOST}

        @jax.jit
        def compiled(A: Any, d: Any, v: Any) -> Any:
            return function(lambda u: A @ u, v, M=lambda r: r / d, **stop)[0]

        def set_up() -> Callable[[], tuple[Any, int | None]]:
            A = sparse.BCSR(parts, shape=S.shape)
            return lambda: (compiled(A, diagonal, right).block_until_ready(), None)

        return set_up


def race_peers(executor: Executor) -> list[RacePeer]:
    """Return the libraries that race with an executor, installed or not."""
    hosts: list[RacePeer] = [
        PyAmg(),
        Petsc("petsc", ("cg-jacobi", "bicgstab-jacobi"), {"pc_type": "jacobi"}),
        Petsc("petsc gamg", ("cg-amg",), {"pc_type": "gamg"}),
        Petsc("hypre", ("cg-amg",), {"pc_type": "hypre", "pc_hypre_type": "boomeramg"}),
    ]
    if executor.backend == "cuda":
        return [Warp(), TorchSla(), Jax(), CuPy(), *hosts]
    return [SciPy(), Warp("cpu"), TorchSla("cpu"), Jax(), *hosts, Pardiso()]
