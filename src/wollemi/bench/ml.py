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
from .clocks import capture_by_cupy
from .contest import Contest, Settings
from .peers import Peer
from .problem import OURS, Facts, Offer, Problem, entrants, offer_of
from .report import Record, Subject, records_of
from .worker import Stations

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


class Dense(Problem):
    """One call of spmm, sddmm or fusedmm with random operands.

    Parameters
    ----------
    operation : {"spmm", "sddmm", "fusedmm"}
        What is computed.
    S : scipy.sparse.csr_array
        The matrix.
    columns : int
        Of the dense operands.
    every_kernel : bool
        Offer all our algorithms too.
    """

    def __init__(
        self, operation: str, S: sp.csr_array, columns: int, every_kernel: bool = False
    ) -> None:
        rng = np.random.default_rng(SEED)
        self.operation, self.S, self.columns = operation, S, columns
        self.every_kernel = every_kernel
        m, n = S.shape
        shapes = {"spmm": (n,), "sddmm": (m, n), "fusedmm": (m, n, n)}[operation]
        self.operands = [rng.standard_normal((rows, columns)).astype(np.float32) for rows in shapes]
        self._expected: Any
        self._expected, size = self.expected()
        # a sum of n terms loses at most n eps
        terms = int(np.diff(S.indptr).max(initial=0)) + columns
        self._bound: Any = terms * np.finfo(np.float32).eps * size + 1e-30

    def ours(self, executor: Executor) -> list[Offer]:
        """Return our call into one and the same array, by the chosen kernel and by others."""
        A = Csr(self.S, executor=executor)
        dense = [executor.from_host(x) for x in self.operands]
        shape = (A.nnz,) if self.operation == "sddmm" else (A.shape[0], self.columns)
        out = executor.zeros(shape, np.float32)
        kernels = ["auto"]
        if self.every_kernel:
            kernels += kernels_of(A, self.operation, self.columns)
        return [self._ours(A, dense, out, kernel) for kernel in kernels]

    def _ours(self, A: Csr, dense: list[Any], out: Any, kernel: str) -> Offer:
        function: Any = {"spmm": spmm, "sddmm": sddmm, "fusedmm": fusedmm}[self.operation]

        def make() -> Callable[[], Any]:
            return lambda: function(A, *dense, out=out, kernel=kernel)

        def facts() -> Facts:
            plan = A.plan_for(self.operation, self.columns, kernel)
            return Facts(
                cost=self.cost(A, dense, out),
                kernel=plan.kernel,
                notes=[f"{plan.kernel}: {plan.reason}"] if kernel == "auto" else [],
            )

        return Offer(
            OURS if kernel == "auto" else f"{OURS} {kernel}",
            make,
            A.executor.synchronize,
            A.executor.to_host,
            facts=facts,
            capture=capture_by_cupy,
        )

    def cost(self, A: Csr, dense: list[Any], out: Any) -> Cost:
        """Return what a call cannot do without."""
        blocks = [x[None] for x in dense]
        if self.operation == "spmm":
            return operations.csr_spmm.cost(A, A.data[None], *blocks, out[None], 1.0, 0.0, "")
        if self.operation == "sddmm":
            return operations.csr_sddmm.cost(A, None, *blocks, out[None], 1.0, 0.0, "")
        return operations.csr_fusedmm.cost(A, None, *blocks, out[None], 1.0, "", "")

    def theirs(self, peer: Peer) -> list[Offer]:
        """Return what a library has, in several ways perhaps."""
        calls = peer.ml(self.operation, self.S, self.operands)
        return [offer_of(peer, call, name) for name, call in calls.items()]

    def wrong(self, result: Any) -> str:
        """Return by how much a result is off, if it is."""
        if result.shape != self._expected.shape:
            return f"shape {result.shape}, expected {self._expected.shape}"
        far = np.abs(result - self._expected) - self._bound
        return "" if not far.size or far.max() <= 0 else f"off by {far.max():.2g} too much"

    def forget(self) -> None:
        """Let go of the expected result."""
        self._expected = self._bound = None

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
    stations: Stations,
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
    stations : Stations
        Where all are timed.
    columns : sequence of int
        Of the dense operands.
    every_kernel : bool
        Time all our algorithms too; what the rule lost is 1 over the least of their times.
    settings : Settings, optional
        How long to measure.
    """
    settings = settings or Settings()
    for case in cases:
        S = case.matrix("float32")
        for k in columns:
            problem = Dense(operation, S, k, every_kernel)
            contest = Contest(problem, entrants(executor, peers))
            outcomes, bandwidth = contest.run(stations, settings)
            subject = Subject.of(f"{operation}/{k}", case, problem, executor, settings, stations)
            yield from records_of(subject, outcomes, bandwidth)
