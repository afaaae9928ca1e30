"""``wollemi solve``: its output, its files, its end."""

from __future__ import annotations

import _thread
import gzip
import io
import json
import re
import sys
import threading
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.cli import INTERRUPTED
from wollemi.cli.console import BAD_INPUT, NOT_CONVERGED, SOLVED
from wollemi.core.errors import InvalidArgument

from ..backends.needs import package

REFERENCE = ("--executor", "reference")


@pytest.mark.parametrize("executor", ["reference", "omp", "omp:1"])
@pytest.mark.parametrize("method", ["auto", "cg", "bicgstab", "cgs", "gmres"])
def test_a_system_is_solved(wollemi, laplacian, method, executor):
    ended = wollemi("solve", laplacian, "--method", method, "--executor", executor)
    assert ended.status == SOLVED
    assert "converged: the true residual meets the tolerance" in ended.out
    residual = next(line for line in ended.out.splitlines() if "true residual  " in line)
    assert "(relative " in residual and ", asked 1e-" in residual
    assert executor.split(":")[0] in ended.out
    assert ended.err == ""


def test_the_table_says_what_was_solved_and_how(wollemi, laplacian):
    out = wollemi("solve", laplacian, "--maxiter", "100", *REFERENCE).out
    for words in (
        "laplacian.mtx: Csr 40 x 40, 118 entries, float64",
        "Cg",
        "the matrix is symmetric and its diagonal positive",
        "the diagonal is constant",
        "iterations",
        "relative",
        "error of x",
    ):
        assert words in out


def test_a_solve_that_does_not_converge_ends_with_1_and_the_reason(wollemi, indefinite):
    ended = wollemi("solve", indefinite, "--method", "cg", "--precond", "none", *REFERENCE)
    assert ended.status == NOT_CONVERGED
    assert "indefinite" in ended.out


def test_too_few_iterations_are_not_enough(wollemi, laplacian):
    ended = wollemi("solve", laplacian, "--method", "cg", "--maxiter", "1", *REFERENCE)
    assert ended.status == NOT_CONVERGED
    assert "iteration limit" in ended.out


def test_cycles_of_no_length_are_bad_input_whatever_the_method(wollemi, laplacian):
    ended = wollemi("solve", laplacian, "--restart", "0", "--method", "cg", *REFERENCE)
    assert ended.status == BAD_INPUT
    assert "restart" in ended.err


def test_a_cycle_length_for_a_method_without_cycles_is_bad_input(wollemi, laplacian):
    ended = wollemi("solve", laplacian, "--restart", "5", "--method", "cg", *REFERENCE)
    assert ended.status == BAD_INPUT
    assert "cg has no cycles: leave restart out" in ended.complaint


@pytest.mark.parametrize("method", ["gmres", "fgmres"])
def test_the_table_says_which_preconditioner_and_restart_ran_though_asked_for(
    wollemi, laplacian, method
):
    options = ("--method", method, "--precond", "jacobi", "--restart", "5")
    out = wollemi("solve", laplacian, *options, *REFERENCE).out
    assert "M: Jacobi(), as asked" in out
    assert "restart: after 5 iterations, as asked" in out


def test_a_file_has_the_solver_and_its_options(wollemi, laplacian, tmp_path):
    config = tmp_path / "solver.json"
    config.write_text('{"solver": "gmres", "restart": 40, "M": {"preconditioner": "jacobi"}}')
    ended = wollemi("solve", laplacian, "--config", config, *REFERENCE)
    assert ended.status == SOLVED
    assert "Gmres(restart=40, M=Jacobi()), from" in ended.out.replace("\n", "")
    ended = wollemi("solve", laplacian, "--config", config, "--precond", "none", *REFERENCE)
    assert ended.status == BAD_INPUT
    assert "--precond" in ended.err
    config.write_text('{"solver": ')
    ended = wollemi("solve", laplacian, "--config", config, *REFERENCE)
    assert ended.status == BAD_INPUT
    assert "line 1" in ended.err


def test_the_solution_is_written(wollemi, laplacian, tmp_path):
    for name in ("x.mtx", "x.mtx.gz", "x.npy"):
        ended = wollemi("solve", laplacian, "--rtol", "1e-12", "--out", tmp_path / name, *REFERENCE)
        assert ended.status == SOLVED
        assert np.allclose(wl.io.read_vector(tmp_path / name), 1.0)


def test_a_right_hand_side_is_read(wollemi, laplacian, tmp_path):
    S = wl.read(laplacian).to_scipy()
    expected = np.linspace(0, 1, 40)
    wl.write(tmp_path / "b.mtx", S @ expected)
    options = ("--rtol", "1e-12", "--out", tmp_path / "x.npy", *REFERENCE)
    ended = wollemi("solve", laplacian, tmp_path / "b.mtx", *options)
    assert ended.status == SOLVED
    assert "error of x" not in ended.out
    assert np.allclose(np.load(tmp_path / "x.npy"), expected)


def test_a_block_of_right_hand_sides_shows_the_worst(wollemi, laplacian, tmp_path):
    np.save(tmp_path / "b.npy", np.random.default_rng(0).standard_normal((40, 3)))
    ended = wollemi("solve", laplacian, tmp_path / "b.npy", *REFERENCE)
    assert ended.status == SOLVED
    assert "3, the worst one below" in ended.out


def test_the_convergence_is_drawn(wollemi, laplacian, tmp_path):
    package("matplotlib")
    ended = wollemi("solve", laplacian, "--plot", tmp_path / "c.png", *REFERENCE)
    assert ended.status == SOLVED
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_it_computes_in_the_dtype_that_is_asked_for(wollemi, laplacian, dtype):
    ended = wollemi("solve", laplacian, "--dtype", dtype, "--rtol", "1e-4", *REFERENCE)
    assert ended.status == SOLVED
    assert dtype in ended.out


def test_quiet_prints_nothing(wollemi, laplacian):
    ended = wollemi("solve", laplacian, "--quiet", *REFERENCE)
    assert (ended.status, ended.out, ended.err) == (SOLVED, "", "")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_quiet_says_in_one_line_why_a_solve_failed(wollemi, laplacian, options):
    given = ("--method", "cg", "--precond", "none", "--maxiter", "2", "--rtol", "1e-10")
    ended = wollemi("solve", laplacian, *given, "--quiet", *options, *REFERENCE)
    assert ended.status == NOT_CONVERGED
    if options:
        assert ended.err == ""
        assert "iteration limit" in ended.out
    else:
        assert ended.out == ""
        assert re.fullmatch(
            r"wollemi: \S+\.mtx: not converged: the iteration limit .*\n", ended.err
        )


def test_a_progress_bar_leaves_standard_output_alone(wollemi, laplacian):
    quiet = wollemi("solve", laplacian, "--quiet", "--progress", *REFERENCE)
    assert (quiet.status, quiet.out) == (SOLVED, "")


def test_an_empty_system_is_solved(wollemi, tmp_path):
    path = tmp_path / "empty.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n0 0 0\n")
    assert wollemi("solve", path, *REFERENCE).status == SOLVED


def test_a_system_of_zeros_is_no_error_of_the_user(wollemi, tmp_path):
    path = tmp_path / "zeros.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n3 3 0\n")
    ended = wollemi("solve", path, *REFERENCE)
    assert ended.status == SOLVED  # b = A @ ones is zero, and so is x
    assert ended.err == ""


def test_the_default_executor_is_what_it_was(wollemi, laplacian):
    before = wl.get_default_executor()
    wollemi("solve", laplacian, *REFERENCE)
    assert wl.get_default_executor() == before


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_ctrl_c_prints_what_was_reached(wollemi, tmp_path, monkeypatch, executor):
    path = tmp_path / "endless.npz"
    n = 2000
    S = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    wl.write(path, wl.Csr(S))
    interrupt = threading.Timer(0.7, _thread.interrupt_main)
    command = import_module("wollemi.cli.solve")
    real_solve = command.solve_system

    def interrupted_solve(*args, **kwargs):
        interrupt.start()
        return real_solve(*args, **kwargs)

    monkeypatch.setattr(command, "solve_system", interrupted_solve)
    try:
        options = ("--method", "gmres", "--maxiter", 10**9, "--rtol", "1e-12")
        ended = wollemi("solve", path, *options, "--executor", executor)
    finally:
        interrupt.cancel()
    assert ended.status == INTERRUPTED
    assert "interrupted" in ended.out
    assert "Traceback" not in ended.err


# ---- bad input: one line on standard error, status 2


def file(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    return tmp_path / name


BANNER = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("malformed.mtx", BANNER + "2 2 1\n1 x 1\n", "line 3"),
        ("truncated.mtx", BANNER + "2 2 9\n1 1 1\n", "truncated"),
        ("no_banner.mtx", "2 2 1\n1 1 1\n", "line 1"),
        ("empty_file.mtx", "", "line 1"),
        ("huge.mtx", BANNER + "99999999999999 99999999999999 1\n1 1 1\n", "99999999999999 rows"),
        ("not_a_number.mtx", BANNER + "1 1 1\n1 1 nan\n", "1 entries are NaN or Inf"),
        ("archive.npz", "this is no archive", "not a valid .npz"),
        ("archive.mtx.gz", "this is no archive", "archive.mtx.gz"),
        ("unknown.doc", "1 2 3", "known are .mtx"),
    ],
)
def test_a_bad_file_is_named_in_one_line(wollemi, tmp_path, name, text, words):
    ended = wollemi("solve", file(tmp_path, name, text), *REFERENCE)
    assert ended.status == BAD_INPUT
    assert words in ended.complaint
    assert ended.complaint.startswith("wollemi: ")


def test_a_missing_file_is_named_in_one_line(wollemi, tmp_path):
    ended = wollemi("solve", tmp_path / "nowhere.mtx")
    assert ended.status == BAD_INPUT
    assert "nowhere.mtx: there is no such file" in ended.complaint
    (tmp_path / "folder.mtx").mkdir()
    ended = wollemi("solve", tmp_path / "folder.mtx")
    assert ended.status == BAD_INPUT
    assert "folder.mtx: Is a directory" in ended.complaint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--method", "magic"),
            "no method is called 'magic'; known: auto, bicg, bicgstab, blockcg, cg",
        ),
        (("--precond", "magic"), "no preconditioner is called 'magic'; known: none, "),
        (("--method", "gmress"), "did you mean 'gmres'?"),
        (("--method", "idr:q=2"), "Idr has no option 'q'"),
        (("--precond", "jacoby"), "did you mean 'jacobi'?"),
        (("--precond", "amg:theta=abc"), "--precond amg:theta=abc: "),
        (("--executor", "magic"), "no backend is called 'magic'; known: reference, omp"),
        (("--executor", "gpu"), "; for GPUs of NVIDIA: cuda, of AMD: hip"),
        (("--executor", "omp:none"), "omp"),
        (("--dtype", "int8"), "no dtype is called 'int8'; known: float32"),
        (("--rtol", "-1"), "rtol"),
        (("--atol", "nan"), "atol"),
        (("--maxiter", "-1"), "iterations"),
        (("--method", "gmres", "--restart", "0"), "restart"),
        (("--out", "x.docx"), "x.docx"),
        (("--out", "/no/such/folder/x.mtx"), "there is no folder /no/such/folder"),
        (("--plot", "/no/such/folder/c.png"), "there is no folder /no/such/folder"),
    ],
)
def test_a_bad_option_is_explained_in_one_line(wollemi, laplacian, options, words):
    ended = wollemi("solve", laplacian, *options)
    assert ended.status == BAD_INPUT
    assert words in ended.complaint


@pytest.mark.parametrize("option", ["--method", "--precond"])
def test_a_message_names_no_call_of_python(wollemi, laplacian, option):
    assert "register" not in wollemi("solve", laplacian, option, "magic").complaint
    words = {"method" if option == "--method" else "M": "magic"}
    with pytest.raises(InvalidArgument) as unknown:
        wl.solve(np.eye(3), np.ones(3), **words)
    assert "register(cls)" in unknown.value.__notes__[0]


def test_a_file_that_is_cut_is_named_once_and_called_truncated(wollemi, tmp_path):
    text = BANNER + "40 40 39\n" + "".join(f"{i} {i} 12.5\n" for i in range(1, 39))
    (tmp_path / "cut.mtx").write_text(text)
    (tmp_path / "whole.mtx.gz").write_bytes(gzip.compress(text.encode() * 9))
    (tmp_path / "cut.mtx.gz").write_bytes((tmp_path / "whole.mtx.gz").read_bytes()[:60])
    for name, words in [
        ("cut.mtx", "line 2 announces 39 entries, and the last one is missing"),
        ("cut.mtx.gz", "the end of its data is missing"),
    ]:
        ended = wollemi("solve", tmp_path / name)
        assert ended.status == BAD_INPUT
        assert ended.complaint == f"wollemi: {tmp_path / name}: truncated: {words}"


def test_the_endings_of_files_are_listed(wollemi, tmp_path):
    (tmp_path / "a.doc").write_text("")
    said = wollemi("solve", tmp_path / "a.doc").complaint
    assert "..." not in said
    assert all(
        ending in said
        for ending in (".mtx", ".smtx", ".hb", ".rua", ".npz", ".npy", ".mat", ".txt")
    )


def test_the_usage_marks_optional_files_alone(wollemi):
    assert "wollemi solve [OPTIONS] A [B]" in wollemi("solve", "--help").out


def test_a_picture_of_an_unknown_kind_is_refused_before_the_solve(wollemi, laplacian):
    package("matplotlib")
    ended = wollemi("solve", laplacian, "--plot", "c.docx")
    assert ended.status == BAD_INPUT
    assert "c.docx" in ended.complaint
    assert ended.out == ""


def test_a_right_hand_side_that_does_not_fit_is_refused(wollemi, laplacian, tmp_path):
    np.save(tmp_path / "b.npy", np.ones(7))
    ended = wollemi("solve", laplacian, tmp_path / "b.npy", *REFERENCE)
    assert ended.status == BAD_INPUT
    assert "b has 7 rows and laplacian.mtx has 40" in ended.complaint


def test_a_right_hand_side_that_is_not_finite_is_refused(wollemi, laplacian, tmp_path):
    np.save(tmp_path / "b.npy", np.full(40, np.inf))
    ended = wollemi("solve", laplacian, tmp_path / "b.npy", *REFERENCE)
    assert ended.status == BAD_INPUT
    assert "NaN or Inf" in ended.complaint


@pytest.mark.parametrize("words", [("solve",), ("solve", "a.mtx", "--nonsense"), ("nonsense",)])
def test_usage_errors_end_with_2(wollemi, words):
    ended = wollemi(*words)
    assert ended.status == BAD_INPUT
    assert "Traceback" not in ended.err


def test_no_memory_is_said_in_one_line(wollemi, laplacian, monkeypatch):
    def no_memory(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(import_module("wollemi.cli.solve"), "solve_system", no_memory)
    ended = wollemi("solve", laplacian, *REFERENCE)
    assert ended.status == BAD_INPUT
    assert "not enough memory" in ended.complaint


def test_a_defect_of_ours_is_not_hidden(laplacian, monkeypatch):
    from wollemi.cli import main

    def defect(*args, **kwargs):
        raise AssertionError("ours")

    monkeypatch.setattr(import_module("wollemi.cli.solve"), "solve_system", defect)
    with pytest.raises(AssertionError, match="ours"):
        main(["solve", str(laplacian), *REFERENCE])


def test_a_rectangular_system_is_solved_by_least_squares(wollemi, tmp_path):
    rng = np.random.default_rng(0)
    for shape in ((12, 5), (5, 12)):
        wl.write(tmp_path / "A.mtx", wl.Csr(rng.standard_normal(shape)))
        ended = wollemi("solve", tmp_path / "A.mtx", "--rtol", "1e-10", *REFERENCE)
        assert ended.status == SOLVED and "Lsmr" in ended.out
    ended = wollemi("solve", tmp_path / "A.mtx", "--method", "lsqr", *REFERENCE)
    assert ended.status == SOLVED and "Lsqr" in ended.out


def test_the_tolerances_in_the_name_of_a_method_count(wollemi, tmp_path):
    def iterations(*options: str) -> int:
        ended = wollemi("solve", tmp_path / "A.mtx", "--json", *options, *REFERENCE)
        return int(json.loads(ended.out)["iterations"])

    A = np.random.default_rng(0).standard_normal((60, 25))
    wl.write(tmp_path / "A.mtx", wl.Csr(A))
    tight = iterations("--method", "lsmr", "--rtol", "1e-12")
    assert iterations("--method", "lsmr:atol=1e-12,btol=1e-12") == tight
    assert iterations("--method", "lsmr") < tight


def test_a_large_error_of_least_squares_is_not_called_that_of_a_singular_matrix(wollemi, tmp_path):
    A = np.array([[1.0, -0.5], [0.0, 1e-4], [0.0, 0.0]])  # the columns are nearly parallel
    wl.write(tmp_path / "A.mtx", wl.Csr(A))
    tall = wollemi("solve", tmp_path / "A.mtx", "--method", "lsmr", "--rtol", "1e-3", *REFERENCE)
    assert "a small residual and a large error" in " ".join(tall.out.split())
    assert "A is singular" not in tall.out


def test_a_large_error_after_the_smallest_tolerance_asks_for_the_direct_method(wollemi, tmp_path):
    sizes = np.where(np.arange(40) < 20, 1e16, 1.0)
    S = sp.diags_array([-1.0, 4.0, -1.5], offsets=[-1, 0, 1], shape=(40, 40))
    wl.write(tmp_path / "A.mtx", wl.Csr((sp.diags_array(sizes) @ S).tocsr()))
    for rtol, remedy in (("1e-5", "use --rtol 1e-12"), ("1e-12", "use --method direct")):
        options = ("--method", "gmres", "--precond", "none", "--rtol", rtol)
        ended = wollemi("solve", tmp_path / "A.mtx", *options, *REFERENCE)
        assert remedy in " ".join(ended.out.split())


@pytest.mark.parametrize("method", ["direct", "DIRECT", "CG"])
def test_names_of_methods_are_taken_in_any_case(wollemi, laplacian, method):
    ended = wollemi("solve", laplacian, "--method", method, "--precond", "JACOBI", *REFERENCE)
    assert ended.status == SOLVED


def test_the_outcome_is_printed_as_json(wollemi, laplacian):
    ended = wollemi("solve", laplacian, "--json", *REFERENCE)
    found = json.loads(ended.out)
    assert ended.status == SOLVED and found["converged"] and found["rows"] == 40
    assert found["attempts"][-1]["method"] == "direct"
    assert found["total_iterations"] == sum(a["iterations"] for a in found["attempts"])


def test_the_matrix_is_read_from_standard_input(wollemi, laplacian, monkeypatch):
    class Standard:
        buffer = io.BytesIO(laplacian.read_bytes())

    monkeypatch.setattr(sys, "stdin", Standard)
    ended = wollemi("solve", "-", *REFERENCE)
    assert ended.status == SOLVED and "standard input: Csr 40 x 40" in ended.out


def test_attempts_are_shown_where_there_are_several(wollemi, tmp_path):
    path = tmp_path / "A.mtx"  # CG finds it indefinite, which its diagonal does not show
    wl.write(path, wl.Csr(np.array([[1.0, 3.0, 0.0], [3.0, 1.0, 1.0], [0.0, 1.0, 2.0]])))
    ended = wollemi("solve", path, "--maxiter", "30", *REFERENCE)
    assert ended.status == SOLVED
    assert "attempts" in ended.out and "set-up, s" in ended.out
    assert "first choice" in ended.out
    told = json.loads(wollemi("solve", path, *REFERENCE, "--json").out)
    assert told["M"] == told["attempts"][-1]["M"] and told["method"].lower() != "cg"


def test_names_are_completed():
    command = import_module("wollemi.cli.solve")
    assert command.completion(command.METHODS)("gm") == ["gmres"]
    assert "amg" in command.completion(command.PRECONDITIONERS)("A")
    assert command.completion(command.EXECUTORS)("cu") == ["cuda"]


def test_wide_systems_are_not_called_ill_conditioned(wollemi, tmp_path):
    wl.write(tmp_path / "wide.mtx", sp.csr_array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]))
    out = wollemi("solve", tmp_path / "wide.mtx", *REFERENCE).out
    assert "A has more columns than rows" in out
    assert "ill-conditioned" not in out and "asked" not in out


def test_a_least_squares_solve_names_its_limit_and_no_bad_condition(wollemi, tmp_path):
    S = sp.random_array((200, 50), density=0.1, rng=0) + 2 * sp.eye_array(200, 50)
    wl.write(tmp_path / "A.mtx", wl.Csr(sp.csr_array(S)))
    ended = wollemi("solve", tmp_path / "A.mtx", "--on", "reference")
    assert ended.status == 0 and "the limit is rtol (|b| + |A| |x|)" in ended.out
    assert "ill-conditioned" not in ended.out


def test_a_right_hand_side_may_be_a_text(wollemi, tmp_path):
    wl.write(tmp_path / "A.mtx", wl.Csr(np.diag([1.0, 2.0])))
    (tmp_path / "b.txt").write_text("1\n4\n")
    out = tmp_path / "x.txt"
    ended = wollemi("solve", tmp_path / "A.mtx", tmp_path / "b.txt", "--out", out)
    assert ended.status == 0 and out.read_text().split() == ["1", "2"]
