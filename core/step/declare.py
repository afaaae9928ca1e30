"""Declarations of steps: the names of a workspace, and the decorator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InvalidArgument
from ..operation import OPERATIONS, Operation, parse_signature
from .groups import is_of_solvers
from .trace import KINDS, RESERVED, Traced, trace

Function = Callable[[Any], None]


class Step:
    """A step: a function of a workspace, and the operation that it defines.

    Attributes
    ----------
    function : callable
        The function; its argument is the workspace.
    traced : Traced
        The result of tracing the function.
    operation : Operation
        The operation for executors.
    names : tuple of str
        The names of the operation's parameters in order.
    version : int
        Number of earlier definitions of a step with this name, as in a notebook.

    Notes
    -----
    ``step(work)`` makes ``work.executor`` run the operation on the attributes of ``work`` with the
    names that the step uses.
    """

    operation: Operation
    names: tuple[str, ...]
    version = 0

    def __init__(self, function: Function, traced: Traced) -> None:
        self.function, self.traced = function, traced
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<step {self.operation.name}>"

    def __call__(self, work: Any) -> None:
        """Run the step on the arrays of a workspace."""
        work.executor.run(self.operation, *[getattr(work, name) for name in self.names])

    def run(self, executor: Any, **named: Any) -> None:
        """Run the step on arrays of an executor, passed by name.

        Raises
        ------
        TypeError
            If a name is missing, or if the step does not use it.
        """
        if named.keys() != set(self.names):
            raise TypeError(
                f"{self.operation.name} takes {', '.join(self.names)}; got {', '.join(named)}"
            )
        executor.run(self.operation, *[named[name] for name in self.names])


class Steps:
    """A group of steps over the same names; it is the decorator that makes them.

    Parameters
    ----------
    group : str
        The group in the names of their operations, such as ``cg``.
    vectors : str
        Names of blocks of vectors, with one value per row and column, separated by blanks.
    scalars, reals, flags : str
        Names of arrays with one value per column: of the vectors' dtype, real, or boolean.
    rows : str
        Names of read-only arrays with one value per row, the same in all columns.
    numbers : str
        Names of read-only numbers that are passed by value.
    status : bool
        Whether the steps belong to a solve. They then skip stopped columns, and can report norms
        and breakdowns to the status.

    Examples
    --------
    >>> from wollemi.core.step import Steps, dot
    >>> step = Steps("example", vectors="x y", scalars="rho", status=False)
    >>> @step
    ... def product(w):
    ...     '''Set rho = <x, y>.'''
    ...     w.rho = dot(w.x, w.y)
    >>> product.names
    ('x', 'y', 'rho')
    """

    def __init__(
        self,
        group: str,
        *,
        vectors: str = "",
        rows: str = "",
        scalars: str = "",
        reals: str = "",
        flags: str = "",
        numbers: str = "",
        status: bool = True,
    ) -> None:
        given = {
            "vectors": vectors,
            "rows": rows,
            "scalars": scalars,
            "reals": reals,
            "flags": flags,
            "numbers": numbers,
        }
        self.group, self.status = group, status
        self.kinds: Mapping[str, str] = _kinds(group, given)

    def __repr__(self) -> str:
        names = ", ".join(f"{name} {kind}" for name, kind in self.kinds.items())
        return f"<steps of {self.group}: {names or 'no names'}>"

    def __call__(self, function: Function) -> Step:
        """Make a step from a function.

        Raises
        ------
        InvalidArgument
            If the group belongs to wollemi, or if another step has the same name.
        """
        name = f"{self.group}.{function.__name__}"
        ours = _root(function.__module__) == _root(__name__)
        if not ours and is_of_solvers(self.group):
            raise InvalidArgument(
                f"the step {name}: wollemi has steps of the group {self.group!r}; take another "
                "one, such as the name of your package"
            )
        try:
            traced = trace(function, self.kinds, self.status)
        except (TypeError, AttributeError) as error:
            raise type(error)(f"the step {name}: {error}") from None
        flops, step = traced.flops, Step(function, traced)
        step.operation = Operation(
            name,
            parse_signature(traced.signature(self.status)),
            _summary(function),
            lambda extents: flops * extents["n"] * extents["k"],
            ("n", "k"),
            sums=_sums(traced),
            step=step,
            checked=not ours,
        )
        step.names = tuple(parameter.name for parameter in step.operation.parameters)
        OPERATIONS.add(step.operation, _origin(function))
        return step

    def names(self, kind: str) -> list[str]:
        """Return the names of a kind, such as ``vectors``, in the order of their declaration."""
        return [name for name, its in self.kinds.items() if its == kind]


def _root(module: str) -> str:
    """Return the top-level package of a module; in the build this package has another name."""
    return module.partition(".")[0]


def _kinds(group: str, names_of_kinds: Mapping[str, str]) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for kind, names in names_of_kinds.items():
        assert kind in KINDS
        for name in names.split():
            if name in RESERVED or not name.isidentifier() or name.startswith("_"):
                raise ValueError(f"steps of {group}: {name!r} cannot be the name of an array")
            if name in kinds:
                raise ValueError(f"steps of {group}: {name!r} is declared twice")
            kinds[name] = kind
    return kinds


def _sums(traced: Traced) -> tuple[str, ...]:
    """Return the kinds of the sums of a step: ``T``, ``R``, or ``largest``."""
    if not traced.sums and traced.has_finish:
        return ("R",)
    return tuple("largest" if s.kind == "largest" else s.type for s in traced.sums)


def _summary(function: Function) -> str:
    """Return the first paragraph of a docstring, such as "Set x += alpha p.", as a formula."""
    text = (function.__doc__ or function.__name__).strip().partition("\n\n")[0]
    return " ".join(text.split()).removesuffix(".").removeprefix("Set ")


def _origin(function: Function) -> str:
    """Return a key that tells a repeated definition from another one of the same name."""
    return f"{function.__module__}.{function.__qualname__}"
