"""Products like an earlier one: public functions repeat its launches before they look further."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.cuda.products.fusedmm_steps import TwoSteps
from wollemi.backends.gpu.products import csr, repeated
from wollemi.core.calls import FusedmmCall
from wollemi.core.errors import InvalidArgument, ShapeMismatch
from wollemi.core.products.repeats import RepeatableCall

from ...lockstep.build import compiler
from ...needs import tool
from ..current import EXECUTORS, Current

M, N, K = 30, 20, 12


@pytest.fixture(params=EXECUTORS)
def gpu(request: pytest.FixtureRequest) -> Any:
    """Return a GPU."""
    return request.param()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(8)


def matrix(gpu: Any) -> wl.Csr:
    S: Any = sp.random_array((M, N), density=0.2, rng=np.random.default_rng(2), dtype="float32")
    return wl.Csr(S.tocsr(), executor=gpu)


def dense(gpu: Any, rng: np.random.Generator, rows: int, columns: int = K) -> Any:
    return gpu.from_host(rng.uniform(-1, 1, (rows, columns)).astype(np.float32))


def host(result: Any, gpu: Any) -> Any:
    return np.array(gpu.to_host(result.data if isinstance(result, wl.Csr) else result))


@pytest.fixture
def repeats(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets an item for each product by launches of an earlier one."""
    seen: list[Any] = []
    again = RepeatableCall.again

    def noted(self: RepeatableCall, A: Any) -> Any:
        made = again(self, A)
        if made is not None:
            seen.append(self.options[0])
        return made

    monkeypatch.setattr(RepeatableCall, "again", noted)
    return seen


CALLS = {
    "spmm": lambda A, C, B, D: wl.spmm(A, B),
    "spmm, scaled": lambda A, C, B, D: wl.spmm(A, B, alpha=-0.5),
    "sddmm": lambda A, C, B, D: wl.sddmm(A, C, B),
    "sddmm with values": lambda A, C, B, D: wl.sddmm(A, C, B, use_values=True, alpha=2),
    "fusedmm": lambda A, C, B, D: wl.fusedmm(A, C, B, D),
    "fusedmm, scaled": lambda A, C, B, D: wl.fusedmm(A, C, B, D, edge="scaled"),
    "fusedmm, softmax": lambda A, C, B, D: wl.fusedmm(A, C, B, D, edge="softmax", use_values=True),
    "fusedmm of one operand": lambda A, C, B, D: wl.fusedmm(A, C, B, B, edge="sigmoid"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_second_product_repeats_launches_with_the_same_bits(
    gpu: Any, rng: np.random.Generator, repeats: list[Any], name: str
) -> None:
    A, call = matrix(gpu), CALLS[name]
    first = [dense(gpu, rng, rows) for rows in (M, N, N)]
    other = [dense(gpu, rng, rows) for rows in (M, N, N)]
    call(A, *first)
    assert not repeats
    found = call(A, *other)
    assert len(repeats) == 1
    expected = call(matrix(gpu), *other)
    assert len(repeats) == 1
    assert type(found) is type(expected)
    assert host(found, gpu).shape == host(expected, gpu).shape
    np.testing.assert_array_equal(host(found, gpu), host(expected, gpu))
    exact = call(matrix(gpu).to("reference"), *(host(array, gpu) for array in other))
    exact = exact.data if isinstance(exact, wl.Csr) else exact
    np.testing.assert_allclose(host(found, gpu), exact, rtol=1e-4, atol=1e-5)


def test_values_of_the_matrix_are_read_at_each_call(
    gpu: Any, rng: np.random.Generator, repeats: list[Any]
) -> None:
    A, B = matrix(gpu), dense(gpu, rng, N)
    before = host(wl.spmm(A, B), gpu)
    twice = 2 * A  # another matrix of the pattern
    np.testing.assert_array_equal(host(wl.spmm(twice, B), gpu), 2 * before)
    A.update_values(twice.data)
    np.testing.assert_array_equal(host(wl.spmm(A, B), gpu), 2 * before)
    assert len(repeats) == 2


def test_another_layout_is_looked_at_anew(
    gpu: Any, rng: np.random.Generator, repeats: list[Any]
) -> None:
    A, B = matrix(gpu), dense(gpu, rng, N, 2 * K)
    wl.spmm(A, B[:, :K].copy())
    for other in (B, B[:, ::2], B[:, 1 : K + 1], B[:, :K].astype(np.float64)):
        expected = wl.spmm(A.to("reference"), host(other, gpu))
        np.testing.assert_allclose(host(wl.spmm(A, other), gpu), expected, rtol=1e-4, atol=1e-5)
    wl.spmm(A, B[:, :K].copy(), kernel="row-split")
    wl.spmm(A, B[:, :K].copy(), alpha=3.0)
    assert not repeats
    C, D = dense(gpu, rng, M), dense(gpu, rng, N)
    wl.fusedmm(A, C, D, D)
    wl.fusedmm(A, C, D, dense(gpu, rng, N))  # an operand of its own
    assert not repeats


def test_operands_of_the_host_and_out_are_not_repeated(
    gpu: Any, rng: np.random.Generator, repeats: list[Any]
) -> None:
    A, B = matrix(gpu), dense(gpu, rng, N)
    out = wl.spmm(A, B)
    for _ in range(2):
        assert wl.spmm(A, B, out=out) is out
        assert isinstance(wl.spmm(A, host(B, gpu)), np.ndarray)
    assert not repeats


def test_wrong_options_have_their_messages_after_a_product(
    gpu: Any, rng: np.random.Generator
) -> None:
    A, C, B = matrix(gpu), dense(gpu, rng, M), dense(gpu, rng, N)
    wl.sddmm(A, C, B)
    with pytest.raises(InvalidArgument, match="beta needs an out"):
        wl.sddmm(A, C, B, beta=1.0)
    with pytest.raises(InvalidArgument, match="edge"):
        wl.fusedmm(A, C, B, B, edge="tanh")
    with pytest.raises(ShapeMismatch):
        wl.sddmm(A, C, dense(gpu, rng, N, K + 1))


def test_the_host_has_no_kept_launches() -> None:
    for name in ("reference", "omp"):
        on = wl.executor(name)
        assert not on.keeps_launches
        assert not on.goes_straight()


@tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")
@pytest.mark.parametrize("edge", ["identity", "softmax"])
def test_arrays_between_kernels_are_scratch_memory_of_repetitions(
    rng: np.random.Generator, edge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, steps = Current(32), TwoSteps()
    A, kept = matrix(gpu), type("Kept", (), {"prepared": {}})()

    def product(limit: int) -> tuple[Any, Any]:
        monkeypatch.setattr(repeated, "MOST_BETWEEN", limit)
        C, B, D = (dense(gpu, rng, rows)[None] for rows in (M, N, N))
        E = gpu.allocate((1, M, K), np.float32)
        call = FusedmmCall(A, None, C, B, D, E, None, 1.0, edge)
        assert steps.launches_only(csr.CupyAdapter(gpu), call)
        told = csr.again(
            gpu,
            kept,
            call.arrays,
            call.factors,
            lambda on: steps.run(on, "row-split", call),
            repeats=lambda _: True,
        )
        given = [host(array, gpu)[0] for array in (C, B, D)]
        expected = wl.fusedmm(A.to("reference"), *given, edge=edge)
        np.testing.assert_allclose(host(E, gpu)[0], expected, rtol=1e-4, atol=1e-5)
        return told, call

    assert product(0)[0] is None  # more than repetitions may have
    assert not kept.prepared
    for _ in range(3):
        told, _ = product(1 << 26)
        assert told is not None
    assert len(kept.prepared) == 1
