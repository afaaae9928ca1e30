"""Compiled programs of tests, kept between runs under a key of all their inputs.

It is in the user's cache (``$WOLLEMI_CACHE_DIR``, or ``~/.cache/wollemi``), so that all checkouts
share it, like a compiler cache.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wollemi.core.cache import CodeCache, root
from wollemi.core.kernel_text import without_comments

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

#: Asked once: some tests set other folders.
KEPT = root() / "tests"
MADE = CodeCache("compiled", ".bin", folder=KEPT / "compiled")


def keeping_cubins(compiler: Any) -> Callable[..., bytes]:
    """Return ``compile_source`` of the module that calls NVRTC, with its results kept.

    Sources that do not compile are compiled each time.
    """
    compile_source = compiler.compile_source
    depends = (code_of(Path(compiler.__file__)), repr(compiler.version()))

    def compiled(source: str, architecture: str, name: str = "wollemi") -> bytes:
        key = "\0".join((without_comments(source), architecture, *depends))
        return MADE.get(key, lambda: compile_source(source, architecture, name))

    return compiled


def code_of(module: Path) -> str:
    """Return the code of a Python module without comments and docstrings."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def keeping_texts(key: str, make: Callable[[], str]) -> str:
    """Return a text that a compiler makes."""
    return MADE.get(key, lambda: make().encode()).decode()
