"""``wollemi bench spmm|sddmm|fusedmm``: the kernels of machine learning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from wollemi.core.errors import InvalidArgument, UnsupportedDtype, UnsupportedOperation
from wollemi.core.executor import Executor
from wollemi.core.formats import Csr
from wollemi.core.operation import Cost
from wollemi.core.operations import products as operations
from wollemi.core.products import fusedmm, sddmm, spmm

from . import published
from .cases import SEED, Case
from .clocks import capture_by_cupy
from .peers import Absent, Peer
from .problem import OURS, Offer, OfferFacts, Problem, offer_of
from .published_rules import RULES
from .stored_inputs import about, is_stored, keeping, operands_of, path_in
from .task import Task

OPERATIONS = ("spmm", "sddmm", "fusedmm")

#: The default cases.
DEFAULT_CASES = ("weights:4096,4096,98", "weights:4096,4096,90", "weights:4096,4096,70")
DEFAULT_COLUMNS = (32, 128)

#: With more multiplications than this a product is checked by its products with random vectors:
#: SciPy takes 30 ms for 2^24 of them.
MOST_MULTIPLICATIONS = 1 << 24

#: Random vectors of that check.
PROBES = 2

#: Kernels with this in their names round float32 to TF32, with this unit roundoff.
TF32, TF32_EPS = "tf32", 2.0**-10

#: With this share of entries, sampling the whole dense product is faster than gathering rows.
DENSE_SHARE = 0.02

#: Numbers that are gathered at a time: a megabyte, which a core keeps in its cache.
GATHERED = 1 << 17


class Dense(Problem):
    """One call of spmm, sddmm or fusedmm with random operands.

    Parameters
    ----------
    operation : {"spmm", "sddmm", "fusedmm"}
        The operation.
    S : scipy.sparse.csr_array
        The matrix.
    columns : int
        Of the dense operands.
    every_kernel : bool
        Offer all our algorithms too.
    dtype : {"float32", "float16"}
        Of values, operands and result; sums are in float32.
    rules : sequence of str
        Names in :data:`~.published_rules.RULES`: the kernels that these choose are offered too.
    kernels : sequence of str
        Offer these of our algorithms too, as far as the executor has them.
    inputs : Path, optional
        A file of :mod:`~.stored_inputs` that has the dense operands; else they are drawn.
    """

    kind = "ml"

    def __init__(
        self,
        operation: str,
        S: sp.csr_array,
        columns: int,
        every_kernel: bool = False,
        dtype: str = "float32",
        rules: Sequence[str] = (),
        kernels: Sequence[str] = (),
        inputs: Path | None = None,
    ) -> None:
        rng = np.random.default_rng(SEED)
        self.operation, self.columns, self.dtype = operation, columns, np.dtype(dtype)
        self.S = sp.csr_array((self._rounded(S.data), S.indices, S.indptr), shape=S.shape)
        self.every_kernel, self.rules, self.kernels = every_kernel, tuple(rules), tuple(kernels)
        m, n = S.shape
        shapes = {"spmm": (n,), "sddmm": (m, n), "fusedmm": (m, n, n)}[operation]
        if inputs is None:
            drawn = (rng.standard_normal((rows, columns)) for rows in shapes)
            self.operands = [operand.astype(self.dtype) for operand in drawn]
        else:
            self.operands = _checked(inputs, [(rows, columns) for rows in shapes], self.dtype)
        self._probes: Any = None
        if operation != "sddmm" and S.nnz * columns > MOST_MULTIPLICATIONS:
            self._probes = rng.standard_normal((columns, PROBES))
        self._expected: Any
        self._bound: Any
        self._size: Any
        self._expected, self._bound, self._size = self.expected()

    def _rounded(self, data: Any) -> Any:
        """Return values that the dtype has exactly, in single precision, as SciPy wants them."""
        return data.astype(self.dtype).astype(np.float32)

    def ours(self, executor: Executor) -> list[Offer]:
        """Return our call into one and the same array, by the chosen kernel and by others."""
        A = Csr(self.S, executor=executor).astype(self.dtype)
        dense = [executor.from_host(x) for x in self.operands]
        shape = (A.nnz,) if self.operation == "sddmm" else (A.shape[0], self.columns)
        out = executor.zeros(shape, self.dtype)
        known = kernels_of(A, self.operation)
        kernels = ["auto", *(k for k in known if self.every_kernel or k in self.kernels)]
        offers = [self._ours(A, dense, out, kernel) for kernel in kernels]
        for rule in self.rules:
            kernel, reason = RULES[rule].choose(A.row_statistics, self.columns)
            offers.append(self._ours(A, dense, out, kernel, f"{OURS} {rule}", reason))
        return offers

    def _ours(
        self,
        A: Csr,
        dense: list[Any],
        out: Any,
        kernel: str,
        name: str = "",
        reason: str = "",
    ) -> Offer:
        function: Any = {"spmm": spmm, "sddmm": sddmm, "fusedmm": fusedmm}[self.operation]

        def make() -> Callable[[], Any]:
            try:
                A.plan_for(self.operation, self.columns, kernel)
            except (InvalidArgument, UnsupportedDtype, UnsupportedOperation) as error:
                raise Absent(str(error)) from error
            return lambda: function(A, *dense, out=out, kernel=kernel)

        def facts() -> OfferFacts:
            plan = A.plan_for(self.operation, self.columns, kernel)
            why = plan.reason if kernel == "auto" else reason
            return OfferFacts(
                cost=self.cost(A, dense, out),
                kernel=plan.kernel,
                notes=[f"{plan.kernel}: {why}"] if why else [],
            )

        return Offer(
            name or (OURS if kernel == "auto" else f"{OURS} {kernel}"),
            make,
            A.executor.synchronize,
            A.executor.to_host,
            wrong=partial(self.wrong, eps=TF32_EPS) if TF32 in kernel else None,
            facts=facts,
            capture=capture_by_cupy,
        )

    def cost(self, A: Csr, dense: list[Any], out: Any) -> Cost:
        """Return the minimal cost of a call."""
        blocks = [x[None] for x in dense]
        if self.operation == "spmm":
            return operations.csr_spmm.cost(A, A.data[None], *blocks, out[None], 1.0, 0.0, "")
        if self.operation == "sddmm":
            return operations.csr_sddmm.cost(A, None, *blocks, out[None], 1.0, 0.0, "")
        return operations.csr_fusedmm.cost(A, None, *blocks, out[None], 1.0, "", "")

    def theirs(self, peer: Peer) -> list[Offer]:
        """Return the offers of a library, perhaps several."""
        calls = peer.ml(self.operation, self.S, self.operands)
        return [offer_of(peer, call, name) for name, call in calls.items()]

    def wrong(self, result: Any, eps: float = 0.0) -> str:
        """Return by how much a result is off, if it is.

        Parameters
        ----------
        result : array
            As it came.
        eps : float
            The additional rounding of factors.
        """
        shape = (self.S.nnz,) if self.operation == "sddmm" else (self.S.shape[0], self.columns)
        if result.shape != shape:
            return f"shape {result.shape}, expected {shape}"
        got = result.astype(np.float64)
        if self._probes is not None:
            got = got @ self._probes
        far = np.abs(got - self._expected) - self._bound - 2 * eps * self._size
        # NaN is not within the bound either
        return "" if np.all(far <= 0) else f"off by {np.max(far):.2g} too much"

    def forget(self) -> None:
        """Let go of the expected result."""
        self._expected = self._bound = self._size = None

    def expected(self) -> tuple[Any, Any, Any]:
        """Return the result in float64, by how much it may be off, and sums of absolute values.

        A sum of n terms loses at most n eps of the sum of their absolute values, and rounding to
        the dtype its own eps. Large products are the products with the probes instead.
        """
        terms = int(np.diff(self.S.indptr).max(initial=0)) + self.columns
        eps, own = np.finfo(np.float32).eps, 2 * np.finfo(self.dtype).eps
        last = [self.operands[-1].astype(np.float64)]
        last.append(np.abs(last[0]))
        if self.operation == "spmm":
            factors = [self.S.astype(np.float64), abs(self.S).astype(np.float64)]
        else:
            values, sizes = self._sampled()
            if self.operation == "sddmm":
                return values, terms * eps * sizes + own * np.abs(values) + 1e-30, sizes
            factors = [self._with(values), self._with(sizes)]
        if self._probes is None:
            value, size = (A @ B for A, B in zip(factors, last, strict=True))
        else:
            probes = (self._probes, np.abs(self._probes))
            value, size = (A @ (B @ v) for A, B, v in zip(factors, last, probes, strict=True))
            return value, (terms * eps + own) * size + 1e-30, size
        return value, terms * eps * size + own * np.abs(value) + 1e-30, size

    def _with(self, values: Any) -> sp.csr_array:
        return sp.csr_array((values, self.S.indices, self.S.indptr), shape=self.S.shape)

    def _sampled(self) -> tuple[Any, Any]:
        """Return ``C D^T`` where there are entries, and the sums of absolute values behind it."""
        S = self.S
        C, D = (x.astype(np.float64) for x in self.operands[:2])
        rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
        values, sizes = np.empty(S.nnz), np.empty(S.nnz)
        if S.nnz > DENSE_SHARE * S.shape[0] * S.shape[1]:
            step = max(1, (1 << 22) // S.shape[1])
            for start in range(0, S.shape[0], step):
                at = slice(S.indptr[start], S.indptr[min(start + step, S.shape[0])])
                where = rows[at] - start, S.indices[at]
                values[at] = (C[start : start + step] @ D.T)[where]
                sizes[at] = (np.abs(C[start : start + step]) @ np.abs(D).T)[where]
            return values, sizes
        step = max(1, GATHERED // self.columns)
        for first in range(0, S.nnz, step):
            part = slice(first, first + step)
            left, right = C[rows[part]], D[S.indices[part]]
            values[part] = np.einsum("ek,ek->e", left, right)
            sizes[part] = np.einsum("ek,ek->e", np.abs(left), np.abs(right))
        return values, sizes


def _checked(inputs: Path, shapes: list[tuple[int, int]], dtype: np.dtype[Any]) -> list[Any]:
    """Return stored operands; raises InvalidArgument if they do not fit the product."""
    operands = operands_of(inputs)
    found = [(operand.shape, operand.dtype) for operand in operands]
    expected = [(shape, dtype) for shape in shapes]
    if found != expected:
        raise InvalidArgument(f"{inputs}: expected operands of {expected}, found {found}")
    return operands


def kernels_of(A: Csr, operation: str) -> list[str]:
    """Return the names of the algorithms that the executor has for an operation.

    On GPUs these include :mod:`~.published`.
    """
    if A.executor.algorithms.backend in ("cuda", "hip"):
        published.register()
    return [algorithm.name for algorithm in A.executor.algorithms.of(operation)]


def tasks(
    operation: str,
    cases: Sequence[Case],
    *,
    columns: Sequence[int],
    every_kernel: bool = False,
    dtype: str = "float32",
    rules: Sequence[str] = (),
    kernels: Sequence[str] = (),
    store: Path | None = None,
) -> list[Task]:
    """Return the contest of each case and number of columns.

    Parameters
    ----------
    operation : {"spmm", "sddmm", "fusedmm"}
        The operation.
    cases : sequence of Case
        The matrices. A file of :mod:`~.stored_inputs` has its own operands, with its number of
        columns and dtype.
    columns : sequence of int
        Of the dense operands.
    every_kernel : bool
        Time all of wollemi's algorithms too; the loss of the rule is 1 over the least of their
        times.
    dtype : {"float32", "float16"}
        Of all operands.
    rules : sequence of str
        Time the choices of these rules of papers too: names in :data:`~.published_rules.RULES`.
    kernels : sequence of str
        Time these of our algorithms too, as far as the executor has them.
    store : Path, optional
        Write the inputs of each contest into this folder.

    Raises
    ------
    InvalidArgument
        If a case is a file of inputs of another operation.
    """
    options: dict[str, Any] = {"every_kernel": every_kernel, "rules": rules, "kernels": kernels}
    made = []
    for case in cases:
        given: dict[str, Any] = {"dtype": dtype}
        widths = columns
        if is_stored(case.path):
            assert case.path is not None
            of_file = about(case.path)
            if of_file.operation != operation:
                raise InvalidArgument(
                    f"{case.path}: inputs of {of_file.operation}, not of {operation}"
                )
            given, widths = {"dtype": of_file.dtype, "inputs": case.path}, (of_file.columns,)
        for k in widths:
            make: Any = partial(Dense, operation, columns=k, **given, **options)
            if store is not None:
                make = partial(keeping, path_in(store, case.name, f"{operation}/{k}"), make)
            made.append(Task(f"{operation}/{k}", case, make, "float32"))
    return made
