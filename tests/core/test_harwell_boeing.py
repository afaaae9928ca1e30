"""Harwell-Boeing and Rutherford-Boeing files are read, and damage is reported with its position."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidMatrix

#: A = [[4, -1, 0], [-1, 4, 0], [0, 2.5, 1]], in the layout of the users' guide.
GENERAL = """\
A title of up to 72 characters                                          KEY
             4             1             1             2
RUA                        3             3             6             0
(10I3)          (10I3)          (3E12.4)
  1  3  6  7
  1  2  1  2  3  3
  4.0000E+00 -1.0000E+00 -1.0000E+00
  4.0000E+00  2.5000E+00  1.0000D+00
"""
DENSE = np.array([[4.0, -1, 0], [-1, 4, 0], [0, 2.5, 1]])


@pytest.fixture(autouse=True)
def on_reference():
    with wl.default_executor("reference"):
        yield


def text_of(S: sp.csc_array, kind: str, right_hand_side: bool = False) -> str:
    """Return a matrix as a file: 4 integers or 3 numbers in a line."""
    numbers = S.data.view(float) if S.data.dtype.kind == "c" else S.data
    parts = [(S.indptr + 1, 4, 8, "8d"), (S.indices + 1, 4, 8, "8d")]
    formats = "(4I8)           (4I8)           "
    if kind[0].lower() == "i":
        parts.append((numbers.astype(int), 4, 8, "8d"))
        formats += "(4I8)"
    elif kind[0].lower() != "p":
        parts.append((numbers, 3, 14, "14.5E"))
        formats += "(1P,3E14.5)"
    blocks = [
        [
            "".join(format(value, spec) for value in values[at : at + repeat])
            for at in range(0, len(values), repeat)
        ]
        for values, repeat, _, spec in parts
    ]
    counts = [sum(map(len, blocks)), *map(len, blocks)]
    counts += [0] * (4 - len(counts)) + [1] * right_hand_side
    head = [
        "title",
        "".join(f"{count:14d}" for count in counts),
        f"{kind:14}" + "".join(f"{n:14d}" for n in (*S.shape, S.nnz, 0)),
        formats,
        *["F                          1             3"] * right_hand_side,
    ]
    tail = ["   1.0   2.0   3.0"] * right_hand_side
    return "\n".join([*head, *(line for block in blocks for line in block), *tail]) + "\n"


def read(tmp_path: Path, text: str, name: str = "a.rua") -> np.ndarray:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return wl.read(path).to_dense()


@pytest.mark.parametrize("name", ["a.rua", "a.RUA", "a.hb", "a.rb", "a.rb.gz"])
def test_the_file_of_the_guide_is_read(tmp_path, name):
    assert np.array_equal(read(tmp_path, GENERAL, name), DENSE)


def parts_of(full: np.ndarray, symmetry: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries that a file stores, and the whole matrix."""
    if symmetry in "UR":
        return full, full
    below = np.tril(full, -1)
    if symmetry == "Z":
        return below, below - below.T
    diagonal = np.diag(np.diag(full).real if symmetry == "H" else np.diag(full))
    above = below.conj().T if symmetry == "H" else below.T
    return below + diagonal, below + diagonal + above


@pytest.mark.parametrize("values", "RCPI")
@pytest.mark.parametrize("symmetry", "SUHZR")
@pytest.mark.parametrize("right_hand_side", [False, True])
def test_all_types_are_read(tmp_path, rng, values, symmetry, right_hand_side):
    shape = (6, 4) if symmetry == "R" else (6, 6)
    full = np.round(100 * rng.standard_normal(shape)) * (rng.random(shape) < 0.6)
    if values == "C":
        full = full + 1j * np.round(10 * rng.random(shape)) * (full != 0)
    if values == "P":
        full = (full != 0) * 1.0
    stored, expected = parts_of(full, symmetry)
    text = text_of(sp.csc_array(stored), f"{values}{symmetry}A", right_hand_side)
    np.testing.assert_array_equal(read(tmp_path, text), expected)


def test_files_of_scipy_are_read(tmp_path, rng):
    S = sp.random_array((40, 40), density=0.1, rng=rng).tocsc()
    scipy.io.hb_write(tmp_path / "a.rua", S)
    np.testing.assert_allclose(wl.read(tmp_path / "a.rua").to_dense(), S.toarray(), rtol=1e-11)


def test_an_open_file_is_told_by_its_name(tmp_path):
    (tmp_path / "a.rb").write_text(GENERAL)
    with (tmp_path / "a.rb").open("rb") as file:
        assert np.array_equal(wl.read(file).to_dense(), DENSE)


def test_a_matrix_without_entries_is_read(tmp_path):
    text = text_of(sp.csc_array((3, 3)), "RUA")
    assert np.array_equal(read(tmp_path, text), np.zeros((3, 3)))


def test_values_that_touch_are_separate_fields(tmp_path):
    text = GENERAL.replace("(3E12.4)", "(3E10.3)").replace(
        "  4.0000E+00 -1.0000E+00 -1.0000E+00\n  4.0000E+00  2.5000E+00  1.0000D+00\n",
        " 4.000E+00-1.000E+00-1.000E+00\n 4.000E+00 2.500E+00 1.000+100\n",
    )
    assert np.array_equal(read(tmp_path, text), DENSE + np.diag([0, 0, 1e100 - 1]))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("RUA ", "RUE ", "only assembled ones are read"),
        ("RUA ", "QUA ", "in another file"),
        ("RUA ", "RXA ", "line 3: expected a type of three letters"),
        ("RUA                        3", "RSA                        4", "square"),
        ("RUA ", "RZA ", "so its diagonal is zero"),
        ("(3E12.4)", "(3Q12.4)", "line 4: expected a format such as"),
        ("(10I3)          (10I3)", "(10I3)", "line 4: expected 3 Fortran formats"),
        ("(10I3)          (10I3)", "(10I3) (3F4.1)", "expected a format of integers"),
        ("(3E12.4)", "(3E999.4)", "fields have 1 to"),
        ("  1  3  6  7", "  1  3  6  8", "column pointers must rise from 1 to 7"),
        ("  1  3  6  7", "  1  6  3  7", "column pointers must rise"),
        ("  1  3  6  7", "  1  3  x  7", "line 5, and following lines: expected an integer"),
        ("  1  2  1  2  3  3", "  1  2  1  2  3  4", "row 4 is not one of 1 to 3"),
        (
            "  1  2  1  2  3  3",
            "  1  2  1  2  3",
            "line 6, and following lines: 1 field",
        ),
        ("  4.0000E+00 -1", "  4.0x00E+00 -1", "line 7, and following lines: expected a number"),
        ("  4.0000E+00 -1", "           4 -1", "without a decimal point"),
        ("(3E12.4)\n", "(1P3E12.4)\n", None),
        (
            "  4.0000E+00  2.5000E+00  1.0000D+00\n",
            "",
            "line 8: expected 3 more values, got an empty line",
        ),
        ("             6   ", "  999999999999   ", "truncated"),
    ],
)
def test_damage_is_named(tmp_path, old, new, words):
    assert old in GENERAL
    text = GENERAL.replace(old, new)
    if words is None:
        assert np.array_equal(read(tmp_path, text), DENSE)
        return
    with pytest.raises(InvalidMatrix, match=r"a\.rua") as caught:
        read(tmp_path, text)
    assert words in str(caught.value)


def test_a_scaled_value_without_an_exponent_is_refused(tmp_path):
    text = GENERAL.replace("(3E12.4)", "(2P3F12.4)").replace("E+00", "    ").replace("D+00", "    ")
    with pytest.raises(InvalidMatrix, match="power of ten"):
        read(tmp_path, text)
