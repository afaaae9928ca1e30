"""Which changes of a signature break a program that was written for the one before."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .record import Entry


@dataclass(frozen=True)
class Parameter:
    """A parameter: its name, how it is given, and the text of its default."""

    name: str
    kind: str
    default: str | None


def breaks(before: Mapping[str, Entry], now: Mapping[str, Entry]) -> list[str]:
    """Return a sentence for every change that breaks programs; new names break none."""
    return [
        f"{name}: {reason}"
        for name, old in before.items()
        for reason in _changes(old, now.get(name))
    ]


def _changes(old: Entry, new: Entry | None) -> Iterator[str]:
    if new is None:
        yield "is not there any more"
    elif _use(old.kind) != _use(new.kind):
        yield f"was a {old.kind} and is a {new.kind}"
    elif old.signature != new.signature and "..." not in old.signature + new.signature:
        yield from _signature_changes(old.signature, new.signature)


def _use(kind: str) -> str:
    """Return how a program uses a kind: attributes and properties are read alike."""
    return "attribute" if kind == "property" else kind


def parameters(signature: str) -> list[Parameter]:
    """Return the parameters of the text of a signature."""
    if not signature.isprintable() or "=<" in signature:
        raise ValueError(signature)
    function = ast.parse(f"def f{signature}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + [
        *map(ast.unparse, given.defaults)
    ]
    found = [
        Parameter(arg.arg, "place alone" if arg in given.posonlyargs else "place", default)
        for arg, default in zip(positional, defaults, strict=True)
    ]
    if given.vararg:
        found.append(Parameter(given.vararg.arg, "*", ""))
    for arg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found.append(Parameter(arg.arg, "name", None if value is None else ast.unparse(value)))
    if given.kwarg:
        found.append(Parameter(given.kwarg.arg, "**", ""))
    return found


def _signature_changes(old: str, new: str) -> Iterator[str]:
    was, now = parameters(old), parameters(new)
    named = {p.name: p for p in now if p.kind in ("place", "name")}
    places = [p for p in now if p.kind.startswith("place")]
    kinds = {p.kind for p in now}
    for index, parameter in enumerate(was):
        yield from _parameter_changes(parameter, index, named, places, kinds)
    known = {p.name for p in was} | {p.name for p in places[: len(was)]}
    for parameter in now:
        if parameter.name not in known and parameter.default is None:
            yield f"needs {parameter.name}, which it did not"


def _parameter_changes(
    old: Parameter,
    index: int,
    named: Mapping[str, Parameter],
    places: list[Parameter],
    kinds: set[str],
) -> Iterator[str]:
    if old.kind in ("*", "**"):
        if old.kind not in kinds:
            yield f"takes no {old.kind}{old.name} any more"
        return
    at_place = places[index] if index < len(places) else None
    new = at_place if old.kind == "place alone" else named.get(old.name)
    if new is None:
        if not (old.kind != "place alone" and "**" in kinds):
            yield f"takes no {old.name} any more"
        return
    if old.kind == "place" and at_place is not new and "*" not in kinds:
        yield f"{old.name} has another place among the arguments"
    if old.default is not None and new.default is None:
        yield f"{old.name} has no default any more"
    elif old.default is not None and new.default != old.default:
        yield f"the default of {old.name} was {old.default} and is {new.default}"
