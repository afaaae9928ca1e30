"""HIPRTC without CuPy and without a GPU, as a process of its own: some versions crash on targets.

Reads ``{"target": ..., "options": [...], "programs": {name: source}, "folder": ...}`` from standard
input, leaves code objects in the folder, and writes ``{name: the compiler's log}`` of the programs
that failed. Nothing but the standard library, so that it starts at once.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

# From AMD's packages, and from Debian's.
LIBRARIES = ("libhiprtc.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5")


def load() -> ctypes.CDLL | None:
    """Return the library that has HIPRTC, or None."""
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if hasattr(library, "hiprtcCompileProgram"):
            library.hiprtcGetErrorString.restype = ctypes.c_char_p
            return library
    return None


class Failed(Exception):
    """A source that does not compile; holds the log."""


def compile_source(library: ctypes.CDLL, source: str, options: list[str], name: str) -> bytes:
    """Return the code object of a source."""
    program = ctypes.c_void_p()

    def check(result: int) -> None:
        if result:
            raise Failed(library.hiprtcGetErrorString(result).decode())

    def text(what: str) -> bytes:
        size = ctypes.c_size_t()
        check(getattr(library, f"hiprtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        if size.value:
            check(getattr(library, f"hiprtcGet{what}")(program, buffer))
        return buffer.raw

    check(
        library.hiprtcCreateProgram(
            ctypes.byref(program), source.encode(), f"{name}.hip".encode(), 0, None, None
        )
    )
    try:
        given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        result = library.hiprtcCompileProgram(program, len(options), given)
        log = text("ProgramLog").decode(errors="replace").strip("\0\n ")
        if result:
            raise Failed(f"{library.hiprtcGetErrorString(result).decode()}\n{log}")
        return text("Code")
    finally:
        library.hiprtcDestroyProgram(ctypes.byref(program))


def main() -> None:
    """Compile the program on standard input."""
    asked = json.load(sys.stdin)
    library = load()
    if library is None:
        sys.exit(f"none of {', '.join(LIBRARIES)} is here")
    options = [f"--offload-arch={asked['target']}", *asked["options"]]
    failed = {}
    for name, source in asked["programs"].items():
        try:
            code = compile_source(library, source, options, name)
        except Failed as error:
            failed[name] = str(error)
        else:
            (Path(asked["folder"]) / f"{name}.hsaco").write_bytes(code)
    json.dump(failed, sys.stdout)


if __name__ == "__main__":
    main()
