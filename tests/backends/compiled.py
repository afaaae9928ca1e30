"""What compilers made for tests, kept between runs: it is found by all that it depends on.

It is in the user's cache (``$WOLLEMI_CACHE_DIR``, or ``~/.cache/wollemi``), so that all checkouts
share it, as they share what a compiler cache keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from wollemi.core.cache import CodeCache, root

#: Asked once: tests set other folders for what they try.
KEPT = root() / "tests"
MADE = CodeCache("compiled", ".bin", folder=KEPT / "compiled")


def keeping_cubins(compiler: Any) -> Callable[..., bytes]:
    """Return ``compile_source`` of the module that calls NVRTC, with what it made kept.

    Sources that do not compile are compiled each time.
    """
    compile_source = compiler.compile_source
    depends = (Path(compiler.__file__).read_text(encoding="utf-8"), repr(compiler.version()))

    def compiled(source: str, architecture: str, name: str = "wollemi") -> bytes:
        key = "\0".join((source, architecture, *depends))
        return MADE.get(key, lambda: compile_source(source, architecture, name))

    return compiled


def keeping_texts(key: str, make: Callable[[], str]) -> str:
    """Return a text that a compiler makes."""
    return MADE.get(key, lambda: make().encode()).decode()
