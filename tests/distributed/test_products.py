"""Products of matrices that a group shares: the bits of one executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core import agreement
from wollemi.core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch
from wollemi.distributed import Parts

from .conftest import SIZES, by_rows, line, scattered


@pytest.mark.parametrize("size", SIZES)
def test_products_have_the_bits_of_one_executor(
    kind: str, size: int, matrix: Any, rng: Any
) -> None:
    n = matrix.shape[0]
    alone, A = wl.Csr(matrix, executor=kind), wl.distribute(matrix, [kind] * size)
    x, block = rng.standard_normal(n), rng.standard_normal((n, 3))
    np.testing.assert_array_equal(A @ x, alone @ x)
    np.testing.assert_array_equal(A.T @ x, by_rows(matrix.T, kind) @ x)
    np.testing.assert_array_equal(A @ block, alone @ block)
    y = rng.standard_normal(n)
    expected = alone.apply(x, y.copy(), alpha=-1.0, beta=1.0)
    np.testing.assert_array_equal(A.apply(x, y, alpha=-1.0, beta=1.0), expected)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    "partition",
    ["rows", "weights", [0, 0, 40, 40], [0, 39, 40, 40], np.arange(40) % 3, np.zeros(40, int)],
    ids=["rows", "weights", "one-member-has-all", "one-row", "round-robin", "owners-all-one"],
)
def test_any_partition_gives_the_same_product(kind: str, partition: Any, rng: Any) -> None:
    S, x = scattered(40), rng.standard_normal(40)
    alone, A = wl.Csr(S, executor=kind), wl.distribute(S, [kind] * 3, partition=partition)
    np.testing.assert_array_equal(A @ x, alone @ x)
    np.testing.assert_array_equal(A.T @ x, by_rows(S.T, kind) @ x)
    assert (abs(A.to_local() - S)).max() == 0
    # a member tells it without the others
    assert [part.nnz for part in (A, *A.members, *A.T.members)] == [S.nnz] * 7
    np.testing.assert_array_equal(A.gather(A.scatter(x)), x)


def test_metis_gives_parts_with_few_entries_between_them() -> None:
    pytest.importorskip("pymetis", reason='pip install "wollemi[metis]"')
    n = 12
    T = line(n)
    S = (sp.kron(T, sp.eye_array(n)) + sp.kron(sp.eye_array(n), T)).tocsr()
    shuffle = np.random.default_rng(0).permutation(n * n)
    S = S[shuffle][:, shuffle].tocsr()
    A = wl.distribute(S, ["omp:1"] * 3, partition="metis")
    rows = wl.distribute(S, ["omp:1"] * 3)
    ghosts = [sum(part.halo.ghosts for part in M.members) for M in (A, rows)]
    assert ghosts[0] < ghosts[1] / 2
    x = np.arange(n * n, dtype=float)
    np.testing.assert_array_equal(A @ x, wl.Csr(S, executor="omp:1") @ x)


def test_a_matrix_that_is_not_square(kind: str, rng: Any) -> None:
    S = sp.random_array((17, 9), density=0.4, rng=rng).tocsr()
    alone, A = wl.Csr(S, executor=kind), wl.distribute(S, [kind] * 3)
    x, y = rng.standard_normal(9), rng.standard_normal(17)
    np.testing.assert_array_equal(A @ x, alone @ x)
    np.testing.assert_array_equal(A.T @ y, by_rows(S.T, kind) @ y)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_all_dtypes(kind: str, dtype: str, rng: Any) -> None:
    S = line(30, 7).astype(dtype)
    S.data *= np.exp(1j).astype(dtype) if np.dtype(dtype).kind == "c" else 1
    x = rng.standard_normal(30).astype(dtype)
    alone, A = wl.Csr(S, executor=kind), wl.distribute(S, [kind] * 2)
    np.testing.assert_array_equal(A @ x, alone @ x)
    np.testing.assert_array_equal(A.H @ x, alone.H @ x)
    assert A.astype("complex128").dtype == np.complex128


def test_a_part_gives_a_part(kind: str, rng: Any) -> None:
    S, x = line(20, 7), rng.standard_normal(20)
    A = wl.distribute(S, [kind] * 3)
    parts = A.scatter(x)
    assert isinstance(parts, Parts)
    product = A @ parts
    assert isinstance(product, Parts)
    assert [part.size for part in product] == [A.partition.count(r) for r in range(3)]
    np.testing.assert_array_equal(A.gather(product), A @ x)


def test_operators_are_made_of_one_another(kind: str, rng: Any) -> None:
    S, x = line(20, 7), rng.standard_normal(20)
    A, alone = wl.distribute(S, [kind] * 2), wl.Csr(S, executor=kind)
    B = 2.0 * A - A.T @ A
    expected = 2.0 * (alone @ x) - alone.T @ (alone @ x)
    np.testing.assert_allclose(B @ x, expected, rtol=1e-13)
    other = wl.distribute(S, [kind] * 2)
    with pytest.raises(wl.errors.UnsupportedOperation, match="same group"):
        A + other


def test_new_values_in_the_same_pattern(kind: str, rng: Any) -> None:
    S, x = line(20, 7), rng.standard_normal(20)
    A = wl.distribute(S, [kind] * 3)
    _ = A.T, A @ x
    A.update_values(2 * S.data)
    np.testing.assert_array_equal(A @ x, wl.Csr(2 * S, executor=kind) @ x)
    np.testing.assert_array_equal(A.T @ x, by_rows(2 * S.T, kind) @ x)


def test_rows_that_members_have(kind: str, rng: Any) -> None:
    S, x = scattered(23), rng.standard_normal(23)
    group = wl.distributed.Group([kind] * 3)
    A = wl.distributed.Csr.from_rows(group, [S[:4], S[4:4], S[4:]], S.shape)
    np.testing.assert_array_equal(A @ x, wl.Csr(S, executor=kind) @ x)
    cuts = [0, 4, 4, 23]
    B = wl.distributed.Csr.from_rows(
        group, lambda member: S[slice(*cuts[member.links.rank :][:2])], S.shape
    )
    np.testing.assert_array_equal(B @ x, A @ x)
    with pytest.raises(wl.errors.InvalidMatrix, match="3 \\+ 0 \\+ 19 = 22 rows"):
        wl.distributed.Csr.from_rows(group, [S[:3], S[4:4], S[4:]], S.shape)
    arrays = [(part.data, part.indices, part.indptr) for part in (S[:4], S[4:4], S[4:])]
    with pytest.raises(wl.errors.InvalidMatrix, match="columns are numbers of the whole matrix"):
        wl.distributed.Csr.from_rows(group, arrays, (23, 5))


def test_rows_of_a_partition_that_was_made_before(kind: str, rng: Any) -> None:
    S, x = scattered(23), rng.standard_normal(23)
    group = wl.distributed.Group([kind] * 3)
    from_rows, expected = wl.distributed.Csr.from_rows, wl.Csr(S, executor=kind) @ x
    for asked in ((np.arange(23) * 5) % 3, [0, 4, 4, 23]):
        known = wl.distribute(S, group, partition=asked).partition
        for partition in (asked, known):
            parts = [S[known.rows(rank)] for rank in range(3)]
            A = from_rows(group, parts, S.shape, partition=partition)
            assert A.partition == A.column_partition == known
            np.testing.assert_array_equal(A @ x, expected)
    with pytest.raises(wl.errors.InvalidMatrix, match=r"3, 1, 19 rows, .* 4, 0, 19: .*\.rows\(r"):
        from_rows(group, [S[:3], S[3:4], S[4:]], S.shape, partition=[0, 4, 4, 23])
    with pytest.raises(wl.errors.InvalidArgument, match="for 3 members"):
        from_rows(group, parts, S.shape, partition=wl.distributed.Partition([0, 23]))


def test_contributions_to_rows_of_others_are_refused_with_the_remedy(kind: str) -> None:
    S = line(6)
    group = wl.distributed.Group([kind] * 2)
    with pytest.raises(
        wl.errors.InvalidMatrix, match=r"one member has each row.*from_contributions"
    ):
        wl.distributed.Csr.from_rows(group, [S, S], S.shape)


def test_a_shared_matrix_does_not_become_one_of_an_executor_silently() -> None:
    A = wl.distribute(line(6), ["reference"] * 2)
    with pytest.raises(wl.errors.UnsupportedOperation, match=r"shares this matrix.*A\.to_local"):
        wl.Csr(A)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "wollemi"])
def test_rows_with_columns_of_their_own_are_refused(kind: str, form: str) -> None:
    S = line(20)
    made = wl.Csr if form == "wollemi" else lambda part: part.asformat(form)
    group = wl.distributed.Group([kind] * 2)
    whole = [made(S[:10]), made(S[10:])]
    A = wl.distributed.Csr.from_rows(group, whole, S.shape)
    np.testing.assert_allclose(A @ np.ones(20), S @ np.ones(20))
    own = [made(S[:10, :10]), made(S[10:, 10:])]
    for rows in (own, [whole[0], own[1]], lambda member: own[member.links.rank]):
        with pytest.raises(wl.errors.ShapeMismatch, match="the matrix has 20 columns"):
            wl.distributed.Csr.from_rows(group, rows, S.shape)


@pytest.mark.parametrize(
    ("partition", "told"),
    [
        ("best", "no partition is called 'best'"),
        ([0, 5], "expected 3 offsets or 20 owners"),
        ([0, 30, 20], "do not fall"),
        ([0, 10, 19], "expected 20 rows"),
        ([5] * 20, "numbers from 0 to 1"),
    ],
)
def test_partitions_that_do_not_fit(partition: Any, told: str) -> None:
    with pytest.raises(wl.errors.InvalidArgument, match=told):
        wl.distribute(line(20), ["reference"] * 2, partition=partition)


def test_members_that_differ_are_told_what_differs() -> None:
    told = [("Cg", "rtol 1e-06", "float64"), ("Cg", "rtol 1e-08", "float64")]
    with pytest.raises(
        wl.errors.GroupMismatch, match=r"things: member 0: rtol 1e-06; member 1: rtol 1e-08$"
    ):
        agreement.require_equal_values(told, "the solve")


def test_vectors_that_do_not_fit(kind: str) -> None:
    A = wl.distribute(line(20), [kind] * 2)
    with pytest.raises(wl.errors.ShapeMismatch, match="expected all 20 rows"):
        A @ np.ones(19)
    with pytest.raises(wl.errors.WollemiError, match="members were given different things"):
        A @ Parts([np.ones(10), np.ones((10, 2))])
    np.testing.assert_array_equal((A @ np.ones(20)).shape, (20,))  # the group still works


def test_a_shared_matrix_says_that_its_values_have_the_dtype_that_it_computes_in(kind: str) -> None:
    A = wl.distribute(line(20), [kind] * 2)
    with pytest.raises(wl.errors.UnsupportedOperation, match=r"computes in, float64\. A\.astype"):
        A.stored("float32")
    x = np.linspace(0, 1, 20)
    np.testing.assert_array_equal(A.stored("float64") @ x, A @ x)


@pytest.mark.parametrize("size", SIZES)
def test_products_of_matrices_have_the_bits_of_one_executor(kind: str, size: int, rng: Any) -> None:
    S, P = scattered(40), sp.random_array((40, 13), density=0.2, rng=rng).tocsr()
    alone, group = wl.Csr(S, executor=kind), wl.distributed.Group([kind] * size)
    A, B = wl.distribute(S, group), wl.distribute(P, group)
    expected = (alone @ wl.Csr(P, executor=kind)).to_scipy()
    product = (A @ B).to_local()
    np.testing.assert_array_equal(product.indptr, expected.indptr)
    np.testing.assert_array_equal(product.indices, expected.indices)
    np.testing.assert_array_equal(product.data, expected.data)
    coarse = wl.galerkin(B, A)
    expected = wl.galerkin(wl.Csr(P, executor=kind), alone).to_scipy()
    np.testing.assert_array_equal(coarse.to_local().toarray(), expected.toarray())
    x = rng.standard_normal(13)
    np.testing.assert_allclose(coarse @ x, expected @ x, rtol=1e-13)


def test_products_of_matrices_in_any_partition_and_dtype(kind: str, rng: Any) -> None:
    S, T = scattered(40), scattered(40, seed=5).astype("complex64")
    group = wl.distributed.Group([kind] * 3)
    parted = wl.distributed.Partition.of_owners(np.arange(40) % 3, 3)
    A, B = (wl.distribute(M, group, partition=parted) for M in (S, T))
    product = (A @ B).to_local()
    assert product.dtype == np.complex128
    np.testing.assert_allclose(product.toarray(), (S @ T).toarray(), rtol=1e-12)
    with pytest.raises(wl.errors.InvalidArgument, match=r"columns=B\.partition"):
        A @ wl.distribute(T, group)
    with pytest.raises(wl.errors.ShapeMismatch, match="no product of 40x40 and 20x20"):
        A @ wl.distribute(line(20), group)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_contributions_of_members_to_any_rows_are_added_up(kind: str, dtype: str) -> None:
    rng, n = np.random.default_rng(0), 17
    parts = []
    for _ in range(3):
        row, col = rng.integers(0, n, (2, 40))
        parts.append((rng.standard_normal(40).astype(dtype), (row, col)))
    parts[1] = (np.zeros(0, dtype), (np.zeros(0, int),) * 2)
    S = sum(sp.coo_array(part, shape=(n, n)).toarray() for part in parts)
    make, group = wl.distributed.from_contributions, wl.distributed.Group([kind] * 3)
    x = rng.standard_normal(n).astype(dtype)
    mixed = [sp.coo_array(parts[0], shape=(n, n)), parts[1], sp.csr_array(parts[2], shape=(n, n))]
    owners = rng.permutation(np.arange(n) % 3)
    for entries, options in (
        (parts, {}), (mixed, {"partition": [0, 2, 2, n]}), (parts, {"partition": owners}),
    ):  # fmt: skip
        A = make(group, entries, (n, n), **options)
        np.testing.assert_allclose(A @ x, S @ x, rtol=1e-4)
        np.testing.assert_allclose(A.to_local().toarray(), S, rtol=1e-5)
    rows = make(group, parts, (n, n + 1)) @ np.ones(n + 1, dtype)
    np.testing.assert_allclose(rows, S.sum(axis=1), rtol=1e-4, atol=1e-5)


def test_contributions_that_do_not_fit_are_refused(kind: str) -> None:
    make, group = wl.distributed.from_contributions, wl.distributed.Group([kind] * 2)
    one = (np.ones(1), (np.zeros(1, int), np.zeros(1, int)))
    far = (np.ones(1), (np.full(1, 3), np.zeros(1, int)))
    for entries, error, words in (
        ([one], InvalidArgument, "a list of 2"), ([one, far], InvalidMatrix, "from 0 to 2"),
        ([one, np.ones(3)], InvalidMatrix, "row, col"),
        ([one, sp.eye_array(2)], ShapeMismatch, "the whole one"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            make(group, entries, (3, 3))
