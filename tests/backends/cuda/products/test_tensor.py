"""spmm on tensor cores, by the names of its kernels, against products in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.errors import InvalidArgument

from ... import needs

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("published_algorithms")]

#: Of the sum of the absolute values of all terms.
MOST = {"float32": 1e-6, "float16": 2.0**-10, "bfloat16": 2.0**-7, "tf32": 2.0**-9}


@pytest.fixture(scope="module")
def cuda() -> wl.Executor:
    return needs.cuda()


@pytest.fixture(scope="module")
def hopper(cuda: wl.Executor) -> wl.Executor:
    return needs.hopper()


def dtype_called(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        return np.dtype(needs.package("ml_dtypes").bfloat16)
    return np.dtype(name)


def uniform(rng: Any, m: int, n: int, density: float, dtype: Any, index: str = "int32") -> Any:
    """Return a matrix on the host with unsorted rows and no duplicates."""
    mask = rng.random((m, n)) < density
    rows = [rng.permutation(np.flatnonzero(row)) for row in mask]
    indptr = np.cumsum([0, *(row.size for row in rows)]).astype(index)
    indices = np.concatenate([np.empty(0, int), *rows]).astype(index)
    data = rng.standard_normal(indices.size).astype(dtype)
    return wl.Csr((data, indices, indptr), shape=(m, n), executor="reference")


def reference(A: Any, B: Any, data: Any = None) -> tuple[Any, Any]:
    """Return the product in float64, and that of absolute values."""
    m, n = A.shape
    D = np.zeros((m, n))
    data = A.data if data is None else data
    D[np.repeat(np.arange(m), np.diff(A.indptr)), A.indices] = data.astype(np.float64)
    B = np.asarray(B).astype(np.float64)
    return D @ B, np.abs(D) @ np.abs(B)


def assert_near(got: Any, want: Any, size: Any, most: float) -> None:
    least = 2.0**-24 if got.dtype.name == "float16" else 2.0**-149  # steps of subnormal numbers
    error = np.abs(np.asarray(got).astype(np.float64) - want)
    assert (error <= most * size + least).all(), (error / np.maximum(size, 1e-300)).max()


CASES = {
    "m": st.integers(1, 200),
    "n": st.integers(0, 300),
    "k": st.sampled_from([1, 5, 16, 31, 32, 33, 64, 100, 128, 150, 257]),
    "density": st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    "index": st.sampled_from(["int32", "int64"]),
    "alpha": st.sampled_from([1.0, -0.75]),
    "beta": st.sampled_from([0.0, 0.5]),
    "seed": st.integers(0, 2**20),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@settings(max_examples=40)
@given(**CASES)
def test_tensor_cores_equal_the_dense_product(
    hopper, dtype, m, n, k, density, index, alpha, beta, seed
) -> None:
    check(hopper, "tensor-cores", dtype, m, n, k, density, index, alpha, beta, seed)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "tf32"])
@settings(max_examples=40)
@given(**CASES)
def test_tca_equals_the_dense_product(
    cuda, dtype, m, n, k, density, index, alpha, beta, seed
) -> None:
    kernel = "tca-tf32" if dtype == "tf32" else "tca"
    check(cuda, kernel, dtype, m, n, k, density, index, alpha, beta, seed)


def check(executor, kernel, dtype, m, n, k, density, index, alpha, beta, seed) -> None:
    rng, T = np.random.default_rng(seed), dtype_called("float32" if dtype == "tf32" else dtype)
    A = uniform(rng, m, n, density, T, index)
    B = rng.standard_normal((n, k + 3)).astype(T)[:, :k]
    out = rng.standard_normal((m, k)).astype(T)
    want, size = reference(A, B)
    start = out.astype(np.float64)
    if beta == 0:
        out[...], start = np.nan, np.zeros((m, k))
    want, size = alpha * want + beta * start, abs(alpha) * size + beta * np.abs(start)
    got = wl.spmm(A.to(executor), B, out=out, alpha=alpha, beta=beta, kernel=kernel)
    assert_near(got, want, size, MOST[dtype])


@pytest.mark.parametrize("k", [32, 128])
def test_sums_of_many_terms_keep_their_precision(hopper: wl.Executor, k: int) -> None:
    rng = np.random.default_rng(k)
    A = uniform(rng, 256, 8192, 0.3, np.float32)
    B = rng.standard_normal((8192, k)).astype(np.float32)
    want, size = reference(A, B)
    on = A.to(hopper)
    got = wl.spmm(on, B, kernel="tensor-cores")
    assert_near(got, want, size, 1e-6)
    assert np.linalg.norm(got - want) < 1e-6 * np.linalg.norm(want)
    np.testing.assert_array_equal(got, wl.spmm(on, B, kernel="tensor-cores"))


FACTORS = {
    "as they are": (0, 0),
    "tiny": (-30, 0),
    "tiny and huge": (-30, 30),
    "huge and tiny": (30, -30),
    "subnormal values": (-40, 5),
    "subnormal operand": (5, -40),
    "both huge": (15, 18),
}


@pytest.mark.parametrize("factors", FACTORS)
def test_powers_of_ten_do_not_matter(hopper: wl.Executor, factors: str) -> None:
    rng = np.random.default_rng(1)
    A = uniform(rng, 130, 500, 0.2, np.float64)
    values, operand = FACTORS[factors]
    data = (A.data * 10.0**values).astype(np.float32)
    A = wl.Csr((data, A.indices, A.indptr), shape=A.shape, executor="reference")
    B = (rng.standard_normal((500, 40)) * 10.0**operand).astype(np.float32)
    assert_near(wl.spmm(A.to(hopper), B, kernel="tensor-cores"), *reference(A, B), 1e-6)


@pytest.mark.parametrize("where", ["rows", "columns", "entries", "rows of B", "all of B"])
def test_ranges_of_sixty_powers_of_ten(hopper: wl.Executor, where: str) -> None:
    rng = np.random.default_rng(2)
    A = uniform(rng, 130, 500, 0.2, np.float64)
    B, data = rng.standard_normal((500, 40)), A.data
    some = lambda *shape: 10.0 ** rng.uniform(-30, 30, shape)  # noqa: E731
    if where == "rows":
        data = data * np.repeat(some(130), np.diff(A.indptr))
    elif where == "entries":
        data = data * some(data.size)
    else:
        B *= {"columns": some(40), "rows of B": some(500, 1), "all of B": some(500, 40)}[where]
    data, B = (data * 1e-4).astype(np.float32), (B * 1e-4).astype(np.float32)
    A = wl.Csr((data, A.indices, A.indptr), shape=A.shape, executor="reference")
    assert_near(wl.spmm(A.to(hopper), B, kernel="tensor-cores"), *reference(A, B), 1e-6)


KERNELS = [
    ("tensor-cores", "float32"),
    ("tensor-cores", "float16"),
    ("tca", "float16"),
    ("tca-tf32", "float32"),
]


@pytest.mark.parametrize(("kernel", "dtype"), KERNELS)
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", ["values", "operand"])
def test_infinity_and_nan_stay_where_they_are(hopper, kernel, dtype, special, place) -> None:
    rng = np.random.default_rng(3)
    A = uniform(rng, 100, 200, 0.2, np.dtype(dtype))
    B = rng.standard_normal((200, 40)).astype(dtype)
    if place == "values":
        A.data[[3, 700]] = special
    else:
        B[[5, 6, 190], [3, 39, 3]] = special
    got = wl.spmm(A.to(hopper), B, kernel=kernel)
    with np.errstate(invalid="ignore"):
        want = np.asarray(wl.spmm(A, B)).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    usual = np.isfinite(want)
    np.testing.assert_allclose(got[usual], want[usual], rtol=0.02, atol=0.05)


def test_a_batch_is_its_blocks_one_by_one(hopper: wl.Executor) -> None:
    rng = np.random.default_rng(4)
    A = uniform(rng, 100, 200, 0.2, np.float32).to(hopper)
    B = rng.standard_normal((3, 200, 40)).astype(np.float32)
    values = rng.standard_normal((3, A.nnz)).astype(np.float32)
    one = {"kernel": "tensor-cores"}
    for b, block in enumerate(wl.spmm(A, B, **one)):
        np.testing.assert_array_equal(block, wl.spmm(A, B[b], **one))
    for b, block in enumerate(wl.spmm(A, B[0], values=values, **one)):
        np.testing.assert_array_equal(block, wl.spmm(A, B[0], values=values[b], **one))


def test_new_values_are_seen(hopper: wl.Executor) -> None:
    rng = np.random.default_rng(5)
    H = uniform(rng, 100, 200, 0.2, np.float32)
    A = H.to(hopper)
    B = rng.standard_normal((200, 40)).astype(np.float32)
    first = wl.spmm(A, B, kernel="tensor-cores")
    other = wl.Csr(A)  # holds the same array of values
    wl.spmm(other, B, kernel="tensor-cores")
    A.update_values(H.data * 2)
    for matrix in (A, other):
        np.testing.assert_array_equal(wl.spmm(matrix, B, kernel="tensor-cores"), 2 * first)
    scaled = A * 2.0  # shares the pattern and not the values
    np.testing.assert_array_equal(wl.spmm(scaled, B, kernel="tensor-cores"), 4 * first)
    np.testing.assert_array_equal(wl.spmm(A, B, kernel="tensor-cores"), 2 * first)


def test_what_they_cannot_multiply_is_refused(hopper: wl.Executor) -> None:
    A = wl.Csr(np.eye(3), executor=hopper)
    B = np.ones((3, 2))
    with pytest.raises(InvalidArgument, match="float64"):
        wl.spmm(A, B, kernel="tensor-cores")
    with pytest.raises(InvalidArgument, match="tca-tf32"):
        wl.spmm(A.astype("float32"), B.astype("float32"), kernel="tca")
    twice = wl.Csr((np.ones(2, np.float32), [1, 1], [0, 2]), shape=(1, 3), executor=hopper)
    with pytest.raises(InvalidArgument, match="sum_duplicates"):
        wl.spmm(twice, B.astype("float32"), kernel="tensor-cores")
