"""Stopping criteria, and their limits for a given system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .errors import InvalidArgument
from .factors import whole_number


class Norms:
    """The norms of a solve to which criteria are relative, one for each column.

    If squares of a column would leave the range of the dtype, the column is scaled, and its norms
    are those of the scaled column.

    Parameters
    ----------
    b : array, shape (k,)
        Norms of the right-hand sides.
    initial : callable
        Computes the norms of ``b - A x0``, shape (k,). It is called if a criterion needs them.
    scale : array, shape (k,), optional
        Scaling factors of the columns; 1 by default.
    """

    def __init__(
        self,
        b: np.ndarray[Any, Any],
        initial: Callable[[], np.ndarray[Any, Any]],
        scale: np.ndarray[Any, Any] | None = None,
    ) -> None:
        self.b, self._initial = b, initial
        self.scale = np.ones_like(b) if scale is None else scale

    @cached_property
    def initial(self) -> np.ndarray[Any, Any]:
        """Norms of the initial residuals."""
        return self._initial()


@dataclass(frozen=True)
class State:
    """The state of a solve, passed to user-defined criteria.

    Attributes
    ----------
    iteration : int
        The largest iteration count of all columns.
    norm : array, shape (k,)
        Residual norms as the iteration computes them.
    norm_b : array, shape (k,)
        Norms of the right-hand sides.
    initial_norm : array, shape (k,)
        Norms of the initial residuals.
    seconds : float
        Wall time in seconds since the solve began.
    """

    iteration: int
    norm: np.ndarray[Any, Any]
    norm_b: np.ndarray[Any, Any]
    initial_norm: np.ndarray[Any, Any]
    seconds: float


@dataclass(frozen=True)
class Limits:
    """The limits that a set of criteria imposes on a solve.

    ``threshold`` has one value per column of the right-hand side, scaled like :class:`Norms`.
    ``user_criteria`` are user-defined criteria that are called during the solve.
    """

    threshold: np.ndarray[Any, Any] | None = None
    iterations: int | None = None
    seconds: float | None = None
    user_criteria: tuple[Criterion, ...] = ()


class Criterion:
    """A condition that ends a solve; the base of user-defined criteria.

    ``a | b`` stops when either criterion is met, ``a & b`` when both are. A solve succeeds only if
    its residual is small enough: a limit of iterations or time, or a user-defined criterion, ends
    it without success.

    Notes
    -----
    A user-defined criterion derives from this class and has a method ``done(state)`` that returns
    whether to end the solve; ``state`` is a :class:`wollemi.stop.State` with the iteration, the
    norms and the time. The host calls it after every ``every`` iterations (1 by default; a class or
    instance attribute). Executors run the iterations in between without the host. If it ends a
    solve, ``Result.x`` is the current iterate. Columns with a true residual that meets a tolerance
    still count as converged.

    Examples
    --------
    >>> from wollemi import stop
    >>> stop.RelativeResidual(1e-8) | stop.Iterations(100) | stop.Time(10.0)
    RelativeResidual(rtol=1e-08) | Iterations(count=100) | Time(seconds=10.0)

    A criterion that accepts a tenth of the initial residual after one second or twenty iterations:

    >>> import numpy as np, wollemi as wl
    >>> class Patience(wl.stop.Criterion):
    ...     every = 10
    ...
    ...     def done(self, state):
    ...         near = np.all(state.norm <= 0.1 * state.initial_norm)
    ...         return near and (state.iteration >= 20 or state.seconds > 1)
    >>> A = wl.Csr(np.diag(np.linspace(1, 100, 200)))
    >>> cg = wl.solvers.Cg(A, stop=wl.stop.RelativeResidual(1e-12) | Patience())
    >>> result = cg.solve(np.ones(200))
    >>> result.iterations, result.reason
    (20, 'not converged: a criterion of your own ended the solve')
    """

    #: Iterations between two calls of a user-defined criterion.
    every: int = 1

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def done(self, state: State) -> bool:
        """Return whether to end the solve; user-defined criteria override this."""
        raise NotImplementedError

    def limits(self, norms: Norms) -> Limits:
        """Return the limits of the criterion for a system with these norms."""
        if type(self).done is Criterion.done:
            raise InvalidArgument(
                f"stop: {type(self).__name__} has no method done(self, state), which returns "
                "whether a solve is to end"
            )
        whole_number(self.every, "every", 1)
        return Limits(user_criteria=(self,))

    def to_dict(self) -> dict[str, Any]:
        """Return the criterion as a dictionary, the input of :func:`criterion`."""
        name = type(self).__name__
        if _BY_NAME.get(name) is not type(self):
            raise InvalidArgument(f"stop: a {name} cannot be written to a file")
        return {"criterion": name, **vars(self)}

    def __or__(self, other: Criterion) -> Criterion:
        return _Any(self, other) if isinstance(other, Criterion) else NotImplemented

    def __and__(self, other: Criterion) -> Criterion:
        return _All(self, other) if isinstance(other, Criterion) else NotImplemented


def _positive(name: str, value: float) -> None:
    try:
        fits = bool(value >= 0)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InvalidArgument(f"{name}: expected a number of at least 0, got {value!r}")


#: The quantities to which a residual can be relative.
BASELINES = ("b", "initial")


@dataclass(frozen=True, repr=False)
class RelativeResidual(Criterion):
    """``norm(b - A x) <= rtol * norm(b)``, or relative to the initial residual.

    Parameters
    ----------
    rtol : float
        The tolerance.
    baseline : {"b", "initial"}
        The reference norm: of ``b``, or of ``b - A x0``. Without ``x0`` they are equal.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A, b = wl.Csr(np.diag([1.0, 2.0, 4.0])), np.ones(3)
    >>> stop = wl.stop.RelativeResidual(1e-3, baseline="initial")
    >>> near = np.array([1.0, 0.5, 0.2])
    >>> result = wl.solvers.Cg(A, stop=stop).solve(b, x0=near)
    >>> bool(np.isclose(result.threshold, 1e-3 * np.linalg.norm(b - A @ near)))
    True
    """

    rtol: float
    baseline: str = field(default="b", kw_only=True)

    def __post_init__(self) -> None:
        _positive("rtol", self.rtol)
        if self.baseline not in BASELINES:
            raise InvalidArgument(
                f"baseline: expected one of {', '.join(map(repr, BASELINES))}, got "
                f"{self.baseline!r}"
            )

    def __repr__(self) -> str:
        shown = {name: value for name, value in vars(self).items() if value != "b"}
        inside = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"{type(self).__name__}({inside})"

    def limits(self, norms: Norms) -> Limits:
        """Return the limits of the criterion for a system with these norms."""
        return Limits(threshold=self.rtol * (norms.b if self.baseline == "b" else norms.initial))


@dataclass(frozen=True)
class AbsoluteResidual(Criterion):
    """``norm(b - A x) <= atol``."""

    atol: float

    def __post_init__(self) -> None:
        _positive("atol", self.atol)

    def limits(self, norms: Norms) -> Limits:
        """Return the limits of the criterion for a system with these norms."""
        with np.errstate(over="ignore"):
            return Limits(threshold=self.atol * norms.scale)


@dataclass(frozen=True, repr=False)
class TrueResidual(RelativeResidual):
    """The relative residual, also computed from ``x`` every ``every`` iterations.

    Every residual criterion is verified with the true residual before the solve reports success.
    This one also detects early that the true residual meets the tolerance, or that it never will.
    """

    every: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.every, "every", 1)


@dataclass(frozen=True)
class Iterations(Criterion):
    """At most ``count`` iterations."""

    count: int

    def __post_init__(self) -> None:
        whole_number(self.count, "maxiter, the limit of iterations")

    def limits(self, norms: Norms) -> Limits:
        """Return the limits of the criterion for a system with these norms."""
        return Limits(iterations=int(self.count))


@dataclass(frozen=True)
class Time(Criterion):
    """At most ``seconds`` of wall time; checked between batches of iterations."""

    seconds: float

    def __post_init__(self) -> None:
        _positive("seconds", self.seconds)

    def limits(self, norms: Norms) -> Limits:
        """Return the limits of the criterion for a system with these norms."""
        return Limits(seconds=float(self.seconds))


class _Combined(Criterion):
    symbol: str
    word: str
    parts: tuple[Criterion, ...]

    def __init__(self, *parts: Criterion) -> None:
        found: list[Criterion] = []
        for part in parts:
            found.extend(part.parts if isinstance(part, type(self)) else [part])
        self.parts = tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return the criterion as a dictionary, the input of :func:`criterion`."""
        return {self.word: [part.to_dict() for part in self.parts]}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((self.word, self.parts))

    def __repr__(self) -> str:
        return f" {self.symbol} ".join(map(repr, self.parts))


class _Any(_Combined):
    symbol, word = "|", "any"

    def limits(self, norms: Norms) -> Limits:
        """Return the limits of the criterion for a system with these norms."""
        threshold: np.ndarray[Any, Any] | None = None
        iterations, seconds, user_criteria = None, None, tuple[Criterion, ...]()
        for part in self.parts:
            found = part.limits(norms)
            if threshold is None:
                threshold = found.threshold
            elif found.threshold is not None:
                threshold = np.maximum(threshold, found.threshold)
            iterations = _least(iterations, found.iterations)
            seconds = _least(seconds, found.seconds)
            user_criteria += found.user_criteria
        return Limits(threshold, iterations, seconds, user_criteria)


def _least(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers; None counts as no limit."""
    return b if a is None else a if b is None else min(a, b)


class _All(_Combined):
    symbol, word = "&", "all"

    def limits(self, norms: Norms) -> Limits:
        """Return the limits of the criterion for a system with these norms."""
        found = [part.limits(norms) for part in self.parts]
        thresholds = [f.threshold for f in found if f.threshold is not None]
        limited = any(
            f.iterations is not None or f.seconds is not None or f.user_criteria for f in found
        )
        if len(thresholds) < len(found) or limited:
            raise InvalidArgument(
                f"{self!r}: & combines criteria on the residual; join limits on iterations and "
                "time, and criteria of your own, with |"
            )
        return replace(found[0], threshold=np.minimum.reduce(thresholds))


def true_residual_period(criterion: Criterion) -> int | None:
    """Return the iterations between two true residuals that a criterion needs, or None."""
    if isinstance(criterion, TrueResidual):
        return criterion.every
    periods = [true_residual_period(p) for p in getattr(criterion, "parts", ())]
    return min((p for p in periods if p is not None), default=None)


@dataclass(frozen=True)
class Linear:
    """Criteria in the form of a threshold ``max(relative * norm(b), absolute)`` and a count.

    Attributes
    ----------
    relative, absolute : float
        The factors; 0 if no criterion sets them.
    tolerated : bool
        Whether a criterion sets a tolerance.
    iterations : int or None
        Maximum number of iterations.
    """

    relative: float = 0.0
    absolute: float = 0.0
    tolerated: bool = False
    iterations: int | None = None

    def threshold(self, norm: float) -> float:
        """Return the threshold of an unscaled column."""
        return max(self.relative * norm, self.absolute)

    def limits(self, norms: Norms, real: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return the thresholds as a device computes them, in the precision of its norms."""
        with np.errstate(over="ignore"):
            relative = real.type(self.relative) * norms.b.astype(real)
            limits: np.ndarray[Any, Any] = np.maximum(
                relative, (self.absolute * norms.scale).astype(real)
            )
        return limits


def linear(criterion: Criterion) -> Linear | None:
    """Return the linear form of a criterion, or None if it is not linear in the norms of ``b``.

    Examples
    --------
    >>> from wollemi.core.stopping import AbsoluteResidual, Iterations, RelativeResidual, linear
    >>> linear(RelativeResidual(1e-8) | AbsoluteResidual(1e-3) | Iterations(100))
    Linear(relative=1e-08, absolute=0.001, tolerated=True, iterations=100)
    """
    if isinstance(criterion, _Any):
        if any(type(part) not in _MAYBE_LINEAR for part in criterion.parts):
            return None
        result = Linear()
        for part in criterion.parts:
            found = linear(part)
            if found is None:
                return None
            result = Linear(
                max(result.relative, found.relative),
                max(result.absolute, found.absolute),
                result.tolerated or found.tolerated,
                _least(result.iterations, found.iterations),
            )
        return result
    if type(criterion) is RelativeResidual and criterion.baseline == "b":
        return Linear(relative=float(criterion.rtol), tolerated=True)
    if type(criterion) is AbsoluteResidual:
        return Linear(absolute=float(criterion.atol), tolerated=True)
    if type(criterion) is Iterations:
        return Linear(iterations=int(criterion.count))
    return None


#: The criteria that may have a linear form.
_MAYBE_LINEAR = (RelativeResidual, AbsoluteResidual, Iterations, _Any)

_BY_NAME: dict[str, type[Criterion]] = {
    kind.__name__: kind
    for kind in (RelativeResidual, AbsoluteResidual, TrueResidual, Iterations, Time)
}


def criterion(found: Any) -> Criterion:
    """Return the criterion described by a dictionary from :meth:`Criterion.to_dict`.

    Raises
    ------
    InvalidArgument
        If the dictionary describes no criterion.

    Examples
    --------
    >>> from wollemi import stop
    >>> stop.criterion({"any": [{"criterion": "Iterations", "count": 9}, (stop.Time(1)).to_dict()]})
    Iterations(count=9) | Time(seconds=1)
    """
    if isinstance(found, dict):
        for kind in (_Any, _All):
            if set(found) == {kind.word}:
                return kind(*map(criterion, found[kind.word]))
        values = dict(found)
        name = values.pop("criterion", None)
        if name in _BY_NAME:
            try:
                return _BY_NAME[name](**values)
            except TypeError as error:
                raise InvalidArgument(f"stop: {error}") from None
    raise InvalidArgument(
        'stop: expected {"criterion": name, ...}, {"any": [...]} or {"all": [...]} with a name of '
        f"{', '.join(_BY_NAME)}; got {found!r}"
    )
