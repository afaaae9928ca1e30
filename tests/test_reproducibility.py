"""The promises of docs/reproducibility.md that no other test keeps."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

ROOT = Path(__file__).parents[1]
N = 3000


def matrices() -> dict[str, sp.csr_array]:
    """Return rows that are alike, rows of many lengths, and one that is long."""
    rng = np.random.default_rng(5)
    line = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(N, N)).tocsr()
    lengths = np.minimum(rng.zipf(1.8, N), 400)
    rows = np.repeat(np.arange(N), lengths)
    entries = (rng.standard_normal(rows.size), (rows, rng.integers(0, N, rows.size)))
    long = sp.lil_array(line)
    long[N // 2] = rng.standard_normal(N)
    return {"line": line, "lengths": sp.csr_array(entries, shape=(N, N)), "long": long.tocsr()}


MATRICES = matrices()

PROGRAM = """
import hashlib, sys
import numpy as np, scipy.sparse as sp, wollemi as wl
n = 3000
S = sp.diags_array([-1.0, 2.5, -1.1], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
A = wl.Csr(S, executor=sys.argv[1])
b = np.random.default_rng(7).standard_normal((n, 3))
found = [
    wl.solve(A, b[:, 0], rtol=1e-10).x,
    wl.solvers.Gmres(A, M="ilu").solve(b[:, 0]).x,
    wl.solvers.Bicgstab(A, M="amg").solve(b).x,
    wl.solvers.Idr(A).solve(b[:, 1]).x,
    wl.solvers.Lobpcg(wl.Csr(S + S.T, executor=sys.argv[1]), k=2, rtol=1e-3).solve().eigenvalues,
]
print(hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in found)).hexdigest())
"""


@pytest.mark.parametrize("executor", ["reference", "omp:3"])
def test_a_program_that_runs_again_has_the_same_bits(executor):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, executor], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    found = [process.communicate(timeout=120)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert found[0] == found[1] != ""


@pytest.mark.parametrize("name", MATRICES)
def test_products_have_the_same_bits_with_any_number_of_threads(name):
    X = np.random.default_rng(3).standard_normal((N, 5))
    found = set()
    for threads in (1, 2, 3, 8):
        A = wl.Csr(MATRICES[name], executor=f"omp:{threads}")
        products = [A @ X[:, 0], A @ X, *(A.T @ X[:, 0] for _ in range(25))]
        found.add(b"".join(y.tobytes() for y in products))
    assert len(found) == 1


def test_the_number_of_threads_does_not_change_the_verdict():
    b = np.random.default_rng(3).standard_normal(N)
    for threads in (1, 2, 3, 8):
        result = wl.solvers.Cg(wl.Csr(MATRICES["line"], executor=f"omp:{threads}")).solve(b)
        assert result.converged
        assert np.linalg.norm(b - MATRICES["line"] @ result.x) <= 1e-5 * np.linalg.norm(b)


def test_the_global_generator_of_numpy_is_neither_read_nor_changed():
    S = wl.Csr(MATRICES["line"])
    found = []
    for seed in (1, 2):
        np.random.seed(seed)
        before = np.random.get_state()[1].copy()
        found.append(wl.solvers.Idr(S).solve(np.ones(N)).x.tobytes())
        found[-1] += wl.linalg.eigsh(S, k=1, return_eigenvectors=False, tol=1e-2).tobytes()
        np.testing.assert_array_equal(np.random.get_state()[1], before)
    assert found[0] == found[1]


def test_another_seed_begins_elsewhere():
    S = wl.Csr(MATRICES["line"])
    found = {
        wl.solvers.Lanczos(S, k=1, seed=s, rtol=1e-2).solve().eigenvectors.tobytes()
        for s in (0, 0, 1)
    }
    assert len(found) == 2


def test_the_page_names_tests_that_exist():
    named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "docs/reproducibility.md").read_text())
    assert str(Path(__file__).relative_to(ROOT)) in named
    assert all((ROOT / name).is_file() for name in named), named
