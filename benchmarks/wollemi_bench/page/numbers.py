"""A summary of the records: ratios with their spread, slopes, and the rule's loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..problem import OURS
from ..report import Record
from ..results import Key, RecordedContest, Run, recorded_contests

#: A line through fewer sizes says nothing of growth.
FEWEST_SIZES = 3


class Spread(NamedTuple):
    """A median between two quartiles; without a spread all three are the same."""

    low: float
    median: float
    high: float


def times_ours(ours: Record, other: Record) -> Spread | None:
    """Return how many times as long as wollemi another takes.

    Samples of one contest are pairs, because they were taken in the same rounds; without them the
    quartiles of the two stand in, the far ends against each other.

    Examples
    --------
    >>> from wollemi_bench.page.numbers import times_ours
    >>> from wollemi_bench.report import Record
    >>> where = ("spmv", "eye", "omp:2", "csr", "float64", 9, 9, 9)
    >>> a = Record(*where, "wollemi", True, seconds=2.0, samples=[1.0, 2.0, 3.0])
    >>> b = Record(*where, "scipy", False, seconds=6.0, samples=[3.0, 6.0, 12.0])
    >>> times_ours(a, b)
    Spread(low=3.0, median=3.0, high=3.5)
    """
    if not ours.seconds or not other.seconds:
        return None
    if len(ours.samples) == len(other.samples) > 0:
        ratios = np.divide(other.samples, ours.samples)
        return Spread(*(float(q) for q in np.percentile(ratios, (25, 50, 75))))
    middle = other.seconds / ours.seconds
    if None in (ours.low, ours.high, other.low, other.high):
        return Spread(middle, middle, middle)
    low = (other.low or 0.0) / (ours.high or math.inf)
    return Spread(low, middle, (other.high or 0.0) / (ours.low or math.inf))


def geometric_mean(numbers: Iterable[float]) -> float:
    """Return the mean of ratios: twice as fast and half as fast make one.

    Examples
    --------
    >>> from wollemi_bench.page.numbers import geometric_mean
    >>> geometric_mean([2.0, 0.5])
    1.0
    """
    return float(np.exp(np.mean(np.log(list(numbers)))))


class Slope(NamedTuple):
    """The power with which time grows with size, and its standard error."""

    power: float
    error: float


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> Slope | None:
    """Return the slope of a straight line through the logarithms; None of too few sizes.

    Examples
    --------
    >>> from wollemi_bench.page.numbers import slope
    >>> power, error = slope([10, 100, 1000], [1e-6, 1e-5, 1e-4])
    >>> round(power, 9), round(error, 9)
    (1.0, 0.0)
    """
    if len(set(sizes)) < FEWEST_SIZES:
        return None
    x, y = np.log(sizes), np.log(seconds)
    x = x - x.mean()
    power = float(x @ y / (x @ x))
    rest = y - y.mean() - power * x
    return Slope(power, float(np.sqrt(rest @ rest / (len(x) - 2) / (x @ x))))


# ---- the selection rule


@dataclass(frozen=True)
class Loss:
    """The cost of the rule's choice in one contest.

    Attributes
    ----------
    chosen, best : str
        Kernels.
    share : float
        The time of the chosen one over that of the best one, less one; 0 if they are the same.
    """

    chosen: str
    best: str
    share: float


def kernel_of(record: Record) -> str:
    """Return which of our kernels a record is of."""
    return record.kernel or record.contender.removeprefix(OURS).strip()


def loss(contest: RecordedContest) -> Loss | None:
    """Return the loss of the rule; None where no other kernel of wollemi was timed.

    A kernel that was timed twice, as the choice and by name, is no loss of itself.
    """
    variants = [r for r in contest.variants if r.seconds]
    if contest.ours is None or not contest.ours.seconds or not variants:
        return None
    best = min(variants, key=lambda record: record.seconds or math.inf)
    chosen, quickest = kernel_of(contest.ours), kernel_of(best)
    share = contest.ours.seconds / (best.seconds or math.inf) - 1
    if chosen == quickest or share <= 0:
        return Loss(chosen, chosen, 0.0)
    return Loss(chosen, quickest, share)


# ---- how contests are put together


class Series(NamedTuple):
    """The common properties of the contests of one table: all but the case."""

    suite: str
    benchmark: str
    format: str
    dtype: str
    caches: str

    @classmethod
    def of(cls, key: Key) -> Series:
        """Return the series that a contest is of."""
        return cls(*(getattr(key, name) for name in cls._fields))

    def __str__(self) -> str:
        """Return it in words; usual values are left out."""
        said = [self.benchmark, self.format if self.format != "csr" else "", self.dtype]
        said += ["cold caches"] if self.caches == "cold" else []
        return ", ".join(filter(None, said)) + (f" ({self.suite})" if self.suite else "")


def series_of(contests: Iterable[RecordedContest]) -> dict[Series, list[RecordedContest]]:
    """Return contests by series, in their order."""
    found: dict[Series, list[RecordedContest]] = {}
    for contest in contests:
        found.setdefault(Series.of(contest.key), []).append(contest)
    return found


#: Names that older records have for a library: CuPy's products and solvers are in ``cupyx``, which
#: calls cuSPARSE.
LIBRARIES = {"cupyx": "cupy", "cusparse": "cupy"}


def library_of(contender: str) -> str:
    """Return the library that a contender is of: one library has one column.

    Examples
    --------
    >>> from wollemi_bench.page.numbers import library_of
    >>> library_of("cupyx"), library_of("scipy")
    ('cupy', 'scipy')
    """
    return LIBRARIES.get(contender, contender)


def is_library(peer: str) -> bool:
    """Whether a peer is a library in use; the others are dense products and parts of wollemi."""
    return not peer.startswith("dense") and "ours" not in peer


class Clocks(NamedTuple):
    """How our time was taken, and how that of a peer."""

    ours: str
    theirs: str

    @property
    def same(self) -> bool:
        """Whether the two times say the same thing: of a fair pair they do."""
        return self.ours == self.theirs


@dataclass(frozen=True)
class Versus:
    """How a peer did in a series.

    Attributes
    ----------
    peer : str
        Who.
    series : Series
        The table.
    clocks : Clocks
        How the times were taken.
    ratios : dict of str to Spread
        By case, how many times as long as wollemi it takes.
    """

    peer: str
    series: Series
    clocks: Clocks
    ratios: dict[str, Spread]

    @property
    def mean(self) -> float:
        """The geometric mean of the medians."""
        return geometric_mean(spread.median for spread in self.ratios.values())

    @property
    def worst(self) -> tuple[str, float]:
        """The case where we look worst, and how many times as long the peer takes there."""
        case = min(self.ratios, key=lambda case: self.ratios[case].median)
        return case, self.ratios[case].median

    @property
    def best(self) -> tuple[str, float]:
        """The case where we look best."""
        case = max(self.ratios, key=lambda case: self.ratios[case].median)
        return case, self.ratios[case].median

    @property
    def lost(self) -> list[str]:
        """The cases in which the peer is faster, by its median."""
        return [case for case, spread in self.ratios.items() if spread.median < 1]


def versus(contests: Iterable[RecordedContest]) -> list[Versus]:
    """Return the ratios of every peer, by each pair of clocks."""
    found: dict[tuple[str, Series, Clocks], dict[str, Spread]] = {}
    for contest in contests:
        if contest.ours is None:
            continue
        for peer in contest.peers:
            ratio = times_ours(contest.ours, peer)
            if ratio:
                clocks = Clocks(contest.ours.method, peer.method)
                place = (library_of(peer.contender), Series.of(contest.key), clocks)
                found.setdefault(place, {})[contest.key.case] = ratio
    return [Versus(*place, ratios) for place, ratios in found.items()]


@dataclass(frozen=True)
class Growth:
    """A family of cases over its sizes.

    Attributes
    ----------
    family : str
        The generator.
    series : Series
        The operation.
    contender : str
        The contender of the times.
    sizes, seconds : list
        In the order of the sizes.
    """

    family: str
    series: Series
    contender: str
    sizes: list[int]
    seconds: list[float]

    @property
    def slope(self) -> Slope | None:
        """The power with which time grows."""
        return slope(self.sizes, self.seconds)


def growths(contests: Iterable[RecordedContest]) -> list[Growth]:
    """Return every family of at least three sizes, wollemi's and each peer's."""
    found: dict[tuple[str, Series, str], dict[int, float]] = {}
    for contest in contests:
        for record in contest.records:
            family = record.family or record.case.partition(":")[0]
            ours = record.ours or record in contest.peers
            if record.seconds and record.size and ours:
                place = (family, Series.of(contest.key), record.contender)
                found.setdefault(place, {})[record.size] = record.seconds
    return [
        Growth(*place, sorted(times), [times[size] for size in sorted(times)])
        for place, times in found.items()
        if len(times) >= FEWEST_SIZES
    ]


# ---- where it was


@dataclass(frozen=True)
class RecordedPlace:
    """The measurements on one device.

    Attributes
    ----------
    runs : list of Run
        The runs there, the oldest first.
    contests : list of RecordedContest
        Their contests.
    """

    runs: list[Run]
    contests: list[RecordedContest]

    @property
    def executor(self) -> str:
        """The backend, and how many threads of it."""
        return str(self.runs[-1].environment.get("executor", "?"))

    @property
    def name(self) -> str:
        """The device in words."""
        device = self.runs[-1].environment.get("device") or {}
        found = [str(device.get("name", "an unknown device"))]
        found += [f"{device['threads']} threads"] if "threads" in device else []
        return f"{', '.join(found)} ({self.executor.partition(':')[0]})"

    @property
    def slug(self) -> str:
        """The name as it can be part of a file's name."""
        kept = "".join(c if c.isalnum() else "-" for c in self.name.lower())
        return "-".join(filter(None, kept.split("-")))


def places(runs: Iterable[Run]) -> list[RecordedPlace]:
    """Return the devices of runs, in the order of their first run."""
    found: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: str(run.environment.get("date", ""))):
        found.setdefault(repr(sorted(run.device.items())), []).append(run)
    return [RecordedPlace(there, recorded_contests(there)) for there in found.values()]
