"""Every changed file is read, or it is named in an InvalidMatrix."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.errors import InvalidMatrix

from .batch import Target

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda content: gzip.compress(content, 1, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lambda content: lzma.compress(content, preset=0),
}
FORMATS = (None, "csr", "csc", "coo", "ell", "sellp", "hybrid", "bsr", "dense")

#: Rows and columns up to which a matrix is multiplied, which makes dense vectors.
SMALL = 1 << 16


class Example(NamedTuple):
    """A file, its changes, and the way it is read."""

    ending: str
    compression: str
    content: bytes
    format: str | None
    is_open: bool


# ---- valid files


def _texts() -> Iterator[tuple[str, bytes]]:
    numbers = {"real": "-2.5e-3", "integer": "-7", "complex": "1.5 -2", "pattern": "",
               "unsigned-integer": "7", "double": "1.0D+3"}  # fmt: skip
    for field, number in numbers.items():
        for symmetry in ("general", "symmetric", "skew-symmetric", "hermitian"):
            diagonal = 3 if symmetry in ("general", "symmetric") else 2
            places = ((2, 1), (3, 1), (3, diagonal), (3, 2))
            entries = "".join(f"{i} {j} {number}\n" for i, j in places)
            head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% remark\n\n"
            yield ".mtx", f"{head}3 3 4\n{entries}".encode()
            count = {"general": 4, "skew-symmetric": 1}.get(symmetry, 3)
            if (field, symmetry) == ("complex", "hermitian"):
                continue
            head = f"%%MatrixMarket matrix array {field} {symmetry}\n"
            yield ".mtx", (f"{head}2 2\n" + f"{number}\n" * count).encode()
    for sizes in ("0 3", "3 0", "0 0"):
        yield ".mtx", f"%%MatrixMarket matrix array real general\n{sizes}\n".encode()
        yield ".mtx", f"%%MatrixMarket matrix coordinate real general\n{sizes} 0\n".encode()
    yield ".smtx", b"3, 4, 5\n0 2 2 5\n0 3 1 2 3\n"
    yield ".smtx", b"1, 3, 0\n0 0\n"
    for kind in (b"RUA", b"RSA", b"CHA", b"PZA"):
        values = b"" if kind[:1] == b"P" else b" 1.5E+00 0.0E+00-2.0E+00 0.0E+00\n"
        head = b"title\n 3 1 1 1\n" + kind + b" 3 3 2 0\n(4I3) (4I3) (1P,4E8.1)\n"
        yield ".rb", head + b"  1  2  3  3\n  2  3\n" + values


def _members(S: Any) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    """Return the arrays of a .npz of SciPy's."""
    buffer = io.BytesIO()
    sp.save_npz(buffer, S)
    buffer.seek(0)
    with np.load(buffer) as loaded:
        return {name: loaded[name] for name in loaded.files}


@cache
def texts() -> list[tuple[str, bytes]]:
    """Return valid files of text by their endings."""
    return list(_texts())


@cache
def archives() -> list[dict[str, np.ndarray]]:  # type: ignore[type-arg]
    """Return the arrays of valid archives."""
    S = sp.csr_array(np.array([[1.5, 0, 2, 0], [0, 0, -3, 1], [0, 0, 0, 0], [4, 5, 6, 7]]))
    made = [_members(S.asformat(format)) for format in ("csr", "csc", "coo", "bsr", "dia")]
    for dtype in ("int8", "float32", "complex64", ">f8", "bool"):
        made.append(
            _members(S.astype(dtype))
            if dtype != ">f8"
            else made[0] | {"data": made[0]["data"].astype(dtype)}
        )
    return made


@cache
def arrays() -> list[np.ndarray]:  # type: ignore[type-arg]
    """Return valid arrays of .npy files."""
    square = np.arange(6.0).reshape(2, 3)
    return [square, np.asfortranarray(square), square[:, 0], square.astype(">i2"), square[:0],
            square + 1j, np.arange(3, dtype=np.uint64), np.array([True, False])]  # fmt: skip


# changes

_INTERESTING = (b"9999999999", b"-1", b"0", b"-", b"\n", b"\r", b" ", b"%", b"nan", b"1e999", b".5",
                b"inf", b"2147483648", b"9223372036854775807", b"18446744073709551616", b"\0",
                b"\xff", b"1 1 1\n", b"D+400", b"0x1", b",")  # fmt: skip


def changes() -> st.SearchStrategy[list[tuple[str, float, bytes]]]:
    """Return strategies of changes: kind, position (0 to 1), bytes."""
    what = st.one_of(st.binary(min_size=1, max_size=4), st.sampled_from(_INTERESTING))
    how = st.sampled_from(("replace", "insert", "cut", "drop", "double", "number"))
    return st.lists(st.tuples(how, st.floats(0, 1), what), max_size=4)


def changed(content: bytes, wanted: list[tuple[str, float, bytes]]) -> bytes:
    """Return content after the changes."""
    for how, where, what in wanted:
        at = int(where * len(content))
        if how == "replace":
            content = content[:at] + what + content[at + len(what) :]
        elif how == "insert":
            content = content[:at] + what + content[at:]
        elif how == "cut":
            content = content[:at]
        elif how == "drop":
            content = content[:at] + content[at + len(what) :]
        elif how == "double":
            content = content[:at] + content[at // 2 :]
        else:  # instead of the next number
            start = next((i for i in range(at, len(content)) if content[i : i + 1].isdigit()), at)
            end = start
            while content[end : end + 1].isdigit():
                end += 1
            content = content[:start] + what + content[end:]
    return content


@st.composite
def text_examples(draw: st.DrawFn) -> Example:
    """Return texts, changed before and after they were compressed."""
    ending, content = draw(st.sampled_from(texts()))
    compression = draw(st.sampled_from(("", "", *COMPRESS)))
    content = COMPRESS[compression](changed(content, draw(changes())))
    if compression and draw(st.booleans()):
        content = changed(content, draw(changes()))
    return Example(
        ending, compression, content, draw(st.sampled_from(FORMATS)), draw(st.booleans())
    )


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


@st.composite
def array_examples(draw: st.DrawFn) -> Example:
    """Return changed .npy files."""
    content = changed(_npy(draw(st.sampled_from(arrays()))), draw(changes()))
    return Example(".npy", "", content, draw(st.sampled_from(FORMATS)), draw(st.booleans()))


_NUMBERS = st.one_of(
    st.integers(-3, 9), st.sampled_from((1 << 31, (1 << 63) - 1, -(1 << 63), 1 << 40))
)
_STRANGE = st.one_of(
    st.lists(_NUMBERS, max_size=6).map(lambda v: np.array(v, np.int64)),
    st.lists(st.integers(0, 4), max_size=6).map(lambda v: np.array(v, np.int32)),
    st.lists(st.integers(0, 9), max_size=6).map(lambda v: np.array(v, np.uint8)),
    st.lists(st.floats(width=32), max_size=6).map(lambda v: np.array(v, np.float32)),
    st.sampled_from((np.array(1), np.zeros((2, 2)), np.array(b"csr"), np.array("bsr"),
                     np.zeros((0, 3)), np.array([b"x"]), np.zeros((2, 1, 1)), np.array([2, 2]))),
)  # fmt: skip


@st.composite
def archive_examples(draw: st.DrawFn) -> Example:
    """Return archives with changed arrays, changed bytes of arrays, or of the archive."""
    members = dict(draw(st.sampled_from(archives())))
    for name in draw(st.lists(st.sampled_from(sorted(members)), max_size=2)):
        if draw(st.booleans()):
            members.pop(name, None)
        if draw(st.booleans()):
            members[name] = draw(_STRANGE)
        elif name in members and members[name].ndim == 1 and members[name].size:
            array = members[name].copy()
            if array.dtype.kind in "iu":
                number = draw(_NUMBERS)
                with np.errstate(all="ignore"):
                    array[draw(st.integers(0, array.size - 1))] = np.array(number).astype(
                        array.dtype
                    )
            members[name] = array
    buffer = io.BytesIO()
    method = draw(st.sampled_from((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    damaged = draw(st.sampled_from((*members, "")))
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, array in members.items():
            content = _npy(array)
            archive.writestr(
                zipfile.ZipInfo(f"{name}.npy"),
                changed(content, draw(changes())) if name == damaged else content,
            )
    content = buffer.getvalue()
    if draw(st.integers(0, 3)) == 0:
        content = changed(content, draw(changes()))
    return Example(".npz", "", content, draw(st.sampled_from(FORMATS)), draw(st.booleans()))


# properties


def check(example: Example, folder: Path) -> None:
    """Read a file in both ways."""
    path = folder / f"a{example.ending}{example.compression}"
    path.write_bytes(example.content)
    for function in (lambda file: wl.read(file, format=example.format), wl.io.read_vector):
        file: Any = io.BytesIO(example.content) if example.is_open else path
        try:
            found = function(file)
        except (InvalidMatrix, wl.errors.OutOfDeviceMemory) as error:
            assert str(error).startswith("<BytesIO>" if example.is_open else str(path))
        else:
            if isinstance(found, wl.Matrix):
                _use(found, example)


def _use(A: wl.Matrix, example: Example) -> None:
    assert example.format in (None, A.format)
    assert A.nnz <= A.shape[0] * A.shape[1] or A.nnz <= len(example.content) * 1032
    if max(A.shape) <= SMALL:
        assert (A @ np.ones(A.shape[1])).shape == (A.shape[0],)


TARGET = Target("files", st.one_of(text_examples(), archive_examples(), array_examples()), check)
