"""The interfaces of libraries for the work besides iterations: their matrices and operations.

A piece of work (``work.py``) is written once over a side, so that all contenders do the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import wollemi as wl
from wollemi.core.executor import Executor
from wollemi.core.formats import Csr

from .peers import Absent


class Side:
    """SciPy's spelling, which others change where theirs differs."""

    #: Formats besides CSR.
    formats: tuple[str, ...] = ("csc", "coo", "bsr")

    def csr(self, S: sp.csr_array) -> Any:
        """Return a matrix by compressed rows."""
        return S

    def fresh(self, A: Any) -> Any:
        """Return the matrix over the same arrays, with nothing found out about it before."""
        return A

    def as_format(self, A: Any, name: str) -> Any:
        """Return a matrix in another format; raises Absent if there is none."""
        if name not in ("csr", *self.formats):
            raise Absent(f"has no format {name}")
        return A.asformat(name)

    def dense(self, x: np.ndarray[Any, Any]) -> Any:
        """Return an array where the library has its own."""
        return x

    def coordinates(self, S: sp.csr_array) -> Any:
        """Return ``(data, (row, col))`` in no order."""
        entries = S.tocoo()
        order = np.random.default_rng(1).permutation(entries.nnz)
        return entries.data[order], (entries.row[order], entries.col[order])

    def assembled(self, coordinates: Any, shape: tuple[int, int]) -> Any:
        """Return coordinates by compressed rows, with duplicates added up."""
        return sp.coo_array(coordinates, shape=shape).tocsr()

    def by_rows(self, A: Any) -> Any:
        """Return a matrix by compressed rows."""
        return A.tocsr()

    def galerkin(self, P: Any, A: Any) -> Any:
        """Return the operator of a coarser level."""
        return P.T @ (A @ P)

    def copied(self, S: sp.csr_array) -> Any:
        """Return a matrix over copies of the arrays of SciPy's."""
        return S.copy()

    def placed(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Return the result of a function that makes a matrix of numbers or of matrices."""
        return getattr(sp, name)(*arguments, **options)

    def norm(self, A: Any) -> Any:
        """Return the Frobenius norm."""
        return sla.norm(A)

    def update(self, A: Any, data: Any) -> None:
        """Give a matrix new values in its pattern."""
        A.data[:] = data

    def read(self, path: Path) -> Any:
        """Read a MatrixMarket file into compressed rows."""
        return sp.csr_array(scipy.io.mmread(path, spmatrix=False))

    def cg(self, A: Any, b: Any, iterations: int) -> Any:
        """Return the iterate of the functional interface after ``iterations`` iterations."""
        return sla.cg(A, b, rtol=0.0, atol=0.0, maxiter=iterations)[0]

    def solved(self, A: Any, b: Any) -> Any:
        """Return the result of the shortest call for a solution, to a residual of 1e-8."""
        return sla.cg(A, b, rtol=1e-8)[0]

    def synchronize(self) -> None:
        """Wait for submitted work."""

    def to_host(self, made: Any) -> Any:
        """Return a matrix as one of SciPy, or an array as one of NumPy."""
        return made


class Ours(Side):
    """wollemi on an executor."""

    formats = ("csc", "coo", "bsr", "ell", "sellp", "hybrid")

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def csr(self, S: sp.csr_array) -> Any:
        """Return a Csr on the executor."""
        return Csr(S, executor=self.executor)

    def fresh(self, A: Any) -> Any:
        """Return a Csr over the same arrays, without plan, transpose and other stored data."""
        return Csr._from_arrays(self.executor, A.shape, *A._native_arrays())

    def dense(self, x: np.ndarray[Any, Any]) -> Any:
        """Return an array of the executor, in the order that it has."""
        if self.executor.xp is np:
            return x
        return (
            self.executor.from_host(x.T).T if x.flags.f_contiguous else self.executor.from_host(x)
        )

    def coordinates(self, S: sp.csr_array) -> Any:
        """Return coordinates where the executor has its arrays."""
        data, where = super().coordinates(S)
        return self.dense(data), tuple(self.dense(one) for one in where)

    def assembled(self, coordinates: Any, shape: tuple[int, int]) -> Any:
        """Return a Csr of coordinates."""
        return Csr(coordinates, shape, executor=self.executor)

    def copied(self, S: sp.csr_array) -> Any:
        """Return a Csr over copies of the arrays of SciPy's."""
        return self.csr(S)

    def placed(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Return the result of the function of ``wl.sparse`` with SciPy's name."""
        function = getattr(wl.sparse, name.removesuffix("_array"))
        return function(*arguments, **options, executor=self.executor)

    def norm(self, A: Any) -> Any:
        """Return the Frobenius norm."""
        return wl.linalg.norm(A)

    def galerkin(self, P: Any, A: Any) -> Any:
        """Return the triple product."""
        return wl.galerkin(P, A)

    def update(self, A: Any, data: Any) -> None:
        """Give a matrix new values in its pattern."""
        A.update_values(data)

    def read(self, path: Path) -> Any:
        """Read a file into a Csr."""
        return wl.read(path, executor=self.executor)

    def cg(self, A: Any, b: Any, iterations: int) -> Any:
        """Return the iterate of ``wl.linalg.cg``."""
        return wl.linalg.cg(A, b, rtol=0.0, atol=0.0, maxiter=iterations)[0]

    def solved(self, A: Any, b: Any) -> Any:
        """Return the solution of ``wl.solve``."""
        return wl.solve(A, b, rtol=1e-8).x

    def synchronize(self) -> None:
        """Wait for the executor."""
        self.executor.synchronize()

    def to_host(self, made: Any) -> Any:
        """Return a matrix as one of SciPy, or an array as one of NumPy."""
        return made.to_scipy() if hasattr(made, "to_scipy") else self.executor.to_host(made)


class CuPySide(Side):
    """CuPy, with matrices like SciPy's older ones."""

    formats = ("csc", "coo")

    def csr(self, S: sp.csr_array) -> Any:
        """Return a matrix on the device."""
        import cupyx.scipy.sparse

        return cupyx.scipy.sparse.csr_matrix(sp.csr_matrix(S))

    def dense(self, x: np.ndarray[Any, Any]) -> Any:
        """Return an array of the device, in the order that it has."""
        import cupy

        return cupy.asarray(x, order="A")

    def coordinates(self, S: sp.csr_array) -> Any:
        """Return coordinates on the device."""
        data, where = super().coordinates(S)
        return self.dense(data), tuple(self.dense(one) for one in where)

    def assembled(self, coordinates: Any, shape: tuple[int, int]) -> Any:
        """Return coordinates by compressed rows, with duplicates added up."""
        import cupyx.scipy.sparse

        return cupyx.scipy.sparse.coo_matrix(coordinates, shape=shape).tocsr()

    def copied(self, S: sp.csr_array) -> Any:
        """Return a matrix over copies of the arrays of SciPy's."""
        return self.csr(S)

    def placed(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Return the result of CuPy's function, of the older name."""
        import cupyx.scipy.sparse as namespace

        function = getattr(namespace, name.removesuffix("_array"), None)
        if function is None:
            raise Absent(f"has no {name}")
        return function(*arguments, **options)

    def norm(self, A: Any) -> Any:
        """Return the Frobenius norm."""
        from cupyx.scipy.sparse.linalg import norm

        return norm(A)

    def read(self, path: Path) -> Any:
        """Raise Absent: SciPy would read it."""
        raise Absent("reads no files")

    def cg(self, A: Any, b: Any, iterations: int) -> Any:
        """Return the iterate of CuPy's function."""
        import cupyx.scipy.sparse.linalg as namespace

        from .peers_gpu import without_tolerance

        return namespace.cg(A, b, maxiter=iterations, **without_tolerance(namespace.cg))[0]

    def solved(self, A: Any, b: Any) -> Any:
        """Raise Absent: its residual is not SciPy's."""
        raise Absent("its solves to a residual are not compared")

    def synchronize(self) -> None:
        """Wait for the device."""
        import cupy

        cupy.cuda.get_current_stream().synchronize()

    def to_host(self, made: Any) -> Any:
        """Return a matrix as one of SciPy, or an array as one of NumPy."""
        return sp.csr_array(made.get()) if hasattr(made, "tocsr") else made.get()
