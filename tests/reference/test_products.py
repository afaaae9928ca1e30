"""The machine-learning kernels on numbers that fit on paper."""

import numpy as np
import pytest

import wollemi as wl

REFERENCE = wl.executor("reference")


@pytest.fixture
def A() -> wl.Csr:
    """[[2, 0, 1], [0, 0, 0], [0, 3, 0]]."""
    return wl.Csr(([2.0, 1.0, 3.0], [0, 2, 1], [0, 2, 2, 3]), shape=(3, 3), executor=REFERENCE)


def test_spmm_adds_up_rows_of_b(A: wl.Csr) -> None:
    B = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    np.testing.assert_array_equal(wl.spmm(A, B), [[5, 50], [0, 0], [6, 60]])


def test_spmm_scales_and_adds_to_out(A: wl.Csr) -> None:
    out = np.ones((3, 1))
    given = wl.spmm(A, np.array([[1.0], [2.0], [3.0]]), out=out, alpha=2.0, beta=-1.0)
    assert given is out
    np.testing.assert_array_equal(out, [[9], [-1], [11]])


def test_spmm_with_beta_zero_does_not_read_out(A: wl.Csr) -> None:
    out = np.full((3, 1), np.nan)
    wl.spmm(A, np.ones((3, 1)), out=out)
    np.testing.assert_array_equal(out, [[3], [0], [3]])


def test_spmm_takes_other_values_of_the_same_pattern(A: wl.Csr) -> None:
    values = np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 1.0]])
    B = np.array([[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(wl.spmm(A, B, values=values), [[[4], [0], [2]], [[6], [0], [2]]])


def test_sddmm_samples_the_product_of_rows(A: wl.Csr) -> None:
    C = np.array([[1.0, 0.0], [9.0, 9.0], [2.0, 1.0]])
    B = np.array([[4.0, 9.0], [5.0, 6.0], [7.0, 9.0]])
    S = wl.sddmm(A, C, B)
    np.testing.assert_array_equal(S.data, [4, 7, 16])
    np.testing.assert_array_equal(wl.sddmm(A, C, B, use_values=True).data, [8, 7, 48])
    np.testing.assert_array_equal(wl.sddmm(A, C, B, alpha=2.0, beta=1.0, out=S).data, [12, 21, 48])


def test_sddmm_shares_the_pattern(A: wl.Csr) -> None:
    S = wl.sddmm(A, np.ones((3, 2)), np.ones((3, 2)))
    assert S.indices is A.indices
    assert S.indptr is A.indptr


def test_fusedmm_is_sddmm_then_spmm(A: wl.Csr) -> None:
    C = np.array([[1.0, 0.0], [9.0, 9.0], [2.0, 1.0]])
    B = np.array([[4.0, 9.0], [5.0, 6.0], [7.0, 9.0]])
    D = np.array([[1.0], [10.0], [100.0]])
    np.testing.assert_array_equal(wl.fusedmm(A, C, B, D), [[704], [0], [160]])
    np.testing.assert_array_equal(wl.fusedmm(A, C, B, D, use_values=True), [[708], [0], [480]])


def test_scaled_divides_by_the_square_root_of_the_columns(A: wl.Csr) -> None:
    C = B = np.ones((3, 4))
    D = np.array([[1.0], [1.0], [1.0]])
    np.testing.assert_array_equal(wl.fusedmm(A, C, B, D, edge="scaled"), [[4], [0], [2]])


def test_sigmoid_of_zero_is_a_half(A: wl.Csr) -> None:
    Z = np.zeros((3, 2))
    D = np.array([[1.0], [2.0], [4.0]])
    np.testing.assert_array_equal(wl.fusedmm(A, Z, Z, D, edge="sigmoid"), [[2.5], [0], [1]])


def test_softmax_weighs_by_powers_that_add_up_to_one(A: wl.Csr) -> None:
    C = np.array([[np.log(3.0)], [0.0], [5.0]])
    B = np.array([[1.0], [1.0], [0.0]])
    D = np.array([[1.0], [10.0], [5.0]])
    # row 0: weights 3/4 and 1/4; row 2 has one entry
    np.testing.assert_allclose(
        wl.fusedmm(A, C, B, D, edge="softmax"), [[2.0], [0.0], [10.0]], rtol=1e-15
    )


def test_softmax_of_large_products_does_not_overflow(A: wl.Csr) -> None:
    C, B = np.full((3, 1), 1e3), np.ones((3, 1))
    D = np.array([[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(wl.fusedmm(A, C, B, D, edge="softmax"), [[2], [0], [2]])


def test_half_precision_is_added_up_in_single() -> None:
    # 2048 + 1 is 2048 in float16: only a wider sum counts to 4096
    ones = np.ones(4096, np.float16)
    A = wl.Csr((ones, np.arange(4096), [0, 4096]), shape=(1, 4096), executor=REFERENCE)
    assert A.dtype == np.float16
    np.testing.assert_array_equal(wl.spmm(A, ones[:, None]), [[4096]])
    S = wl.Csr((ones[:1], [0], [0, 1]), shape=(1, 1), executor=REFERENCE)
    np.testing.assert_array_equal(wl.sddmm(S, ones[None], ones[None]).data, [4096])


def test_an_entry_that_is_stored_twice_counts_twice() -> None:
    A = wl.Csr(([1.0, 1.0], [0, 0], [0, 2]), shape=(1, 1), executor=REFERENCE)
    B = np.array([[3.0]])
    np.testing.assert_array_equal(wl.spmm(A, B), [[6]])
    np.testing.assert_array_equal(wl.sddmm(A, B, B).data, [9, 9])
    np.testing.assert_array_equal(wl.fusedmm(A, B, B, B, edge="softmax"), [[3]])


def test_names_that_no_kernel_has_are_refused_with_those_there_are(A: wl.Csr) -> None:
    B = np.ones((3, 1))
    for call in (
        lambda: wl.spmm(A, B, kernel="zz"),
        lambda: wl.sddmm(A, B, B, kernel="zz"),
        lambda: wl.fusedmm(A, B, B, B, kernel="zz"),
    ):
        with pytest.raises(wl.errors.InvalidArgument, match=r"no kernel 'zz'.*auto, entries"):
            call()
    np.testing.assert_array_equal(wl.spmm(A, B, kernel="entries"), wl.spmm(A, B))


@pytest.mark.parametrize("columns", [-1, 2.5, "2", None])
def test_plans_are_for_a_number_of_columns(A: wl.Csr, columns: object) -> None:
    with pytest.raises(wl.errors.InvalidArgument, match="columns"):
        A.plan_for("spmm", columns)


@pytest.mark.parametrize("wrong", [None, "2", [1.0]])
def test_what_is_no_number_is_no_factor(A: wl.Csr, wrong: object) -> None:
    B = np.ones((3, 1))
    for call in (
        lambda: wl.spmm(A, B, alpha=wrong),
        lambda: wl.sddmm(A, B, B, alpha=wrong),
        lambda: wl.fusedmm(A, B, B, B, alpha=wrong),
    ):
        with pytest.raises(wl.errors.InvalidArgument, match="alpha: expected a number"):
            call()


@pytest.mark.parametrize("imaginary", [1j, np.complex64(1j)])
def test_sampled_products_take_real_factors(A: wl.Csr, imaginary: complex) -> None:
    B = np.ones((3, 1))
    for call in (
        lambda: wl.sddmm(A, B, B, alpha=imaginary),
        lambda: wl.sddmm(A, B, B, beta=imaginary, out=np.ones(3)),
        lambda: wl.fusedmm(A, B, B, B, alpha=imaginary),
    ):
        with pytest.raises(wl.errors.UnsupportedDtype, match="real factors"):
            call()


def test_complex_factors_make_products_complex(A: wl.Csr) -> None:
    B = np.array([[1.0], [2.0], [3.0]])
    for imaginary in (1j, np.complex64(1j)):
        np.testing.assert_array_equal(wl.spmm(A, B, alpha=imaginary), [[5j], [0], [6j]])


def test_results_are_written_to_arrays_that_can_be_written_to(A: wl.Csr) -> None:
    B, out = np.ones((3, 1)), np.ones((3, 1))
    out.flags.writeable = False
    for given, told in ((out, "read-only"), ([[0.0]] * 3, "expected an array to write to")):
        with pytest.raises(wl.errors.InvalidArgument, match=told):
            wl.spmm(A, B, out=given)
        with pytest.raises(wl.errors.InvalidArgument, match=told):
            wl.sddmm(A, B, B, out=given[:, 0] if given is out else [0.0] * 3)
    assert out.tolist() == [[1], [1], [1]]
