"""When to stop: criteria, and what they come to for a given right-hand side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .errors import InvalidArgument


@dataclass(frozen=True)
class Limits:
    """What a set of criteria comes to.

    ``threshold`` is per column of the right-hand side.
    """

    threshold: np.ndarray[Any, Any] | None = None
    iterations: int | None = None
    seconds: float | None = None


class Criterion(ABC):
    """Something that ends a solve.

    ``a | b`` stops when either is met, ``a & b`` when both are. Reaching a residual makes the
    solve a success, running out of iterations or time does not.

    Examples
    --------
    >>> from wollemi import stop
    >>> stop.RelativeResidual(1e-8) | stop.Iterations(100) | stop.Time(10.0)
    RelativeResidual(rtol=1e-08) | Iterations(count=100) | Time(seconds=10.0)
    """

    @abstractmethod
    def limits(self, norm_b: np.ndarray[Any, Any]) -> Limits:
        """Return what the criterion comes to for columns of these norms."""

    def to_dict(self) -> dict[str, Any]:
        """Return the criterion as a dictionary that :func:`criterion` takes."""
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


def _whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, (int, float, np.integer)) or not least <= value < np.inf or value % 1:
        raise InvalidArgument(f"{name}: expected an integer >= {least}, got {value!r}")


@dataclass(frozen=True)
class RelativeResidual(Criterion):
    """``norm(b - A x) <= rtol * norm(b)``."""

    rtol: float

    def __post_init__(self) -> None:
        _positive("rtol", self.rtol)

    def limits(self, norm_b: np.ndarray[Any, Any]) -> Limits:
        """Return what the criterion comes to for columns of these norms."""
        return Limits(threshold=self.rtol * norm_b)


@dataclass(frozen=True)
class AbsoluteResidual(Criterion):
    """``norm(b - A x) <= atol``."""

    atol: float

    def __post_init__(self) -> None:
        _positive("atol", self.atol)

    def limits(self, norm_b: np.ndarray[Any, Any]) -> Limits:
        """Return what the criterion comes to for columns of these norms."""
        return Limits(threshold=np.full_like(norm_b, self.atol))


@dataclass(frozen=True)
class TrueResidual(RelativeResidual):
    """The relative residual, computed from ``x`` every ``every`` iterations as well.

    Every criterion on the residual is verified with the true one before success is claimed; this
    one also notices early that the true residual is there, or that it never will be.
    """

    every: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        _whole("every", self.every, 1)


@dataclass(frozen=True)
class Iterations(Criterion):
    """At most ``count`` iterations."""

    count: int

    def __post_init__(self) -> None:
        _whole("iterations", self.count, 0)

    def limits(self, norm_b: np.ndarray[Any, Any]) -> Limits:
        """Return what the criterion comes to for columns of these norms."""
        return Limits(iterations=int(self.count))


@dataclass(frozen=True)
class Time(Criterion):
    """At most ``seconds`` of wall time; looked at between batches of iterations."""

    seconds: float

    def __post_init__(self) -> None:
        _positive("seconds", self.seconds)

    def limits(self, norm_b: np.ndarray[Any, Any]) -> Limits:
        """Return what the criterion comes to for columns of these norms."""
        return Limits(seconds=float(self.seconds))


class _Combined(Criterion):
    symbol: str
    word: str

    def __init__(self, *parts: Criterion) -> None:
        self.parts = parts

    def to_dict(self) -> dict[str, Any]:
        """Return the criterion as a dictionary that :func:`criterion` takes."""
        return {self.word: [part.to_dict() for part in self.parts]}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((self.word, self.parts))

    def __repr__(self) -> str:
        return f" {self.symbol} ".join(map(repr, self.parts))


class _Any(_Combined):
    symbol, word = "|", "any"

    def limits(self, norm_b: np.ndarray[Any, Any]) -> Limits:
        """Return what the criterion comes to for columns of these norms."""
        found = [part.limits(norm_b) for part in self.parts]
        thresholds = [f.threshold for f in found if f.threshold is not None]
        return Limits(
            threshold=np.maximum.reduce(thresholds) if thresholds else None,
            iterations=min((f.iterations for f in found if f.iterations is not None), default=None),
            seconds=min((f.seconds for f in found if f.seconds is not None), default=None),
        )


class _All(_Combined):
    symbol, word = "&", "all"

    def limits(self, norm_b: np.ndarray[Any, Any]) -> Limits:
        """Return what the criterion comes to for columns of these norms."""
        found = [part.limits(norm_b) for part in self.parts]
        thresholds = [f.threshold for f in found if f.threshold is not None]
        if len(thresholds) < len(found) or any(f.iterations or f.seconds for f in found):
            raise InvalidArgument(
                f"{self!r}: & combines criteria on the residual; join limits on iterations and "
                "time with |"
            )
        return replace(found[0], threshold=np.minimum.reduce(thresholds))


def true_residual_period(criterion: Criterion) -> int | None:
    """Return how often a criterion wants the true residual, or None."""
    if isinstance(criterion, TrueResidual):
        return criterion.every
    periods = [true_residual_period(p) for p in getattr(criterion, "parts", ())]
    return min((p for p in periods if p is not None), default=None)


_BY_NAME: dict[str, type[Criterion]] = {
    kind.__name__: kind
    for kind in (RelativeResidual, AbsoluteResidual, TrueResidual, Iterations, Time)
}


def criterion(found: Any) -> Criterion:
    """Return the criterion that a dictionary of :meth:`Criterion.to_dict` describes.

    Raises
    ------
    InvalidArgument
        If it describes none.

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
