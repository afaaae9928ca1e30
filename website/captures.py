"""The table of calls that CUDA graphs record, from the outcomes that tests found on a GPU.

``WOLLEMI_CAPTURE_TABLE=folder pytest -m gpu tests/backends/cuda/capture`` leaves outcomes in a
folder, and ``python -m website.captures folder "NVIDIA H100" 2026-11-27`` makes a record of them.
``python -m website.captures`` alone writes the table of the record into docs/cuda-graphs.md.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from .places import ROOT
from .wrap_prose import wrapped

RECORD = ROOT / "tests/backends/cuda/capture/outcomes.json"
PAGE = ROOT / "docs/cuda-graphs.md"
BEGIN, END = "<!-- captures: made by website/captures.py -->", "<!-- end of captures -->"

#: Other outcomes than "recorded", as the sentence below the table has them.
TEXTS = {
    "refused": "refused by name",
    "refused before a first call": "refused before a first call",
    "no work for the device": "without work for the device",
    "not called": "refused for their operands",
}
_OPERATORS = {
    "__matmul__ of a block": "A @ X",
    "__matmul__ of a vector": "A @ x",
    "__rmatmul__ of a vector": "x @ A",
}
_KINDS = {"preconditioners.": "preconditioners", "solvers.": "solvers"}

#: By object or module, by call, the outcome.
Outcomes = Mapping[str, Mapping[str, str]]


class Record(NamedTuple):
    """The outcomes that a run of the tests found.

    Attributes
    ----------
    device, date : str
        Where and when.
    outcomes : mapping
        By object or module, by call.
    """

    device: str
    date: str
    outcomes: Outcomes


def recorded() -> Record:
    """Return the record."""
    told = json.loads(RECORD.read_text(encoding="utf-8"))
    outcomes = {
        name: {call: kind for kind, calls in kinds.items() for call in calls}
        for name, kinds in told["outcomes"].items()
    }
    return Record(told["device"], told["date"], outcomes)


def text_of(record: Record) -> str:
    """Return the text of a record: a line for each outcome of an object."""
    objects = []
    for name, calls in sorted(record.outcomes.items()):
        kinds: dict[str, list[str]] = {}
        for call, kind in sorted(calls.items()):
            kinds.setdefault(kind, []).append(call)
        lines = [f"   {json.dumps(kind)}: {json.dumps(kinds[kind])}" for kind in sorted(kinds)]
        objects.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    head = f' "device": {json.dumps(record.device)},\n "date": {json.dumps(record.date)},\n'
    return "{\n" + head + ' "outcomes": {\n' + ",\n".join(objects) + "\n }\n}\n"


def completed(outcomes: Outcomes, names: Mapping[str, Iterable[str]]) -> Outcomes:
    """Return the outcomes of calls that are there, for each object and module that was tried."""
    found = {
        name: {c: kind for c, kind in outcomes.get(name, {}).items() if c in set(calls)}
        for name, calls in names.items()
    }
    return {name: tried for name, tried in found.items() if tried}


def _objects(names: Iterable[str], every: Iterable[str]) -> str:
    """Return a list of objects; most or all of a kind are named together."""
    left, parts = set(names), []
    for prefix, kind in _KINDS.items():
        whole = {name for name in every if name.startswith(prefix)}
        having = {name for name in left if name.startswith(prefix)}
        if whole and having == whole:
            parts.append(f"all {len(whole)} {kind}")
            left -= having
        elif len(having) > len(whole) / 2:
            missing = ", ".join(f"`{n.removeprefix(prefix)}`" for n in sorted(whole - having))
            parts.append(f"{kind} other than {missing}")
            left -= having
    plain = [f"`{name.removeprefix('preconditioners.')}`" for name in sorted(left)]
    return ", ".join([*plain, *parts])


def table(record: Record) -> str:
    """Return the table of the recorded calls, and a sentence about the others."""
    of_calls: dict[str, set[str]] = {}
    of_modules: dict[str, list[str]] = {}
    others: Counter[str] = Counter()
    for name, calls in record.outcomes.items():
        for call, kind in sorted(calls.items()):
            if kind != "recorded":
                others[kind] += 1
            elif name.startswith("wollemi"):
                of_modules.setdefault(name, []).append(call)
            else:
                of_calls.setdefault(call, set()).add(name)
    lines = ["| recorded | |", "| --- | --- |"]
    lines += [f"| `{name}` | {_listed(calls)} |" for name, calls in sorted(of_modules.items())]
    together: dict[str, list[str]] = {}
    for call, names in sorted(of_calls.items()):
        having = _objects(names, record.outcomes)
        together.setdefault(having, []).append(_OPERATORS.get(call, call))
    lines += [f"| {_listed(calls)} | {having} |" for having, calls in together.items()]
    objects = sum(1 for calls in record.outcomes.values() if calls)
    told = ", ".join(f"{others[kind]} {text}" for kind, text in TEXTS.items() if others[kind])
    tried = sum(map(len, record.outcomes.values()))
    lines += [
        "",
        f"As tried on one {record.device} ({record.date}): {tried} calls of {objects} "
        f"objects and modules. Besides the recorded ones, {told}.",
    ]
    return wrapped("\n".join(lines))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def page_with(made: str, page: str) -> str:
    """Return the text of a page with a new table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def left_in(folder: Path) -> Outcomes:
    """Return the outcomes that tests left in a folder."""
    told = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    return {
        one["name"]: {call: kind for call, (kind, _) in one["outcomes"].items()} for one in told
    }


def main(folder: str | None = None, device: str = "", date: str = "") -> None:
    """Write the record and the table, with new outcomes if a folder has them."""
    from tests.backends.cuda.capture.names import names

    before = recorded()
    found = before if folder is None else Record(device, date, left_in(Path(folder)))
    record = found._replace(outcomes=completed(found.outcomes, names()))
    RECORD.write_text(text_of(record), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page_with(table(record), page), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
