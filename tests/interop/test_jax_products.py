"""Products on arrays of JAX give the numbers of dense formulas, under every transform."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch, UnsupportedDtype

from ..backends.needs import package, rarely, swept

jax = package("jax")
jnp = package("jax.numpy")
sparse = package("jax.experimental.sparse")
wj = package("wollemi.interop.jax")


pytestmark = pytest.mark.usefixtures("jax_in_doubles")


def pattern() -> wl.Csr:
    """A 6 x 5 pattern with an empty row, an empty column, unsorted and double entries."""
    indices = [3, 0, 1, 4, 4, 0, 0, 3, 1, 4]
    return wl.Csr(
        (np.linspace(-1, 1, 10), indices, [0, 2, 2, 5, 7, 9, 10]), shape=(6, 5), executor="omp:2"
    )


A = pattern()
ROWS, COLUMNS = np.repeat(np.arange(6), np.diff(A.indptr)), np.asarray(A.indices)


def leaf(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape)


VALUES, C, B, D = leaf(10), leaf(6, 4), leaf(5, 4, seed=1), leaf(5, 3, seed=2)


def dense(values: Any) -> Any:
    return jnp.zeros((*values.shape[:-1], 6, 5)).at[..., ROWS, COLUMNS].add(values)


def scores(values: Any, c: Any, b: Any) -> Any:
    return values * jnp.einsum("...ek,...ek->...e", c[..., ROWS, :], b[..., COLUMNS, :])


def softmax(s: Any) -> Any:
    largest = jnp.full((*s.shape[:-1], 6), -jnp.inf).at[..., ROWS].max(s)
    powers = jnp.exp(s - jax.lax.stop_gradient(largest)[..., ROWS])
    return powers / jnp.zeros((*s.shape[:-1], 6)).at[..., ROWS].add(powers)[..., ROWS]


#: Function, the dense formula, operands.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "spmm": (lambda v, b: wj.spmm(A, b, values=v), lambda v, b: dense(v) @ b, (VALUES, B)),
    "sddmm": (
        lambda v, c, b: wj.sddmm(A, c, b, alpha=0.5, values=v),
        lambda v, c, b: scores(v, c, b) / 2,
        (VALUES, C, B),
    ),
    "sigmoid": (
        lambda v, c, b, d: wj.fusedmm(A, c, b, d, edge="sigmoid", values=v),
        lambda v, c, b, d: dense(jax.nn.sigmoid(scores(v, c, b))) @ d,
        (VALUES, C, B, D),
    ),
    "softmax": (
        lambda v, c, b, d: wj.fusedmm(A, c, b, d, edge="softmax", values=v, alpha=0.7),
        lambda v, c, b, d: dense(softmax(0.7 * scores(v, c, b))) @ d,
        (VALUES, C, B, D),
    ),
    "a function with a bias": (
        lambda v, c, b, d: wj.fusedmm(A, c, b, d, bias=v, edge=lambda s, e: e.softmax(jnp.tanh(s))),
        lambda v, c, b, d: dense(softmax(jnp.tanh(scores(1, c, b) + v))) @ d,
        (VALUES, C, B, D),
    ),
}


@pytest.fixture(params=FUNCTIONS)
def each(request: pytest.FixtureRequest) -> Any:
    return FUNCTIONS[request.param]


def close(got: Any, want: Any, **options: Any) -> None:
    np.testing.assert_allclose(
        np.asarray(got), np.asarray(want), **{"rtol": 1e-10, "atol": 1e-10, **options}
    )


def test_numbers_are_those_of_the_dense_formula_compiled_and_not(each: Any) -> None:
    f, formula, operands = each
    close(f(*operands), formula(*operands))
    close(jax.jit(f)(*operands), formula(*operands))


def test_derivatives_forward_and_backward(each: Any) -> None:
    f, formula, operands = each
    every = tuple(range(len(operands)))
    directions = tuple(leaf(*x.shape, seed=9) for x in operands)

    def both(g: Callable[..., Any]) -> Any:
        def derivatives(*x: Any) -> Any:
            tangent = jax.jvp(g, x, directions)[1]
            return tangent, *jax.grad(lambda *y: (g(*y) ** 2).sum(), every)(*x)

        return jax.jit(derivatives)(*operands)

    for got, want in zip(both(f), both(formula), strict=True):
        close(got, want, rtol=1e-9)


@pytest.mark.parametrize("name", ["softmax", rarely("spmm"), rarely("sddmm"), rarely("sigmoid")])
def test_second_derivatives(name: str) -> None:
    f, formula, operands = FUNCTIONS[name]
    every = tuple(range(len(operands)))
    energy, want = (lambda *x, g=g: (g(*x) ** 2).sum() for g in (f, formula))
    small = [x[..., :2] if x.ndim == 2 else x for x in operands]
    for got_block, want_block in zip(
        jax.tree.leaves(jax.jit(jax.hessian(energy, every))(*small)),
        jax.tree.leaves(jax.jit(jax.hessian(want, every))(*small)),
        strict=True,
    ):
        close(got_block, want_block, rtol=1e-8)


def test_functions_over_a_batch_are_batches(each: Any) -> None:
    f, formula, operands = each
    last = [np.stack([x, 2 * x, x - 1], axis=-1) for x in operands]
    close(jax.vmap(f, in_axes=-1)(*last), jax.jit(jax.vmap(formula, in_axes=-1))(*last))
    one = jax.vmap(f, in_axes=(*[None] * (len(operands) - 1), 0))
    stacked = (*operands[:-1], np.stack([operands[-1]] * 2))
    close(jax.jit(one)(*stacked)[1], f(*operands))
    nested = jax.vmap(one, in_axes=(0, *[None] * (len(operands) - 1)))
    close(nested(np.stack([operands[0], 3 * operands[0]]), *stacked[1:])[0, 1], f(*operands))


def test_gradients_of_batches_that_share_operands(each: Any) -> None:
    f, formula, operands = each
    heads = [np.stack([x, 1 - x]) for x in operands[1:]]
    got, want = (
        jax.jit(jax.grad(lambda v, g=g: (g(v, *heads) ** 2).sum()))(operands[0])
        for g in (f, formula)
    )
    close(got, want, rtol=1e-9)


def test_vectors_leading_axes_and_factors() -> None:
    close(wj.spmm(A, B[:, 0], alpha=2), 2 * (A @ B[:, 0]))
    block = leaf(2, 3, 5, 4)
    close(wj.spmm(A, block), np.einsum("mn,abnk->abmk", A.to_dense(), block))
    assert wj.fusedmm(A, leaf(2, 1, 6, 4), leaf(3, 5, 4), D, edge="softmax").shape == (2, 3, 6, 3)
    close(
        wj.fusedmm(A, C, B, D, edge="scaled", use_values=True),
        dense(scores(jnp.asarray(A.data), C, B) / 2) @ D,
    )


def test_one_compiled_function_serves_all_values() -> None:
    traces = []

    @jax.jit
    def layer(v: Any, b: Any) -> Any:
        traces.append(None)
        return wj.spmm(A, b, values=v)

    for factor in (1.0, 2.0, 3.0):
        close(layer(factor * VALUES, B), factor * dense(VALUES) @ B)
    B2 = wl.Csr((2 * A.data, A.indices, A.indptr), shape=A.shape)
    close(jax.jit(lambda b: wj.spmm(B2, b))(B), B2.to_dense() @ B)
    assert len(traces) == 1


def given() -> dict[str, Any]:
    coo = sparse.BCOO((jnp.asarray(VALUES), jnp.stack([ROWS, COLUMNS], 1)), shape=(6, 5))
    order = np.array([9, 0, 3, 1, 2, 8, 7, 6, 4, 5])
    mixed = sparse.BCOO((coo.data[order], coo.indices[order]), shape=(6, 5))
    fill = jnp.full((3, 2), jnp.array([6, 5]))
    data = jnp.concatenate([mixed.data[:4], jnp.zeros(3), mixed.data[4:]])
    places = jnp.concatenate([mixed.indices[:4], fill, mixed.indices[4:]])
    csr = sparse.BCSR(
        (jnp.asarray(VALUES), jnp.asarray(A.indices), jnp.asarray(A.indptr)), shape=(6, 5)
    )
    longer = sparse.BCSR(
        (jnp.append(csr.data, 0.0), jnp.append(csr.indices, 5), csr.indptr), shape=(6, 5)
    )
    return {
        "BCOO": coo,
        "unsorted": mixed,
        "filled BCOO": sparse.BCOO((data, places), shape=(6, 5)),
        "BCSR": csr,
        "filled BCSR": longer,
    }


@pytest.mark.parametrize("name", swept(given(), ["filled BCOO", "filled BCSR"]))
def test_sparse_arrays_of_jax_have_gradients_in_and_out(name: str) -> None:
    made = given()[name]

    def energy(M: Any, b: Any, c: Any) -> Any:
        S = wj.sddmm(M, c, b, use_values=True)
        attended = wj.fusedmm(M, c, b, b, edge="softmax", use_values=True)
        return (wj.spmm(M, b) ** 2).sum() + (S.data**3).sum() + (attended**2).sum()

    def formula(values: Any, b: Any, c: Any) -> Any:
        s = scores(values, c, b)
        attended = dense(softmax(s)) @ b
        return ((dense(values) @ b) ** 2).sum() + (s**3).sum() + (attended**2).sum()

    want = jax.jit(jax.grad(formula, (0, 1, 2)))(VALUES, B, C)
    of_values = dense(want[0])
    for run in (lambda f: f, jax.jit):  # the pattern a constant, then an argument
        got = run(jax.grad(lambda data, M, b, c: energy(_with(M, data), b, c), (0, 2, 3)))(
            made.data, made, B, C
        )
        close(_with(made, got[0]).todense(), of_values, rtol=1e-9, atol=1e-12)
        close(got[1], want[1], rtol=1e-9)
        close(got[2], want[2], rtol=1e-9)
        S = run(lambda M: wj.sddmm(M, C, B))(made)
        assert type(S) is type(made) and S.data.shape == made.data.shape


def _with(M: Any, data: Any) -> Any:
    rest = (M.indices, M.indptr) if hasattr(M, "indptr") else (M.indices,)
    return type(M)((data, *rest), shape=M.shape)


def test_patterns_are_arguments_of_compiled_functions_and_batches() -> None:
    made = jax.jit(lambda p, b: wj.spmm(p, b))
    for shift in range(3):
        indices = (np.arange(6) + shift) % 5
        close(made(wj.Pattern(np.arange(7), indices, (6, 5)), B), B[indices])
    batch = jnp.stack([(jnp.arange(6) + shift) % 5 for shift in range(3)])
    each = jax.vmap(lambda i: wj.spmm(wj.Pattern(jnp.arange(7), i, (6, 5)), B))(batch)
    close(each, B[np.asarray(batch)])


def test_functions_of_scores_see_the_places_of_entries() -> None:
    slopes = jnp.arange(6.0)
    M = given()["unsorted"]

    def alibi(s: Any, entries: Any) -> Any:
        distance = entries.of_rows(slopes) * abs(entries.rows - entries.columns)
        assert entries.sum(s).shape == (6,)
        return entries.softmax(s - distance + entries.of_columns(jnp.ones(5)))

    want = dense(softmax(scores(1, C, B) - slopes[ROWS] * abs(ROWS - COLUMNS))) @ D
    close(wj.fusedmm(M, C, B, D, edge=alibi), want)
    close(jax.jit(lambda M: wj.fusedmm(M, C, B, D, edge=alibi))(M), want)
    for name, size in (("of_rows", 7), ("of_columns", 4)):
        with pytest.raises(ShapeMismatch, match=f"{name} takes an array of"):
            wj.fusedmm(M, C, B, D, edge=lambda s, e, n=name, k=size: s * getattr(e, n)(jnp.ones(k)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_narrow_numbers_are_added_up_in_float32(dtype: str) -> None:
    tolerance = 1e-5 if dtype == "float32" else 0.05
    for name in ("spmm", "softmax"):
        f, formula, operands = FUNCTIONS[name]
        narrow = [jnp.asarray(x, dtype) for x in operands]
        exact = [np.asarray(x, "float64") for x in narrow]

        def derivatives(*x: Any, g: Callable[..., Any] = f) -> Any:
            return jax.value_and_grad(lambda *y: g(*y).astype(float).sum(), (0, 1))(*x)

        value, gradients = jax.jit(derivatives)(*narrow)
        want, exact_gradients = jax.jit(partial(derivatives, g=formula))(*exact)
        close(value, want, rtol=tolerance, atol=tolerance)
        for got, exactly in zip(gradients, exact_gradients, strict=True):
            assert got.dtype == dtype
            close(got.astype(float), exactly, rtol=tolerance, atol=tolerance)


def test_matrices_come_out_as_sparse_arrays_of_jax() -> None:
    for made in (wj.to_bcsr(A), wj.to_bcoo(A)):
        close(made.todense(), A.to_dense())
        close(made @ B, A.to_dense() @ B)


def test_patterns_without_entries_rows_or_columns() -> None:
    none = wl.Csr((np.zeros(0), np.zeros(0, int), np.zeros(4, int)), shape=(3, 5))
    assert not wj.spmm(none, B).any()
    assert not wj.fusedmm(none, leaf(3, 4), B, D, edge="softmax").any()
    assert wj.sddmm(none, leaf(3, 4), B).shape == (0,)
    assert wj.spmm(A, jnp.zeros((5, 0))).shape == (6, 0)
    grad = jax.grad(lambda b: (wj.fusedmm(none, leaf(3, 4), b, D, edge="softmax")).sum())(B)
    assert not grad.any()
    assert jax.vmap(lambda b: wj.spmm(A, b))(jnp.zeros((0, 5, 2))).shape == (0, 6, 2)


def test_operands_that_do_not_fit_are_told() -> None:
    with pytest.raises(
        ShapeMismatch, match=r"B: expected shape \(5,\), \(5, k\) or \(\.\.\., 5, k\), got"
    ):
        jax.jit(lambda b: wj.spmm(A, b))(C)
    with pytest.raises(ShapeMismatch, match=r"values: expected shape \(10,\)"):
        wj.spmm(A, B, values=VALUES[:3])
    with pytest.raises(ShapeMismatch, match="leading axes"):
        wj.sddmm(A, leaf(2, 6, 4), leaf(3, 5, 4))
    with pytest.raises(InvalidArgument, match="a Pattern, a BCOO or a BCSR"):
        wj.spmm(np.eye(5), B)
    with pytest.raises(InvalidArgument, match="edge"):
        wj.fusedmm(A, C, B, D, edge="relu")
    with pytest.raises(UnsupportedDtype, match="complex128"):
        wj.spmm(A, B * 1j)
    with pytest.raises(InvalidMatrix, match="axes of a batch"):
        wj.spmm(sparse.BCOO.fromdense(jnp.ones((2, 6, 5)), n_batch=1), B)
    with pytest.raises(InvalidMatrix, match="indices"):
        wj.spmm(wj.Pattern(jnp.arange(7), jnp.full(6, 9), (6, 5)), B)
    with pytest.raises(jax.errors.JaxRuntimeError, match="indices"):
        out = jax.jit(lambda i: wj.spmm(wj.Pattern(jnp.arange(7), i, (6, 5)), B))(jnp.full(6, 9))
        out.block_until_ready()


def test_programs_for_platforms_without_an_executor_are_refused(monkeypatch: Any) -> None:
    traced = jax.jit(lambda b: wj.spmm(A, b)).trace(jnp.asarray(B))
    with pytest.raises(wl.errors.ExecutorMismatch, match="compiled for tpu"):
        traced.lower(lowering_platforms=("tpu",))
    absent = wl.errors.ExecutorUnavailable("no GPU was found")

    def unavailable(name: str) -> Any:
        raise absent

    monkeypatch.setattr(
        importlib.import_module("wollemi.interop.jax.lowering"), "executor_by_name", unavailable
    )
    with pytest.raises(wl.errors.ExecutorMismatch, match="no executor: no GPU was found"):
        traced.lower(lowering_platforms=("cuda",))


def test_without_jax_the_message_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.delitem(sys.modules, "wollemi.interop.jax")
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(wl.errors.MissingPackage, match=r"pip install \"wollemi\[jax\]\""):
        importlib.import_module("wollemi.interop.jax")


def test_a_graph_of_edges_is_a_pattern_of_ones_in_compiled_functions() -> None:
    edges = jnp.array([[0, 2, 1], [1, 0, 0]])
    graph = wl.graph.from_edges(edges, num_nodes=3)
    x = jnp.array([1.0, 10.0, 100.0], dtype=jnp.float32)
    weights = jnp.array([1.0, 2.0, 3.0], dtype=jnp.float32)

    def weighed(w: Any, x: Any) -> Any:
        return wj.spmm(graph, x, values=w[graph.order])

    summed = wj.spmm(graph, x)
    assert (summed.dtype, summed.tolist()) == (jnp.float32, [110.0, 1.0, 0.0])
    assert jax.jit(weighed)(weights, x).tolist() == [230.0, 1.0, 0.0]
    gradient = jax.jit(jax.grad(lambda w: weighed(w, x).sum()))(weights)
    assert gradient.tolist() == [1.0, 100.0, 10.0]  # the features of the edges' sources


@pytest.mark.parametrize("form", ["array of JAX", "array of NumPy", "traced", "graph of tensors"])
def test_forms_of_edges_that_are_not_taken_name_from_edges(form: str) -> None:
    edges, x = jnp.array([[0, 2, 1], [1, 0, 0]]), jnp.ones(3)
    with pytest.raises(InvalidArgument, match=r"wl\.graph\.from_edges\(edge_index.*, num_nodes\)"):
        if form == "traced":
            jax.jit(lambda e: wj.spmm(e, x))(edges)
        elif form == "graph of tensors":
            torch = pytest.importorskip("torch")
            wj.spmm(wl.graph.from_edges(torch.tensor(np.asarray(edges)), 3), x)
        else:
            wj.spmm(edges if form == "array of JAX" else np.asarray(edges), x)


@pytest.mark.parametrize("transform", ["jit", "grad", "vmap"])
@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_traced_arrays_at_operators_and_solvers_name_the_functions_for_jax(
    transform: str, executor: str
) -> None:
    M = wl.Csr(np.diag([1.0, 2.0, 3.0]).astype("float32"), executor=executor)
    calls: dict[str, Callable[[Any], Any]] = {
        "M @ x": lambda x: M @ x,
        "x @ M": lambda x: x @ M,
        "spmm": lambda x: wl.spmm(M, x),
        "solve": lambda x: wl.solve(M, x).x,
        "Cg": lambda x: wl.solvers.Cg(M).solve(x).x,
        "linalg": lambda x: wl.linalg.cg(M, x)[0],
        "update_values": lambda x: M.copy().update_values(x),
        "from_edges": lambda x: wl.graph.from_edges(x, 3),
    }
    x = jnp.ones((4, 3)) if transform == "vmap" else jnp.ones(3)
    for call in calls.values():
        with pytest.raises(InvalidArgument, match=r"wollemi\.interop\.jax\.solve"):
            getattr(jax, transform)(call)(x)


def test_a_compiled_function_keeps_the_values_of_a_matrix_and_takes_new_ones_as_an_argument() -> (
    None
):
    M = wl.Csr(np.diag([1.0, 2.0]).astype("float32"))
    kept, taken = jax.jit(lambda x: wj.spmm(M, x)), jax.jit(lambda v, x: wj.spmm(M, x, values=v))
    x = jnp.ones(2)
    assert kept(x).tolist() == [1.0, 2.0]
    M.update_values(np.array([3.0, 4.0], "float32"))
    assert kept(x).tolist() == [1.0, 2.0]
    assert taken(jnp.asarray(M.data), x).tolist() == [3.0, 4.0]
