"""``python -m tests.fuzz files --seconds 60 --seed 0``: a search, of which the suite has a slice.

Examples come in batches, each with a seed of its own, which is printed where one fails. They run in
a process of their own, so that one that ends it is found too: it is in ``build/fuzz``.
"""

from __future__ import annotations

import argparse
import faulthandler
import subprocess
import sys
import time
import warnings
from pathlib import Path

from . import (
    arrays,
    batches,
    eigenvalues,
    expressions,
    files,
    least_squares,
    preconditioners,
    scales,
)
from .batch import Target, run_batch

TARGETS: dict[str, Target] = {
    one.TARGET.name: one.TARGET
    for one in (
        arrays,
        files,
        expressions,
        eigenvalues,
        scales,
        least_squares,
        preconditioners,
        batches,
    )
}
FOLDER = Path(__file__).parents[2] / "build" / "fuzz"

#: Examples of one seed.
BATCH = 200

#: An example that takes longer hangs, in seconds; under sanitizers on a busy machine, too.
HANGS = 120


def search(target: Target, seconds: float, seed: int, folder: Path) -> None:
    """Run batches until the time is over."""
    begin, batches = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        number = seed + batches
        (folder / "seed").write_text(str(number))
        faulthandler.dump_traceback_later(HANGS * 5, exit=True)
        try:
            run_batch(target, folder, number, BATCH)
        except BaseException:
            print(f"{target.name}: failed with --seed {number}", flush=True)
            raise
        batches += 1
    took = time.monotonic() - begin
    print(
        f"{target.name}: {batches * BATCH} examples in {took:.0f} s, seeds {seed} to "
        f"{seed + batches - 1}: nothing found",
        flush=True,
    )


def main() -> int:
    """Search in a process of its own; report the error that ended it."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="search in this process")
    given = parser.parse_args()
    folder = FOLDER / given.target
    folder.mkdir(parents=True, exist_ok=True)
    if given.here:
        faulthandler.enable()
        warnings.simplefilter("ignore")  # NumPy's of a damaged header
        search(TARGETS[given.target], given.seconds, given.seed, folder)
        return 0
    print(f"{given.target}: {given.seconds:.0f} s from seed {given.seed}", flush=True)
    status = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *sys.argv[1:], "--here"]
    ).returncode
    if status:
        seed = (folder / "seed").read_text()
        print(
            f"{given.target}: ended with status {status} in the batch of --seed {seed}; the last "
            f"example is {folder / 'last'}",
            flush=True,
        )
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
