"""Verdicts and iteration counts of four solvers on a folder of matrices, by two versions.

``verdicts.py run FOLDER OUT.json`` solves every square matrix of a folder by CG, BiCGSTAB, CGS and
GMRES(30) on ``reference`` and ``omp``; it uses public names alone, so that an older version can run
it by its path. ``verdicts.py table OLD.json NEW.json`` compares two such files in Markdown.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

METHODS = ("Cg", "Bicgstab", "Cgs", "Gmres")
EXECUTORS = ("reference", "omp")
LIMIT = 500
RESTART = 30
#: Entries above which NumPy would take minutes.
REFERENCE_ENTRIES = 150_000
ENTRIES = 2_000_000


def run(folder: Path, out: Path) -> None:
    """Solve with all and write a list of rows."""
    import scipy.io

    import wollemi as wl

    rows: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("*.mtx*")):
        try:
            S: Any = scipy.io.mmread(path)
        except Exception as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        if isinstance(S, np.ndarray) or S.shape[0] != S.shape[1] or S.nnz > ENTRIES:
            continue
        S = S.tocsr().astype(np.complex128 if S.dtype.kind == "c" else np.float64)
        b = S @ np.ones(S.shape[0])
        for executor in EXECUTORS:
            if executor == "reference" and S.nnz > REFERENCE_ENTRIES:
                continue
            A = wl.Csr(S, executor=executor)
            for method in METHODS:
                start = time.perf_counter()
                more = {"restart": RESTART} if method == "Gmres" else {}
                solver = getattr(wl.solvers, method)(A, rtol=1e-8, maxiter=LIMIT, **more)
                result = solver.solve(b)
                residual = float(np.linalg.norm(b - S @ result.x) / np.linalg.norm(b))
                rows.append(
                    {
                        "matrix": path.name.partition(".")[0],
                        "executor": executor,
                        "method": method,
                        "converged": bool(result.converged),
                        "reason": str(result.reason).partition(":")[0],
                        "iterations": int(result.iterations),
                        "residual": residual,
                        "seconds": time.perf_counter() - start,
                    }
                )
        print(path.name, flush=True)
        out.write_text(json.dumps(rows))


def table(old: Path, new: Path) -> str:
    """Return the comparison as Markdown: a line for each method and executor; then differences."""
    before, after = (
        {(r["matrix"], r["executor"], r["method"]): r for r in json.loads(f.read_text())}
        for f in (old, new)
    )
    common = [key for key in after if key in before]
    lines = [
        "| method | executor | solves | same verdict | same count | other verdict |",
        "|---|---|---:|---:|---:|---|",
    ]
    for method in METHODS:
        for executor in EXECUTORS:
            keys = [key for key in common if key[1:] == (executor, method)]
            verdict = [k for k in keys if before[k]["converged"] == after[k]["converged"]]
            count = [k for k in verdict if before[k]["iterations"] == after[k]["iterations"]]
            other = ", ".join(k[0] for k in keys if k not in verdict) or "none"
            lines.append(
                f"| {method} | {executor} | {len(keys)} | {len(verdict)} | {len(count)} | {other} |"
            )
    lines += [
        "",
        "| matrix | method | executor | before | now | residuals |",
        "|---|---|---|---|---|---|",
    ]
    for key in common:
        one, two = before[key], after[key]
        if (one["converged"], one["iterations"]) != (two["converged"], two["iterations"]):
            said = [f"{r['iterations']}, {r['reason']}" for r in (one, two)]
            residuals = f"{one['residual']:.1e}, {two['residual']:.1e}"
            lines.append(
                f"| {key[0]} | {key[2]} | {key[1]} | {said[0]} | {said[1]} | {residuals} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        print(table(Path(sys.argv[2]), Path(sys.argv[3])))
