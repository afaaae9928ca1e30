"""``wollemi bench spmv``: a sparse matrix times a vector."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from wollemi.core.dtypes import real_dtype
from wollemi.core.executor import Executor
from wollemi.core.formats import Csr
from wollemi.core.operation import OPERATIONS

from .cases import SEED, Case
from .clocks import capture_by_cupy
from .peers import Peer
from .problem import OURS, Offer, OfferFacts, Problem, offer_of
from .task import Task

#: The default cases: bandwidth alone, more reuse of x, and irregular rows.
DEFAULT_CASES = ("stencil5:1000", "stencil7:100", "stencil27:80", "rmat:18,4000000")


class Product(Problem):
    """``A @ x``.

    Parameters
    ----------
    S : scipy.sparse.csr_array
        The matrix.
    format : str
        Of wollemi.
    others : sequence of str
        Further formats in which wollemi is timed.
    """

    kind = "spmv"

    def __init__(self, S: sp.csr_array, format: str = "csr", others: Sequence[str] = ()) -> None:
        self.S, self.format, self.others = S, format, tuple(others)
        self.x = random_vector(S.shape[1], S.dtype)
        self._expected: Any
        self._expected, self._bound = product_of(S, self.x)

    def ours(self, executor: Executor) -> list[Offer]:
        """Return the product in every format that was asked for."""
        A = Csr(self.S, executor=executor)
        named = {OURS: self.format, **{f"{OURS} {f}": f for f in self.others}}
        return [self._ours(A, name, format) for name, format in named.items()]

    def _ours(self, A: Csr, name: str, format: str) -> Offer:
        executor = A.executor
        x, y = executor.from_host(self.x), executor.zeros((A.shape[0],), self.S.dtype)
        made: list[Any] = []

        def make() -> Any:
            B = A.asformat(format)
            made[:] = [B]
            return lambda: B.apply(x, out=y)

        def facts() -> OfferFacts:
            (B,) = made
            columns = (x.reshape(-1, 1), y.reshape(-1, 1))
            plan = getattr(B, "plan", None)
            return OfferFacts(
                cost=OPERATIONS[f"{B.format}.spmv"].cost(B, *columns, 1.0, 0.0),
                kernel="" if plan is None else plan.kernel,
                notes=[] if plan is None else [f"{plan.kernel}: {plan.reason}"],
            )

        return Offer(
            name,
            make,
            executor.synchronize,
            executor.to_host,
            facts=facts,
            capture=capture_by_cupy,
        )

    def theirs(self, peer: Peer) -> list[Offer]:
        """Return a library's product."""
        return [offer_of(peer, peer.spmv(self.S, self.x))]

    def wrong(self, result: Any) -> str:
        """Return the error of a product: a sum of k terms is off by at most k eps of them."""
        expected = self._expected
        if result.shape != expected.shape:
            return f"shape {result.shape}, expected {expected.shape}"
        bad = np.flatnonzero(~(np.abs(result - expected) <= self._bound))
        if not bad.size:
            return ""
        i = bad[0]
        return f"row {i} is {result[i]:.17g}, expected {expected[i]:.17g} ({bad.size} such rows)"

    def forget(self) -> None:
        """Let go of the expected product."""
        self._expected = self._bound = None


def tasks(
    cases: Sequence[Case],
    *,
    format: str = "csr",
    others: Sequence[str] = (),
    dtype: str = "float64",
) -> list[Task]:
    """Return the contest of each case.

    Parameters
    ----------
    cases : sequence of Case
        The matrices.
    format, dtype : str
        Of our matrix; peers take CSR of that dtype.
    others : sequence of str
        Further formats in which wollemi is timed.
    """
    make = partial(Product, format=format, others=tuple(others))
    # the choices and compiled programs of a product's plan depend on the size
    return [Task("spmv", case, make, dtype, rehearsed=1.0) for case in cases]


def random_vector(n: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Return n numbers between 0.5 and 1.5, complex ones for a complex dtype."""
    rng = np.random.default_rng(SEED)
    x = rng.uniform(0.5, 1.5, n).astype(dtype)
    return x * np.exp(1j * rng.uniform(0, 6, n)).astype(dtype) if x.dtype.kind == "c" else x


def product_of(S: sp.csr_array, x: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Return ``S @ x`` in double precision, and by how much each row may be off.

    A sum of ``k`` products is off by at most ``k eps`` times the sum of their absolute values.
    """
    wide = np.complex128 if S.dtype.kind == "c" else np.float64
    expected = S.astype(wide) @ x.astype(wide)
    terms = np.diff(S.indptr) + 2
    return expected, terms * np.finfo(real_dtype(S.dtype)).eps * (abs(S) @ abs(x))
