"""Open, compressed, huge and malformed files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument, InvalidMatrix

COORDINATE = "%%MatrixMarket matrix coordinate real general\n"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
FORMATS = ("csr", "csc", "coo", "ell", "sellp", "hybrid", "bsr", "dense")


@pytest.fixture(autouse=True)
def on_reference() -> Iterator[None]:
    with wl.default_executor("reference"):
        yield


@pytest.fixture
def S(rng: np.random.Generator) -> Any:
    return sp.random_array((9, 7), density=0.3, rng=rng).tocsr()


class Trickle:
    """A file with short reads: no seeking, and few bytes at a time."""

    def __init__(self, content: bytes, step: int = 5) -> None:
        self._content, self._step = io.BytesIO(content), step

    def read(self, size: int = -1) -> bytes:
        return self._content.read(self._step if size < 0 else min(size, self._step))


def text(body: str, layout: str = "coordinate real general") -> io.BytesIO:
    return io.BytesIO(f"%%MatrixMarket matrix {layout}\n{body}".encode())


# ---- open files


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("kind", ["mtx", "npz", "npy", "smtx"])
def test_an_open_file_is_told_by_its_content(tmp_path, S, kind, compression):
    path = tmp_path / f"a.{kind}"
    if kind == "smtx":
        path.write_text("2, 3, 3\n0 2 3\n0 2 1\n")
        expected = np.array([[1, 0, 1], [0, 1, 0]])
    else:
        expected = S.toarray()
        wl.write(path, expected if kind == "npy" else wl.Csr(S))
    content = COMPRESS[compression](path.read_bytes())
    if compression and kind in ("npz", "npy"):
        with pytest.raises(InvalidMatrix, match="unknown kind of file"):
            wl.read(io.BytesIO(content))
        return
    for file in (io.BytesIO(content), Trickle(content), Trickle(content, 1)):
        assert np.array_equal(wl.read(file).to_dense(), expected)
    assert np.array_equal(wl.io.read_vector(io.BytesIO(content)), expected)
    path.write_bytes(content)
    with path.open("rb") as file:
        assert np.array_equal(wl.read(file).to_dense(), expected)
        assert not file.closed


def test_an_open_file_is_read_from_where_it_is(S):
    buffer = io.BytesIO()
    buffer.write(b"something before\n")
    start = buffer.tell()
    buffer.write(COORDINATE.encode() + b"1 2 1\n1 2 5\n")
    buffer.seek(start)
    assert wl.read(buffer).to_dense().tolist() == [[0.0, 5.0]]


def test_text_is_taken_for_bytes():
    assert wl.read(io.StringIO(COORDINATE + "1 1 1\n1 1 5\n")).to_dense().tolist() == [[5.0]]


@pytest.mark.parametrize("content", [b"", b"hello", b"%%Matrix", gzip.compress(b"", mtime=0)])
def test_an_open_file_of_no_known_kind_is_named(content):
    with pytest.raises(InvalidMatrix, match=r"<BytesIO>: unknown kind of file.*\.mtx"):
        wl.read(io.BytesIO(content))


def test_what_is_no_file_is_refused():
    for nothing in (3, None, [1, 2]):
        with pytest.raises(InvalidArgument, match="expected a path or a file"):
            wl.read(nothing)  # type: ignore[arg-type]

    class Strange:
        def read(self, size: int = -1) -> object:
            return 3

    with pytest.raises(InvalidArgument, match="returned int"):
        wl.read(Strange())  # type: ignore[arg-type]


def test_errors_of_the_file_itself_are_handed_on():
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            given = super().read(size)
            if not given:
                raise OSError(5, "Input/output error")
            return given

    for content in (b"%%Matr", COORDINATE.encode(), COORDINATE.encode() + b"2 2 2\n1 1 1\n"):
        with pytest.raises(OSError, match="Input/output"):
            wl.read(Broken(content))


def test_ctrl_c_while_a_file_is_read_is_ctrl_c():
    class Interrupted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            given = super().read(size)
            if not given:
                raise KeyboardInterrupt
            return given

    with pytest.raises(KeyboardInterrupt):
        wl.read(Interrupted(COORDINATE.encode() + b"2 2 2\n1 1 1\n"))


# ---- compression


@pytest.mark.parametrize("compression", COMPRESS)
def test_compressed_files_are_written_and_read(tmp_path, S, compression):
    path = tmp_path / f"a.mtx{compression}"
    wl.write(path, wl.Csr(S))
    assert path.read_bytes().startswith(COMPRESS[compression](b"%%MatrixMarket")[:2])
    assert np.array_equal(wl.read(path).to_dense(), S.toarray())


@pytest.mark.parametrize("compression", [".gz", ".bz2", ".xz"])
def test_files_of_several_streams_are_read_whole(tmp_path, compression):
    compress = COMPRESS[compression]
    path = tmp_path / f"a.mtx{compression}"
    path.write_bytes(compress(COORDINATE.encode() + b"1 2 2\n1 1") + compress(b" 3\n1 2 4\n"))
    assert wl.read(path).to_dense().tolist() == [[3.0, 4.0]]


# ---- formats


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["a.mtx", "a.npz", "a.npy"])
def test_any_format_is_read(tmp_path, S, name, format):
    wl.write(tmp_path / name, S.toarray() if name == "a.npy" else wl.Csr(S))
    A = wl.read(tmp_path / name, format=format)
    assert A.format == format
    assert np.array_equal(A.to_dense(), S.toarray())


def test_an_unknown_format_is_refused_before_the_file_is_opened(tmp_path):
    with pytest.raises(InvalidArgument, match="expected None or one of bsr, coo"):
        wl.read(tmp_path / "none.mtx", format="csx")


def test_entries_of_one_place_add_up_but_in_coordinates():
    body = "2 2 3\n2 1 1\n1 1 5\n2 1 2\n"
    assert wl.read(text(body)).nnz == 2
    A = wl.read(text(body), format="coo")
    assert A.data.tolist() == [5, 1, 2]
    assert wl.read(text(body)).to_dense().tolist() == A.to_dense().tolist() == [[5, 0], [3, 0]]


@pytest.mark.parametrize("scipy_format", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("is_array", [True, False])
def test_every_format_of_scipy_is_read(tmp_path, rng, scipy_format, is_array):
    S = sp.diags_array([[1.0, 2.0, 3.0, 5.0], [4.0, 0.0]], offsets=[0, -2], shape=(4, 6))
    S = S.asformat(scipy_format)
    sp.save_npz(tmp_path / "a.npz", S if is_array else getattr(sp, f"{scipy_format}_matrix")(S))
    assert np.array_equal(wl.read(tmp_path / "a.npz").to_dense(), S.toarray())
    assert np.array_equal(wl.io.read_vector(tmp_path / "a.npz"), S.toarray())


# errors that ended the process


GOOD = {
    "csr": {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2])},
    "csc": {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2])},
    "bsr": {
        "data": np.ones((2, 1, 1)),
        "indices": np.array([0, 1]),
        "indptr": np.array([0, 1, 2]),
    },
    "coo": {"data": np.ones(2), "row": np.array([0, 1]), "col": np.array([0, 1])},
    "dia": {"data": np.ones((1, 2)), "offsets": np.array([0])},
}
BAD = [
    np.array([0, 2]),
    np.array([0, -1]),
    np.array([0, 1 << 40]),
    np.array([0.5, 1]),
    np.ones(3),
    np.ones((2, 2), int),
    np.array([b"a", b"b"]),
    np.array([1 + 1j, 0]),
    np.array(1),
]


@pytest.mark.parametrize("function", [wl.read, wl.io.read_vector])
@pytest.mark.parametrize("format", GOOD)
def test_an_archive_with_wrong_arrays_is_refused(tmp_path, format, function):
    good = {"format": format.encode(), "shape": np.array([2, 2])} | GOOD[format]
    path = tmp_path / "a.npz"
    np.savez(path, **good)
    assert function(path).shape == (2, 2)
    for name in sorted(GOOD[format].keys() - {"data"}):
        for bad in BAD:
            np.savez(path, **good | {name: bad})
            with pytest.raises(InvalidMatrix, match=r"a\.npz"):
                function(path)
    for shape in ([2], [-1, 2], [2.0, 2.0], [b"a", b"b"], [1 << 62, 2]):
        np.savez(path, **good | {"shape": np.array(shape)})
        with pytest.raises(InvalidMatrix, match=r"a\.npz"):
            function(path)


@pytest.mark.parametrize("format", ["csr", "csc", "bsr", "coo"])
def test_an_archive_with_a_smaller_shape_is_refused(tmp_path, format):
    arrays = {"format": format.encode(), "shape": np.array([1, 1])} | GOOD[format]
    np.savez(tmp_path / "a.npz", **arrays)
    for function in (wl.read, wl.io.read_vector):
        with pytest.raises(InvalidMatrix, match=r"a\.npz"):
            function(tmp_path / "a.npz")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("ending", [".mtx", ".mtx.gz", ".npy"])
def test_arrays_without_entries_come_back(tmp_path, shape, ending):
    wl.write(tmp_path / f"a{ending}", np.zeros(shape))
    assert wl.read(tmp_path / f"a{ending}").shape == shape


@pytest.mark.parametrize(
    ("layout", "body", "says"),
    [
        ("array real general", "0 3\n1\n", "line 3"),
        ("array real symmetric", "0 0\n1\n", "line 3"),
        ("array real skew-symmetric", "1 1\n1\n", "line 3"),
        ("array pattern general", "1 1\n1\n", "line 1: an array has values"),
        ("coordinate real general", "0 3 1\n1 1 1\n", "line 2: 0 x 3 cannot hold 1 entries"),
        ("coordinate real general", "2 2 0\n1 1 1\n", "line 3"),
        ("coordinate real general", "2 2 2\n1 1 1\n", "truncated.* line 2 announces 2 entries"),
        ("coordinate real general", "2 2 1\n1 1 1 5\n", "line 3: expected a row, a column"),
        ("coordinate real general", "2 2 2\n1 1 1\n2 2\n", "line 4"),
        ("coordinate real general", "%\n\n2 2 2\n1 1 1\n2 2 1;\n", "line 6: expected a row"),
        ("coordinate real general", "2 2 2\n9 9 9\n2 2 1;\n", "line 3: Row index out of bounds"),
        ("coordinate real general", "2 2 1\n" + "1" * 70_000, "line 3: is longer than 65536"),
        ("coordinate real general", "9" * 70_000 + " 2 1\n", "line 2: is longer"),
        ("coordinate real general", "9" * 5_000 + " 2 1\n1 1 1\n", "line 2: expected 3 sizes"),
        ("array unsigned-integer skew-symmetric", "2 2\n1\n", "unsigned"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_text_is_named_with_its_line(layout, body, says):
    for file in (text(body, layout), io.BytesIO(gzip.compress(text(body, layout).getvalue()))):
        with pytest.raises(InvalidMatrix, match=says):
            wl.read(file)


def contents(folder: Path) -> dict[str, bytes]:
    """Return small valid files of every kind, by their endings."""
    S = sp.csr_array(np.array([[1.5, 0, 2], [0, -3, 0]]))
    found = {"smtx": b"2, 3, 3\n0 2 3\n0 2 1\n"}
    for name, matrix in {"mtx": S, "npz": S, "npy": S.toarray()}.items():
        wl.write(folder / f"a.{name}", matrix)
        found[name] = (folder / f"a.{name}").read_bytes()
    for compression in (".gz", ".bz2", ".xz"):
        for kind in ("mtx", "smtx"):
            found[kind + compression] = COMPRESS[compression](found[kind])
    return found


def test_a_file_that_ends_anywhere_is_named(tmp_path):
    for ending, content in contents(tmp_path).items():
        path = tmp_path / f"cut.{ending}"
        whole = None
        step = 1 if len(content) < 400 else 7
        for size in range(len(content), -1, -step):
            path.write_bytes(content[:size])
            for function in (wl.read, wl.io.read_vector):
                try:
                    got = function(path)
                except InvalidMatrix as error:
                    assert str(path) in str(error)
                else:
                    # the end of the last line, or a shorter last number, is all that may lack
                    whole = got.shape if whole is None else whole
                    assert got.shape == whole
