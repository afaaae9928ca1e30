"""The base of all preconditioners: built from a matrix, updated to new values, moved as a whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...core.caller import warn_caller
from ...core.capture import CHANGES
from ...core.dtypes import real_dtype
from ...core.equivalents import OF_PRECONDITIONERS
from ...core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch, UnsupportedOperation
from ...core.formats import Csr, Matrix
from ...core.formats.entries import with_entries
from ...core.formats.rowwise import is_known_distinct
from ...core.hooks import Hook, hook, is_of_wollemi, required
from ...core.lazy import Temporary
from ...core.links import works_alone
from ...core.linop import LinOp
from ...core.operations import vector
from ...core.operator_conversions import as_linop
from ...core.settings import Configurable, Settings, settings_of
from ...core.suggest import NamesReplacements

if TYPE_CHECKING:
    from ...core.executor import Array, Executor


@dataclass(eq=False)
class RecordedRefresh:
    """How a preconditioner is updated to new values of its matrix without the host.

    Attributes
    ----------
    body : callable
        Runs operations of the executor: the same operations on the same arrays in every call.
    failures : array of int64
        Counts that the operations leave; a nonzero count says that the matrix does not allow the
        update.
    """

    body: Callable[[], None]
    failures: Array


class Preconditioner(NamesReplacements, LinOp, metaclass=Configurable):
    """The base of operators that approximate the inverse of a matrix.

    A subclass names in :attr:`parts` the attributes with its operators, and has three methods:
    :meth:`setup` builds them from a matrix, :meth:`refresh` repeats the part that depends on
    values, :meth:`apply_block` applies them. Without a matrix, ``Jacobi()`` is
    :class:`wollemi.Settings`.

    Attributes
    ----------
    notes : list of str
        Remarks on the set-up for the caller: replaced pivots, shifts, fill-in.
    """

    HOOKS: ClassVar[Mapping[str, Hook]] = {
        "setup": hook("Preconditioner", "_setup", "setup"),
        "refresh": hook("Preconditioner", "_refresh", "refresh"),
    }

    SHARED = True

    #: The key of a preconditioner in dictionaries of settings.
    ROLE: ClassVar[str] = "preconditioner"

    #: How to build it from a matrix that a group shares: from each member's diagonal block
    #: (``"block"``), from products with the matrix and its diagonal (``"products"``), or not at all
    #: (None).
    over_groups: ClassVar[str | None] = None

    #: Names of attributes with operators that are built from the matrix.
    parts: ClassVar[tuple[str, ...]] = ()

    #: Whether :meth:`update` overwrites the arrays that recorded solver loops use. If not, or if
    #: loops have constants that depend on values, the loops are recorded again.
    updates_in_place: ClassVar[bool] = True

    #: Whether :meth:`update` keeps choices that depend on the first values, such as coarse rows. A
    #: new set-up may then give a better operator.
    _keeps_choices: ClassVar[bool] = False

    #: Number of updates to new values: earlier copies have old values.
    _updates: int = 0

    #: Number of times that this object itself was rebuilt from new parts.
    _own_rebuilds: int = 0

    #: Alternatives to methods that preconditioners of other libraries have, by name.
    _replacements: ClassVar[Mapping[str, str]] = OF_PRECONDITIONERS

    notes: list[str]
    _options: dict[str, Any]

    def __init__(self, A: Any, *, executor: Executor | str | None = None) -> None:
        matrix = self._checked(as_linop(A, executor))
        self.shape, self.dtype, self.executor = matrix.shape, matrix.dtype, matrix.executor
        self.notes = []
        self._matrix = matrix
        before = frozenset(vars(self))
        self._setup(self._part(matrix))
        self._require_parts()
        self._warn_of_arrays(vars(self).keys() - before)
        self._require_finite()

    def _require_parts(self) -> None:
        """Raise unless :attr:`parts` names exactly the operators that the set-up created.

        A solver works with a copy of a preconditioner that has its own parts.

        Raises
        ------
        InvalidArgument
            If the names differ; the message has the attribute and the remedy.
        """
        kind, held = type(self).__name__, vars(self)
        for name in self.parts:
            if not hasattr(self, name):
                raise InvalidArgument(
                    f"{kind}: parts names {name!r}, and setup(A) made no such operator: set "
                    f"self.{name} there, or take the name out of parts"
                )
        other = type(self)._remade is not Preconditioner._remade
        for name, value in held.items():
            if isinstance(value, LinOp) and not (other or name in (*self.parts, "_matrix")):
                names = (*self.parts, name)
                raise InvalidArgument(
                    f"{kind}: setup(A) made the operator {name!r}, and parts does not name it, so "
                    f"to() and astype() would leave it as it is: write parts = {names!r}"
                )

    def _warn_of_arrays(self, names: Set[str]) -> None:
        """Warn of arrays that the set-up of a user's class made, which stay where they are.

        Parameters
        ----------
        names : set of str
            The attributes that the set-up has set.
        """
        kind = type(self)
        by = next(base for base in kind.__mro__ if "_setup" in vars(base))
        moves = kind._remade is not Preconditioner._remade or kind.to is not Preconditioner.to
        if is_of_wollemi(by) or moves:
            return
        for name in sorted(names):
            value = getattr(self, name)
            if (isinstance(value, np.ndarray) or self.executor.owns(value)) and value.ndim:
                warn_caller(
                    f"{kind.__name__}: setup(A) made the array {name!r}, and to() and astype() "
                    "leave arrays as they are, so that a copy on another executor fails: write "
                    f"self.{name} = wl.Diagonal(array), or wl.Dense(array), and "
                    f"parts = {(*self.parts, name)!r}"
                )

    @property
    def partition(self) -> Any:
        """The distribution of rows, if a group of executors shares the matrix; else None."""
        return self._matrix.partition

    @property
    def local_rows(self) -> int:
        """The length of this executor's part of the vectors."""
        return self._matrix.local_rows

    def _part(self, A: Any) -> Any:
        """Return the matrix for the set-up: a member's block, if a group shares the matrix."""
        if A.partition is None:
            return A
        if works_alone(A.executor) or self.over_groups != "products":
            return A.own_block
        return A

    def _checked(self, A: LinOp) -> Matrix:
        name = type(self).__name__
        # tested on the class: the attribute itself would create the block
        if A.partition is not None and hasattr(type(A), "own_block"):
            if self.over_groups is None and not works_alone(A.executor):
                raise UnsupportedOperation(
                    f"{name} needs all rows of the matrix on one executor, and a group shares this "
                    f'one: use M="schwarz:inner={name.lower()}", which is {name} of the rows of '
                    "each member"
                )
            return A  # type: ignore[return-value]
        matrix = with_entries(A, name)
        if A.shape[0] != A.shape[1]:
            raise ShapeMismatch(f"{name} needs a square matrix, got {A.shape[0]}x{A.shape[1]}")
        return matrix

    # methods of a subclass

    @required
    def setup(self, A: Matrix) -> None:
        """Build the parts from a matrix. A subclass defines this method.

        Parameters
        ----------
        A : Matrix, shape (n, n)
            The matrix; if a group shares it, this member's block.
        """
        raise NotImplementedError

    def _setup(self, A: Matrix) -> None:
        """Do the same as :meth:`setup`; classes of the package define this name."""
        raise NotImplementedError

    def refresh(self, A: Matrix) -> None:
        """Rebuild the parts for new values with the same pattern; by default all of them.

        A subclass may define this method, which :meth:`update` calls. If a part stays the same
        object and gets new values (``part.update_values``), recorded solver loops stay valid; for
        other objects and other constants, solvers record their loops again.

        Parameters
        ----------
        A : Matrix, shape (n, n)
            The matrix with its new values.
        """
        self._setup(A)

    _refresh = refresh  # the name that classes of the package define

    def _recorded_refresh(self, A: Matrix) -> RecordedRefresh | None:
        """Return how operations of the executor alone rebuild the parts.

        None, the default, says that the rebuild needs the host.
        """
        return None

    @property
    def _follows_exactly(self) -> bool:
        """Whether an update gives the same operator as a new set-up.

        It is False if a pattern or a hierarchy of the first values is kept.
        """
        return False

    @classmethod
    def of_batch(cls, A: Any, **options: Any) -> Any:
        """Return the preconditioners for all matrices of a batch."""
        from ..batch.preconditioner import batch_preconditioner

        return batch_preconditioner(cls, A, **options)

    # methods for users

    @property
    def settings(self) -> Settings:
        """The class and the options of this preconditioner."""
        return settings_of(self)

    def update(self, A: Any = None) -> None:
        """Update to new values of the matrix; data that depend on the pattern alone are kept.

        Parameters
        ----------
        A : matrix, optional
            A matrix with the same shape and executor; by default, the original matrix with changed
            values.

        Raises
        ------
        ShapeMismatch, InvalidMatrix
            If the matrix does not match; the preconditioner is not changed then.
        """
        self.executor.refuse_capture(CHANGES)
        matrix = self._matrix if A is None else self._checked(as_linop(A, self.executor))
        if matrix.shape != self.shape:
            raise ShapeMismatch(
                f"{type(self).__name__}.update: expected a matrix of {self.shape[0]}x"
                f"{self.shape[1]}, got {matrix.shape[0]}x{matrix.shape[1]}"
            )
        made = self._copied()  # a failed set-up does not change this object
        made.notes = []
        made._refresh(self._part(matrix.to(self.executor).astype(self.dtype)))
        made._matrix = matrix
        if not _is_recorded_alike(self.__dict__, made.__dict__):
            made._own_rebuilds += 1
            made._require_finite()
        made._updates += 1
        self.__dict__.update(made.__dict__)

    def _savepoint(self) -> Callable[[], None]:
        return savepoint([self], self._matrix)

    @property
    def _rebuilds(self) -> int:  # type: ignore[override]
        return self._own_rebuilds + sum(part._rebuilds for part in self._operators())

    def _require_finite(self) -> None:
        """Raise InvalidMatrix if the product with a vector of ones has NaN or Inf."""
        if self.partition is not None or not self.resident:
            return
        check = partial(require_finite, self, type(self).__name__)
        if _PUT_OFF.checks is None:
            check()
        else:
            _PUT_OFF.checks.append(check)

    @property
    def resident(self) -> bool:
        """Whether applications consist of executor operations alone."""
        return all(part.resident for part in self._operators()) and self._replays_as_called

    @property
    def varies(self) -> bool:
        """Whether applications are not one fixed linear map, as with a solver among the parts."""
        return any(part.varies for part in self._operators())

    def _operators(self) -> list[LinOp]:
        return [getattr(self, name) for name in self.parts]

    def _copied(self) -> Self:
        """Return a shallow copy; copying by pickle methods may drop attributes."""
        result = type(self).__new__(type(self))
        result.__dict__.update(self.__dict__)
        return result

    def _remade(self, change: Callable[[LinOp], LinOp]) -> Self:
        """Return a copy with changed parts, a changed matrix, and new temporaries."""
        result = self._copied()
        result.notes = list(self.notes)
        for name, value in vars(result).items():
            result.__dict__[name] = _renewed(value)
        for name in self.parts:
            setattr(result, name, change(getattr(self, name)))
        result._matrix = change(self._matrix)  # type: ignore[assignment]
        result.executor, result.dtype = result._matrix.executor, result._matrix.dtype
        return result

    def _private(self) -> Self:
        return self._remade(lambda part: part._private())

    def to(self, executor: Executor | str) -> Self:
        """Return this preconditioner on another executor; itself if it is there already."""
        moved = self._matrix.to(executor)
        return self if moved is self._matrix else self._remade(lambda part: part.to(executor))

    def astype(self, dtype: Any) -> Self:
        """Return this preconditioner computing in ``dtype``; itself if it does already."""
        if np.dtype(dtype) == self.dtype:
            return self
        return self._remade(lambda part: part.astype(dtype))


class Transposable(Preconditioner):
    """Base of preconditioners with a transpose, which consists of the transposed parts."""

    #: Functions that transpose a part, and conjugate-transpose it. Triangular matrices stay in row
    #: order with :func:`transposed` and :func:`adjoint`.
    _turns: ClassVar[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = (
        attrgetter("T"), attrgetter("H")
    )  # fmt: skip

    @property
    def T(self) -> Self:
        """The transpose: the preconditioner of the transposed matrix."""
        return self._turned(self._turns[0])

    @property
    def H(self) -> Self:
        """The conjugate transpose: the preconditioner of the matrix's conjugate transpose."""
        return self._turned(self._turns[1])

    def _turned(self, turn: Callable[[Any], Any]) -> Self:
        """Return a copy with transposed parts; a subclass exchanges parts that change roles."""
        return self._remade(turn)


def _renewed(value: Any) -> Any:
    """Return new temporaries for temporaries, also in a tuple; other values are returned as is."""
    if isinstance(value, Temporary):
        return Temporary()
    if type(value) is tuple and value and all(isinstance(item, Temporary) for item in value):
        return tuple(Temporary() for _ in value)
    return value


def transposed(part: Any) -> Any:
    """Return the transpose of a matrix: in row order, or distributed like the matrix."""
    return part.transpose() if isinstance(part, Matrix) else part.T


def adjoint(part: Any) -> Any:
    """Return the conjugate transpose of a matrix, in the form of :func:`transposed`."""
    return transposed(part).conj()


def require_finite(operator: LinOp, name: str) -> None:
    """Apply an operator to a vector of ones, to test that its values are finite.

    Raises
    ------
    InvalidMatrix
        If the result has NaN or Inf; ``name`` is the preconditioner in the message.
    """
    executor, n = operator.executor, operator.local_rows
    if n == 0:
        return
    ones, result = (executor.allocate((n, 1), operator.dtype) for _ in range(2))
    executor.run(vector.fill, ones, 1.0)
    operator._apply(ones, result, 1.0, 0.0)
    found = executor.allocate((1,), real_dtype(operator.dtype))
    executor.run(vector.largest, result, found)
    if not np.isfinite(executor.to_host(found)[0]):
        raise InvalidMatrix(
            f"{name}: the approximate inverse times a vector of ones has NaN or Inf in "
            f"{operator.dtype}: multiply the matrix by a number that brings its entries near 1, "
            "compute in float64, or use another preconditioner"
        )


class _PutOff(threading.local):
    """The checks that a block of this thread defers; None outside of such blocks."""

    checks: list[Callable[[], None]] | None = None


_PUT_OFF = _PutOff()


@contextmanager
def checks_put_off() -> Iterator[list[Callable[[], None]]]:
    """Defer the checks of preconditioners that a block builds, or skip them.

    Yields the checks of :func:`require_finite`. A preconditioner that applies all others needs only
    its own check: each check takes some launches and a wait on a device.
    """
    before = _PUT_OFF.checks
    checks: list[Callable[[], None]] = []
    _PUT_OFF.checks = checks
    try:
        yield checks
    finally:
        _PUT_OFF.checks = before


def rows_of(A: Any) -> Csr:
    """Return the rows of this executor with all their columns, its own columns first.

    If a group shares the matrix, these are the rows of a member, with its ghosts as further
    columns, on an executor without shared sums.
    """
    rows: Csr = A.asformat("csr") if A.partition is None else A.extended
    return rows.without_duplicates()


def distinct_rows_of(A: Any) -> Csr:
    """Return the matrix of :func:`rows_of`, with unsorted rows if no order is needed.

    For a member with ghosts, sorting takes longer than a pass over the rows, and their order
    follows the whole matrix.
    """
    if A.partition is not None and is_known_distinct(A.extended):
        rows: Csr = A.extended
        return rows
    return rows_of(A)


def _is_recorded_alike(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Return whether recordings with the attributes ``before`` are valid for ``after``."""
    return before.keys() == after.keys() and all(
        _is_same(value, after[name])
        for name, value in before.items()
        if name not in ("notes", "_matrix")
    )


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_is_same, a, b))
    return isinstance(a, (bool, int, float, complex, str)) and a == b


def update_all(
    replaced: Sequence[tuple[Any, Any]], check: Callable[[], None] = lambda: None
) -> None:
    """Replace the values of matrices by values of others with the same patterns: all or none.

    Parameters
    ----------
    replaced : sequence of (Matrix, Matrix)
        Pairs of a matrix and the matrix that provides its new values.
    check : callable, optional
        Called when all matrices have their new values. If it raises, the old values are restored.
    """
    old = [part.executor.copy(part.data) for part, _ in replaced]
    try:
        for part, made in replaced:
            part.update_values(made.data)
        check()
    except BaseException:  # also Ctrl-C: partial updates are useless
        for (part, _), data in zip(replaced, old, strict=True):
            part.update_values(data)
        raise


def savepoint(operators: Sequence[Any], left_out: Any = None) -> Callable[[], None]:
    """Return a function that restores the current state of operators and all their parts.

    It reverts an update of several operators when one of them fails.

    Parameters
    ----------
    operators : sequence of LinOp
        Preconditioners, solvers and matrices. The values of all their matrices are copied.
    left_out : Matrix, optional
        The argument of the updates: it is not changed, and not copied.
    """
    states: list[tuple[Any, dict[str, Any]]] = []
    values: list[tuple[Matrix, Array]] = []
    seen = {id(left_out)}

    def visit(thing: Any) -> None:
        if isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part)
            return
        own = isinstance(thing, LinOp) or type(thing).__module__.startswith(__package__ or "")
        if (
            not own
            or isinstance(thing, type)
            or id(thing) in seen
            or not hasattr(thing, "__dict__")
        ):
            return
        seen.add(id(thing))
        if isinstance(thing, Matrix):
            values.append((thing, thing.executor.copy(thing.data)))
            return
        states.append((thing, dict(thing.__dict__)))
        for part in list(thing.__dict__.values()):
            visit(part)

    visit(list(operators))

    def restore() -> None:
        for thing, attributes in states:
            thing.__dict__.clear()
            thing.__dict__.update(attributes)
        for matrix, data in values:
            matrix.executor.copy_into(matrix.data, data)
            matrix._tell_sharers()

    return restore
