"""The generated entries: refused arguments, and the text of the entries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operations import gmres, matrix, vector
from wollemi.core.status import Status
from wollemi.solvers.krylov import cg

from .declared import declared

EXECUTOR = wl.executor("omp:2")
GENERATOR = Path(__file__).parents[3] / "backends" / "omp" / "generate.py"  # not installed


def block(rows: int, columns: int = 1, dtype: str = "float64") -> np.ndarray[Any, Any]:
    return np.ones((rows, columns), dtype)


def run(operation: Any, *arguments: Any) -> None:
    EXECUTOR.run(operation, *arguments)


# refused arguments


def test_no_array() -> None:
    with pytest.raises(TypeError, match=r"vector\.fill: y: expected a NumPy array, got list"):
        run(vector.fill, [1.0], 0.0)


def test_another_dtype_than_the_others() -> None:
    with pytest.raises(TypeError, match="y: expected dtype float64, got float32"):
        run(vector.axpby, block(3), block(3, dtype="float32"), 1.0, 0.0)


@pytest.mark.parametrize("dtype", ["float16", "int64", "bool", "longdouble"])
def test_a_dtype_without_kernels(dtype: str) -> None:
    with pytest.raises(TypeError, match="y: expected dtype float32, float64, complex64 or"):
        run(vector.fill, block(3, dtype=dtype), 0.0)


def test_indices_that_are_no_indices() -> None:
    with pytest.raises(TypeError, match="index: expected dtype int32 or int64, got uint32"):
        run(vector.gather, np.zeros(2, np.uint32), block(3), block(2), 1.0, 0.0)


def test_another_number_of_dimensions() -> None:
    with pytest.raises(TypeError, match=r"y: expected 2 dimensions, got shape \(3,\)"):
        run(vector.fill, np.ones(3), 0.0)


def test_extents_that_disagree() -> None:
    with pytest.raises(TypeError, match=r"y: expected 2 along axis 1 .* got shape \(3, 1\)"):
        run(vector.axpby, block(3, 2), block(3), 1.0, 0.0)


def test_columns_that_are_no_neighbours() -> None:
    with pytest.raises(TypeError, match="y: expected adjacent columns"):
        run(vector.fill, np.ones((4, 3), order="F"), 0.0)


@pytest.mark.parametrize("rows", [np.ones((3, 1))[::-1], np.broadcast_to(1.0, (3, 1))], ids=str)
def test_rows_that_overlap_or_go_back(rows: np.ndarray[Any, Any]) -> None:
    with pytest.raises(TypeError, match="x: expected adjacent columns"):
        run(vector.axpby, rows, block(3), 1.0, 0.0)


def test_scalars_per_column_with_gaps() -> None:
    with pytest.raises(TypeError, match="value: expected a contiguous array"):
        run(vector.norm, block(3, 2), np.ones(4)[::2])


def test_results_that_cannot_be_written() -> None:
    y = block(3)
    y.flags.writeable = False
    with pytest.raises(TypeError, match="y: is written to, but the array is read-only"):
        run(vector.fill, y, 0.0)


def test_the_other_byte_order() -> None:
    with pytest.raises(TypeError, match="y: expected an array in the machine's byte order"):
        run(vector.fill, block(3, dtype=np.dtype("f8").newbyteorder("S").str), 0.0)


def test_arrays_that_are_not_aligned() -> None:
    y = np.zeros(33, np.uint8)[1:].view("f8").reshape(4, 1)
    with pytest.raises(TypeError, match="y: expected an aligned array"):
        run(vector.fill, y, 0.0)


def test_a_complex_factor_of_real_vectors() -> None:
    with pytest.raises(TypeError, match="real number"):
        run(vector.axpby, block(3), block(3), 1j, 0.0)


def test_a_missing_argument() -> None:
    with pytest.raises(TypeError, match=r"vector\.fill takes an executor and 2 arguments"):
        run(vector.fill, block(3))


def test_a_status_of_other_columns() -> None:
    status = Status(EXECUTOR, 3, np.float64)
    with pytest.raises(TypeError, match="stop: expected 2 along axis 0"):
        run(cg.curvature.operation, block(4, 2), block(4, 2), np.ones(2), status)


def test_a_step_that_is_no_single_number() -> None:
    status = Status(EXECUTOR, 1, np.float64)
    basis, h, one = np.ones((2, 4, 1)), block(2), np.ones(1)
    with pytest.raises(TypeError, match="step: expected 1 along axis 0"):
        run(gmres.project, basis, block(4), h, one, np.zeros(2, np.int64), status)


def test_a_vector_that_does_not_fit_the_matrix() -> None:
    A = wl.Csr(np.ones((2, 3)), executor=EXECUTOR)
    with pytest.raises(TypeError, match="x: expected 3 along axis 0"):
        run(matrix.csr_spmv, A, block(2), block(2), 1.0, 0.0)


def test_nothing_is_written_when_an_argument_is_refused() -> None:
    y = block(3)
    with pytest.raises(TypeError):
        run(vector.axpby, block(3), y, 1.0, "no number")
    np.testing.assert_array_equal(y, block(3))


# accepted arguments


def test_complex_arrays_that_are_aligned_to_their_parts_only() -> None:
    memory = np.zeros(20, np.float64)
    start = 1 if memory.ctypes.data % 16 == 0 else 0
    y = memory[start : start + 18].view(np.complex128)[:, None]
    assert y.ctypes.data % 16 == 8
    run(vector.fill, y, 2.0 - 1.0j)
    np.testing.assert_array_equal(y, np.full((9, 1), 2.0 - 1.0j))


def test_numbers_of_numpy_and_of_python() -> None:
    y = block(2)
    for value in (3, 3.0, np.float32(3), np.int64(3), True + 2):
        run(vector.fill, y, value)
        assert y[0, 0] == 3.0


# ---- how entries are written


def generate(folder: Path) -> dict[str, Path]:
    subprocess.run([sys.executable, "-S", str(GENERATOR), str(folder)], check=True)
    return {path.name: path for path in folder.iterdir()}


def test_every_operation_on_arrays_has_an_entry(tmp_path: Path) -> None:
    text = "".join(path.read_text() for path in generate(tmp_path).values())
    for operation in declared():
        composite = operation.parts is not None
        on_arrays = not composite and not any(p.is_matrix for p in operation.parameters)
        assert (f"struct {operation.symbol}_entry " in text) == on_arrays, operation


def test_arguments_are_read_in_the_order_of_the_signature(tmp_path: Path) -> None:
    text = generate(tmp_path)["vector_entries.cpp"].read_text()
    body = text[text.index("const vector_axpby<T> body{") :]
    assert body.split("\n")[1:5] == [
        "          call.block<const T>(0, n, k),",
        "          call.block<T>(1, n, k),",
        "          call.scalar<T>(2),",
        "          call.scalar<T>(3),",
    ]


def test_files_that_do_not_change_are_not_written_again(tmp_path: Path) -> None:
    before = {name: path.stat().st_mtime_ns for name, path in generate(tmp_path).items()}
    (tmp_path / "cg_entries.cpp").write_text("something else")
    (tmp_path / "gone_entries.cpp").write_text("of an operation that is no more")
    after = {name: path.stat().st_mtime_ns for name, path in generate(tmp_path).items()}
    assert before.keys() == after.keys()
    assert {name for name in before if before[name] != after[name]} == {"cg_entries.cpp"}
