"""``wollemi bench spmv``: a sparse matrix times a vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.dtypes import real_dtype
from ..core.executor import Executor
from ..core.formats import Csr, Matrix
from ..core.operation import OPERATIONS
from .cases import SEED, Case
from .contest import Contest, Settings
from .peers import Absent, Peer
from .report import Record, records_of
from .timing import Contender

#: What is measured when nothing is named: bandwidth alone, more reuse of x, and irregular rows.
DEFAULT_CASES = ("stencil5:1000", "stencil7:100", "stencil27:80", "rmat:18,4000000")

OURS = "wollemi"


def run(
    cases: Sequence[Case],
    executor: Executor,
    peers: Sequence[Peer],
    *,
    format: str = "csr",
    dtype: str = "float64",
    settings: Settings | None = None,
) -> Iterator[Record]:
    """Yield the records of each case as soon as they are there.

    Parameters
    ----------
    cases : sequence of Case
        The matrices.
    executor : Executor
        Where ours run.
    peers : sequence of Peer
        Who else runs.
    format, dtype : str
        Of our matrix; peers take CSR of that dtype.
    settings : Settings, optional
        How long to measure.
    """
    for case in cases:
        S = case.matrix(dtype)
        A = Csr(S, executor=executor).asformat(format)
        contest = spmv_contest(S, A, peers)
        outcomes, bandwidth = contest.run(executor, settings or Settings())
        plan = getattr(A, "plan", None)
        yield from records_of(
            "spmv",
            case.name,
            A,
            outcomes,
            bandwidth,
            cost=contest.cost,
            notes=[] if plan is None else [f"{plan.kernel}: {plan.reason}"],
        )


def spmv_contest(S: sp.csr_array, A: Matrix, peers: Sequence[Peer]) -> Contest:
    """Return the contest of ``A @ x``."""
    x_host = random_vector(S.shape[1], S.dtype)
    executor = A.executor
    x, y = executor.from_host(x_host), executor.zeros((S.shape[0],), S.dtype)
    ours = Contender(OURS, lambda: A.apply(x, out=y), executor.synchronize, executor.to_host)
    contenders, absent = [ours], {}
    for peer in peers:
        try:
            peer.version()
            contenders.append(peer.contender(peer.spmv(S, x_host)))
        except Absent as error:
            absent[peer.name] = str(error)
    columns = (x.reshape(-1, 1), y.reshape(-1, 1))
    cost = OPERATIONS[f"{A.format}.spmv"].cost(A, *columns, 1.0, 0.0)
    return Contest(contenders, product_check(S, x_host), cost, absent)


def random_vector(n: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Return n numbers between 0.5 and 1.5, complex ones for a complex dtype."""
    rng = np.random.default_rng(SEED)
    x = rng.uniform(0.5, 1.5, n).astype(dtype)
    return x * np.exp(1j * rng.uniform(0, 6, n)).astype(dtype) if x.dtype.kind == "c" else x


def product_check(S: sp.csr_array, x: np.ndarray[Any, Any]) -> Callable[[Any], str]:
    """Return what tells a right ``S @ x`` from a wrong one.

    A sum of ``k`` products is off by at most ``k eps`` times the sum of their absolute values.
    """
    wide = np.complex128 if S.dtype.kind == "c" else np.float64
    expected = S.astype(wide) @ x.astype(wide)
    terms = np.diff(S.indptr) + 2
    bound = terms * np.finfo(real_dtype(S.dtype)).eps * (abs(S) @ abs(x))

    def check(y: Any) -> str:
        if y.shape != expected.shape:
            return f"shape {y.shape}, expected {expected.shape}"
        bad = np.flatnonzero(~(np.abs(y - expected) <= bound))
        if not bad.size:
            return ""
        i = bad[0]
        return f"row {i} is {y[i]:.17g}, expected {expected[i]:.17g} ({bad.size} such rows)"

    return check
