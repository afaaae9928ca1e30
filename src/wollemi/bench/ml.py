"""``wollemi bench spmm|sddmm|fusedmm``: the kernels of machine learning, float32."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.executor import Executor
from ..core.formats import Csr
from ..core.ml import fusedmm, sddmm, spmm
from ..core.operation import Cost
from ..core.operations import ml as operations
from .cases import SEED, Case
from .cases import case as case_called
from .contest import Contest, Settings
from .peers import Absent, Peer
from .report import Record, records_of
from .timing import Contender

OURS = "wollemi"

#: Recurrent networks of Zubair and Bauinger (2023): gates x width, width, sparsity; with 32 and 128
#: columns 72 cases.
ESIMD = tuple(
    f"weights:{gates * width},{width},{percent}"
    for gates in (1, 3, 4)
    for width in (1024, 2048, 4096, 8192)
    for percent in (70, 80, 90)
)

#: Graphs of any skew, and none, in the spirit of Huang et al. (2021).
GRAPHS = (
    "rmat:14,200000",
    "rmat:16,1000000",
    "rmat:18,4000000",
    "uniform:20000,20000,200000",
    "uniform:200000,200000,2000000",
    "pruned:2048,2048,90",
)

#: Pruned layers as in DLMC, besides the files of it that are here.
LAYERS = tuple(
    f"pruned:{rows},{columns},{percent}"
    for rows, columns in ((512, 512), (2048, 512), (512, 2048), (2048, 1024))
    for percent in (70, 90, 95, 98)
)

SUITES: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "square": (("weights:4096,4096,98", "weights:4096,4096,90", "weights:4096,4096,70"), (32, 128)),
    "esimd-72": (ESIMD, (32, 128)),
    "dgsparse": (GRAPHS, (1, 2, 4, 8, 32, 64, 128)),
    "dlmc": (LAYERS, (32, 128, 256)),
    "k-sweep": (("rmat:16,1000000", "weights:4096,4096,99"), (32, 128, 256, 512)),
}

#: Where tests and benchmarks find real matrices.
FOLDER = "WOLLEMI_MATRICES"


def suite(name: str) -> tuple[list[Case], tuple[int, ...]]:
    """Return the cases of a suite and the numbers of columns; DLMC's files that are here join."""
    names, columns = SUITES[name]
    folder = os.environ.get(FOLDER)
    files = sorted(Path(folder).glob("dlmc_*.smtx*")) if folder and name == "dlmc" else []
    return [case_called(str(n)) for n in (*files, *names)], columns


class Problem:
    """One call with random operands.

    Parameters
    ----------
    operation : {"spmm", "sddmm", "fusedmm"}
        What is computed.
    S : scipy.sparse.csr_array
        The matrix.
    columns : int
        Of the dense operands.
    """

    def __init__(self, operation: str, S: sp.csr_array, columns: int) -> None:
        rng = np.random.default_rng(SEED)
        self.operation, self.S = operation, S
        m, n = S.shape
        shapes = {"spmm": (n,), "sddmm": (m, n), "fusedmm": (m, n, n)}[operation]
        self.operands = [rng.standard_normal((rows, columns)).astype(np.float32) for rows in shapes]

    def ours(self, A: Csr, kernel: str) -> tuple[Callable[[], Any], Cost]:
        """Return our call into one and the same array, and what it costs."""
        on = A.executor
        dense = [on.from_host(x) for x in self.operands]
        columns = dense[0].shape[1]
        shape = (A.nnz,) if self.operation == "sddmm" else (A.shape[0], columns)
        out = on.zeros(shape, np.float32)
        blocks = [x[None] for x in dense]
        if self.operation == "spmm":
            cost = operations.csr_spmm.cost(A, A.data[None], *blocks, out[None], 1.0, 0.0, "")
            return lambda: spmm(A, *dense, out=out, kernel=kernel), cost
        if self.operation == "sddmm":
            cost = operations.csr_sddmm.cost(A, None, *blocks, out[None], 1.0, 0.0, "")
            return lambda: sddmm(A, *dense, out=out, kernel=kernel), cost
        cost = operations.csr_fusedmm.cost(A, None, *blocks, out[None], 1.0, "", "")
        return lambda: fusedmm(A, *dense, out=out, kernel=kernel), cost

    def expected(self) -> tuple[Any, Any]:
        """Return the result in float64, and the sums of absolute values behind it."""
        wide = [x.astype(np.float64) for x in self.operands]
        if self.operation == "spmm":
            S = self.S.astype(np.float64)
            return S @ wide[0], abs(S) @ np.abs(wide[0])
        rows = np.repeat(np.arange(self.S.shape[0]), np.diff(self.S.indptr))
        values, sizes = np.empty(self.S.nnz), np.empty(self.S.nnz)
        for start in range(0, self.S.nnz, 1 << 18):
            part = slice(start, start + (1 << 18))
            left, right = wide[0][rows[part]], wide[1][self.S.indices[part]]
            values[part] = np.einsum("ek,ek->e", left, right)
            sizes[part] = np.einsum("ek,ek->e", np.abs(left), np.abs(right))
        if self.operation == "sddmm":
            return values, sizes
        P, Q = (
            sp.csr_array((v, self.S.indices, self.S.indptr), shape=self.S.shape)
            for v in (values, sizes)
        )
        return P @ wide[2], Q @ np.abs(wide[2])

    def check(self) -> Callable[[Any], str]:
        """Return what tells a right result from a wrong one: n terms lose at most n eps."""
        expected, size = self.expected()
        terms = int(np.diff(self.S.indptr).max(initial=0)) + self.operands[0].shape[1]
        bound = terms * np.finfo(np.float32).eps * size + 1e-30

        def check(got: Any) -> str:
            if got.shape != expected.shape:
                return f"shape {got.shape}, expected {expected.shape}"
            far = np.abs(got - expected) - bound
            return "" if not far.size or far.max() <= 0 else f"off by {far.max():.2g} too much"

        return check


def kernels_of(A: Csr, operation: str, columns: int) -> list[str]:
    """Return the names of the algorithms that the executor has for an operation."""
    from ..core.errors import InvalidArgument

    try:
        A.plan_for(operation, columns, "?")
    except InvalidArgument as error:
        listed = str(error).rpartition("it has: ")[2].split(", ")
        return [name for name in listed if name != "auto"]
    return []


def run(
    operation: str,
    cases: Sequence[Case],
    executor: Executor,
    peers: Sequence[Peer],
    *,
    columns: Sequence[int],
    every_kernel: bool = False,
    settings: Settings | None = None,
) -> Iterator[Record]:
    """Yield the records of each case and number of columns as soon as they are there.

    Parameters
    ----------
    operation : {"spmm", "sddmm", "fusedmm"}
        What is measured.
    cases : sequence of Case
        The matrices.
    executor : Executor
        Where ours run.
    peers : sequence of Peer
        Who else runs.
    columns : sequence of int
        Of the dense operands.
    every_kernel : bool
        Time all our algorithms too; what the rule lost is 1 over the least of their times.
    settings : Settings, optional
        How long to measure.
    """
    for case in cases:
        S = case.matrix("float32")
        A = Csr(S, executor=executor)
        for k in columns:
            problem = Problem(operation, S, k)
            contest = _contest(problem, A, peers, k, every_kernel)
            outcomes, bandwidth = contest.run(executor, settings or Settings())
            plan = A.plan_for(operation, k)
            yield from records_of(
                f"{operation}/{k}",
                case.name,
                A,
                outcomes,
                bandwidth,
                cost=contest.cost,
                notes=[f"{plan.kernel}: {plan.reason}"],
            )


def _contest(
    problem: Problem, A: Csr, peers: Sequence[Peer], columns: int, every_kernel: bool
) -> Contest:
    def to_host(result: Any) -> Any:
        return A.executor.to_host(result)

    call, cost = problem.ours(A, "auto")
    contenders = [Contender(OURS, call, A.executor.synchronize, to_host)]
    absent = {}
    for kernel in kernels_of(A, problem.operation, columns) if every_kernel else ():
        call = problem.ours(A, kernel)[0]
        contenders.append(Contender(f"{OURS} {kernel}", call, A.executor.synchronize, to_host))
    for peer in peers:
        try:
            peer.version()
            for name, call in peer.ml(problem.operation, problem.S, problem.operands).items():
                contenders.append(Contender(name, call, peer.synchronize, peer.to_host))
        except Absent as error:
            absent[peer.name] = str(error)
    return Contest(contenders, problem.check(), cost, absent)
