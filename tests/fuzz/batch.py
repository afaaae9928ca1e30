"""A number of random examples with a seed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import hypothesis
from hypothesis import strategies as st

#: Bytes of memory that are told to be there.
MEMORY = 1 << 30


class Target(NamedTuple):
    """The program under test.

    Parameters
    ----------
    name : str
        By which it is asked for.
    examples : SearchStrategy
        Of its argument.
    check : callable
        Fails on an example that shows a defect; is given it and a folder to work in.
    """

    name: str
    examples: st.SearchStrategy[Any]
    check: Callable[[Any, Path], None]


def run_batch(target: Target, folder: Path, seed: int, count: int) -> None:
    """Check ``count`` examples; the current one is in the file ``last``."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        derandomize=False,
        database=None,
        deadline=None,
        print_blob=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
    )
    @hypothesis.given(target.examples)
    def batch(example: Any) -> None:
        (folder / "last").write_text(repr(example), encoding="utf-8")
        target.check(example, folder)

    # The memory for a shape alone must be refused, not allocated, on every machine.
    convert, memory = (
        import_module(f"wollemi.core.{name}") for name in ("formats.convert", "files.memory")
    )
    with (
        mock.patch.object(convert, "available_memory", lambda: MEMORY),
        mock.patch.object(memory, "available_memory", lambda: MEMORY),
    ):
        batch()
