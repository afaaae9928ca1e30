"""Errors of calls that mix up arguments name the call that was meant."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl


def test_an_option_of_one_method_names_that_method():
    A = wl.Csr(2 * np.eye(3))
    with pytest.raises(TypeError, match=r'damp belongs to Lsmr: write method="lsmr:damp=3.0"'):
        wl.solve(A, np.ones(3), damp=3.0)


def test_a_method_in_the_place_of_the_start_is_named():
    A = wl.Csr(2 * np.eye(3))
    with pytest.raises(wl.errors.InvalidArgument, match="write method='gmres'"):
        wl.solve(A, np.ones(3), "gmres")


def test_a_matrix_of_one_column_for_b_names_its_vector():
    A = wl.Csr(2 * np.eye(3))
    b = wl.Dense(np.ones((3, 1)))
    with pytest.raises(wl.errors.InvalidArgument, match=r"\.toarray\(\)\[:, 0\]"):
        wl.solve(A, b)


def test_a_result_is_written_by_its_solution(tmp_path):
    result = wl.solve(2 * np.eye(3), np.ones(3))
    with pytest.raises(wl.errors.InvalidArgument, match="write its x"):
        wl.write(tmp_path / "x.mtx", result)


@pytest.mark.parametrize("name", ["executor", "device", "on"])
def test_a_call_with_an_executor_is_told_that_matrices_have_it(name):
    A = wl.Csr(2 * np.eye(3))
    for call in (wl.solve, wl.linalg.cg):
        with pytest.raises(TypeError, match=r'matrices say where to compute: A\.to\("cuda"\)'):
            call(A, np.ones(3), **{name: "cuda"})


def test_options_of_other_libraries_name_the_option_of_the_same_meaning():
    A = wl.Csr(2 * np.eye(3))
    with pytest.raises(wl.errors.InvalidArgument, match=r"'which'; did you mean largest=\?"):
        wl.solvers.Lobpcg(A, k=1, which="SM")
    with pytest.raises(wl.errors.InvalidArgument, match=r"did you mean rtol=\?"):
        wl.solvers.Cg(A, tol=1e-8)


@pytest.mark.parametrize("kind", [list, tuple])
def test_several_matrices_are_sent_to_batches_and_blocks(kind):
    S = wl.Csr(2 * np.eye(3))
    for given in (S, S.to_scipy()):
        for call in (wl.Csr, wl.Coo, lambda A: wl.solve(A, np.ones(3))):
            with pytest.raises(
                wl.errors.InvalidMatrix, match=r"2 matrices .* wl\.stack.*wl\.batch"
            ):
                call(kind([given, given]))
        with pytest.raises(wl.errors.InvalidMatrix, match=r"wl\.sparse\.block_array"):
            wl.Csr([[None, given], [given, None]])
    with pytest.raises(wl.errors.InvalidMatrix, match=r"wl\.Csr\(numpy\.array\(matrices\)\)"):
        wl.Csr([np.eye(2), np.eye(2)])


def test_rows_without_an_inverse_on_the_diagonal_are_named(on):
    diagonal = np.ones(9)
    diagonal[[3, 7]] = 0.0
    A = wl.Csr(np.diag(diagonal), executor=on)
    for name in ("Jacobi", "Sor"):
        with pytest.raises(wl.errors.InvalidMatrix, match=r"0\.0 in rows 3 and 7; .*replacement"):
            getattr(wl.preconditioners, name)(A)
    with pytest.raises(wl.errors.InvalidMatrix, match=r"of rows 3 and 7 add up to 0\.0"):
        wl.preconditioners.L1Jacobi(A)
    with pytest.raises(wl.errors.InvalidMatrix, match="rows 0, 1, 2, 3, 4 and 4 more; reorder"):
        wl.preconditioners.Jacobi(wl.Csr(np.diag(np.zeros(9)) + np.eye(9, k=1), executor=on))


def test_a_file_in_the_place_of_a_matrix_or_a_vector_is_sent_to_read(tmp_path):
    A = wl.Csr(2 * np.eye(3))
    for file in ("A.mtx", tmp_path / "A.mtx"):
        for operands in ((file, np.ones(3)), (A, file)):
            with pytest.raises(wl.errors.InvalidArgument, match=r"wl\.io\.read_vector\(file\)"):
                wl.solve(*operands)


def test_a_hierarchy_of_pyamg_is_a_preconditioner():
    class Hierarchy:
        def aspreconditioner(self):
            return wl.Diagonal(np.array([0.5, 0.25, 0.125]))

    A = wl.Csr(np.diag([2.0, 4.0, 8.0]))
    result = wl.solve(A, np.ones(3), M=Hierarchy(), rtol=1e-10)
    assert result.converged and result.iterations == 1


@pytest.mark.parametrize(
    ("given", "meant"),
    [("B", "near_null"), ("strength", "theta"), ("max_coarse", "coarse_rows")],
)
def test_options_of_pyamg_name_those_of_amg(given, meant):
    with pytest.raises(wl.errors.InvalidArgument, match=f"did you mean {meant}="):
        wl.preconditioners.Amg(wl.Csr(2 * np.eye(3)), **{given: 1})


@pytest.mark.parametrize("option", ["max_levels", "CF", "smooth", "aggregate", "symmetry", "keep"])
def test_options_of_pyamg_without_a_counterpart_say_how_to_get_the_same(option):
    words = r"; (\w+=|M\.levels|the levels of a Hermitian).*; its options: kind"
    with pytest.raises(wl.errors.InvalidArgument, match=f"no option '{option}'{words}"):
        wl.preconditioners.Amg(wl.Csr(2 * np.eye(3)), **{option: 1})
    with pytest.raises(wl.errors.InvalidArgument, match=f"no option '{option}'{words}"):
        wl.solve(wl.Csr(2 * np.eye(300)), np.ones(300), M=f"amg:{option}=1")


@pytest.mark.parametrize("name", ["ruge_stuben_solver", "smoothed_aggregation_solver"])
def test_functions_of_pyamg_name_amg(name):
    with pytest.raises(AttributeError, match=r"write M = wl\.preconditioners\.Amg\(A"):
        getattr(wl, name)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("solve", r"wl\.solvers\.Cg\(A, M\)\.solve\(b\)"), ("psolve", "M @ b"),
        ("aspreconditioner", "the object itself"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["Amg", "Ilu", "Jacobi"])
def test_methods_of_other_preconditioners_name_their_replacements(kind, name, written):
    M = getattr(wl.preconditioners, kind)(wl.Csr(2 * np.eye(3)))
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; write .*{written}"):
        getattr(M, name)
    assert not hasattr(M, "other")


@pytest.mark.parametrize("name", ["operator_complexity", "grid_complexity", "cycle_complexity"])
def test_complexities_of_a_hierarchy_are_in_its_report(name):
    M = wl.preconditioners.Amg(wl.Csr(2 * np.eye(3)))
    with pytest.raises(AttributeError, match=r"write M\.report\(\)"):
        getattr(M, name)


def test_an_option_of_a_preconditioner_says_where_it_belongs():
    with pytest.raises(TypeError, match=r'theta belongs to Amg: write M="amg:theta=0.5"'):
        wl.solve(wl.Csr(2 * np.eye(3)), np.ones(3), theta=0.5)
