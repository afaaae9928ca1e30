"""Algorithms: the named ways to compute a product, and the rule that chooses one of them.

Each backend has an :class:`AlgorithmTable`: an ordered list of algorithms for each product
(``csr.spmv``, ``csr.spmm``, ``csr.sddmm``, ``csr.fusedmm``). The rule takes the first algorithm of
the list that has no objection, gives a reason to be chosen, and can be prepared for the matrix. The
last algorithm of each list works for every matrix. The choice is a :class:`Plan`, which is stored
with the matrix. ``A.plan_for("spmv", kernel="sell")`` requests an algorithm by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from .described import facts_table, side_by_side
from .dtypes import ML_DTYPES, name_of
from .errors import InvalidArgument
from .statistics import RowStatistics

if TYPE_CHECKING:
    from .calls import ProductCall
    from .executor import Executor

#: The products with several algorithms, by their names in ``A.plan_for``.
PRODUCTS = ("spmv", "spmm", "sddmm", "fusedmm")

#: The rule accepts a plan with a copy of the entries if its expected speed-up over the best
#: algorithm without a copy is at least this factor.
LEAST_GAIN = 1.2
#: The rule also accepts a smaller speed-up if the plan takes at most this fraction of the matrix's
#: bytes.
SMALL_EXTRA = 0.3


def copy_pays(gain: float, extra: float) -> bool:
    """Return whether the rule may choose an algorithm that stores a copy of the entries.

    Parameters
    ----------
    gain : float
        Expected speed-up over the best algorithm that keeps no copy.
    extra : float
        Size of the plan divided by the size of the matrix, both in bytes.
    """
    return gain >= LEAST_GAIN or extra <= SMALL_EXTRA


class Facts(NamedTuple):
    """The properties of a product that are known before its operands.

    Attributes
    ----------
    statistics : RowStatistics
        Statistics of the rows of the sparse matrix.
    columns : int
        Columns of the dense operand: of ``B`` for spmm, of ``C`` for sddmm and fusedmm; 1 for spmv.
    dtype : str
        The dtype of the values and the dense operands, such as ``"float32"``.
    index_dtype : dtype
        The dtype of the indices.
    """

    statistics: RowStatistics
    columns: int
    dtype: str
    index_dtype: np.dtype[Any]

    @property
    def itemsize(self) -> int:
        """Bytes of an element of the dense operands."""
        return 2 if self.dtype in ML_DTYPES else np.dtype(self.dtype).itemsize

    @property
    def density(self) -> float:
        """The number of entries divided by the number of positions."""
        s = self.statistics
        return s.nnz / max(s.rows * s.columns, 1)


class Estimate(NamedTuple):
    """The expected cost of a product by one algorithm; its model uses constants of the device.

    Attributes
    ----------
    microseconds : float
        Time of a product in microseconds, launches included.
    nbytes : int or None
        Bytes that the kernel reads and writes, each array counted once; None if the model predicts
        no bytes.
    """

    microseconds: float
    nbytes: int | None = None

    def __str__(self) -> str:
        said = f"about {self.microseconds:.3g} microseconds"
        return said if self.nbytes is None else f"{said} for {self.nbytes / 2**20:.3g} MiB"


class Unsuited(Exception):
    """Raised by ``prepare`` if the entries of a matrix show that an algorithm cannot run.

    The message completes the sentence "spmm cannot run 'dense': ".
    """


class Algorithm(ABC):
    """One way to compute a product.

    ``on`` is the object that a backend passes to its algorithms: the executor, or an adapter around
    it. The documentation lists each algorithm with the first sentence of its class's docstring.
    """

    #: The name of the algorithm in ``kernel=``.
    name: ClassVar[str]
    #: The publication, such as "Huang et al. (2021)"; empty if the algorithm was not published.
    source: ClassVar[str] = ""
    #: Whether it accepts values that are stored in a lower dtype than the dtype of the computation.
    converts: ClassVar[bool] = False
    #: Whether its plan contains a copy of the entries, their columns or their rows: packed, sorted,
    #: dense, or one by one. A lean matrix gets such a plan only if the caller requests the
    #: algorithm by name. For spmv, the algorithm returns a :attr:`reason` only if the copy pays
    #: (:func:`copy_pays`).
    copies: ClassVar[bool] = False
    #: Whether products with vectors need only its plan for spmv. The arrays of the matrix can then
    #: be released (``A.plan_only()``; see :meth:`held_alone`).
    alone: ClassVar[bool] = False
    #: Whether the plan alone also multiplies blocks of vectors with any row stride. If not, it
    #: multiplies one contiguous vector.
    alone_in_blocks: ClassVar[bool] = False
    #: Whether the rule may choose it. Published algorithms that were never the fastest can only be
    #: requested by name; they serve as baselines for measurements.
    by_rule: ClassVar[bool] = True

    def objection(self, on: Any, A: Any, facts: Facts) -> str | None:
        """Return why it cannot run, or None; error messages put its name before the text."""
        return None

    def refusal(self, on: Any, A: Any, facts: Facts) -> str | None:
        """Return the objection, or that it cannot read values of their storage dtype."""
        if A.storage_dtype != A.dtype and not self.converts:
            return (
                f"it reads values in the dtype that it computes in, {A.dtype}, and these are "
                f"stored in {A.storage_dtype}"
            )
        return self.objection(on, A, facts)

    @abstractmethod
    def reason(self, on: Any, A: Any, facts: Facts) -> str | None:
        """Return why the rule should choose it, or None; called if there is no objection."""

    def estimate(self, on: Any, A: Any, facts: Facts) -> Estimate | None:
        """Return the expected cost of a product, or None if no cost model was fitted."""
        return None

    @abstractmethod
    def prepare(self, on: Any, A: Any, facts: Facts) -> Any:
        """Return the state of the plan, which is made once for the matrix.

        All matrices of a pattern share the plans for spmm, sddmm and fusedmm: their state must not
        contain values. The state of a plan for spmv may contain values if :meth:`update_values`
        renews them.

        Raises
        ------
        Unsuited
            If the entries of the matrix show that the algorithm cannot run or would not pay.
        """

    @abstractmethod
    def run(self, on: Any, state: Any, call: Any) -> None:
        """Compute the product.

        Parameters
        ----------
        on : object
            The object that the backend passes to its algorithms.
        state : object
            The result of :meth:`prepare`.
        call : SpmvCall, SpmmCall, SddmmCall or FusedmmCall
            The operands by name (:mod:`wollemi.core.calls`), including the matrix and the outputs.
            The method must support batches, any row stride, and any alpha and beta.
        """

    def complete(self, A: Any, state: Any) -> None:
        """Complete the parts of a state that :meth:`prepare` leaves to later products.

        This method is called before :meth:`held_alone`.
        """
        finish = getattr(state, "complete", None)
        if finish is not None:
            finish(A)

    def held_alone(self, state: Any) -> Any:
        """Return the part of a state that products read, without arrays that only new values need.

        It is called for algorithms with ``alone``. :meth:`run` then gets a matrix without arrays.
        """
        return state

    def update_values(self, A: Any, state: Any) -> None:
        """Update the state of a plan to new values of the matrix."""
        refresh = getattr(state, "update_values", None)
        if refresh is not None:
            refresh(A)

    @classmethod
    def summary(cls) -> str:
        """Return its description, in one sentence."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    def __repr__(self) -> str:
        return f"<algorithm {self.name}>"


class Selection(NamedTuple):
    """The input of a rule: the object for algorithms, and the facts of the product."""

    on: Any
    facts: Facts


#: A function that returns the input of a rule. Its arguments are the executor, the matrix, the
#: number of columns of the dense operand, and the dtype of the values.
Select: TypeAlias = "Callable[[Any, Any, int, str], Selection]"


class AlgorithmTable:
    """The algorithms of one backend: for each product, a list in the order of the rule.

    Parameters
    ----------
    backend : str
        The backend of the algorithms.
    parent : AlgorithmTable, optional
        A table with algorithms that several backends share; they follow the algorithms of this
        table.
    """

    def __init__(self, backend: str, parent: AlgorithmTable | None = None) -> None:
        self.backend = backend
        self.parent = parent
        self._registered: dict[str, tuple[Algorithm, ...]] = {}
        self._select: dict[str, Select] = {}

    def register(self, product: str, *algorithms: Algorithm) -> None:
        """Append algorithms to the list of a product."""
        if product not in PRODUCTS:
            raise ValueError(f"{product!r} has no algorithms, only {', '.join(PRODUCTS)}")
        known = {algorithm.name for algorithm in self.of(product)}
        for algorithm in algorithms:
            if algorithm.name in known:
                raise ValueError(f"{product} has an algorithm {algorithm.name!r} already")
            known.add(algorithm.name)
        self._registered[product] = (*self._registered.get(product, ()), *algorithms)

    def select_by(self, product: str, select: Select) -> None:
        """Set the function that makes the input of the rule for a product."""
        self._select[product] = select

    def selection(
        self, executor: Executor, A: Any, product: str, columns: int, dtype: str
    ) -> Selection:
        """Return the input of the rule for a product: by default the executor and the facts."""
        table: AlgorithmTable | None = self
        while table is not None:
            if product in table._select:
                return table._select[product](executor, A, columns, dtype)
            table = table.parent
        return Selection(executor, facts_of(A, columns, dtype))

    def of(self, product: str) -> tuple[Algorithm, ...]:
        """Return the algorithms for a product, in the order of the rule."""
        inherited = self.parent.of(product) if self.parent is not None else ()
        return (*self._registered.get(product, ()), *inherited)

    def names(self, product: str) -> tuple[str, ...]:
        """Return the allowed values of ``kernel=``; the first is ``"auto"``."""
        return ("auto", *(algorithm.name for algorithm in self.of(product)))

    def __iter__(self) -> Iterator[tuple[str, Algorithm]]:
        """Yield every product with each of its algorithms."""
        for product in PRODUCTS:
            for algorithm in self.of(product):
                yield product, algorithm


class Plan:
    """The algorithm chosen for a product of a matrix, the reason, and its prepared data.

    Attributes
    ----------
    algorithm : Algorithm
        The chosen algorithm.
    reason : str
        One sentence that explains the choice.
    statistics : RowStatistics
        The row statistics on which the choice is based.
    state : object
        Data of the algorithm, such as a partition or a packed copy.
    estimate : Estimate or None
        The expected cost of a product; None if no cost model of the algorithm was fitted.
    prepared : dict
        Data of the backend: results of one product that the next product reuses.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        reason: str,
        statistics: RowStatistics,
        state: Any = None,
        estimate: Estimate | None = None,
    ) -> None:
        self.algorithm = algorithm
        #: The name of the algorithm.
        self.kernel = algorithm.name
        self.reason = reason
        self.statistics = statistics
        self.state = state
        self.estimate = estimate
        self.prepared: dict[Any, Any] = {}

    def update_values(self, matrix: Any) -> None:
        """Update a packed copy to new values of the matrix; the choice stays."""
        self.algorithm.update_values(matrix, self.state)

    def __repr__(self) -> str:
        expected = "" if self.estimate is None else f"; {self.estimate}"
        return f"<Plan {self.kernel}: {self.reason}{expected} ({self.statistics})>"

    def _repr_html_(self) -> str:
        """Return the card for notebooks: the algorithm, the reason, and the row statistics."""
        facts = {
            "algorithm": f"{self.kernel}: {self.algorithm.summary()}",
            "reason": self.reason,
            "rows": str(self.statistics),
        }
        if self.estimate is not None:
            facts["expected"] = str(self.estimate)
        return side_by_side(facts_table("Plan", facts))


def facts_of(A: Any, columns: int, dtype: str) -> Facts:
    """Return the properties of a product of ``A`` that the rule and the algorithms compare."""
    return Facts(A.row_statistics, columns, dtype, np.dtype(A.indices.dtype))


class AlgorithmCandidate(NamedTuple):
    """An algorithm, and the rule's view of it for one product.

    Attributes
    ----------
    algorithm : Algorithm
        The algorithm.
    refusal : str or None
        Why the algorithm cannot run, or why the rule skips it; None if the rule may choose it.
    reason : str or None
        Why the rule would choose it; None if it would not.
    estimate : Estimate or None
        The expected cost; None if it cannot run or if no cost model was fitted.
    """

    algorithm: Algorithm
    refusal: str | None
    reason: str | None
    estimate: Estimate | None = None

    def __str__(self) -> str:
        said = self.refusal or self.reason or "another one should be faster"
        expected = "" if self.estimate is None else f" ({self.estimate})"
        return f"{self.algorithm.name}: {said}{expected}"


def considered(
    table: AlgorithmTable, selection: Selection, A: Any, product: str
) -> Iterator[AlgorithmCandidate]:
    """Yield all algorithms for a product as candidates, in the order of the rule."""
    on, facts = selection
    for algorithm in table.of(product):
        if algorithm.copies and A.is_lean:
            yield AlgorithmCandidate(
                algorithm, "its plan copies the entries, and the matrix is lean", None
            )
        elif not algorithm.by_rule:
            yield AlgorithmCandidate(algorithm, "it runs by name alone", None)
        else:
            refusal = algorithm.refusal(on, A, facts)
            reason = None if refusal else algorithm.reason(on, A, facts)
            expected = None if refusal else algorithm.estimate(on, A, facts)
            yield AlgorithmCandidate(algorithm, refusal, reason, expected)


def candidates(
    table: AlgorithmTable, selection: Selection, A: Any, product: str
) -> Iterator[AlgorithmCandidate]:
    """Yield the algorithms that the rule would choose, best first."""
    return (found for found in considered(table, selection, A, product) if found.reason)


def candidates_of(
    A: Any, product: str, columns: int = 1, dtype: str | None = None
) -> list[AlgorithmCandidate]:
    """Return all algorithms for a product of a matrix on its executor, as candidates.

    The plan of the matrix uses the first candidate that has a reason and can be prepared.

    Parameters
    ----------
    A : Csr
        The matrix.
    product : {"spmv", "spmm", "sddmm", "fusedmm"}
        The product.
    columns : int
        Columns of the dense operand.
    dtype : str, optional
        The dtype of the values and the dense operands; by default, the dtype of the matrix.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> from wollemi.core.algorithm import candidates_of
    >>> A = wl.Csr(np.eye(3), executor="omp")
    >>> for candidate in candidates_of(A, "spmv"):
    ...     print(candidate)
    row-patterns: another one should be faster
    sell: another one should be faster
    row-blocks: rows in equal shares of entries, long rows cut
    """
    table = A.executor.algorithms
    selection = table.selection(A.executor, A, product, columns, dtype or name_of(A.dtype))
    return list(considered(table, selection, A, product))


def make_plan(
    executor: Executor, A: Any, product: str, columns: int, kernel: str, dtype: str
) -> Plan:
    """Return the plan of a product: with the named algorithm, or with the choice of the rule.

    All backends use this function as the kernel of ``csr.plan``.

    Parameters
    ----------
    executor : Executor
        The executor of the matrix.
    A : Csr
        The matrix.
    product : {"spmv", "spmm", "sddmm", "fusedmm"}
        The product.
    columns : int
        Columns of the dense operand.
    kernel : str
        The name of an algorithm, or ``"auto"``.
    dtype : str
        The dtype of the values and the dense operands.

    Raises
    ------
    InvalidArgument
        If no algorithm has that name, or if it cannot run for this matrix.
    """
    table = executor.algorithms
    selection = table.selection(executor, A, product, columns, dtype)
    on, facts = selection
    if kernel != "auto":
        algorithm = _named(table, on, product, kernel)
        objection = algorithm.refusal(on, A, facts)
        try:
            if objection:
                raise Unsuited(objection)
            state = algorithm.prepare(on, A, facts)
            expected = algorithm.estimate(on, A, facts)
            return Plan(algorithm, "asked for", facts.statistics, state, expected)
        except Unsuited as why:
            raise InvalidArgument(f"{product} cannot run {kernel!r}: {why}") from None
    choices: Iterable[AlgorithmCandidate] = candidates(table, selection, A, product)
    links = A.executor.links
    if links is not None and links.block:
        # Sums must be reproducible. Only the last algorithm computes the sum of a row in an order
        # that does not depend on the other rows of a member.
        choices = list(choices)[-1:]
    for algorithm, _, reason, expected in choices:
        assert reason is not None
        try:
            state = algorithm.prepare(on, A, facts)
            return Plan(algorithm, reason, facts.statistics, state, expected)
        except Unsuited:
            continue
    raise AssertionError(f"no algorithm of {table.backend} suits {product} of this matrix")


def _named(table: AlgorithmTable, on: Any, product: str, kernel: str) -> Algorithm:
    for algorithm in table.of(product):
        if algorithm.name == kernel:
            return algorithm
    where = getattr(getattr(on, "executor", on), "name", table.backend)
    raise InvalidArgument(
        f"{product} has no kernel {kernel!r} on {where}; it has: {', '.join(table.names(product))}"
    )


def multiply(on: Any, call: ProductCall) -> None:
    """Compute a product of a sparse matrix and dense ones with the algorithm of its plan.

    Parameters
    ----------
    on : object
        The first argument of the backend's algorithms.
    call : SpmmCall, SddmmCall or FusedmmCall
        The product.
    """
    product, kernel = call.product, call.kernel
    if not call.has_output:
        if kernel != "auto":
            executor = getattr(on, "executor", on)
            _named(executor.algorithms, on, product, kernel)
        return
    dense = call.dense
    plan = call.A.plan_for(product, int(dense.shape[2]), kernel, dense.dtype)
    plan.algorithm.run(on, plan.state, call)
