"""Messages about common mistakes name the remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.extend import check_operator

LINE = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(20, 20))
GRID = sp.kronsum(LINE, LINE).tocsr()
ONES = np.ones(400)
BATCH = wl.Csr((np.ones((4, 2)), [0, 1], [0, 1, 2]), shape=(2, 2))
Q = np.ones((400, 4))


def matrix(executor: str = "omp") -> wl.Csr:
    return wl.Csr(GRID, executor=executor)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "out of Cg": (
        lambda: wl.solvers.Cg(matrix()).solve(ONES, out=ONES),
        r"solver\.recorded\(b, out=x\) writes into an array of yours; its parameters: b, x0,",
    ),
    "out of wl.solve": (
        lambda: wl.solve(matrix(), ONES, out=ONES),
        r"solver\.recorded\(b, out=x\)",
    ),
    "smoother of PyAMG": (
        lambda: wl.preconditioners.Amg(matrix(), smoother="gauss_seidel"),
        "'sor' is a forward sweep, 'ssor' a forward and a backward one; known: none",
    ),
    "smoother and options of PyAMG": (
        lambda: wl.preconditioners.Amg(
            matrix(), smoother=("block_gauss_seidel", {"sweep": "symmetric"})
        ),
        "PyAMG's block_gauss_seidel: 'blockjacobi'",
    ),
    "options without A": (
        lambda: wl.preconditioners.Amg(matrix(), foo=1),
        "coarse_rows, dtype, executor$",
    ),
    "right-hand sides of a batch": (
        lambda: wl.solve(BATCH, np.ones((7, 2))),
        r"b: expected shape \(4, 2\), \(4, 2, k\) or \(2,\), got \(7, 2\)",
    ),
    "shape of a function": (
        lambda: wl.LinearOperator(100, lambda x: x),
        r"got 100; a square matrix has the shape \(100, 100\)$",
    ),
    "queries": (lambda: wl.fusedmm(matrix(), Q[:3], Q, Q), r"C \(queries\): expected shape"),
    "keys": (
        lambda: wl.sddmm(matrix(), Q[:, :3], Q),
        r"B \(keys\): expected 3 columns as C \(queries\) has, got 4",
    ),
    "values": (lambda: wl.fusedmm(matrix(), Q, Q, Q[:3]), r"D \(values\): expected shape"),
    "onenormest": (lambda: wl.linalg.onenormest, r"onenormest\(A\.to_scipy\(\)\)"),
    "spsolve_triangular": (lambda: wl.linalg.spsolve_triangular, r"A\.solve_triangular\(b"),
    "plot": (
        lambda: wl.solve(matrix(), ONES).plot("x.unknown"),
        r"path: no format of plots is called 'unknown'.*\.png",
    ),
    "plot of a pattern": (lambda: matrix().plot("x.unknown"), "no format of plots"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_mistake_is_answered_with_the_remedy(call: str) -> None:
    if "plot" in call:
        pytest.importorskip("matplotlib")
    mistake, words = CALLS[call]
    with pytest.raises(Exception, match=words) as caught:
        mistake()
    assert isinstance(caught.value, (wl.errors.WollemiError, TypeError, AttributeError))
    assert "self" not in str(caught.value)


def test_every_public_function_of_scipys_linalg_is_there_or_has_a_replacement() -> None:
    import scipy.sparse.linalg as linalg

    modules = {"dsolve", "eigen", "interface", "isolve", "matfuncs"}  # deprecated by SciPy
    for name in set(linalg.__all__) - modules - {"ArpackError", "MatrixRankWarning"}:
        try:
            getattr(wl.linalg, name)
        except AttributeError as error:
            assert "; write " in str(error), name


@pytest.mark.parametrize(
    "text, words",
    [
        ("1.0\nabc\n", "'abc' in row 2, column 1 is no number; remove a line of names"),
        ("1 2\n3\n", "give each line the same number of values"),
    ],
)
def test_a_text_file_names_the_item_that_is_no_number(
    text: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "b.txt"
    path.write_text(text)
    with pytest.raises(wl.errors.InvalidMatrix, match=words):
        wl.io.read_vector(path)


def test_notes_say_which_facts_the_user_stated() -> None:
    upper = sp.csr_array(sp.triu(GRID) + sp.eye_array(400, k=2))
    told = {
        "positive_definite": wl.solve(wl.Csr(-GRID), ONES, positive_definite=True).notes,
        "symmetric": wl.solve(wl.Csr(upper), ONES, symmetric=True).notes,
    }
    for hint, notes in told.items():
        assert f"{hint}=True was passed" in " ".join(notes)
        assert "is symmetric" not in " ".join(notes)


@pytest.mark.parametrize("hint", ["symmetric", "positive_definite"])
@pytest.mark.parametrize("value", ["no", 1, 0.0])
def test_stated_facts_are_booleans(hint: str, value: object) -> None:
    with pytest.raises(wl.errors.InvalidArgument, match=f"{hint}: expected True, False or None"):
        wl.solve(wl.Csr(GRID), ONES, **{hint: value})


@pytest.mark.parametrize("dtype", ["int8", np.int64, bool])
def test_multigrid_computes_in_no_integers(dtype: object) -> None:
    with pytest.raises(wl.errors.InvalidArgument, match="dtype: expected 'float16'"):
        wl.preconditioners.Amg(wl.Csr(GRID), dtype=dtype)


@pytest.mark.parametrize("address", [0, 3, -1, 4095])
def test_a_small_number_is_no_compiled_function(address: int) -> None:
    with pytest.raises(wl.errors.InvalidArgument, match=f"compiled function, got {address}"):
        wl.LinearOperator((3, 3), matvec=address)


# ---- preconditioners of a user's class, and matrices with NaN


class Scaled(wl.preconditioners.Preconditioner):
    """The base of preconditioners with one mistake each."""

    parts = ("inverse",)

    def setup(self, A: Any) -> None:
        self.inverse = wl.extend.inverse_diagonal(A, "Scaled")

    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        self.inverse.apply_block(x, y, alpha, beta)


class ReadsOutput(Scaled):
    """``y`` may contain NaN, and 0 times NaN is NaN."""

    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        y[...] = alpha * np.roll(x, 1, 0) + beta * y


class ChangesOperand(Scaled):
    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        x *= 2
        self.inverse.apply_block(x, y, alpha, beta)


class GivesNan(Scaled):
    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        y[...] = np.nan


class Random(Scaled):
    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        noise = np.random.default_rng().random(x.shape)
        y[...] = alpha * noise * x + (beta * y if beta else 0)


class NotHermitian(Scaled):
    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        y[...] = alpha * np.roll(x, 1, 0) + (beta * y if beta else 0)


@pytest.mark.parametrize(
    "kind, words",
    [
        (ReadsOutput, "with beta = 0 it must overwrite y"),
        (ChangesOperand, "a product changed its operand x"),
        (GivesNan, "the result is not finite"),
        (Random, r"is not 2 A x - 0\.5 y"),
    ],
)
@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_a_failed_solve_names_the_fault_in_products_of_an_own_preconditioner(
    kind: type, words: str, executor: str
) -> None:
    M = kind(matrix(executor))
    result = wl.solvers.Cg(matrix(executor), M=M, maxiter=300).solve(ONES)
    assert not result.converged
    for text in (words.replace("\\", ""), f"{kind.__name__}", "wollemi.extend.check_operator(M)"):
        assert text in result.reason
    with pytest.raises(wl.errors.InvalidArgument, match=words):
        check_operator(M)


def test_an_own_preconditioner_that_is_not_hermitian_is_named_as_before() -> None:
    result = wl.solvers.Cg(matrix(), M=NotHermitian(matrix())).solve(ONES)
    assert not result.converged
    assert "M is not Hermitian, as the method needs it; use gmres" in result.reason
    assert "wollemi.extend.check_operator(M)" in result.reason
    builtin = wl.solvers.Cg(matrix(), M=sp.triu(GRID, k=1).tocsr() + sp.eye_array(400)).solve(ONES)
    assert "check_operator" not in builtin.reason


def test_a_right_preconditioner_is_not_blamed() -> None:
    result = wl.solvers.Cg(matrix(), M=Scaled(matrix()), maxiter=2).solve(ONES)
    assert result.reason == (
        "not converged: the iteration limit was reached; raise maxiter, or use a stronger M"
    )


SOLVERS = ["Cg", "Fcg", "PipeCg", "BlockCg", "Bicgstab", "Gmres", "Minres", "Idr", "Tfqmr", "Ir"]
FUNCTIONS = [
    "bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr",
]  # fmt: skip


def with_nan() -> sp.csr_array:
    S = GRID.copy()
    S.data[3] = np.nan
    return S


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_says_that_the_matrix_has_nan(name: str) -> None:
    result = getattr(wl.solvers, name)(wl.Csr(with_nan())).solve(ONES)
    assert result.reason.startswith("not finite: A has NaN or Inf")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_with_scipys_signature_refuse_a_matrix_with_nan(name: str) -> None:
    with pytest.raises(wl.errors.InvalidMatrix, match=f"^{name}: A has NaN or Inf"):
        getattr(wl.linalg, name)(with_nan(), ONES)


def test_a_function_as_preconditioner_that_gives_nan_is_named() -> None:
    result = wl.solvers.Cg(matrix(), M=lambda x: x * np.nan).solve(ONES)
    assert result.reason.startswith("not finite: the product of M with a vector of ones has NaN")
