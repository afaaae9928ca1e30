"""Files: written files are read again, and damage is reported with its position."""

from __future__ import annotations

import gzip
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.errors import InvalidArgument, InvalidMatrix

DTYPES = ("float32", "float64", "complex64", "complex128")
COORDINATE = "%%MatrixMarket matrix coordinate real general\n"


@pytest.fixture(autouse=True)
def on_reference():
    with wl.default_executor("reference"):
        yield


def some_matrix(rng, dtype="float64") -> sp.csr_array:
    S = sp.random_array((7, 5), density=0.4, rng=rng).astype(dtype)
    if S.dtype.kind == "c":
        S.data = S.data + 1j * rng.standard_normal(S.nnz).astype(S.real.dtype)
    return S.tocsr()


def written(path: Path, text: str | bytes) -> Path:
    content = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def dense(path: Path) -> np.ndarray:
    return wl.read(path).to_dense()


# ---- round trips


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sparse_matrix_survives_to_the_last_digit(tmp_path, rng, name, dtype):
    S = some_matrix(rng, dtype)
    wl.write(tmp_path / name, wl.Csr(S))
    read = wl.read(tmp_path / name)
    assert isinstance(read, wl.Csr)
    assert read.shape == S.shape
    assert np.array_equal(read.to_dense().astype(dtype), S.toarray())


@pytest.mark.parametrize("name", ["x.mtx", "x.mtx.gz", "x.npy"])
@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_vectors_survive_with_their_shape(tmp_path, rng, name, shape):
    x = rng.standard_normal(shape)
    wl.write(tmp_path / name, x)
    assert np.array_equal(wl.io.read_vector(tmp_path / name), x)


def test_explicit_zeros_survive(tmp_path):
    A = wl.Csr(([0.0, 2.0], [0, 1], [0, 1, 2]), shape=(2, 2))
    for name in ("z.mtx", "z.npz"):
        wl.write(tmp_path / name, A)
        assert wl.read(tmp_path / name).nnz == 2


@pytest.mark.parametrize("format", ["coo", "csc", "ell", "bsr"])
def test_every_format_can_be_written(tmp_path, rng, format):
    S = some_matrix(rng)
    options = {"blocksize": (1, 1)} if format == "bsr" else {}
    wl.write(tmp_path / "a.mtx", wl.Csr(S).asformat(format, **options))
    assert np.array_equal(dense(tmp_path / "a.mtx"), S.toarray())


def test_a_dense_matrix_comes_back_dense(tmp_path):
    D = wl.Dense(np.arange(6.0).reshape(2, 3))
    for name in ("d.npy", "d.mtx"):
        wl.write(tmp_path / name, D)
        read = wl.read(tmp_path / name)
        assert isinstance(read, wl.Dense)
        assert np.array_equal(read.to_dense(), D.to_dense())


def test_a_vector_file_is_a_matrix_of_one_column(tmp_path):
    np.save(tmp_path / "v.npy", np.ones(3))
    assert wl.read(tmp_path / "v.npy").shape == (3, 1)


def test_what_scipy_writes_is_read(tmp_path, rng):
    S = some_matrix(rng)
    scipy.io.mmwrite(tmp_path / "s.mtx", S)
    sp.save_npz(tmp_path / "s.npz", S.tocoo())
    assert np.array_equal(dense(tmp_path / "s.mtx"), S.toarray())
    assert np.array_equal(dense(tmp_path / "s.npz"), S.toarray())


def test_it_goes_to_the_executor_that_is_asked_for(tmp_path):
    wl.write(tmp_path / "a.mtx", np.eye(2))
    assert wl.read(tmp_path / "a.mtx", executor="reference").executor.name == "reference"


# ---- fields and symmetries of Matrix Market


@pytest.mark.parametrize(
    ("banner", "body", "expected"),
    [
        ("coordinate real symmetric", "2 2 2\n1 1 4\n2 1 3\n", [[4, 3], [3, 0]]),
        ("coordinate real skew-symmetric", "2 2 1\n2 1 3\n", [[0, -3], [3, 0]]),
        ("coordinate complex hermitian", "2 2 1\n2 1 1 2\n", [[0, 1 - 2j], [1 + 2j, 0]]),
        ("coordinate pattern general", "2 3 2\n1 3\n2 1\n", [[0, 0, 1], [1, 0, 0]]),
        ("coordinate integer general", "1 2 1\n1 2 7\n", [[0, 7]]),
        ("array real general", "2 2\n1\n2\n3\n4\n", [[1, 3], [2, 4]]),
        ("array real symmetric", "2 2\n1\n2\n3\n", [[1, 2], [2, 3]]),
        ("array real skew-symmetric", "3 3\n1\n2\n3\n", [[0, -1, -2], [1, 0, -3], [2, 3, 0]]),
        ("array complex general", "1 1\n1 2\n", [[1 + 2j]]),
    ],
)
@pytest.mark.parametrize("ending", [".mtx", ".mtx.gz"])
def test_fields_and_symmetries(tmp_path, banner, body, expected, ending):
    path = written(tmp_path / f"a{ending}", f"%%MatrixMarket matrix {banner}\n% remark\n{body}")
    assert np.array_equal(dense(path), np.array(expected))


def test_a_file_from_another_system_is_read(tmp_path):
    text = "%%MatrixMarket MATRIX Coordinate REAL General\n%\n\n2 2 1\n1 1 2.5"
    path = written(tmp_path / "a.mtx", text.replace("\n", "\r\n"))
    assert np.array_equal(dense(path), [[2.5, 0], [0, 0]])


def test_fortran_exponents_are_read(tmp_path):
    path = written(tmp_path / "a.mtx", COORDINATE + "1 2 2\n1 1 1.5D+03\n1 2 2d0\n")
    assert np.array_equal(dense(path), [[1500, 2]])


@pytest.mark.parametrize("end", ["", " ", "\t", "\r"])
def test_a_last_line_without_an_end_is_read(tmp_path, end):
    """SciPy alone ends the process on these."""
    path = written(tmp_path / "a.mtx", f"{COORDINATE}1 1 1\n1 1 2.5{end}")
    assert np.array_equal(dense(path), [[2.5]])


def test_an_empty_matrix_is_a_matrix(tmp_path):
    assert wl.read(written(tmp_path / "a.mtx", COORDINATE + "0 0 0\n")).shape == (0, 0)
    assert wl.read(written(tmp_path / "b.mtx", COORDINATE + "3 2 0\n")).nnz == 0


def test_a_pruned_layer_is_a_pattern_of_ones(tmp_path):
    path = written(tmp_path / "w.smtx.gz", "2, 3, 3\n0 2 3\n0 2 1\n")
    assert np.array_equal(dense(path), [[1, 0, 1], [0, 1, 0]])
    empty = written(tmp_path / "e.smtx", "1, 3, 0\n0 0\n")
    assert wl.read(empty).nnz == 0


# ---- damage


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1"),
        ("hello\n", "line 1"),
        ("%%MatrixMarket matrix coordinate real\n1 1 1\n1 1 1\n", "line 1"),
        ("%%MatrixMarket matrix coordinate quaternion general\n", "line 1"),
        ("%%MatrixMarket vector coordinate real general\n1 1\n1 1\n", "line 1"),
        (COORDINATE, "no line with the sizes"),
        (COORDINATE + "2 2\n1 1 1\n", "line 2: expected 3 sizes"),
        (COORDINATE + "2 x 1\n1 1 1\n", "line 2: expected 3 sizes"),
        (COORDINATE + "-2 2 1\n1 1 1\n", "line 2: expected 3 sizes"),
        (COORDINATE + "2 2 2\n1 1 1\n", "truncated"),
        (COORDINATE + "2 2 1\n3 1 1\n", "line 3"),
        (COORDINATE + "2 2 1\n0 1 1\n", "line 3"),
        (COORDINATE + "2 2 1\n1 1 abc\n", "line 3"),
        (COORDINATE + "2 2 1\n1.5 1 1\n", "line 3"),
        (
            COORDINATE + "2 2 2\n1 1 2.5\n2 2 2,5\n",
            "line 4: expected a row, a column and a number, got '2 2 2,5'",
        ),
        (
            COORDINATE + "2 2 1\n1 1 0x10\n",
            "line 3: expected a row, a column and a number, got '1 1 0x10'",
        ),
        (COORDINATE + "2 2 1\n1 1 1\n2 2 2\n", "line 4"),
        (COORDINATE + "9" * 30 + " 2 1\n1 1 1\n", "64 bits"),
        (COORDINATE + "2 2 999999999999\n1 1 1\n", "line 2 announces 999999999999"),
        (COORDINATE + "900000000000000 2 1\n1 1 1\n", "line 2: 900000000000000 rows"),
        (COORDINATE.replace("general", "symmetric") + "2 3 1\n1 1 1\n", "not square"),
        ("%%MatrixMarket matrix array real general\n9999999 9999999\n1\n", "announces"),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n5\n", "line 7"),
        ("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 " + "9" * 30, "line 3"),
    ],
)
def test_a_malformed_matrix_market_file_is_named_with_the_place(tmp_path, text, place):
    path = written(tmp_path / "broken.mtx", text)
    with pytest.raises(InvalidMatrix) as caught:
        wl.read(path)
    assert str(path) in str(caught.value)
    assert place in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "truncated"),
        ("2, 2, 1\n", "truncated"),
        ("2, 2\n0 1 1\n0\n", "line 1"),
        ("a, b, c\n0 1 1\n0\n", "line 1"),
        ("2, 2, 1\n0 1\n0\n", "line 2"),
        ("2, 2, 1\n0 x 1\n0\n", "line 2"),
        ("2, 2, 1\n0 1 1\n0 1\n", "line 3"),
        ("2, 2, 1\n0 1 1\n5\n", "indices[0] = 5"),
        ("2, 2, 2\n0 2 1\n0 1\n", "not increasing"),
        ("999999999999, 2, 1\n0 1 1\n0\n", "line 2"),
    ],
)
def test_a_malformed_smtx_file_is_named_with_the_place(tmp_path, text, place):
    path = written(tmp_path / "broken.smtx", text)
    with pytest.raises(InvalidMatrix) as caught:
        wl.read(path)
    assert str(path) in str(caught.value)
    assert place in str(caught.value)


def test_a_truncated_archive_is_damaged(tmp_path, rng):
    whole = gzip.compress((COORDINATE + "2 2 1\n1 1 1\n").encode())
    (tmp_path / "a.mtx.gz").write_bytes(whole[:-6])
    (tmp_path / "b.mtx.gz").write_bytes(b"not gzip at all")
    sp.save_npz(tmp_path / "c.npz", some_matrix(rng))
    (tmp_path / "c.npz").write_bytes((tmp_path / "c.npz").read_bytes()[:-40])
    for name in ("a.mtx.gz", "b.mtx.gz", "c.npz"):
        with pytest.raises(InvalidMatrix, match=name):
            wl.read(tmp_path / name)


def test_arrays_that_are_no_matrix_are_refused(tmp_path):
    for name, array in {
        "scalar": np.array(1.0),
        "cube": np.ones((2, 2, 2)),
        "words": np.array(["a", "b"]),
        "objects": np.array([{}, []], dtype=object),
    }.items():
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=True)
        with pytest.raises(InvalidMatrix, match=name):
            wl.read(tmp_path / f"{name}.npy")


def test_an_array_file_with_a_huge_header_allocates_nothing(tmp_path):
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999, 9), }\n"
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()
    path = written(tmp_path / "huge.npy", header + b"\0" * 64)
    with pytest.raises(InvalidMatrix, match=r"huge\.npy"):
        wl.read(path)


def test_an_archive_of_arrays_that_disagree_is_refused(tmp_path):
    good = {
        "format": b"csr",
        "shape": np.array([2, 2]),
        "data": np.ones(2),
        "indices": np.array([0, 1]),
        "indptr": np.array([0, 1, 2]),
    }
    for name, change in {
        "out_of_range": {"indices": np.array([0, 9])},
        "falling": {"indptr": np.array([0, 2, 1])},
        "unknown": {"format": b"csx"},
        "shapeless": {"shape": np.array([2])},
        "lengths": {"data": np.ones(5)},
    }.items():
        np.savez(tmp_path / f"{name}.npz", **(good | change))
        with pytest.raises(InvalidMatrix, match=name):
            wl.read(tmp_path / f"{name}.npz")
    with zipfile.ZipFile(tmp_path / "missing.npz", "w") as archive:
        archive.writestr("other.txt", "nothing")
    with pytest.raises(InvalidMatrix, match="missing"):
        wl.read(tmp_path / "missing.npz")


@pytest.mark.parametrize("name", ["A.mtx", "A.mtx.gz", "A.npz"])
def test_a_file_in_a_folder_that_is_missing_is_refused_with_the_remedy(tmp_path, name):
    folder = tmp_path / "results" / "new"
    with pytest.raises(FileNotFoundError, match=r"results/new does not exist; make it") as caught:
        wl.write(folder / name, wl.Csr(np.eye(2)))
    assert isinstance(caught.value, wl.errors.MissingFile)
    folder.mkdir(parents=True)
    wl.write(folder / name, wl.Csr(np.eye(2)))
    assert wl.read(folder / name).nnz == 2


def test_what_is_not_there_or_not_a_file_is_the_systems_error(tmp_path):
    with pytest.raises(wl.errors.MissingFile, match="no such file"):
        wl.read(tmp_path / "none.mtx")
    (tmp_path / "folder.mtx").mkdir()
    with pytest.raises(IsADirectoryError):
        wl.read(tmp_path / "folder.mtx")


def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path):
    for name in ("a.doc", "a.npz.gz", "a"):
        with pytest.raises(InvalidArgument, match=r"known are \.mtx"):
            wl.read(tmp_path / name)


def test_what_does_not_fit_a_kind_is_not_written(tmp_path):
    A = wl.Csr(np.eye(2))
    with pytest.raises(InvalidArgument, match=r"\.mtx or \.npz"):
        wl.write(tmp_path / "a.npy", A)
    with pytest.raises(InvalidArgument, match=r"\.mtx or \.npy"):
        wl.write(tmp_path / "a.npz", np.ones(2))
    with pytest.raises(InvalidArgument, match="no entries to write"):
        wl.write(tmp_path / "a.mtx", wl.LinearOperator((2, 2), matvec=lambda x: x))
    assert not list(tmp_path.iterdir())


def test_an_executor_that_is_not_here_is_not_the_files_fault(tmp_path):
    wl.write(tmp_path / "a.mtx", np.eye(2))
    with pytest.raises(InvalidArgument, match="no backend is called"):
        wl.read(tmp_path / "a.mtx", executor="abacus")


# mutations: every changed file is read or reported


def mutations() -> st.SearchStrategy[list[tuple[str, int, bytes]]]:
    change = st.tuples(
        st.sampled_from(("replace", "insert", "cut", "drop")),
        st.integers(0, 400),
        st.one_of(
            st.binary(min_size=1, max_size=3),
            st.sampled_from((b"9999999999", b"-", b"\n", b" ", b"%", b"nan", b"1e999", b".5")),
        ),
    )
    return st.lists(change, min_size=1, max_size=3)


def mutated(content: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    for how, where, what in changes:
        at = where % (len(content) + 1)
        if how == "replace":
            content = content[:at] + what + content[at + len(what) :]
        elif how == "insert":
            content = content[:at] + what + content[at:]
        elif how == "cut":
            content = content[:at]
        else:
            content = content[:at] + content[at + len(what) :]
    return content


TEXTS = {
    "coordinate.mtx": COORDINATE + "% remark\n3 3 4\n1 1 2.5\n2 2 1e3\n3 1 -4\n3 3 7\n",
    "symmetric.mtx": COORDINATE.replace("general", "symmetric") + "3 3 2\n1 1 2\n3 2 5\n",
    "hermitian.mtx": "%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n2 1 1 2\n",
    "array.mtx": "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n",
    "pattern.smtx": "3, 4, 5\n0 2 2 5\n0 3 1 2 3\n",
    "boeing.rua": "title\n 3 1 1 1 0\nRUA 2 2 2 0\n(3I3) (3I3) (2E9.1)\n"
    "  1  2  3\n  2  1\n  1.5E+00 -2.0E+00\n",
}


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=150)
@given(changes=mutations())
def test_a_mutated_text_is_read_or_named(tmp_path_factory, name, changes):
    path = tmp_path_factory.getbasetemp() / f"mutated-{name}"
    path.write_bytes(mutated(TEXTS[name].encode(), changes))
    read_or_named(path)


@pytest.mark.parametrize("name", ["m.npz", "m.npy", "m.mtx.gz"])
@settings(max_examples=150)
@given(changes=mutations())
def test_a_mutated_archive_is_read_or_named(tmp_path_factory, name, changes):
    path = tmp_path_factory.getbasetemp() / name
    with wl.default_executor("reference"):
        wl.write(path, np.eye(3) if name == "m.npy" else wl.Csr(np.eye(3)))
    path.write_bytes(mutated(path.read_bytes(), changes))
    read_or_named(path)


def read_or_named(path: Path) -> None:
    try:
        with wl.default_executor("reference"):
            A = wl.read(path)
    except InvalidMatrix as error:
        assert str(path) in str(error)
    else:
        assert A.nnz <= A.shape[0] * A.shape[1] or A.nnz <= path.stat().st_size


def test_a_shape_that_no_memory_holds_is_told_with_the_name_of_the_file(tmp_path):
    path = tmp_path / "giant.mtx"
    path.write_text("%%MatrixMarket matrix array real general\n9999999999999 0\n")
    with pytest.raises(
        wl.errors.OutOfDeviceMemory, match=r"giant\.mtx: a 9999999999999 x 0 matrix"
    ):
        wl.read(path, format="csr")


@pytest.mark.parametrize("name", ["b.txt", "b.dat", "b.csv", "b.txt.gz"])
@pytest.mark.parametrize(
    "b",
    [
        np.array([1.5, -2e-300, 3.0]), np.array([[1.0, 2.0], [3.0, 1 / 3]]), np.array([1, 2]),
        np.array([1 + 2j, 1 / 3 - 1e-9j]), np.array([0.1], np.float32),
    ],
    ids=["vector", "block", "integers", "complex", "float32"],
)  # fmt: skip
def test_texts_hold_all_digits_of_vectors(tmp_path, name, b):
    wl.write(tmp_path / name, b)
    found = wl.io.read_vector(tmp_path / name)
    assert found.shape == b.shape and np.array_equal(found.astype(b.dtype), b)
    assert wl.read(tmp_path / name).shape == (b.shape[0], b.size // b.shape[0])


def test_a_text_has_remarks_blanks_and_separators(tmp_path):
    path = tmp_path / "b.txt"
    path.write_text("# two columns\n\n 1, 2\n3;4   % the end\n")
    assert wl.io.read_vector(path).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x\n1\n2\n", "'x' in row 1, column 1 is no number; remove a line of names"),
        ("1 2\n3\n", "number of columns changed"), ("# nothing\n", "there is none"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_vector_is_named(tmp_path, text, words):
    path = tmp_path / "b.csv"
    path.write_text(text)
    with pytest.raises(InvalidMatrix, match=rf"b\.csv: .*{words}"):
        wl.io.read_vector(path)


def test_a_sparse_matrix_is_not_written_as_text(tmp_path):
    with pytest.raises(InvalidArgument, match=r"use \.mtx or \.npz"):
        wl.write(tmp_path / "a.txt", wl.Csr(np.eye(2)))
