"""Matrices of arrays that a device has: they are checked there, and stay there."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidMatrix

from ..backends.conftest import executor_names

#: The bytes that may leave the device: sums and ends, not arrays.
FEW_BYTES = 1024


@pytest.fixture(
    params=[
        "dpcpp:cpu",
        pytest.param("cuda:0", marks=pytest.mark.gpu),
    ]
)
def device(request, monkeypatch):
    """An executor with memory of its own, with a ``to_host`` that counts its copies."""
    if request.param not in executor_names():
        pytest.skip(f"{request.param} is not here")
    on = wl.executor(request.param)
    copied = []
    to_host = type(on).to_host

    def counting(self, array):
        copied.append(array.nbytes)
        return to_host(self, array)

    monkeypatch.setattr(type(on), "to_host", counting)
    on.__dict__["copied"] = copied
    yield on
    del on.__dict__["copied"]


def there(on, *arrays):
    made = tuple(on.from_host(np.ascontiguousarray(array)) for array in arrays)
    on.copied.clear()
    return made


def matrix(dtype="float64", index="int32", shape=(3000, 2000)):
    S = sp.random_array(shape, density=2e-3, rng=np.random.default_rng(3)).tocsr().astype(dtype)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    return S


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shaped", [True, False])
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_compressed_arrays_stay_on_the_device(device, format, shaped, dtype, index):
    S = matrix(dtype, index)
    S = S if format == "csr" else sp.csc_array(S.tocsc())
    arrays = there(device, S.data, S.indices.astype(index), S.indptr.astype(index))
    cls = wl.Csr if format == "csr" else wl.Csc
    A = cls(arrays, shape=S.shape if shaped else None)
    assert sum(device.copied) < FEW_BYTES
    assert A.executor is device and A.dtype == dtype and A.index_dtype == index
    made = A.to_scipy()
    made.resize(S.shape)
    assert (made != S).nnz == 0
    arrays[0][:] = 0  # the caller's
    assert (A.to_scipy().data == S.data).all()


@pytest.mark.parametrize("shaped", [True, False])
@pytest.mark.parametrize("cls", [wl.Csr, wl.Coo, wl.Csc])
def test_coordinates_are_ordered_on_the_device(device, cls, shaped):
    rng = np.random.default_rng(5)
    row, col = rng.integers(0, 300, 5000), rng.integers(0, 40, 5000)
    row[rng.random(5000) < 0.1] = 7  # a long row, and duplicates
    data = rng.integers(-5, 5, 5000).astype("float64")
    S = sp.coo_array((data, (row, col)), shape=(300, 40))
    arrays = there(device, data, row.astype("int32"), col.astype("int32"))
    A = cls((arrays[0], arrays[1:]), shape=S.shape if shaped else None)
    if device.name.startswith("cuda"):  # the other orders its rows on the host as yet
        assert sum(device.copied) < FEW_BYTES
    made = A.to_scipy().tocsr()
    made.resize(S.shape)
    assert (made != S.tocsr()).nnz == 0


def test_indices_of_two_dtypes_become_one(device):
    S = matrix()
    data, indices, indptr = there(device, S.data, S.indices, S.indptr.astype("int64"))
    A = wl.Csr((data, indices, indptr), shape=S.shape)
    assert A.index_dtype == "int64" and (A.to_scipy() != S).nnz == 0


def test_empty_matrices(device):
    for shape in ((0, 0), (3, 0), (0, 4), (3, 4)):
        data, indices, indptr = there(
            device, np.zeros(0), np.zeros(0, "int32"), np.zeros(shape[0] + 1, "int32")
        )
        assert wl.Csr((data, indices, indptr), shape=shape).shape == shape
        assert wl.Csr((data, (indices, indices)), shape=shape).nnz == 0


@pytest.mark.parametrize(
    "change, message",
    [
        ({"indices": (4, 2000)}, r"indices\[4\] = 2000 is outside of 0..1999"),
        ({"indices": (5, -1)}, r"indices\[5\] = -1 is outside"),
        ({"indptr": (0, 1)}, r"indptr\[0\] = 1, expected 0"),
        ({"indptr": (-1, 3)}, "indptr"),
        ({"indptr": (7, 10**6)}, "indptr is not increasing"),
    ],
)
def test_what_is_wrong_is_named(device, change, message):
    S = matrix()
    arrays = {"data": S.data, "indices": S.indices, "indptr": S.indptr}
    for name, (at, value) in change.items():
        arrays[name][at] = value
    with pytest.raises(InvalidMatrix, match=message):
        wl.Csr(there(device, *arrays.values()), shape=S.shape)


def test_lengths_and_coordinates_that_do_not_fit(device):
    S = matrix()
    data, indices, indptr = there(device, S.data[:-1], S.indices, S.indptr)
    with pytest.raises(InvalidMatrix, match="lengths disagree"):
        wl.Csr((data, indices, indptr), shape=S.shape)
    with pytest.raises(InvalidMatrix, match="expected 3001 numbers"):
        wl.Csr(there(device, S.data, S.indices, S.indptr[:-1]), shape=S.shape)
    data, row, col = there(device, np.ones(2), np.array([0, 3]), np.array([1, 1]))
    with pytest.raises(InvalidMatrix, match=r"row\[1\] = 3 is outside of 0..2"):
        wl.Csr((data, (row, col)), shape=(3, 3))


def test_other_dtypes_are_converted_as_ever(device):
    S = matrix()
    data, indices, indptr = there(
        device, np.arange(S.nnz), S.indices.astype("uint32"), S.indptr.astype("int16")
    )
    A = wl.Csr((data, indices, indptr), shape=S.shape)
    assert A.dtype == "int64" and (A.to_scipy().data == np.arange(S.nnz)).all()


def large_arrays(index="int32", dtype="float64"):
    """Return arrays that threads copy, of 600 rows and 700 columns."""
    lengths = np.full(600, 500)
    indices = np.tile(np.arange(700 - 500, 700), 600).astype(index)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    return np.arange(indices.size).astype(dtype), indices, indptr


@pytest.mark.parametrize("kind", [wl.Csr, wl.Csc])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int32", "int8"])
def test_large_arrays_of_the_host_are_copied(kind, index, dtype):
    data, indices, indptr = given = large_arrays(index, dtype)
    shape = (600, 700) if kind is wl.Csr else (700, 600)
    A = kind((data, indices, indptr), shape=shape, executor="omp:2")
    assert A.shape == shape and A.dtype == dtype and A.indices.dtype == index
    for ours, theirs in zip((A.data, A.indices, A.indptr), given, strict=True):
        assert np.array_equal(ours, theirs) and not np.may_share_memory(ours, theirs)


@pytest.mark.parametrize(
    "change, message",
    [
        ({1: (4, 700)}, r"indices\[4\] = 700 is outside of 0..699"),
        ({1: (299_999, -1)}, r"indices\[299999\] = -1 is outside"),
        ({2: (0, 1)}, r"indptr\[0\] = 1, expected 0"),
        ({2: (-1, 3)}, "indptr"),
        ({2: (7, 10**6)}, "indptr is not increasing"),
    ],
)
def test_what_is_wrong_in_large_arrays_of_the_host_is_named(change, message):
    arrays = large_arrays()
    for array, (at, value) in change.items():
        arrays[array][at] = value
    with pytest.raises(InvalidMatrix, match=message):
        wl.Csr(arrays, shape=(600, 700), executor="omp:2")
