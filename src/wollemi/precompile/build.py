"""Compile the kernels of a wheel: ``python -m wollemi.precompile.build``.

A wheel's build runs this (``-C cmake.define.WOLLEMI_CUDA_KERNELS=sm_90``). Earlier results are
reused from the user's cache, so wheels for several Python versions take the time of one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..backends.cuda.runtime import archive
from ..backends.cuda.runtime.compiler import OPTIONS, kept_cubin, version
from ..core.host import cores
from .programs import DTYPES, programs
from .target import TARGETS, Target


def sources(target: Target, dtypes: Sequence[str] = DTYPES) -> dict[str, tuple[str, str]]:
    """Return the name and the text of each program of a target, by the key of its cubin."""
    result: dict[str, tuple[str, str]] = {}
    for dtype in dtypes:
        for symbol, text in programs(target, dtype):
            source = text()
            key = archive.key_of(source, target.architecture, OPTIONS)
            result.setdefault(key, (symbol, source))
    return result


def compiled(target: Target, dtypes: Sequence[str], threads: int) -> dict[str, bytes]:
    """Return the cubins of all programs of a target, by key."""
    given = sources(target, dtypes)

    def compile_one(program: tuple[str, str]) -> bytes:
        return kept_cubin(program[1], target.architecture, program[0])

    with ThreadPoolExecutor(threads) as pool:
        return dict(zip(given, pool.map(compile_one, given.values()), strict=True))


def missing(name: str, folder: Path = archive.FOLDER) -> list[str]:
    """Return the names of a target's programs that its archive does not contain.

    The result is empty if the archive was made from the current text of the kernels.
    """
    target = Target(name)
    there = archive.Archive(folder / f"{target.architecture}.zip")
    return [symbol for key, (symbol, _) in sources(target).items() if there.load(key) is None]


def build(name: str, folder: Path, dtypes: Sequence[str] = DTYPES) -> Path:
    """Write the archive of a target and return its path.

    Parameters
    ----------
    name : str
        One of :data:`~wollemi.precompile.target.TARGETS`.
    folder : Path
        The folder of the archive; it is created if necessary.
    dtypes : sequence of str, optional
        Dtypes of values to compile for.

    Raises
    ------
    ExecutorUnavailable
        If NVRTC is missing; the message says how to install it.
    """
    began, target = time.perf_counter(), Target(name)
    cubins = compiled(target, dtypes, cores())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{target.architecture}.zip"
    archive.write(path, cubins, version()[0])
    print(
        f"{path.name}: {len(cubins)} kernels, {sum(map(len, cubins.values())) / 1e6:.1f} MB, "
        f"{path.stat().st_size / 1e6:.2f} MB compressed, {time.perf_counter() - began:.0f} s",
        flush=True,
    )
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the requested archives."""
    parser = argparse.ArgumentParser(description="Compile the kernels that a wheel carries.")
    parser.add_argument("folder", type=Path, help="where the archives go")
    parser.add_argument("targets", nargs="+", metavar="sm_NN", help=", ".join(TARGETS))
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.targets if name not in TARGETS]:
        sys.exit(
            f"kernels can be compiled ahead for {', '.join(TARGETS)}, not {', '.join(unknown)}"
        )
    for name in given.targets:
        build(name, given.folder)


if __name__ == "__main__":
    main()
