"""Times of this version and an older one: ``python -m wollemi_bench.versions OLD omp``.

Both versions have a process each and take turns, case by case, so that a change of the machine
meets both. ``OLD`` is a folder that an older version is installed in (``pip install --target``); a
folder without one is an error. The first small cases are the host's time of a call.
The workers use names alone that every version has. The table is Markdown.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: Cases: the timed call, and the matrix. Solvers: one iteration; ``call``: a solve of ten.
CASES = (
    *(
        f"{method}@stencil7:{size}"
        for size in (32, 64, 100)
        for method in ("Cg", "Bicgstab", "Cgs", "Gmres")
    ),
    "call-Cg@stencil7:32",
    "spmv@uniform:1000,1000,8000",
    "apply@uniform:1000,1000,8000",
    "spmm-8@uniform:1000,1000,8000",
    "spmv@stencil7:100",
    "spmv/float32@stencil7:100",
    "spmv@stencil27:64",
    "spmv@fem:30",
    "spmv@rmat:18,4000000",
    "spmv@uniform:500000,500000,5000000",
    "spmv@circuit:500000",
    "spmm-8/float32@rmat:16,1000000",
    "spmm-64/float32@rmat:16,1000000",
    "spmm-64/float32@pruned:2048,2048,90",
    "sddmm-64/float32@rmat:16,1000000",
    "sddmm-64/float32@pruned:2048,2048,90",
    "fusedmm-64/float32@rmat:16,1000000",
    "fusedmm-64/float32@pruned:2048,2048,90",
)
#: A batch of calls takes about this number of seconds.
BATCH = 0.02


def _call(wl: Any, on: Any, case: str, S: Any) -> Callable[[], Any]:
    """Return the timed call of a case."""
    kind, _, dtype = case.partition("@")[0].partition("/")
    kind, _, width = kind.partition("-")
    S = S.astype(dtype or "float64")
    A = wl.Csr(S, executor=on)
    rng = np.random.default_rng(0)

    def dense(rows: int, *columns: int) -> Any:
        given = rng.standard_normal((rows, *columns)).astype(S.dtype)
        if not on.name.startswith("cuda"):
            return given
        import cupy

        return cupy.asarray(given)

    if kind in ("spmm", "sddmm", "fusedmm"):
        B, D = dense(S.shape[1], int(width)), dense(S.shape[1], int(width))
        if kind == "spmm":
            return lambda: wl.spmm(A, B)
        C = dense(S.shape[0], int(width))
        if kind == "sddmm":
            return lambda: wl.sddmm(A, C, B)
        return lambda: wl.fusedmm(A, C, B, D, edge="softmax")
    x = dense(S.shape[1])
    if kind == "spmv":
        return lambda: A @ x
    if kind == "apply":
        y = dense(S.shape[0])
        return lambda: A.apply(x, out=y)
    method = width if kind == "call" else kind
    more = {"restart": 20} if method == "Gmres" else {}
    few, many = (
        getattr(wl.solvers, method)(A, rtol=1e-30, maxiter=count, **more) for count in (10, 130)
    )
    if kind == "call":
        return lambda: few.solve(x)
    few.solve(x)

    def iteration() -> float:
        times = []
        for solver in (few, many):
            start = time.perf_counter()
            done = solver.solve(x).iterations
            times.append((time.perf_counter() - start, done))
        (short, a), (long, b) = times
        return (long - short) / max(1, b - a)

    return iteration


def _work() -> None:
    """Answer lines ``CASE FILE SECONDS`` with a line of JSON each."""
    import scipy.sparse as sp

    if folder := sys.argv[3:]:
        # An editable install finds its modules before the folders of sys.path are searched.
        sys.meta_path[:] = [f for f in sys.meta_path if "_editable" not in type(f).__module__]
        sys.path.insert(0, folder[0])
    import wollemi as wl

    if folder and not Path(wl.__file__).resolve().is_relative_to(Path(folder[0]).resolve()):
        raise SystemExit(f"{folder[0]} has no wollemi: install one by pip install --target")
    calls: dict[str, Any] = {}
    on = wl.executor(sys.argv[2])
    for line in sys.stdin:
        case, path, seconds = line.split()
        try:
            if case not in calls:
                calls.clear()  # one matrix at a time
                calls[case] = _call(wl, on, case, sp.load_npz(path))
                for _ in range(3):
                    calls[case]()
            answer: dict[str, Any] = {"seconds": _time(calls[case], on, float(seconds))}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def _time(call: Callable[[], Any], on: Any, seconds: float) -> float:
    """Return the median time of a call, or of the call's own timing.

    Results are dropped at once, as in an iteration: a list of them would need new memory of the
    driver for each, which takes longer than a small product.
    """
    found: list[float] = []
    end = time.perf_counter() + seconds
    count = 1
    while not found or time.perf_counter() < end:
        on.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            made = call()
        on.synchronize()
        took = time.perf_counter() - start
        if isinstance(made, float):
            found.append(made)
            continue
        if took < BATCH / 2 and count < 1000:
            count *= 2
            continue
        found.append(took / count)
    return float(np.median(found))


def main(old: str, executor: str, rounds: int = 7, seconds: float = 0.1, only: str = "") -> None:
    """Print the table."""
    import scipy.sparse as sp

    from .cases import case as made

    def worker(*folder: str) -> Any:
        command = [sys.executable, str(Path(__file__).resolve()), "worker", executor, *folder]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    workers = {"old": worker(old), "new": worker()}
    print("| case | old, us | new, us | ratio | least to most |\n|---|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            if only not in name:
                continue
            path = Path(folder) / f"{name.partition('@')[2].replace('/', '-')}.npz"
            if not path.exists():
                sp.save_npz(path, made(name.partition("@")[2]).matrix(), compressed=False)
            times: dict[str, list[float]] = {"old": [], "new": []}
            why = ""
            for turn in range(rounds + 1):
                for side in ("old", "new") if turn % 2 else ("new", "old"):
                    process = workers[side]
                    process.stdin.write(f"{name} {path} {seconds if turn else 0}\n")
                    process.stdin.flush()
                    answer = json.loads(process.stdout.readline())
                    why = why or (answer.get("error", "") and f"{side}: {answer['error']}")
                    if turn and not why:
                        times[side].append(answer["seconds"] * 1e6)
                if why:
                    break
            if why:
                print(f"| {name} | {why} | | | |", flush=True)
                continue
            ratio = np.array(times["new"]) / np.array(times["old"])
            before, after = (np.median(times[side]) for side in ("old", "new"))
            print(
                f"| {name} | {before:.1f} | {after:.1f} | {np.median(ratio):.3f} "
                f"| {ratio.min():.3f} to {ratio.max():.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        _work()
    else:
        import typer

        typer.run(main)
