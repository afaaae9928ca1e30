"""The requested method: a name, a class, settings, or a solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from ...core.errors import InvalidArgument
from ...core.settings import Settings, option_names, settings_of
from ...core.suggest import OUT_REMEDY, hint
from ..direct import Direct
from ..krylov.base import KrylovSolver
from ..least_squares.base import LeastSquaresSolver
from ..preconditioners.names import options_in
from ..registry import LEAST_SQUARES, OWN_PRECONDITIONERS, SOLVERS

AUTO, DIRECT = "auto", "direct"


class SolveLimits(NamedTuple):
    """The arguments of ``wl.solve`` that end a solve."""

    rtol: float
    atol: float
    maxiter: int | None
    stop: Any


def belongs_to(name: str, value: Any) -> str:
    """Return a hint on the method or preconditioner that has an option; empty if none has.

    Examples
    --------
    >>> belongs_to("damp", 3.0)
    'damp belongs to Lsmr: write method="lsmr:damp=3.0"; '
    >>> belongs_to("theta", 0.5)
    'theta belongs to Amg: write M="amg:theta=0.5"; '
    """
    if name == "out":
        return OUT_REMEDY
    shown = value if isinstance(value, (bool, int, float, str)) else "..."
    tables: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("method", LEAST_SQUARES), ("method", SOLVERS), ("M", OWN_PRECONDITIONERS),
    )  # fmt: skip
    for parameter, table in tables:
        for known in table:
            kind: type = table[known]
            words = f'{name} belongs to {kind.__name__}: write {parameter}="{known}:{name}={shown}"'
            if name in option_names(kind):
                return f"{words}; "
    return ""


@dataclass(frozen=True)
class RequestedMethod:
    """A requested method with its preconditioner and options.

    Attributes
    ----------
    name : str
        ``"auto"``, or the name of a class in lower case.
    kind : type or None
        The class; None for ``"auto"``.
    M : object
        The preconditioner; ``"auto"`` if it was not given.
    options : mapping
        Further options of the solver.
    """

    name: str
    kind: type | None
    M: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def without_limits(self, limits_of_call: SolveLimits) -> tuple[RequestedMethod, SolveLimits]:
        """Return the method without its limits, and all limits; limits of settings take precedence.

        ``atol`` of a least squares solver belongs to its own stopping rules: it is not a limit of
        the residual norm, and stays an option.

        Raises
        ------
        InvalidArgument
            If the method sets a tolerance, and ``stop`` of the call would replace it.
        """
        if not self.options:
            return self, limits_of_call
        limits = set(SolveLimits._fields) - ({"atol"} if self.is_least_squares else set())
        options_of_limits = {name: value for name, value in self.options.items() if name in limits}
        replaced = [
            name
            for name in ("rtol", "atol")
            if name in options_of_limits and "stop" not in options_of_limits
        ]
        if limits_of_call.stop is not None and replaced:
            raise InvalidArgument(
                f"stop: it replaces {' and '.join(replaced)}, which method= sets; leave one out, "
                f"or add wl.stop.RelativeResidual(...) to stop"
            )
        rest = {
            name: value for name, value in self.options.items() if name not in options_of_limits
        }
        return replace(self, options=rest), limits_of_call._replace(**options_of_limits)

    @cached_property
    def settings(self) -> str | Settings:
        """The argument ``method`` of ``wl.solve`` for this method, without its preconditioner."""
        return self.name if self.kind is None else Settings(self.kind, dict(self.options))

    @cached_property
    def is_auto(self) -> bool:
        """Whether ``wl.solve`` is to choose the method."""
        return self.kind is None

    @cached_property
    def is_open(self) -> bool:
        """Whether ``wl.solve`` is to choose both method and preconditioner."""
        return self.is_auto and isinstance(self.M, str) and self.M == AUTO

    @cached_property
    def is_direct(self) -> bool:
        """Whether the method is the direct solver."""
        return self.kind is not None and issubclass(self.kind, Direct)

    @cached_property
    def is_least_squares(self) -> bool:
        """Whether the method is a least squares solver, which accepts matrices of any shape."""
        return self.kind is not None and issubclass(self.kind, LeastSquaresSolver)

    @property
    def owns_M(self) -> bool:
        """Whether the preconditioner is the default of the method's class."""
        own_M = getattr(self.kind, "OWN_M", None)
        return own_M is not None and isinstance(self.M, str) and own_M == self.M

    @cached_property
    def is_plain(self) -> bool:
        """Whether names alone define the method, so that its plan can be kept."""
        known = self.kind is None or self.name in (DIRECT, *SOLVERS)
        return known and not self.options and isinstance(self.M, (str, type(None)))


#: The request of most calls: everything is to be chosen.
OPEN = RequestedMethod(AUTO, None, AUTO)


def parsed_method(method: Any, M: Any) -> RequestedMethod:
    """Return the requested method.

    Parameters
    ----------
    method : str, type, Settings or solver
        ``"auto"``, ``"direct"``, the name of a solver, also with options (``"idr:s=8"``), its
        class, settings such as ``Gmres(restart=50)``, or a solver that was created for another
        matrix.
    M : object
        The preconditioner; ``"auto"`` selects the one of the settings, or the default of the class.

    Raises
    ------
    InvalidArgument
        If the name or an option is unknown, or if ``method`` has another type.
    """
    if isinstance(method, str):
        open_ = isinstance(M, str) and M == AUTO == method
        return OPEN if open_ else _named(method, M)
    settings = method
    if isinstance(method, type):
        settings = Settings(method, {})
    elif isinstance(method, (KrylovSolver, LeastSquaresSolver, Direct)):
        settings = settings_of(method)
    kinds = (KrylovSolver, LeastSquaresSolver, Direct)
    if not isinstance(settings, Settings) or not issubclass(settings.kind, kinds):
        raise InvalidArgument(
            f"method: expected a name, the class of a solver, settings or a solver, got {method!r}"
        )
    options = dict(settings.options)
    own_M = options.pop("M", "auto")
    if isinstance(M, str) and M == AUTO:
        M = own_M
    return RequestedMethod(settings.name, settings.kind, _default_M(settings.kind, M), options)


def _named(method: str, M: Any) -> RequestedMethod:
    name, _, rest = method.partition(":")
    name = name.lower()
    options = options_in(rest, "method") if rest else {}
    if name == AUTO:
        if options:
            raise InvalidArgument(f"method: 'auto' takes no options, got {rest!r}")
        return RequestedMethod(AUTO, None, M)
    kind: type | None = Direct if name == DIRECT else None
    if kind is None:
        kind = SOLVERS.get(name) or LEAST_SQUARES.get(name)
    if kind is None:
        known = [AUTO, DIRECT, *SOLVERS, *LEAST_SQUARES]
        unknown = InvalidArgument(
            f"no method is called {name!r}; {hint(name, known)}known: {', '.join(sorted(known))}"
        )
        # the command line omits notes: it has no classes to register
        unknown.add_note("One of your own has a name after wl.solvers.register(cls)")
        raise unknown
    if options:
        return parsed_method(Settings(kind, options), M)
    return RequestedMethod(name, kind, _default_M(kind, M))


def _default_M(kind: type, M: Any) -> Any:
    """Return the preconditioner: the default of the class, if ``M`` is "auto" and there is one."""
    if not (isinstance(M, str) and M == AUTO):
        return M
    if not getattr(kind, "TAKES_M", True):
        return None
    return getattr(kind, "OWN_M", AUTO)
