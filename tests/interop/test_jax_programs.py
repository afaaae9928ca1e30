"""Compiled programs of JAX call native handlers: in one process, exported, and over devices."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import wollemi as wl

from ..backends.needs import package

jax = package("jax")
jnp = package("jax.numpy")
sparse = package("jax.experimental.sparse")
wj = package("wollemi.interop.jax")
export = package("jax.export")

pytestmark = pytest.mark.usefixtures("jax_in_doubles")


def matrix(executor: str = "omp:2", index: str = "int32") -> wl.Csr:
    """A 40 x 30 pattern with an empty row, and rows longer than a register."""
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((40, 30)) < 0.3, rng.standard_normal((40, 30)), 0.0)
    dense[7] = 0
    dense[11] = 1
    rows, columns = dense.nonzero()
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=40))).astype(index)
    return wl.Csr(
        (dense[rows, columns], columns.astype(index), indptr), shape=(40, 30), executor=executor
    )


A = matrix()
B = np.random.default_rng(4).standard_normal((30, 5))
C = np.random.default_rng(5).standard_normal((40, 5))


def all_products(A: Any, v: Any, c: Any, b: Any) -> Any:
    """Every kernel that a handler has, and their gradients."""

    def energy(v: Any, c: Any, b: Any) -> Any:
        softmax = wj.fusedmm(A, c, b, b, edge="softmax", values=v)
        own = wj.fusedmm(A, c, b, b, edge=lambda s, e: e.softmax(s) * e.of_rows(e.sum(s)))
        sampled = wj.sddmm(A, c, b, values=v)
        return (
            (softmax**2).sum() + (own**2).sum() + (sampled**2).sum() + wj.spmm(A, b, values=v).sum()
        )

    return jax.value_and_grad(energy, (0, 1, 2))(v, c, b)


def close(got: Any, want: Any, **options: float) -> None:
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(
            np.asarray(one, float), np.asarray(other, float), **{"rtol": 1e-10, **options}
        )


def test_a_compiled_program_calls_no_python() -> None:
    text = jax.jit(lambda *x: all_products(A, *x)).lower(A.data, C, B).as_text()
    assert "wollemi_fusedmm" in text
    assert "wollemi_spmm" in text
    assert "wollemi_device" not in text  # which calls Python


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_handlers_agree_with_the_reference(dtype: str, index: str) -> None:
    operands = [jnp.asarray(x / 4, dtype) for x in (A.data, C, B)]
    got = jax.jit(lambda *x: all_products(matrix(index=index), *x))(*operands)
    want = all_products(matrix("reference"), *operands)
    tolerance = {"float64": 1e-10, "float32": 1e-4}.get(dtype, 0.1)
    close(got, want, rtol=tolerance, atol=tolerance)


def test_patterns_that_are_arguments_are_found_by_their_content() -> None:
    compiled = jax.jit(lambda p, *x: all_products(p, *x))
    want = all_products(A, jnp.ones(A.nnz), C, B)
    for index in ("int32", "int64"):
        arrays = (jnp.asarray(x, index) for x in (A.indptr, A.indices))
        close(compiled(wj.Pattern(*arrays, A.shape), jnp.ones(A.nnz), C, B)[1], want[1])
    with pytest.raises(wl.errors.InvalidMatrix, match="indptr: expected int32 or int64"):
        jax.jit(lambda p: wj.spmm(wj.Pattern(p, jnp.arange(1), (1, 2)), jnp.ones((2, 1))))(
            jnp.ones(2)
        )


@pytest.mark.parametrize("indptr", [[1, 1, 2], [0, 2, 1], [0, 1, 9]])
def test_row_pointers_that_make_no_pattern_are_refused_by_the_handler(indptr: list[int]) -> None:
    @jax.jit
    def product(p: Any, i: Any) -> Any:
        return wj.spmm(wj.Pattern(p, i, (2, 3)), jnp.ones((3, 2)))

    with pytest.raises(jax.errors.JaxRuntimeError, match="InvalidMatrix: indptr"):
        product(jnp.array(indptr), jnp.array([0, 1])).block_until_ready()


def test_exported_programs_bring_their_pattern() -> None:
    function = jax.jit(lambda *x: all_products(A, *x))
    targets = ("spmm", "sddmm", "fusedmm", "softmax", "row_sum", "spread")
    checks = [export.DisabledSafetyCheck.custom_call(f"wollemi_{name}") for name in targets]
    exported = export.export(function, disabled_checks=checks)(A.data, C, B)
    want = function(A.data, C, B)
    close(exported.call(A.data, C, B), want)
    package("flatbuffers")
    close(export.deserialize(exported.serialize()).call(A.data, C, B), want)


#: One process and few programs: to import JAX and to compile take most of the time.
OF_TWO_DEVICES = """
import os
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, jax.numpy as jnp, numpy as np, wollemi as wl
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
from wollemi.interop import jax as wj

# Parts that the program names.
A = wl.Csr(np.diag(np.arange(1.0, 9.0)).astype("float32"), executor="omp:1")
B = jnp.arange(32.0).reshape(8, 4)
part = jax.shard_map(
    lambda b: wj.spmm(A, b), mesh=Mesh(np.array(jax.devices()), ("x",)), in_specs=P(None, "x"),
    out_specs=P(None, "x"), check_vma=False,
)
np.testing.assert_allclose(jax.jit(part)(B), A.to_dense() @ np.asarray(B))
gradient = jax.jit(jax.grad(lambda b: (part(b) ** 2).sum()))(B)
np.testing.assert_allclose(gradient, 2 * A.to_dense() ** 2 @ np.asarray(B), rtol=1e-6)

# A mesh with explicit axes.
jax.config.update("jax_enable_x64", True)
A = wl.Csr(np.diag(np.arange(2.0, 10.0)) + np.eye(8)[::-1], executor="omp:1")
v, B = jnp.asarray(A.data), jnp.arange(32.0).reshape(8, 4)
mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,))
put = lambda x: jax.device_put(x, NamedSharding(mesh, P("x")))
product = lambda v, B: (wj.spmm(A, B, values=v) ** 2).sum()
of_values = (
    lambda v: (wj.solve(A, B[:, 0], values=v) ** 2).sum(),
    lambda v: wj.eigsh(A, k=1, which="LA", values=v)[0].sum(),
    lambda v: (wj.matmul(A, A, A_values=v).values ** 2).sum(),
)
attention = lambda B: (wj.fusedmm(A, B, B, B, values=v) ** 2).sum()
many = jax.vmap(jax.grad(lambda v: product(v, B)))

def gradients(v_, B_, several):
    found = [jax.grad(f)(v_) for f in of_values]
    return found, jax.grad(attention)(B_), jax.grad(product, (0, 1))(v_, B_), many(several)

given = (v, B, jnp.stack([v, 2 * v]))
want = jax.jit(gradients)(*given)
with jax.set_mesh(mesh):
    found = jax.jit(gradients)(*map(put, given))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-10), found, want)
"""


def test_programs_of_several_devices() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OF_TWO_DEVICES], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_program_keeps_the_pattern_of_a_matrix_that_is_gone() -> None:
    gone = matrix()
    compiled = jax.jit(lambda b, A=gone: wj.spmm(A, b)).lower(B).compile()
    want = A.to_dense() @ B
    del gone
    gc.collect()
    np.testing.assert_allclose(compiled(B), want)


@pytest.mark.parametrize("executor", ["omp:1", "reference"])
def test_results_may_be_asked_for_when_programs_are_gone(executor: str) -> None:
    def product(factor: int) -> Any:
        own = matrix(executor)
        return jax.jit(lambda b: wj.spmm(own, b))(factor * B)

    made = [product(k) for k in range(1, 9)]
    gc.collect()
    for k, got in enumerate(made, 1):
        np.testing.assert_allclose(got, k * (A.to_dense() @ B))


def test_programs_run_side_by_side_in_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    compiled = jax.jit(lambda b: wj.spmm(A, b))
    want = A.to_dense() @ B
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(lambda k: compiled(k * B) / k, range(1, 40)):
            np.testing.assert_allclose(got, want, rtol=1e-4)  # a new thread has no float64


def test_the_executor_of_a_program_without_handlers_is_called_through_python() -> None:
    reference = matrix("reference")
    function = jax.jit(lambda b: wj.spmm(reference, b))
    assert "wollemi_device" in function.lower(B).as_text()
    np.testing.assert_allclose(function(B), A.to_dense() @ B)
