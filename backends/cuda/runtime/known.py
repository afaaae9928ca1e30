"""Find cubins by the digests of their programs; if all are found, no compiler is loaded.

The key of a cubin on disk requires the text of its program and the version of NVRTC. A first solve
has some ninety programs: their texts and keys took 15 ms, and loading NVRTC and its binding took 70
ms. Therefore, the location of a program's cubin is recorded under the digest of the program's
parts, in one file of notes per architecture on disk.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from ....core.cache import CodeCache
from ...unified.program_text import ProgramText
from .compiler import OPTIONS, CubinPlace, cubin_at, placed_cubin

#: The notes, one file per architecture.
NOTES = CodeCache("cuda_programs", ".json", limit=16 << 20)

#: Upper bound of noted programs: the oldest notes are dropped first. All of wollemi's GPU tests
#: together have some thousand programs.
MOST = 4096


class KnownCubins:
    """The cubins of an architecture, by the digests of their programs.

    Parameters
    ----------
    architecture : str
        The compiler's target, such as ``sm_90a``.
    """

    def __init__(self, architecture: str) -> None:
        self.architecture = architecture
        self._found: dict[str, CubinPlace] = {}
        self._lock = threading.Lock()

    @property
    def _key(self) -> str:
        return "\0".join([self.architecture, *OPTIONS])

    @cached_property
    def _noted(self) -> dict[str, CubinPlace]:
        """The notes of earlier processes."""
        return self._read()[1]

    def has(self, program: ProgramText) -> bool:
        """Return whether a program's cubin is noted."""
        return program.digest in self._found or program.digest in self._noted

    def get(self, program: ProgramText, name: str) -> bytes:
        """Return the cubin of a program: noted, found by its text, or compiled.

        Parameters
        ----------
        program : ProgramText
            The program.
        name : str
            The program's name in the compiler's messages.
        """
        place = self._noted.get(program.digest)
        code = None if place is None else cubin_at(place, self.architecture)
        if code is None:
            code, place = placed_cubin(program(), self.architecture, name)
            self._note(program.digest, place)
        return code

    def _note(self, digest: str, place: CubinPlace) -> None:
        with self._lock:
            if not self._found:
                atexit.register(self.save)
            self._found[digest] = place

    def save(self) -> None:
        """Merge the notes of this process into the notes on disk."""
        with self._lock:
            found, self._found = self._found, {}
            self._noted.update(found)
        if not found:
            return
        compiler = _compiler()
        before, noted = self._read()
        if compiler is not None and compiler != before:
            noted = {digest: place for digest, place in noted.items() if not place.of_compiler}
        noted = {**{d: p for d, p in noted.items() if d not in found}, **found}
        latest = dict([*noted.items()][-MOST:])
        content = json.dumps({"compiler": compiler or before, "places": latest})
        NOTES.save(self._key, content.encode())

    def _read(self) -> tuple[list[Any] | None, dict[str, CubinPlace]]:
        """Return the compiler of the notes on disk, and the notes that are still valid."""
        content = NOTES.load(self._key)
        if content is None:
            return None, {}
        try:
            told = json.loads(content)
            compiler = told["compiler"]
            noted = {digest: CubinPlace(*place) for digest, place in told["places"].items()}
        except (ValueError, KeyError, TypeError):  # notes of another version
            return None, {}
        if compiler is None or _facts(compiler[0]) != compiler:
            return None, {d: place for d, place in noted.items() if not place.of_compiler}
        return compiler, noted


def _compiler() -> list[Any] | None:
    """Return the identity of the NVRTC library file that this process has loaded, or None."""
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if Path(path).name.startswith("libnvrtc.so"):
                return _facts(f"/{path}")
    return None


def _facts(path: str) -> list[Any] | None:
    """Return the name, size and time of a file, which differ between versions."""
    try:
        facts = os.stat(path)
    except (OSError, TypeError):
        return None
    return [path, facts.st_size, facts.st_mtime_ns]
