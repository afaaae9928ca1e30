"""The drawn inputs of a run can be kept, and a later run computes the same products."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument
from wollemi_bench import case, ml
from wollemi_bench.stored_inputs import about, write

from .test_commands import QUICK, results, run

SHAPES = {"spmm": [(12, 5)], "sddmm": [(9, 5), (12, 5)], "fusedmm": [(9, 5), (12, 5), (12, 5)]}


def problem_of(operation, dtype="float32", seed=3):
    S = sp.random_array((9, 12), density=0.4, format="csr", rng=seed, dtype=np.float32)
    return ml.Dense(operation, sp.csr_array(S), 5, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("operation", ml.OPERATIONS)
def test_what_is_read_is_what_was_drawn(tmp_path, operation, dtype):
    drawn, path = problem_of(operation, dtype), tmp_path / "one.inputs.npz"
    write(path, drawn)
    assert about(path) == (operation, 5, dtype)
    (task,) = ml.tasks(operation, [case(str(path))], columns=(32, 64))
    assert (task.benchmark, task.case.name) == (f"{operation}/5", "one")
    again = task.make(task.case.matrix(task.dtype))
    np.testing.assert_array_equal(again.S.toarray(), drawn.S.toarray())
    assert [operand.shape for operand in again.operands] == SHAPES[operation]
    for got, want in zip(again.operands, drawn.operands, strict=True):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, want)
    offer = again.ours(wl.core.registry.executor("reference"))[0]
    assert drawn.wrong(offer.to_host(offer.make()())) == ""


def test_other_programs_read_the_matrix_of_a_file(tmp_path):
    drawn, path = problem_of("sddmm"), tmp_path / "one.inputs.npz"
    write(path, drawn)
    np.testing.assert_array_equal(sp.load_npz(path).toarray(), drawn.S.toarray())


def test_inputs_of_another_product_are_refused(tmp_path):
    path = tmp_path / "one.inputs.npz"
    write(path, problem_of("spmm"))
    with pytest.raises(InvalidArgument, match="inputs of spmm, not of sddmm"):
        ml.tasks("sddmm", [case(str(path))], columns=(5,))
    sp.save_npz(path, problem_of("spmm").S)
    with pytest.raises(InvalidArgument, match="no stored inputs"):
        ml.tasks("spmm", [case(str(path))], columns=(5,))


def test_operands_that_do_not_fit_the_matrix_are_refused(tmp_path):
    path = tmp_path / "one.inputs.npz"
    write(path, problem_of("spmm"))
    S = sp.csr_array(np.eye(4, dtype=np.float32))
    with pytest.raises(InvalidArgument, match=r"expected operands of .*\(4, 5\)"):
        ml.Dense("spmm", S, 5, inputs=path)


def test_a_command_keeps_inputs_and_another_one_measures_them(tmp_path):
    kept, first, second = tmp_path / "kept", tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    kept.mkdir()
    options = ("--executor", "omp", *QUICK, "--json")
    draw = ("uniform:20,30,90", "--columns", "8", "--columns", "3", "--store", kept)
    assert run("bench", "sddmm", *draw, *options, first) == 0
    files = sorted(kept.iterdir())
    assert [path.name for path in files] == [
        "uniform-20-30-90-sddmm-3.inputs.npz",
        "uniform-20-30-90-sddmm-8.inputs.npz",
    ]
    assert run("bench", "sddmm", *files, *options, second) == 0
    assert {r["benchmark"] for r in results(second)} == {"sddmm/3", "sddmm/8"}
    assert all(r["trouble"] == "" for r in results(second) if r["ours"])
    assert {r["entries"] for r in results(first)} == {r["entries"] for r in results(second)}
