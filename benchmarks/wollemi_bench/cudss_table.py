"""The cost of ``Direct`` over cuDSS: ``python -m wollemi_bench.cudss_table > table.md``, on a GPU.

Each phase is timed as cuDSS's bindings do it, called as its examples do, and as ``Direct`` does it,
one after the other in each round: the median of the ratios, least and most. A solve is one
application of the factors, ``solver @ b``, on arrays of the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from operator import matmul
from typing import Annotated, Any

import numpy as np
import typer

import wollemi as wl

from .cases import case

#: The cases: a plane, cubes, convection.
CASES = ("stencil5:512", "stencil7:32", "stencil7:64", "stencil27:32")

_TYPES = {"float32": 0, "float64": 1, "complex64": 4, "complex128": 5}  # cudaDataType_t


class Bare:
    """cuDSS by its bindings alone, as ``Direct`` sets it up: Hermitian or general."""

    def __init__(self, A: Any, hermitian: bool) -> None:
        from nvmath.bindings import cudss

        self.cudss, self.A, self.n = cudss, A, A.shape[0]
        self.type = _TYPES[A.dtype.name]
        self.handle = cudss.create()
        self.config, self.data = cudss.config_create(), cudss.data_create(self.handle)
        index = 10 if A.index_dtype == np.int32 else 24
        kind = "GENERAL" if not hermitian else "SYMMETRIC"
        self.matrix = cudss.matrix_create_csr(
            self.n, self.n, A.nnz, A.indptr.data.ptr, 0, A.indices.data.ptr, A.data.data.ptr,
            index, index, self.type, int(cudss.MatrixType[kind]), 2 if hermitian else 0, 0,
        )  # fmt: skip
        self.vectors = self.dense(1, 0), self.dense(1, 0)
        self.execute("ANALYSIS")
        self.execute("FACTORIZATION")

    def dense(self, columns: int, address: int) -> int:
        """Return a descriptor of a block by columns."""
        return int(self.cudss.matrix_create_dn(self.n, columns, self.n, address, self.type, 0))

    def execute(self, phase: str, x: int | None = None, b: int | None = None) -> None:
        """Execute a phase."""
        solution, given = (x, b) if x is not None else self.vectors
        self.cudss.execute(
            self.handle, int(self.cudss.Phase[phase]), self.config, self.data, self.matrix,
            solution, given,
        )  # fmt: skip

    def close(self) -> None:
        """Give everything back."""
        cudss = self.cudss
        for matrix in (self.matrix, *self.vectors):
            cudss.matrix_destroy(matrix)
        cudss.data_destroy(self.handle, self.data)
        cudss.config_destroy(self.config)
        cudss.destroy(self.handle)


def ratios(
    executor: Any, rounds: int, bare: Callable[[], Any], ours: Callable[[], Any]
) -> tuple[float, str]:
    """Return the milliseconds of the first, and wollemi's by them."""
    found = []
    for _ in range(rounds + 1):
        pair = []
        for call in (bare, ours):
            executor.synchronize()
            began = time.perf_counter()
            call()
            executor.synchronize()
            pair.append(time.perf_counter() - began)
        found.append(pair)
    times = np.array(found[1:])  # the first loads code
    least, middle, most = np.percentile(times[:, 1] / times[:, 0], (0, 50, 100))
    return 1e3 * float(np.median(times[:, 0])), f"{middle:.3f} ({least:.2f} to {most:.2f})"


def measured(S: Any, rounds: int, on: Any) -> list[tuple[str, float, str]]:
    """Return the phases with their milliseconds and ratios."""
    A = wl.Csr(S, executor=on)
    hermitian = bool((S != S.T).nnz == 0)
    bare, solver = Bare(A, hermitian), wl.solvers.Direct(A, engine="cudss")
    rng, rows = np.random.default_rng(0), []

    def make() -> None:
        Bare(A, hermitian).close()

    setup = ratios(on, max(rounds // 3, 2), make, lambda: wl.solvers.Direct(A, engine="cudss"))
    rows.append(("set-up", *setup))
    again = ratios(on, rounds, lambda: bare.execute("REFACTORIZATION"), solver.update)
    rows.append(("refactorization", *again))
    for columns in (1, 16):
        b = on.from_host(rng.standard_normal((A.shape[0], columns)).astype(S.dtype))
        given = on.xp.asfortranarray(b)
        x = on.xp.empty_like(given)
        handles = bare.dense(columns, x.data.ptr), bare.dense(columns, given.data.ptr)
        execute = partial(bare.execute, "SOLVE", *handles)
        found = ratios(on, rounds, execute, partial(matmul, solver, b))
        rows.append((f"solve, {columns} columns", *found))
    residual = np.abs(S @ on.to_host(solver @ b) - on.to_host(b)).max()
    assert residual < 1e-3 * np.abs(on.to_host(b)).max(), residual
    bare.close()
    return rows


def main(
    executor: Annotated[str, typer.Option(help="An NVIDIA GPU.")] = "cuda:0",
    rounds: Annotated[int, typer.Option(help="Times that each is done.", min=2)] = 15,
) -> None:
    """Print the table."""
    on = wl.executor(executor)
    print("| system | phase | cuDSS | `Direct` by it |\n| --- | --- | --- | --- |")
    for name in CASES:
        for phase, milliseconds, ratio in measured(case(name).matrix(), rounds, on):
            print(f"| {name} | {phase} | {milliseconds:.3g} ms | {ratio} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
