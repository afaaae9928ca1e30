"""Cards of notebooks, lines with settings, and the progress bar."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core import progress
from wollemi.core.described import convergence, short


def laplacian(n: int = 20) -> wl.Csr:
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    one = sp.eye_array(n)
    return wl.Csr((sp.kron(line, one) + sp.kron(one, line)).tocsr())


def card(shown) -> str:
    """Return the text of a card, which is well-formed."""
    return " ".join(ElementTree.fromstring(shown._repr_html_()).itertext())


A = laplacian()
B = np.ones(A.shape[0])


def test_the_card_of_a_result_has_the_verdict_and_a_drawing():
    result = wl.solvers.Cg(A, rtol=1e-8).solve(B)
    assert "converged: the true residual meets the tolerance" in card(result)
    assert f"{result.iterations} iterations" in card(result)
    assert "<polyline" in result._repr_html_() and "stroke-dasharray" in result._repr_html_()


def test_the_card_of_a_result_has_a_row_for_each_attempt():
    n = 60
    rng = np.random.default_rng(0)
    S = sp.random_array((n, n), density=0.2, rng=rng) + sp.diags_array(np.linspace(-1, 1, n))
    result = wl.solve(wl.Csr(S.tocsr()), np.ones(n), rtol=1e-10, maxiter=600)
    assert len(result.attempts) > 1
    shown = card(result)
    assert all(attempt.reason in shown for attempt in result.attempts)
    assert f"{result.total_iterations:,} over all attempts" in shown


def test_the_card_of_a_result_of_many_columns_draws_some():
    result = wl.solvers.Cg(A).solve(np.random.default_rng(0).standard_normal((A.shape[0], 40)))
    assert result._repr_html_().count("<polyline") == 12


@pytest.mark.parametrize(
    ("residuals", "threshold"),
    [([1.0], 0.1), ([0.0, 0.0], 0.0), ([np.nan, np.nan], 1.0), ([], 0.0)],
)
def test_residuals_without_two_norms_are_not_drawn(residuals, threshold):
    assert convergence(np.array(residuals), threshold) == ""


def test_a_drawing_has_equal_norms_and_a_threshold_above_them():
    drawing = convergence(np.array([1.0, 1.0, 0.0]), 10.0)
    assert "nan" not in drawing and ElementTree.fromstring(drawing).tag == "svg"


def test_the_card_of_a_hierarchy_has_a_row_for_each_level():
    M = wl.preconditioners.Amg(laplacian(40), theta=0.25)
    shown = card(M)
    assert "theta 0.25" in shown.replace("  ", " ") or "theta0.25" in shown.replace(" ", "")
    assert all(f"{rows:,}" in shown for rows in M.report().rows)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: wl.solvers.Gmres(A, M="ilu", restart=5), ["Gmres", "restart", "5", "400 x 400"]),
        (lambda: wl.preconditioners.Ilu(A), ["Ilu", "float64"]),
        (lambda: wl.solvers.Lobpcg(A, k=3), ["Lobpcg", "k"]),
        (lambda: wl.solvers.SingularValues(A, k=2), ["SingularValues", "400 x 400"]),
        (lambda: wl.solvers.Lsmr(A, damp=0.1), ["Lsmr", "damp", "0.1"]),
        (lambda: wl.solvers.Direct(A), ["Direct"]),
        (lambda: A.plan, ["Plan", "algorithm", "reason"]),
        (lambda: A + 2.0 * wl.Identity(400), ["Csr"]),
        (lambda: wl.LinearOperator((4, 4), lambda x: x), ["LinearOperator", "4 x 4"]),
        (lambda: wl.distributed.Group(["omp:1", "omp:1"]), ["Group of 2", "omp:1"]),
        (lambda: wl.distribute(A, ["omp:1", "omp:1"]), ["Csr", "400 x 400", "group of 2"]),
        (wl.available_executors, ["Executors", "reference", "NumPy"]),
        (lambda: wl.solvers.Lobpcg(A, k=2).solve(), ["EigenResult", "eigenvalue"]),
    ],
)
def test_an_object_has_a_card(made, words):
    shown = card(made())
    assert all(word in shown for word in words)


def test_the_card_of_a_profile_has_a_row_for_each_operation():
    with wl.profile() as seen:
        _ = A @ B
    assert "csr.spmv" in card(seen)
    assert repr(seen).startswith("<Profile of 1 operations, 1 calls")


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (lambda: wl.solvers.Cg(A), "<Cg 400x400 float64 on omp:2>"),
        (
            lambda: wl.solvers.Gmres(A, M="ilu", restart=5),
            "<Gmres(M='ilu', restart=5) 400x400 float64 on omp:2>",
        ),
        (
            lambda: wl.solvers.Cg(A, M=wl.preconditioners.Jacobi(A)),
            "<Cg(M=Jacobi) 400x400 float64 on omp:2>",
        ),
        (
            lambda: wl.preconditioners.Amg(A, near_null=np.ones((400, 1))),
            "<Amg(near_null=<array 400x1>) 400x400 float64 on omp:2>",
        ),
    ],
)
def test_a_line_has_the_options_that_were_given(made, line):
    place = A.executor.name
    assert repr(made()) == line.replace("omp:2", place)


def test_a_long_option_is_cut():
    assert len(short("x" * 500)) == 60


# ---- names


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: wl.slove, "did you mean 'solve'"),
        (lambda: wl.CSR, "did you mean 'Csr'"),
        (lambda: wl.preconditioners.Jacoby, "did you mean 'Jacobi'"),
        (lambda: wl.solvers.Gmress, "did you mean 'Gmres'"),
        (lambda: wl.linalg.gmress, "did you mean 'gmres'"),
        (lambda: wl.cg, r"write wl\.linalg\.cg"),
        (lambda: wl.eye, r"write wl\.sparse\.eye"),
        (lambda: wl.csr_matrix, r"write wl\.Csr\(S\)"),
        (lambda: wl.sparse.csr_array, r"write wl\.Csr\(S\)"),
        (lambda: wl.spsolve, 'write wl.solve.A, b, method="direct"'),
        (lambda: wl.linalg.splu, "write wl.solvers.Direct"),
        (lambda: wl.load("missing.mtx"), "write wl.read"),
        (lambda: A.solve(B), "write wl.solve"),
        (lambda: wl.solvers.Cg(rtol=0.1).solve(B), r"Cg\(rtol=0.1\).on\(A\) has it"),
    ],
)
def test_a_misspelled_name_of_a_module_has_a_suggestion(ask, words):
    with pytest.raises(AttributeError, match=words):
        ask()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wl.solve(A, B, rtoll=1), "did you mean rtol="),
        (lambda: wl.solve(A, B, tol=1), "did you mean rtol="),
        (lambda: wl.linalg.cg(A, B, max_iter=1), "did you mean maxiter="),
        (lambda: wl.linalg.eigsh(A, whcih="LA"), "did you mean which="),
        (lambda: wl.linalg.lsmr(A, B, dampp=1), "did you mean damp="),
        (lambda: wl.solvers.Cg(A).solve(B, calback=print), "did you mean callback="),
    ],
)
def test_a_misspelled_keyword_has_a_suggestion(call, words):
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wl.executor("cudaa"), "did you mean 'cuda'"),
        (lambda: A.asformat("crs"), "did you mean 'csr'"),
        (lambda: wl.solve(A, B, method="gmress"), "did you mean 'gmres'"),
        (lambda: wl.solve(A, B, M="jacoby"), "did you mean 'jacobi'"),
        (lambda: wl.solvers.Cg(A, rtl=1), "did you mean rtol="),
    ],
)
def test_a_misspelled_value_has_a_suggestion(call, words):
    with pytest.raises(wl.errors.InvalidArgument, match=words):
        call()


# ---- progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_bar_that_is_removed(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "PERIOD", 0.0)
    assert wl.solvers.Cg(laplacian(60), rtol=1e-12).solve(np.ones(3600), progress=True).converged
    drawn = sys.stderr.getvalue()
    assert "Cg on" in drawn and "100 iterations, residual" in drawn
    assert drawn.endswith("\r\x1b[2K")


def test_a_file_gets_no_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert wl.solvers.Cg(A).solve(B, progress=True).converged
    assert sys.stderr.getvalue() == ""


@pytest.mark.filterwarnings("error")
def test_a_notebook_shows_a_bar_without_widgets(monkeypatch, capsys):
    seen: list[str] = []
    shell = type("ZMQInteractiveShell", (), {})()
    handle = SimpleNamespace(update=seen.append)
    shown = SimpleNamespace(HTML=str, display=lambda html, display_id: handle)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    assert wl.solvers.Cg(A).solve(B, progress=True).converged
    assert "<progress max='1' value='0.000'>" in seen[0] and seen[-1] == ""
    assert capsys.readouterr().err == ""


def test_the_limit_of_iterations_bounds_the_estimate():
    rate = progress.Rate()
    for second in range(1, 11):
        rate.add(second, 0.0, second / 20)
    assert rate.seconds_left() == pytest.approx(10.0)


def test_a_stalled_solve_has_no_estimate():
    rate = progress.Rate()
    rate.add(1.0, 0.5, 0.0)
    for second in range(2, 11):
        rate.add(second, 0.5, 0.0)
    assert rate.seconds_left() is None
