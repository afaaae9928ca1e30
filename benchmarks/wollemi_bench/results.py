"""Files of records, read back: the input of ``compare`` and ``report``.

A field that a file does not have is at its default, and one that it has beyond ours is passed over,
so that files of older and newer versions are read alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from wollemi.core.errors import InvalidArgument

from .report import Record
from .report import is_ours as named_as_ours

#: The prefix of all schemas that this module can read.
FAMILY = "wollemi-bench/"

#: The properties of an executor that identify its device; others are measurements of a day.
IDENTITY = ("name", "threads", "simd", "multiprocessors", "compute_capability", "architecture")

#: Executors with figures that do not depend on the cores of the host.
GPUS = ("cuda", "hip")

_NEEDED = [f.name for f in fields(Record) if f.default is MISSING and f.default_factory is MISSING]


class Key(NamedTuple):
    """The key of a contest: records of a run that agree in these were timed against each other."""

    suite: str
    benchmark: str
    case: str
    executor: str
    format: str
    dtype: str
    caches: str

    @classmethod
    def of(cls, record: Record) -> Key:
        """Return the name of the contest that a record is of."""
        return cls(*(getattr(record, name) for name in cls._fields))

    def __str__(self) -> str:
        """Return it in words; usual values are left out."""
        said = [f"{self.suite}:" if self.suite else "", self.benchmark, self.case]
        said += [word for word in (self.format, self.dtype) if word not in ("csr", "float64")]
        return " ".join([*filter(None, said), *(["cold caches"] if self.caches == "cold" else [])])


def is_ours(record: Record) -> bool:
    """Whether a contender is this library: its choice, or one of its algorithms by name."""
    return record.ours or named_as_ours(record.contender)


def left_out(record: Record) -> bool:
    """Whether a contender did not take part: absent, or skipped because the time was up."""
    return record.trouble.startswith(("absent", "skipped"))


@dataclass
class Run:
    """A run: its environment, and its measurements.

    Attributes
    ----------
    name : str
        The run's own name.
    source : str
        The name of its file.
    environment : dict
        Date, versions, hardware, peers.
    records : list of Record
        As they are in the file.
    """

    name: str
    source: str
    environment: dict[str, Any] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)

    @property
    def device(self) -> dict[str, Any]:
        """The key of the hardware."""
        known = dict(self.environment.get("device") or {})
        found = {"executor": str(self.environment.get("executor", "")).partition(":")[0]}
        if found["executor"] == "reference":
            known.pop("name", None)  # NumPy's version, which is no hardware
        found |= {k: known[k] for k in IDENTITY if k in known}
        host = ("machine",) if found["executor"] in GPUS else ("machine", "cores")
        found |= {k: self.environment[k] for k in host if k in self.environment}
        return found

    @property
    def versions(self) -> dict[str, str]:
        """Versions of Python, of wollemi, of its dependencies and of the present peers."""
        found = {k: str(v) for k, v in (self.environment.get("versions") or {}).items()}
        if "python" in self.environment:
            found["python"] = str(self.environment["python"])
        peers = self.environment.get("peers") or {}
        return found | {k: str(v) for k, v in peers.items() if not str(v).startswith("absent")}

    @property
    def absent(self) -> dict[str, str]:
        """Peers that were not there, and why."""
        peers = self.environment.get("peers") or {}
        return {
            name: str(said).removeprefix("absent: ")
            for name, said in peers.items()
            if str(said).startswith("absent")
        }


@dataclass(frozen=True)
class RecordedContest:
    """A contest as it is in a file.

    Attributes
    ----------
    key : Key
        Its key.
    run : Run
        When and where it was.
    records : list of Record
        A record for each contender.
    """

    key: Key
    run: Run
    records: list[Record]

    def of(self, contender: str) -> Record | None:
        """Return the record of a contender, or None."""
        return next((r for r in self.records if r.contender == contender), None)

    @cached_property
    def ours(self) -> Record | None:
        """A user's default: wollemi's own choice."""
        return next((r for r in self.records if r.ours), None)

    @cached_property
    def variants(self) -> list[Record]:
        """Our kernels and formats that were asked for by name."""
        return [r for r in self.records if is_ours(r) and not r.ours]

    @cached_property
    def peers(self) -> list[Record]:
        """The others, absent and failed ones too."""
        return [r for r in self.records if not is_ours(r)]


def read(path: Path) -> list[Run]:
    """Return the runs of a file.

    Parameters
    ----------
    path : Path
        JSON lines, as ``wollemi bench ... --json`` writes them.

    Raises
    ------
    InvalidArgument
        If a line is not one of them; the message names it. A last line that broke off is passed
        over: the run was ended while it wrote.
    """
    runs: dict[str, Run] = {}
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, text in enumerate(lines, 1):
        where = f"{path.name}:{number}"
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            if number == len(lines) and number > 1:
                break
            raise InvalidArgument(f"{where}: not a line of JSON ({error.msg})") from None
        schema = line.get("schema") if isinstance(line, dict) else None
        if not str(schema).startswith(FAMILY):
            expected = f"a line of {FAMILY}..., as wollemi bench --json writes it"
            raise InvalidArgument(f"{where}: the schema is {schema!r}; expected {expected}")
        run = runs.setdefault(str(line.get("run")), Run(str(line.get("run")), path.name))
        if line["kind"] == "environment":
            run.environment = {k: v for k, v in line.items() if k not in ("schema", "run", "kind")}
        elif line["kind"] == "result":
            run.records.append(_record(line, where))
    if not any(run.records for run in runs.values()):
        raise InvalidArgument(f"{path.name}: there is no result in it")
    return list(runs.values())


def _record(line: dict[str, Any], where: str) -> Record:
    missing = [name for name in _NEEDED if name not in line]
    if missing:
        raise InvalidArgument(f"{where}: a result needs {', '.join(missing)} as well")
    return Record.from_line(line)


def recorded_contests(runs: Iterable[Run]) -> list[RecordedContest]:
    """Return the contests of runs; of one that was held again, the latest run's.

    Contenders of different runs are never put side by side: they did not share their rounds.
    """
    found: dict[Key, RecordedContest] = {}
    for run in sorted(runs, key=lambda run: str(run.environment.get("date", ""))):
        held: dict[Key, dict[str, Record]] = {}
        for record in run.records:
            held.setdefault(Key.of(record), {})[record.contender] = record
        for key, by_name in held.items():
            found[key] = RecordedContest(key, run, list(by_name.values()))
    return list(found.values())
