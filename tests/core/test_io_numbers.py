"""Each number of a text file is read as it is written, or the file is refused with the line."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidMatrix
from wollemi.core.files.numbers import Grammar, WrongLine


@pytest.fixture(autouse=True)
def on_reference() -> Iterator[None]:
    with wl.default_executor("reference"):
        yield


def read(banner: str, body: str) -> np.ndarray:  # type: ignore[type-arg]
    return wl.read(io.BytesIO(f"%%MatrixMarket matrix {banner}\n{body}".encode())).to_dense()


#: By layout, a file of two numbers, the first of which is looked at.
FILES = {"coordinate": "2 1 2\n1 1 {0}\n2 1 {1}\n", "array": "2 1\n{0}\n{1}\n"}


@pytest.mark.parametrize("layout", FILES)
@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1.5-100", 1.5e-100), ("1.5+100", 1.5e100), ("-.5-300", -0.5e-300), ("+2.+005", 2e5),
        ("1.5D+03", 1500), ("2d0", 2), ("2D-3", 0.002), ("+1.5", 1.5), ("+.5e+1", 5), ("7.", 7),
        ("-.25", -0.25), ("007", 7), ("1E5", 1e5), ("inf", np.inf), ("-Infinity", -np.inf),
        ("+INF", np.inf), ("NaN", np.nan), ("-nan", np.nan),
    ],
)  # fmt: skip
def test_a_number_is_read_in_every_place_and_field(layout, word, value):
    body = FILES[layout]
    assert np.array_equal(
        read(f"{layout} real general", body.format(word, "3")), [[value], [3]], equal_nan=True
    )
    assert np.array_equal(
        read(f"{layout} real general", body.format("3", word)), [[3], [value]], equal_nan=True
    )
    found = read(f"{layout} complex general", body.format(f"{word} 2", f"2 {word}"))
    assert np.array_equal(found.real.ravel(), [value, 2], equal_nan=True)
    assert np.array_equal(found.imag.ravel(), [2, value], equal_nan=True)


@pytest.mark.parametrize("layout", FILES)
@pytest.mark.parametrize("field", ["real", "complex"])
@pytest.mark.parametrize(
    "word",
    ["5.0f", "1.0.0", "1e5e5", "5e", "5-", "5+3", "1.5-10", "1.5-1000", "15-100", "1.5e", "1.5e+",
     "1_0", "0x10", ".", "-", "+", "--5", "-+5", "e5", ".e5", "1,5", "nanx", "in", "infi", "1d5d5",
     "1.5-100e2", "%", "1;", "\0", "1\0", "٣"],
)  # fmt: skip
def test_a_word_that_is_no_number_is_refused_with_its_line(layout, field, word):
    body = FILES[layout]
    other = "3" if field == "real" else "3 4"
    words = [word] if field == "real" else [f"{word} 4", f"4 {word}", word]
    for given in words:
        with pytest.raises(InvalidMatrix, match="line 3: expected"):
            read(f"{layout} {field} general", body.format(given, other))
        with pytest.raises(InvalidMatrix, match="line 4: expected"):
            read(f"{layout} {field} general", body.format(other, given))


@pytest.mark.parametrize("layout", FILES)
@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("real", "5", ["5 6", "5 1 2 9", "5 x"]),
        ("integer", "5", ["5 6", "5.0", "5e3", "nan", "2.5", "-"]),
        ("unsigned-integer", "5", ["5 6", "-5", "5.0"]),
        ("complex", "5 6", ["5", "5 6 7", "5 6 x"]),
    ],
)
def test_each_line_has_the_numbers_of_its_field(layout, field, good, bad):
    body = FILES[layout]
    assert read(f"{layout} {field} general", body.format(good, good))[1, 0] in (5, 5 + 6j)
    for word in bad:
        for line, words in ((3, (word, good)), (4, (good, word))):
            with pytest.raises(InvalidMatrix, match=f"line {line}: expected"):
                read(f"{layout} {field} general", body.format(*words))


def test_a_pattern_has_places_alone():
    assert np.array_equal(read("coordinate pattern general", "2 2 2\n1 1\n2 2\n"), np.eye(2))
    with pytest.raises(InvalidMatrix, match="line 4: expected a row, a column, got '2 2 6'"):
        read("coordinate pattern general", "2 2 2\n1 1\n2 2 6\n")


@pytest.mark.parametrize("place", ["+1 1", "-1 1", "1.0 1", "1e0 1", "1,1", "1", "1_0 1", "x 1"])
def test_a_place_is_two_unsigned_integers(place):
    with pytest.raises(InvalidMatrix, match="line 4"):
        read("coordinate real general", f"2 2 2\n1 1 1\n{place} 5\n")


@pytest.mark.parametrize("place", ["0 1", "3 1", "1 3", "4294967297 1", "1 18446744073709551617"])
def test_a_place_is_within_the_shape(place):
    with pytest.raises(InvalidMatrix, match="line 4"):
        read("coordinate real general", f"2 2 2\n1 1 1\n{place} 5\n")


@pytest.mark.parametrize(
    ("field", "number"),
    [("integer", "9223372036854775808"), ("integer", "-9223372036854775809"),
     ("unsigned-integer", "18446744073709551616"), ("integer", "9" * 30)],
)  # fmt: skip
def test_an_integer_beyond_64_bits_is_refused(field, number):
    with pytest.raises(InvalidMatrix, match="line 3: Integer out of range"):
        read(f"coordinate {field} general", f"1 1 1\n1 1 {number}\n")


@pytest.mark.parametrize(
    "sizes", ["1,1,1", "+1 1 1", "1_0 1 1", "1 1 1 1", "1 1 1.0", "1 1", "-1 1 1"]
)
def test_sizes_are_unsigned_integers(sizes):
    with pytest.raises(InvalidMatrix, match="line 2: expected 3 sizes"):
        read("coordinate real general", f"{sizes}\n1 1 5\n")


def test_blank_lines_and_ends_of_lines_of_any_system_are_read():
    body = "% one\n\n%two\n2 2 2\n\n1 1 5\n \t \n\t2  2\t6 \n\n\n"
    for text in (body, body.replace("\n", "\r\n"), body.rstrip()):
        assert np.array_equal(read("coordinate real general", text), np.diag([5, 6]))
    many = "2 2 2\n1 1 5\n" + "\n" * 300_000 + "2 2 6\n"
    assert np.array_equal(read("coordinate real general", many), np.diag([5, 6]))


def test_a_comment_between_entries_is_refused_with_its_line():
    with pytest.raises(InvalidMatrix, match="line 4: expected a row"):
        read("coordinate real general", "2 2 2\n1 1 5\n% comment\n2 2 6\n")


def test_the_banner_of_an_open_file_may_have_letters_of_any_case(tmp_path):
    content = b"%%MATRIXMARKET MATRIX COORDINATE REAL GENERAL\n1 1 1\n1 1 5\n"
    assert wl.read(io.BytesIO(content)).to_dense() == 5
    assert wl.read(io.StringIO(content.decode().lower())).to_dense() == 5
    (tmp_path / "a.mtx").write_bytes(content)
    assert wl.read(tmp_path / "a.mtx").to_dense() == 5


# ---- symmetries


@pytest.mark.parametrize(
    ("banner", "body", "expectation"),
    [
        ("coordinate complex hermitian", "2 2 2\n2 1 1 1\n1 1 1 0.5\n", "real"),
        ("coordinate complex hermitian", "1 1 1\n1 1 1 nan\n", "real"),
        ("array complex hermitian", "2 2\n1 0\n1 1\n2 1e-300\n", "real"),
        ("coordinate real skew-symmetric", "2 2 2\n2 1 1\n2 2 1e-300\n", "zero"),
        ("coordinate integer skew-symmetric", "2 2 1\n2 2 -1\n", "zero"),
        ("coordinate complex skew-symmetric", "2 2 1\n2 2 0 1\n", "zero"),
        ("coordinate pattern skew-symmetric", "2 2 1\n2 2\n", "zero"),
    ],
)
def test_a_diagonal_that_the_symmetry_excludes_is_refused(banner, body, expectation):
    with pytest.raises(InvalidMatrix, match=f"line 2: .* its diagonal is {expectation}; got"):
        read(banner, body)


def test_a_diagonal_that_the_symmetry_allows_is_read():
    found = read("coordinate complex hermitian", "2 2 2\n2 1 1 1\n1 1 1 0\n")
    assert np.array_equal(found, [[1, 1 - 1j], [1 + 1j, 0]])
    found = read("coordinate real skew-symmetric", "2 2 2\n2 1 1\n2 2 0\n")
    assert np.array_equal(found, [[0, -1], [1, 0]])
    assert np.array_equal(read("array real skew-symmetric", "2 2\n3\n"), [[0, -3], [3, 0]])
    assert np.array_equal(read("coordinate real hermitian", "1 1 1\n1 1 3\n"), [[3]])


# ---- pruned layers


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("2, 3, 3\n0 2 3\n0 2 1\n5\n", "line 4: expected the end"),
        ("2, 3, 3\n0 2 3\n0 2 1_0\n", "line 3"),
        ("2, 3, 3\n0 2 3\n0 2 +1\n", "line 3"),
        ("2, 3, 3\n0 2 3\n0 2 1.0\n", "line 3"),
        ("2, 3, 3\n0 2 3 3\n0 2 1\n", "line 2"),
        ("2, 3_0, 3\n0 2 3\n0 2 1\n", "line 1"),
        ("2, 3, 3, 1\n0 2 3\n0 2 1\n", "line 1"),
    ],
)
def test_more_than_a_pruned_layer_is_refused(text, place):
    with pytest.raises(InvalidMatrix, match=place):
        wl.read(io.BytesIO(text.encode()))


def test_blank_lines_may_follow_a_pruned_layer():
    found = wl.read(io.BytesIO(b"2, 3, 3\r\n0 2 3\r\n0 2 1\r\n\r\n"))
    assert np.array_equal(found.to_dense(), [[1, 0, 1], [0, 1, 0]])


# ---- the grammar


def test_the_first_wrong_line_is_found_in_a_piece_of_many():
    good = b"1 1 2.5\n" * 5000
    with pytest.raises(WrongLine) as caught:
        Grammar("coordinate", "real").checked(good + b"1 1 2.5.5\n" + good)
    assert caught.value.before == len(good)


def test_long_words_take_linear_time():
    word = b"1" * 60_000
    for line in (word + b"\n", word + b"x\n", b"." + word + b".\n", b"1." + word + b"-\n"):
        with contextlib.suppress(WrongLine):
            Grammar("array", "real").checked(line)
