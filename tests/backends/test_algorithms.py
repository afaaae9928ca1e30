"""Every algorithm that an executor registers, by its name, against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.algorithm import PRODUCTS, Algorithm, AlgorithmTable, candidates_of
from wollemi.core.errors import InvalidArgument
from wollemi.core.operations import matrix as operations

from .awkward import PATTERNS, Pattern
from .calls import REFERENCE, matrix, numbers
from .tolerance import UNITS

INDEX = {"float32": "int32", "float64": "int64", "complex64": "int64"}


class Plain(Algorithm):
    """Does nothing."""

    name = "plain"

    def reason(self, on: Any, A: Any, facts: Any) -> str:
        return "it is the only one"

    def prepare(self, on: Any, A: Any, facts: Any) -> None:
        return None

    def run(self, on: Any, A: Any, state: Any, *arguments: Any) -> None:
        return None


def test_names_of_a_product_are_one_algorithm_each() -> None:
    table = AlgorithmTable("one")
    table.register("spmv", Plain())
    with pytest.raises(ValueError, match="'plain' already"):
        table.register("spmv", Plain())
    with pytest.raises(ValueError, match="'spmw' has no algorithms"):
        table.register("spmw", Plain())
    below = AlgorithmTable("two", parent=table)
    assert below.names("spmv") == ("auto", "plain")


@pytest.mark.parametrize("product", PRODUCTS)
def test_an_unknown_name_is_answered_with_those_there_are(executor: Any, product: str) -> None:
    A = wl.Csr(([1.0, 2.0], [0, 1], [0, 1, 2]), shape=(2, 2), executor=executor)
    with pytest.raises(InvalidArgument, match="it has: auto, ") as raised:
        A.plan_for(product, 3, "nonsense")
    assert all(name in str(raised.value) for name in executor.algorithms.names(product))


@pytest.mark.pairs
@pytest.mark.parametrize("dtype", INDEX)
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_every_algorithm_for_vectors_is_right(
    executor: Any, pattern: Pattern, dtype: str, rng: np.random.Generator
) -> None:
    host = matrix(pattern, dtype, INDEX[dtype], rng)
    A = host.to(executor)
    m, n = A.shape
    x, y = numbers(rng, (n, 1), dtype), numbers(rng, (m, 1), dtype)
    want, size = y.copy(), abs(y).astype(dtype)
    positive = host._with_data(abs(host.data).astype(dtype))
    REFERENCE.run(operations.csr_spmv, host, x, want, 0.75, -1.25)
    REFERENCE.run(operations.csr_spmv, positive, abs(x), size, 0.75, 1.25)
    for name in executor.algorithms.names("spmv"):
        try:
            B = A.with_kernel(name)
        except InvalidArgument as why:
            assert "cannot run" in str(why)
            continue
        for _ in range(2):  # the second time with stored results of the first
            native = executor.from_host(y.copy())
            executor.run(operations.csr_spmv, B, executor.from_host(x), native, 0.75, -1.25)
            got = executor.to_host(native)
            assert (abs(got - want) <= UNITS * np.finfo(dtype).eps * size).all(), name


def wide(result: Any) -> Any:
    """Return a dense result, or the values of a sparse one, in float64 on the host."""
    values = result.executor.to_host(result.data) if isinstance(result, wl.Csr) else result
    return np.asarray(values, np.float64)


@pytest.mark.parametrize("product", ["spmm", "sddmm", "fusedmm"])
@pytest.mark.parametrize("columns", [1, 5, 32])
def test_every_algorithm_for_matrices_is_right(
    executor: Any, product: str, columns: int, rng: np.random.Generator
) -> None:
    for pattern in PATTERNS:
        host = matrix(pattern, "float32", "int32", rng)
        A = host.to(executor)
        m, n = A.shape
        operands = [numbers(rng, (s, columns), "float32") for s in (m, n)]
        if product == "spmm":
            operands = operands[1:]
        elif product == "fusedmm":
            operands.append(numbers(rng, (n, 7), "float32"))
        function = getattr(wl, product)
        want = wide(function(host, *operands))
        positive = host._with_data(abs(host.data))  # abs(host) adds up duplicates
        size = wide(function(positive, *map(abs, operands)))
        for name in executor.algorithms.names(product):
            try:
                A.plan_for(product, columns, name)
            except InvalidArgument as why:
                assert "cannot run" in str(why)
                continue
            got = wide(function(A, *operands, kernel=name))
            longest = max(host.row_statistics.longest, columns)
            assert (abs(got - want) <= longest * 1e-6 * np.maximum(size, 1e-6)).all(), (
                name,
                pattern,
            )


@pytest.mark.parametrize("kernel", ["auto", "sell"])
def test_a_plan_asked_for_by_name_follows_the_values(executor: Any, kernel: str) -> None:
    if kernel not in executor.algorithms.names("spmv"):
        pytest.skip("this executor has no packed copy; the others have")
    S = wl.Csr(([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 3]), shape=(2, 3), executor="reference")
    A = S.to(executor).with_kernel(kernel)
    np.testing.assert_array_equal(A @ np.ones(3), [3.0, 3.0])
    A.update_values(np.array([10.0, 20.0, 30.0]))
    np.testing.assert_array_equal(A @ np.ones(3), [30.0, 30.0])
    assert kernel == "auto" or A.plan.kernel == kernel
    assert A.plan_for("spmm", 4) is A.with_kernel("auto").plan_for("spmm", 4)


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_first_candidate_that_can_be_prepared_is_the_plan(executor: Any, product: str) -> None:
    A = wl.Csr(np.tri(40), executor=executor)
    found = candidates_of(A, product, 3)
    assert [c.algorithm for c in found] == list(executor.algorithms.of(product))
    assert all(c.refusal is None or c.reason is None for c in found)
    plan = A.plan_for(product, 3)
    chosen = next(c for c in found if c.algorithm is plan.algorithm)
    assert chosen.reason is not None
    for earlier in found[: found.index(chosen)]:
        if earlier.reason is not None:  # only its preparation tells that it cannot run
            with pytest.raises(InvalidArgument, match="cannot run"):
                A.plan_for(product, 3, earlier.algorithm.name)
    expected = "" if chosen.estimate is None else f" ({chosen.estimate})"
    assert str(chosen) == f"{plan.kernel}: {chosen.reason}{expected}"
