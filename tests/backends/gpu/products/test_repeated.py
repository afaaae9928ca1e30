"""Products of a layout that was there before: their launches are repeated on other arrays."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.gpu.constants import ROW_PRODUCTS
from wollemi.backends.gpu.products import repeated
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.core.operations import products

from ...lockstep.build import compiler
from ...lockstep.executor import LockstepExecutor
from ...needs import cuda, tool

M, N, K = 50, 40, 36
EXECUTORS = {
    "waves": (
        lambda: LockstepExecutor(32),
        [tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")],
    ),
    "cuda": (cuda, [pytest.mark.gpu]),
}
pytestmark = pytest.mark.usefixtures("published_algorithms")

NAMES = {
    "spmm": (
        "row-split",
        "row-segments",
        "rb-sr",
        "rb-pr",
        "rb-pr-scalar",
        "eb-sr",
        "eb-pr",
        "eb-pr-scalar",
        "row-team",
        "subwarp",
    ),
    "sddmm": ("row-split", "row-segments", "flat", "entry", "sm-l2", "sm-l2-256"),
    "fusedmm": ("row-split", "row-segments"),
}
ONLY_CUDA = {"spmm": ("slab",), "sddmm": ("tile-mma",)}
SHAPES = {
    "spmm": {"B": (N, K)},
    "sddmm": {"C": (M, K), "B": (N, K)},
    "fusedmm": {"C": (M, K), "B": (N, K), "D": (N, K)},
}


def kernels() -> Iterator[Any]:
    for where, (make, marks) in EXECUTORS.items():
        for operation, names in NAMES.items():
            own = ONLY_CUDA.get(operation, ()) if where == "cuda" else ()
            for name in (*names, *own):
                yield pytest.param(
                    make, operation, name, id=f"{where}-{operation}-{name}", marks=marks
                )


@pytest.fixture(params=[pytest.param(m, id=w, marks=k) for w, (m, k) in EXECUTORS.items()])
def gpu(request: Any) -> Any:
    return request.param()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    short = ROW_PRODUCTS._replace(summed_piece=16, summed_pieces={0: 16})
    monkeypatch.setattr(CupyAdapter, "rules", short)


def matrix(executor: Any) -> wl.Csr:
    """Return a matrix with a row that is cut, and an empty one."""
    rng = np.random.default_rng(4)
    dense = np.where(rng.random((M, N)) < 0.2, rng.uniform(0.5, 1.0, (M, N)), 0.0)
    dense[3], dense[7] = 0.75, 0.0
    return wl.Csr(dense.astype(np.float32), executor=executor)


def operands(rng: np.random.Generator, operation: str, executor: Any) -> dict[str, Any]:
    return {
        name: executor.from_host(rng.uniform(-1, 1, shape).astype(np.float32))
        for name, shape in SHAPES[operation].items()
    }


def product(operation: str, A: wl.Csr, given: dict[str, Any], **options: Any) -> Any:
    """Return the result on the host."""
    made = getattr(wl, operation)(A, **given, **options)
    return np.array(A.executor.to_host(made.data if isinstance(made, wl.Csr) else made))


def assert_right(operation: str, A: wl.Csr, given: dict[str, Any], **options: Any) -> None:
    """Compare a product with the reference's; on other executors ``options`` name a kernel."""
    found = product(operation, A, given, **options)
    options.pop("kernel", None)
    host = {name: np.array(A.executor.to_host(array)) for name, array in given.items()}
    expected = product(operation, A.to("reference"), host, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def refuse(*_: Any) -> None:
    raise AssertionError("the launches should equal the earlier product's")


@pytest.mark.parametrize(("make", "operation", "name"), list(kernels()))
def test_other_arrays_get_the_launches_of_the_first(
    monkeypatch: pytest.MonkeyPatch, rng: Any, make: Any, operation: str, name: str
) -> None:
    executor = make()
    A, again = matrix(executor), matrix(executor)
    first, second = (operands(rng, operation, executor) for _ in range(2))
    assert_right(operation, A, first, kernel=name)
    with monkeypatch.context() as known:
        algorithm = A.plan_for(operation, K, name).algorithm
        known.setattr(type(algorithm), "run", refuse)
        assert_right(operation, A, second, kernel=name)
        repeats = product(operation, A, second, kernel=name)
    np.testing.assert_array_equal(repeats, product(operation, again, second, kernel=name))


def test_what_another_layout_has_is_made_anew(gpu: Any, rng: Any) -> None:
    A = matrix(gpu)
    room = gpu.from_host(rng.uniform(-1, 1, (3, N, K + 5)).astype(np.float32))
    for B in (
        room[0, :, :K].copy(),
        room[1, :, :K],
        room[0, :, 1 : K + 1],
        room[0, :, 5:],
        room[:, :, :K],
        room[1:, :, :K],
        room[0, :, :9],
        room[0, :, : 2 * 9 : 2],
    ):
        for alpha, kernel in ((1.0, "auto"), (-0.5, "row-segments"), (2, "row-split")):
            for _ in range(2):
                assert_right("spmm", A, {"B": B}, alpha=alpha, kernel=kernel)
    assert len(A.plan_for("spmm", K).prepared) > 4


def test_an_operand_that_is_another_one_is_not_taken_for_two(gpu: Any, rng: Any) -> None:
    A, given = matrix(gpu), operands(rng, "fusedmm", gpu)
    for B, D in (("B", "B"), ("B", "D"), ("D", "D"), ("D", "B"), ("B", "B")):
        for edge in (None, "softmax"):
            chosen = {"C": given["C"], "B": given[B], "D": given[D]}
            assert_right("fusedmm", A, chosen, edge=edge, kernel="row-segments")


def test_the_values_of_another_matrix_of_the_pattern_are_used(gpu: Any, rng: Any) -> None:
    A, B = matrix(gpu), operands(rng, "spmm", gpu)
    for _ in range(3):
        assert_right("spmm", A, B)
        A = A * 2.0
    other = A.data * 0 + 3
    np.testing.assert_array_equal(
        product("spmm", A, {**B, "values": other}), product("spmm", A._with_data(other), B)
    )


def test_what_was_copied_is_not_repeated(gpu: Any, rng: Any) -> None:
    A, B = matrix(gpu), operands(rng, "spmm", gpu)
    room = gpu.from_host(rng.uniform(-1, 1, (4, A.nnz, 2)).astype(np.float32))
    for part in room:
        gaps = part[:, 0]
        np.testing.assert_array_equal(
            product("spmm", A, {**B, "values": gaps}, kernel="row-split"),
            product("spmm", A, {**B, "values": gaps.copy()}, kernel="row-split"),
        )
    assert len(A.plan_for("spmm", K, "row-split").prepared) == 1


def test_arrays_that_overlap_are_not_taken_for_one_another(gpu: Any, rng: Any) -> None:
    A = matrix(gpu)
    room = gpu.from_host(rng.uniform(-1, 1, (M + 8, K)).astype(np.float32))
    for first in (0, 4, 8):
        assert_right("sddmm", A, {"C": room[first : first + M], "B": room[4 : 4 + N]})
    assert_right("sddmm", A, {"C": room[:M].copy(), "B": room[4 : 4 + N]})
    assert_right("sddmm", A, {"C": room[:M], "B": room[4 : 4 + N]})


def test_factors_without_end_do_not_fill_the_memory(gpu: Any, rng: Any) -> None:
    A, B = matrix(gpu), operands(rng, "spmm", gpu)
    for alpha in np.linspace(-1, 1, 3 * repeated.MOST_LAYOUTS):
        wl.spmm(A, **B, alpha=alpha, kernel="rb-sr")
    assert len(A.plan_for("spmm", K, "rb-sr").prepared) <= repeated.MOST_LAYOUTS


def test_nothing_is_repeated_of_what_is_empty(gpu: Any) -> None:
    A = wl.Csr(np.zeros((4, 5), np.float32), executor=gpu)
    for B in (np.ones((5, 3), np.float32), np.ones((5, 0), np.float32)):
        for _ in range(2):
            assert not wl.spmm(A, B).any()
            assert not wl.fusedmm(A, np.ones((4, B.shape[1]), np.float32), B, B).any()


@pytest.mark.parametrize("operation", ["spmm", "sddmm", "fusedmm"])
def test_an_operation_is_repeated_by_addresses_alone(gpu: Any, rng: Any, operation: str) -> None:
    A = matrix(gpu)
    results = {"spmm": (1, M, K), "sddmm": (1, A.nnz), "fusedmm": (1, M, K)}
    named, factors = {
        "spmm": (products.csr_spmm, (1.0, 0.0, "row-split")),
        "sddmm": (products.csr_sddmm, (1.0, 0.0, "row-split")),
        "fusedmm": (products.csr_fusedmm, (0.5, "softmax", "row-split")),
    }[operation]

    def arrays() -> list[Any]:
        values = A.data[None] if operation == "spmm" else None
        given = operands(rng, operation, gpu).values()
        return [values, *(x[None] for x in given), gpu.zeros(results[operation], np.float32)]

    first, second, expected = (arrays() for _ in range(3))
    expected[:-1] = second[:-1]
    repeat = gpu.run_repeatably(named, (A, *first, *factors), first)
    assert repeat is not None
    result = weakref.ref(first.pop())
    assert result() is None  # of PyTorch's arrays, it would hold all that gradients are made of
    repeat(repeated.addresses_of(second))
    assert gpu.run(named, A, *expected, *factors) is None
    np.testing.assert_array_equal(gpu.to_host(second[-1]), gpu.to_host(expected[-1]))


def test_what_a_kernel_copies_is_not_repeated_by_addresses(gpu: Any, rng: Any) -> None:
    A, B = matrix(gpu), operands(rng, "spmm", gpu)["B"]
    gaps = gpu.from_host(rng.uniform(-1, 1, (1, A.nnz, 2)).astype(np.float32))[:, :, 0]
    arrays = [gaps, B[None], gpu.zeros((1, M, K), np.float32)]
    factors = (1.0, 0.0, "row-split")
    assert gpu.run_repeatably(products.csr_spmm, (A, *arrays, *factors), arrays) is None
