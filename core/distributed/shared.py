"""Operators of all members of a group in one process, for code outside of the members.

An object made from such an operator, such as a solver, is made on every member, and each call runs
on every member. Thus solvers and preconditioners need no code for groups.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import is_dataclass, replace
from numbers import Number
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np

from ..agreement import agree_on_call
from ..described import facts_table, side_by_side
from ..errors import InvalidArgument, MemberFailed, SolveInterrupted, UnsupportedOperation
from ..linop import LinOp
from ..loggers import Logger
from ..operands import is_array
from ..progress import Progress
from ..settings import Configurable

if TYPE_CHECKING:
    from ..executor import Array
    from .group import Group

P = ParamSpec("P")
R = TypeVar("R")

#: Arguments that only the first member calls; the other members use substitutes that do the same
#: collective work.
_CALLED = ("callback", "norm_callback")


#: The fields of eigenvalue results that contain vectors.
_VECTORS = ("eigenvectors", "u", "vt")


class Parts(list[Any]):
    """The parts of a vector, one array per member, in the order of ranks."""


class Shared(LinOp):
    """An operator of all members of a group in one process.

    :func:`wollemi.distribute` makes it, and so do solvers and preconditioners of such an operator.
    Vectors and results are whole arrays of shape (n,) or (n, k). :meth:`scatter` returns
    :class:`Parts`, one array per member; for parts the results are parts too.

    Attributes
    ----------
    group : Group
        The group.
    members : tuple of LinOp
        The operator of each member.
    """

    def __init__(self, group: Group, members: Iterable[LinOp]) -> None:
        self.group, self.members = group, tuple(members)
        first = self.members[0]
        self.shape, self.dtype = first.shape, first.dtype
        self.executor = group  # type: ignore[assignment]

    # attributes of all operators

    @property
    def partition(self) -> Any:
        """The partition of the rows."""
        made = self.__dict__.get("_partition")
        found = self.members[0].partition
        if made is None and hasattr(self.members[0], "partition_report"):
            made = found.reporting(lambda: self.call("partition_report"))
            self.__dict__["_partition"] = made
        return found if made is None else made

    @property
    def column_partition(self) -> Any:
        """The partition of the vectors to which the operator is applied."""
        return self.members[0].column_partition

    @property
    def varies(self) -> bool:
        """Whether applying is not a fixed linear map."""
        return any(member.varies for member in self.members)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        raise UnsupportedOperation("the members of a group apply their own parts of an operator")

    def apply(self, x: Any, out: Any = None, *, alpha: complex = 1.0, beta: complex = 0.0) -> Any:
        """Return ``alpha * op(x) + beta * out``; see :meth:`LinOp.apply`."""
        if out is not None and not isinstance(out, (np.ndarray, Parts)):
            raise InvalidArgument("out: expected a NumPy array or parts, for a group")
        target = out.copy() if isinstance(out, np.ndarray) else out
        found = self.call("apply", x, target, alpha=alpha, beta=beta)
        if isinstance(out, np.ndarray):
            out[...] = found
        return found if out is None else out

    @property
    def T(self) -> Shared:
        """The transpose."""
        return self._each(lambda part: part.T)

    @property
    def H(self) -> Shared:
        """The conjugate transpose."""
        return self._each(lambda part: part.H)

    def astype(self, dtype: Any) -> Shared:
        """Return this operator computing in ``dtype``."""
        return self._each(lambda part: part.astype(dtype))

    def to(self, executor: Any) -> Shared:
        """Return this operator; an operator that a group shares cannot move.

        Raises
        ------
        UnsupportedOperation
            If another executor is requested.
        """
        if executor is self.group:
            return self
        raise UnsupportedOperation(
            "an operator that a group shares does not move to another executor: distribute "
            "A.to_local() anew"
        )

    def __matmul__(self, other: Any) -> Any:
        return self.apply(other) if isinstance(other, Parts) else super().__matmul__(other)

    def _each(self, change: Callable[[LinOp], LinOp]) -> Shared:
        return _joined(self.group, self._run(change))

    def _run(self, function: Callable[[Any], Any]) -> list[Any]:
        def program(member: Any) -> Any:
            return function(self.members[member.links.rank])

        return self.group.call(program)

    def _after(self, other: LinOp) -> LinOp:
        return self._with(other, lambda left, right: left._after(right))

    def _plus(self, other: LinOp, factor: float = 1.0) -> LinOp:
        return self._with(other, lambda left, right: left._plus(right, factor))

    def _with(self, other: LinOp, join: Callable[[Any, Any], LinOp]) -> LinOp:
        if not isinstance(other, Shared) or other.group is not self.group:
            raise UnsupportedOperation(
                f"{type(other).__name__} is not shared by {self.group.full_name}: distribute it "
                "over the same group"
            )

        def program(member: Any) -> LinOp:
            rank = member.links.rank
            return join(self.members[rank], other.members[rank])

        return _joined(self.group, self.group.call(program))

    def __mul__(self, factor: Any) -> Any:
        return self._each(lambda part: part * factor)

    __rmul__ = __mul__

    def __getitem__(self, key: Any) -> Any:
        """Return rows and columns, which stay on their members, or one value."""
        return _one(self.group, self._run(lambda part: part[key]))

    def __repr__(self) -> str:
        rows, columns = self.shape
        kind = type(self.members[0]).__name__
        return f"<{kind} {rows}x{columns} {self.dtype} on {self.group.full_name}>"

    def _repr_html_(self) -> str:
        """Return the card for notebooks: the shape and the members."""
        rows, columns = self.shape
        facts = {
            "shape": f"{rows:,} x {columns:,}",
            "dtype": str(self.dtype),
            "members": self.group.full_name,
        }
        return side_by_side(facts_table(type(self.members[0]).__name__, facts))

    # attributes of solvers, preconditioners and matrices

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call a method on every member, and return the results as one."""
        return _called(
            self.group, lambda rank: getattr(self.members[rank], name), arguments, options
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "members" not in self.__dict__:
            raise AttributeError(name)
        found = getattr(type(self.members[0]), name, None)
        if isinstance(found, property) or found is None:
            return _one(self.group, self._run(lambda part: getattr(part, name)))
        return functools.partial(self.call, name)

    def update(self, A: Any = None) -> None:
        """Update to new values of the matrix on every member; on none if one refuses them."""
        saved = self._run(lambda part: part._savepoint())

        def take_back(member: Any) -> None:
            saved[member.links.rank]()

        try:
            self.call("update", A)
        except BaseException:  # also on Ctrl-C: members need the same values
            with suppress(MemberFailed):  # the group is then unusable
                self.group.call(take_back)
            raise

    def update_values(self, data: Any) -> None:
        """Overwrite the values; the pattern stays.

        Parameters
        ----------
        data : array, shape (nnz,), or Parts
            The new values, in the order of the matrix that was distributed.
        """
        if isinstance(data, Parts):
            new = self.call("_new_values", data)  # all members accept them, or none
            self.call("update_values", new)
            return
        values = np.asarray(data)
        counts = [part.local_nnz for part in self.members]  # type: ignore[attr-defined]
        partition = self.members[0].partition
        if partition.numbers is not None:
            raise UnsupportedOperation(
                "update_values: rows were numbered anew; hand over Parts with each member's values"
            )
        if values.shape != (sum(counts),):
            raise InvalidArgument(
                f"update_values: expected data of shape ({sum(counts)},), got {values.shape}"
            )
        self.call("update_values", Parts(np.split(values, np.cumsum(counts)[:-1])))

    def _norm(self, ord: Any, axis: int | None) -> Any:
        if not hasattr(self.members[0], "_norm"):
            raise UnsupportedOperation(
                f"norm: {type(self.members[0]).__name__} has no entries; take a norm of the matrix"
            )
        return self._run(lambda part: part._norm(ord, axis))[0]

    def scatter(self, whole: Any) -> Parts:
        """Return the members' parts of a whole vector or block."""
        return Parts(self._run(lambda part: part.scatter(whole)))

    def gather(self, parts: Parts) -> Any:
        """Return the whole vector or block, given its parts, as a NumPy array."""
        if not isinstance(parts, Parts) or len(parts) != self.group.size:
            raise InvalidArgument(f"gather: expected the parts of {self.group.size} members")

        def program(member: Any) -> Any:
            rank = member.links.rank
            return self.members[rank].gather(parts[rank])

        return self.group.call(program)[0]


def _joined(group: Group, results: list[Any]) -> Any:
    """Return operators of the members as one operator."""
    return Shared(group, results)


def _one(group: Group, results: list[Any], whole: bool = False) -> Any:
    """Return the results of all members as one; arrays are whole on each member, or parts."""
    first = results[0]
    if isinstance(first, LinOp) or isinstance(type(first), Configurable):
        return Shared(group, results)
    if is_dataclass(first) and not isinstance(first, type) and hasattr(first, "residual_norm"):
        x = _one(group, [result.x for result in results], whole)
        return replace(first, x=x, executor=group.name)
    if vectors := _vectors_of(first):
        made = {n: _one(group, [getattr(r, n) for r in results], whole) for n in vectors}
        found: Any = first
        return replace(found, **made, executor=group.name)
    if isinstance(first, tuple) and len(first) == 2:
        return _one(group, [r[0] for r in results], whole), first[1]
    if whole or not group.members[0].owns(first):
        return first
    return Parts(results)


def _vectors_of(result: Any) -> list[str]:
    """Return the fields of an eigenvalue result that contain vectors."""
    if not is_dataclass(result) or isinstance(result, type):
        return []
    return [name for name in _VECTORS if hasattr(result, name)]


def _called(
    group: Group,
    function: Callable[[int], Callable[..., Any]],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """Call a function on every member with the member's part of the arguments."""

    def program(member: Any) -> Any:
        rank = member.links.rank
        mine = [_mine(group, argument, rank) for argument in arguments]
        named = {n: _mine(group, argument, rank) for n, argument in options.items()}
        return function(rank)(*mine, **_in_step(named, rank, group))

    given = [*arguments, *options.values()]
    parts = any(isinstance(argument, Parts) for argument in given)
    arrays = any(is_array(argument) for argument in given if not isinstance(argument, Number))
    whole = arrays and not parts
    try:
        of_user = any(callable(argument) and not isinstance(argument, LinOp) for argument in given)
        results = group.run(program) if of_user else group.call(program)
        # Without an initial vector, eigenvalue solvers return whole vectors.
        return _one(group, results, whole or (bool(_vectors_of(results[0])) and not parts))
    except SolveInterrupted as interrupted:
        if whole:
            result: Any = interrupted.result
            interrupted.result = replace(result, executor=group.name)
        raise


def _mine(group: Group, argument: Any, rank: int) -> Any:
    """Return a member's part of an argument; other arguments are the same for all."""
    if isinstance(argument, Shared):
        if argument.group is not group:
            raise InvalidArgument(
                f"an operator of {argument.group.full_name} meets one of {group.full_name}: "
                "distribute both over one group"
            )
        return argument.members[rank]
    if isinstance(argument, Parts):
        if len(argument) != group.size:
            raise InvalidArgument(
                f"expected {group.size} parts, one for each member; got {len(argument)}"
            )
        return argument[rank]
    return argument


class _Silent(Logger):
    """Replaces a logger on other members, which must do the collective work that it needs."""

    def __init__(self, other: Logger) -> None:
        self.every, self.true_residual = other.every, other.true_residual


def _in_step(options: dict[str, Any], rank: int, group: Group) -> dict[str, Any]:
    """Let the first member call users' functions; the others do the same collective work."""
    made = dict(options)
    for name in _CALLED:
        if callable(made.get(name)):
            made[name] = _guarded(made[name], group) if rank == 0 else _ignored
    if made.get("loggers") and rank:
        made["loggers"] = [_Silent(logger) for logger in made["loggers"]]
    if made.get("progress") and rank:
        made["progress"] = False
        made["loggers"] = [*made.get("loggers", ()), _Silent(Progress())]
    return made


def _ignored(_: Any) -> None:
    """Ignore the argument of a callback, which all members have computed."""


def _guarded(callback: Callable[[Any], Any], group: Group) -> Callable[[Any], Any]:
    """Return a callback during which Ctrl-C asks all members to stop."""

    def called(argument: Any) -> Any:
        try:
            return callback(argument)
        except KeyboardInterrupt:
            group.interrupt()
            return None

    return called


#: The most frequent types that are not operators: ``isinstance`` for a class with abstract methods
#: takes three times as long.
_NO_OPERATORS = frozenset({type(None), bool, int, float, str, list, tuple, np.ndarray})


def operators_among(arguments: tuple[Any, ...], options: dict[str, Any]) -> list[LinOp]:
    """Return the operators among the operands and the options of a call."""
    given = (*arguments, *options.values())
    return [a for a in given if type(a) not in _NO_OPERATORS and isinstance(a, LinOp)]


def shared_among(arguments: tuple[Any, ...], options: dict[str, Any]) -> Group | None:
    """Return the group of the first argument that is a shared operator, or None."""
    return _group_of(operators_among(arguments, options))


def _group_of(operators: list[LinOp]) -> Group | None:
    for operator in operators:
        if isinstance(operator, Shared):
            return operator.group
    return None


def is_shared(arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Return whether one of the arguments is an operator that a group shares."""
    return any(a.partition is not None for a in operators_among(arguments, options))


def guarded(arguments: tuple[Any, ...], options: dict[str, Any]) -> AbstractContextManager[None]:
    """Return a context that tells other ranks of a failure, for operators that they share."""
    return _guard_of(operators_among(arguments, options)) or nullcontext()


@contextmanager
def constructing(
    kind: type, arguments: tuple[Any, ...], options: dict[str, Any], named: Mapping[str, Any]
) -> Iterator[None]:
    """Tell other ranks of a failed construction, after all of them have begun the same one.

    Parameters
    ----------
    kind : type
        The class.
    arguments, options : tuple, dict
        Its arguments by position and by name.
    named : mapping
        All options by name.

    Raises
    ------
    GroupMismatch
        On every rank, if ranks construct different classes or give different options.
    """
    operators = operators_among(arguments, options)
    with _guard_of(operators) or nullcontext():
        agree_on_call(operators, kind, named)
        yield


def _guard_of(operators: list[LinOp]) -> AbstractContextManager[None] | None:
    for operator in operators:
        if operator.partition is not None:
            links = operator.executor.links
            return None if links is None else links.guarded()
    return None


def on_every_member(
    group: Group, function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Call a function on every member of a group with the member's part of the arguments."""
    return _called(group, lambda rank: function, arguments, options)


def over_groups(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of an operator to run on every member if a group shares that."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **options: P.kwargs) -> R:
        operators = operators_among(args, options)
        group = _group_of(operators)
        if group is not None:
            return cast("R", on_every_member(group, function, args, options))
        guard = _guard_of(operators)
        if guard is None:
            return function(*args, **options)
        with guard:
            return function(*args, **options)

    return wrapped
