"""Algorithms: the named ways to compute a product, and the rule that chooses one.

A backend has a list of algorithms for each product (``csr.spmv``, ``csr.spmm``, ``csr.sddmm``,
``csr.fusedmm``), in an :class:`AlgorithmTable`. The rule goes through the list in order and takes
the first that has no objection, a reason to be taken, and can be prepared for the matrix; the last
of a list suits every matrix. The choice is a :class:`Plan`, which is stored with the matrix.
``A.plan_for("spmv", kernel="sell")`` asks for an algorithm by its name.
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

#: The products that have algorithms, by the names that ``A.plan_for`` takes.
PRODUCTS = ("spmv", "spmm", "sddmm", "fusedmm")

#: The expected speed-up over the best algorithm without a copy from which an algorithm may keep a
#: copy of the entries.
LEAST_GAIN = 1.2
#: Size of a copy relative to the matrix up to which a smaller speed-up suffices.
SMALL_EXTRA = 0.3


def copy_pays(gain: float, extra: float) -> bool:
    """Return whether the rule may take an algorithm with a copy of the entries in its plan.

    Parameters
    ----------
    gain : float
        How many times as fast as the best algorithm that keeps no copy it is expected to be.
    extra : float
        Bytes of its plan, relative to the matrix.
    """
    return gain >= LEAST_GAIN or extra <= SMALL_EXTRA


class Facts(NamedTuple):
    """The known properties of a product before its operands.

    Attributes
    ----------
    statistics : RowStatistics
        Of the rows of the sparse matrix.
    columns : int
        Of the dense operand: of ``B`` for spmm, of ``C`` for sddmm and fusedmm; 1 for spmv.
    dtype : str
        Of values and dense operands, ``"float32"``.
    index_dtype : dtype
        Of the pattern.
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
        """Entries over positions."""
        s = self.statistics
        return s.nnz / max(s.rows * s.columns, 1)


class Estimate(NamedTuple):
    """The expected cost of a product by one algorithm, from the constants of the device.

    Attributes
    ----------
    microseconds : float
        Of a product, launches included.
    nbytes : int or None
        Bytes that the kernel reads and writes, each array once; None where the model has no bytes.
    """

    microseconds: float
    nbytes: int | None = None

    def __str__(self) -> str:
        said = f"about {self.microseconds:.3g} microseconds"
        return said if self.nbytes is None else f"{said} for {self.nbytes / 2**20:.3g} MiB"


class Unsuited(Exception):
    """Raised by ``prepare`` where only the entries of a matrix tell that an algorithm cannot run.

    Its text ends the sentence "spmm cannot run 'dense': ".
    """


class Algorithm(ABC):
    """One way to compute a product.

    ``on`` is the object that a backend passes to its algorithms: the executor, or an adapter around
    it. The first sentence of the class's docstring is its line in the documentation.
    """

    #: Its name in ``kernel=``.
    name: ClassVar[str]
    #: Where it was published, as "Huang et al. (2021)"; empty if it was not.
    source: ClassVar[str] = ""
    #: Whether it multiplies values that are stored in a lower dtype than is computed in.
    converts: ClassVar[bool] = False
    #: Whether its plan holds the entries again, or their columns, or their rows: packed, sorted,
    #: dense, or one by one. That of a lean matrix does not, unless it is asked for by name; that
    #: for spmv has a :attr:`reason` only where the copy pays (:func:`copy_pays`).
    copies: ClassVar[bool] = False
    #: Whether its plan for spmv is all that products with vectors need, so that the arrays of the
    #: matrix may be given up (``A.plan_only()``): see :meth:`held_alone`.
    alone: ClassVar[bool] = False
    #: Whether it multiplies several vectors by its plan alone, with any distance between them;
    #: otherwise one contiguous vector.
    alone_in_blocks: ClassVar[bool] = False
    #: Whether the rule may choose it. Published algorithms that were never the fastest are there
    #: to be measured against, by name alone.
    by_rule: ClassVar[bool] = True

    def objection(self, on: Any, A: Any, facts: Facts) -> str | None:
        """Return why it cannot run, for an error message that begins with its name, or None."""
        return None

    def refusal(self, on: Any, A: Any, facts: Facts) -> str | None:
        """Return the objection, or that it cannot read values of the dtype they are stored in."""
        if A.storage_dtype != A.dtype and not self.converts:
            return (
                f"it reads values in the dtype that it computes in, {A.dtype}, and these are "
                f"stored in {A.storage_dtype}"
            )
        return self.objection(on, A, facts)

    @abstractmethod
    def reason(self, on: Any, A: Any, facts: Facts) -> str | None:
        """Return why the rule should choose it, or None; asked where there is no objection."""

    def estimate(self, on: Any, A: Any, facts: Facts) -> Estimate | None:
        """Return the expected cost of a product, or None where no model of it was fitted."""
        return None

    @abstractmethod
    def prepare(self, on: Any, A: Any, facts: Facts) -> Any:
        """Return the state of its plan, made once for the matrix.

        Plans for spmm, sddmm and fusedmm are shared by all matrices of a pattern: their state must
        not hold values. The state of a plan for spmv may, if :meth:`update_values` renews it.

        Raises
        ------
        Unsuited
            If the entries of the matrix show that it cannot run or would not pay.
        """

    @abstractmethod
    def run(self, on: Any, state: Any, call: Any) -> None:
        """Compute the product.

        Parameters
        ----------
        on : object
            Of the backend.
        state : object
            The result of :meth:`prepare`.
        call : SpmvCall, SpmmCall, SddmmCall or FusedmmCall
            The operands by name (:mod:`wollemi.core.calls`), the matrix and the outputs included.
            Every call must be computed correctly: batches, rows any distance apart, any alpha and
            beta.
        """

    def complete(self, A: Any, state: Any) -> None:
        """Make the parts of a state that :meth:`prepare` left to later products.

        Called before :meth:`held_alone`.
        """
        finish = getattr(state, "complete", None)
        if finish is not None:
            finish(A)

    def held_alone(self, state: Any) -> Any:
        """Return the part of a state that products read, without the arrays for new values.

        Asked of algorithms that are ``alone``: :meth:`run` is then called with a matrix that has
        no arrays.
        """
        return state

    def update_values(self, A: Any, state: Any) -> None:
        """Bring the state of a plan in line with new values of the matrix."""
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
    """The input of a rule: the object that algorithms are given, and the facts of the product."""

    on: Any
    facts: Facts


#: Returns the input of a rule for an executor, a matrix, the columns of the dense operand, and the
#: dtype of values.
Select: TypeAlias = "Callable[[Any, Any, int, str], Selection]"


class AlgorithmTable:
    """The algorithms of one backend, for each product in the order in which the rule asks them.

    Parameters
    ----------
    backend : str
        The backend of the algorithms.
    parent : AlgorithmTable, optional
        Its algorithms come after the table's own: backends that share some algorithms share a
        parent.
    """

    def __init__(self, backend: str, parent: AlgorithmTable | None = None) -> None:
        self.backend = backend
        self.parent = parent
        self._own: dict[str, tuple[Algorithm, ...]] = {}
        self._select: dict[str, Select] = {}

    def register(self, product: str, *algorithms: Algorithm) -> None:
        """Add algorithms for a product, behind the earlier ones."""
        if product not in PRODUCTS:
            raise ValueError(f"{product!r} has no algorithms, only {', '.join(PRODUCTS)}")
        known = {algorithm.name for algorithm in self.of(product)}
        for algorithm in algorithms:
            if algorithm.name in known:
                raise ValueError(f"{product} has an algorithm {algorithm.name!r} already")
            known.add(algorithm.name)
        self._own[product] = (*self._own.get(product, ()), *algorithms)

    def select_by(self, product: str, select: Select) -> None:
        """Set the function that returns the input of the rule for a product."""
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
        """Return the algorithms for a product; the rule asks them in this order."""
        inherited = self.parent.of(product) if self.parent is not None else ()
        return (*self._own.get(product, ()), *inherited)

    def names(self, product: str) -> tuple[str, ...]:
        """Return the values of ``kernel=``, ``"auto"`` first."""
        return ("auto", *(algorithm.name for algorithm in self.of(product)))

    def __iter__(self) -> Iterator[tuple[str, Algorithm]]:
        """Yield every product with each of its algorithms."""
        for product in PRODUCTS:
            for algorithm in self.of(product):
                yield product, algorithm


class Plan:
    """The decision for a product with a matrix, and its reason.

    Attributes
    ----------
    algorithm : Algorithm
        The algorithm.
    reason : str
        Why, in one sentence.
    statistics : RowStatistics
        The input of the decision.
    state : object
        The algorithm's own: a partition, a packed copy.
    estimate : Estimate or None
        The expected cost of a product; None where no model of the algorithm was fitted.
    prepared : dict
        The backend's own: results of one product that the next one needs.
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
        """Bring a packed copy in line with the matrix's new values; the decision stays."""
        self.algorithm.update_values(matrix, self.state)

    def __repr__(self) -> str:
        expected = "" if self.estimate is None else f"; {self.estimate}"
        return f"<Plan {self.kernel}: {self.reason}{expected} ({self.statistics})>"

    def _repr_html_(self) -> str:
        """Return the card of a notebook: the algorithm, the reason, and the rows of the matrix."""
        facts = {
            "algorithm": f"{self.kernel}: {self.algorithm.summary()}",
            "reason": self.reason,
            "rows": str(self.statistics),
        }
        if self.estimate is not None:
            facts["expected"] = str(self.estimate)
        return side_by_side(facts_table("Plan", facts))


def facts_of(A: Any, columns: int, dtype: str) -> Facts:
    """Return the properties of a product of ``A`` that algorithms decide by."""
    return Facts(A.row_statistics, columns, dtype, np.dtype(A.indices.dtype))


class AlgorithmCandidate(NamedTuple):
    """An algorithm as the rule sees it for one product.

    Attributes
    ----------
    algorithm : Algorithm
        The algorithm.
    refusal : str or None
        Why it cannot run, or why the rule does not ask it; None if the rule may take it.
    reason : str or None
        Why the rule would take it; None if it would not.
    estimate : Estimate or None
        The expected cost; None if it cannot run, or where no model of it was fitted.
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
    """Yield all algorithms for a product, in the order of the rule, as candidates."""
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
    """Yield the algorithms that the rule would take, best first."""
    return (found for found in considered(table, selection, A, product) if found.reason)


def candidates_of(
    A: Any, product: str, columns: int = 1, dtype: str | None = None
) -> list[AlgorithmCandidate]:
    """Return all algorithms for a product of a matrix on its executor, as the rule sees them.

    The first candidate with a reason that can be prepared is the plan of the matrix.

    Parameters
    ----------
    A : Csr
        The matrix.
    product : {"spmv", "spmm", "sddmm", "fusedmm"}
        The product.
    columns : int
        Of the dense operand.
    dtype : str, optional
        Of values and dense operands; that of the matrix by default.

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
    """Return the plan of a product: by the rule, or with the algorithm of a name.

    This is the kernel of ``csr.plan`` on every backend.

    Parameters
    ----------
    executor : Executor
        Of the matrix.
    A : Csr
        The matrix.
    product : {"spmv", "spmm", "sddmm", "fusedmm"}
        The product.
    columns : int
        Of the dense operand.
    kernel : str
        The name of an algorithm, or ``"auto"``.
    dtype : str
        Of values and dense operands.

    Raises
    ------
    InvalidArgument
        If there is no algorithm of that name, or if it cannot run for this matrix.
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
        # Sums are to be reproducible: the last algorithm computes the sum of a row in the same way
        # for any other rows of a member.
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
    """Run a product of a sparse matrix and dense ones by the algorithm of its plan.

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
