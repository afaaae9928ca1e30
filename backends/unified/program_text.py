"""Programs in parts, and their text; each header is read once and expanded where it is included.

A digest of the parts identifies a program without its text, which has some 30 kB for a kernel. This
module imports only the standard library.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

#: The folder ``backends``: paths of headers are relative to it.
ROOT = Path(__file__).parents[1]

#: Matches a line that includes a header of wollemi.
INCLUDE = re.compile(r'#include "([\w/]+\.hpp)"\n')


class ProgramParts(NamedTuple):
    """A program in parts.

    Attributes
    ----------
    macros : mapping
        Macro definitions at the beginning of the program.
    headers : tuple of str
        Headers, by their paths relative to one of ``roots``.
    wrappers : tuple of str
        Texts after the headers: functors and kernels.
    roots : tuple of Path
        Folders to search for headers, in this order.
    """

    macros: Mapping[str, object]
    headers: tuple[str, ...]
    wrappers: tuple[str, ...]
    roots: tuple[Path, ...] = (ROOT,)

    def text(self) -> str:
        """Return the program."""
        lines = [f"#define {name} {text}\n" for name, text in self.macros.items()]
        return (
            "".join(lines)
            + flatten(*self.headers, roots=self.roots)
            + '#line 1 "wrappers"\n'
            + "".join(self.wrappers)
        )

    def digest(self) -> str:
        """Return a hash of everything that the text depends on."""
        headers = _digest_of(self.headers, self.roots)
        parts = [_rules(), repr([*self.macros.items()]), headers, *self.wrappers]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class ProgramText:
    """A program with text that is generated on demand; its digest does not need the text.

    Parameters
    ----------
    parts : callable
        Returns the parts.

    Examples
    --------
    >>> from wollemi.backends.unified.program_text import ProgramParts, ProgramText
    >>> program = ProgramText(lambda: ProgramParts({"WL_CUDA": 1}, (), ("int a;",)))
    >>> program().splitlines()
    ['#define WL_CUDA 1', '#line 1 "wrappers"', 'int a;']
    >>> len(program.digest)
    64
    """

    def __init__(self, parts: Callable[[], ProgramParts]) -> None:
        self._parts = parts

    def __call__(self) -> str:
        """Return the text."""
        return self._parts().text()

    @cached_property
    def digest(self) -> str:
        """A hash of everything that the text depends on."""
        return self._parts().digest()


def flatten(*headers: str, roots: tuple[Path, ...] = (ROOT,)) -> str:
    """Return the text of headers with the includes of wollemi expanded, each file once."""
    seen: set[str] = set()

    def text(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        pieces = _pieces(_read(name, roots))
        out, line = f'#line 1 "{name}"\n' + pieces[0], 1 + pieces[0].count("\n")
        for included, rest in zip(pieces[1::2], pieces[2::2], strict=True):
            line += 1
            out += text(included) + f'#line {line} "{name}"\n' + rest
            line += rest.count("\n")
        return out

    return "".join(text(name) for name in headers)


@cache  # the programs of a first solve include the same headers a hundred times
def _pieces(text: str) -> tuple[str, ...]:
    """Return the parts of a header, separated by the names of the headers that it includes."""
    return tuple(INCLUDE.split(text.replace("#pragma once\n", "\n")))


@cache
def _read(name: str, roots: tuple[Path, ...]) -> str:
    for root in roots:
        path = root / name
        if path.exists():
            return path.read_text(encoding="utf-8")
    raise FileNotFoundError(f"no kernel text is called {name}")


@cache
def _digest_of(headers: tuple[str, ...], roots: tuple[Path, ...]) -> str:
    """Return a hash of headers and of everything that they include, with their names."""
    whole, seen, waiting = hashlib.sha256(), set[str](), [*headers]
    while waiting:
        name = waiting.pop(0)
        if name not in seen:
            seen.add(name)
            text = _read(name, roots)
            whole.update(f"{name}\0{len(text)}\0{text}".encode())
            waiting += INCLUDE.findall(text)
    return "\0".join([*headers, whole.hexdigest()])


@cache
def _rules() -> str:
    """Return a hash of this file, because its rules determine the text made from the parts."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
