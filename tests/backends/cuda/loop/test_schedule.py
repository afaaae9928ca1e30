"""The grid barriers of one kernel for all iterations, the stored vectors, and its compilation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from wollemi.backends.cuda.loop import persistent, schedule, shapes, shared_memory
from wollemi.backends.cuda.runtime import compiler
from wollemi.backends.gpu import tape
from wollemi.backends.gpu.spmv import packed
from wollemi.core.operations import matrix, vector
from wollemi.core.program import Call

from ...needs import nvrtc, swept
from ...recorded import IN_ONE_KERNEL, argument, in_dtypes, recorded, recorded_solver
from ...test_own_step import SteepestDescent
from . import fake_cuda
from .fake_cuda import FakeArray, fake_csr, vectors

nvrtc()

IDS = [f"{name} with jacobi" if jacobi else name for name, jacobi in IN_ONE_KERNEL]


def planned(calls: Sequence[Call], rematerialize: bool = True) -> schedule.Schedule:
    phases = schedule.phases_of(tape.steps_of(calls))
    assert phases is not None
    return schedule.plan(phases, rematerialize)


@pytest.mark.parametrize(
    ("name", "jacobi", "barriers"),
    [
        ("Cg", False, 2),
        ("Cg", True, 2),
        ("Bicgstab", False, 3),
        ("Cgs", False, 2),
        # twice, and twice more where a vector lost digits
        ("Gmres", False, 4),
        ("Gmres", True, 4),
    ],
)
def test_an_iteration_meets_only_for_its_sums(name, jacobi, barriers):
    plan = planned(recorded(name, jacobi=jacobi))
    assert plan.count == barriers
    assert not any(plan.sync_before)


def test_without_forming_all_wait_for_what_is_gathered():
    assert planned(recorded("Cg"), rematerialize=False).sync_before == [True, False, False]
    assert planned(recorded("Bicgstab"), rematerialize=False).sync_before == [
        False,
        True,
        False,
        True,
        False,
    ]


def test_what_is_formed_from_one_vector_is_always_formed():
    assert not any(planned(recorded("Gmres"), rematerialize=False).sync_before)
    plan = planned(recorded("Cg"), rematerialize=False)
    assert len(plan.later[0].sources) == 1 and not plan.later[0].chain


def test_cg_forms_its_direction_from_the_residual_and_the_old_direction():
    calls = recorded("Cg")
    plan = planned(calls)
    assert plan.later[0].chain == (2,)
    assert len(plan.later[0].sources) == 2
    # In the first round of a launch the direction is there.
    assert plan.first[0].chain == ()
    assert plan.first[0].sources == (plan.phases[0].gathers,)
    # Others may still gather the old one while the new one is stored.
    assert plan.double_buffered == {plan.phases[0].gathers}


def test_bicgstab_never_stores_the_half_residual():
    calls = recorded("Bicgstab")
    plan = planned(calls)
    r = argument(calls, "bicgstab.half", "r")
    r = tape.address(r)
    stored = {(m.phase, m.early): vectors for m, vectors in plan.stored.items()}
    assert r not in stored[(1, False)] and r in stored[(4, False)]
    assert plan.deferred == [False, False, True, False, False]
    assert r not in plan.double_buffered


def test_what_gmres_gathers_is_stored_with_the_norm_and_needs_one_place():
    calls = recorded("Gmres")
    plan = planned(calls)
    w = tape.address(argument(calls, "csr.spmv", "y"))
    assert plan.stored == {schedule.Barrier(1, early=False): {w}}
    assert plan.double_buffered == set()


def test_a_product_of_a_product_waits_for_it():
    A, (x, y, z) = fake_csr(10), vectors(3, 10)
    calls = [
        Call(matrix.csr_spmv, (A, x, y, 1.0, 0.0)),
        Call(matrix.csr_spmv, (A, y, z, 1.0, 0.0)),
        Call(vector.axpby, (z, x, 1.0, 1.0)),
    ]
    plan = planned(calls)
    assert plan.sync_before == [True, True]
    early = [schedule.Barrier(at, early=True) for at in (0, 1)]
    x_at, y_at = (tape.address(v) for v in (x, y))
    assert plan.stored == {early[0]: {x_at}, early[1]: {y_at}}
    assert plan.double_buffered == set()


def test_a_gather_of_more_than_four_vectors_waits_instead():
    A, (u, w, *parts) = fake_csr(10), vectors(7, 10)
    d = vectors(1, 10)[0]
    calls = [Call(vector.axpby, (part, u, 1.0, 1.0)) for part in parts]
    calls.append(Call(matrix.csr_spmv, (A, u, w, 1.0, 0.0)))
    calls.append(Call(vector.axpby, (w, d, 1.0, 0.0)))
    assert planned(calls).sync_before[5]


def test_an_operation_that_is_not_on_rows_keeps_an_iteration_out_of_one_kernel():
    calls = recorded("Gmres").expanded()
    assert schedule.phases_of(tape.steps_of(calls)) is None


DEVICE = SimpleNamespace(capability=(9, 0), multiprocessors=132, shared_bytes=232_448, warp=32)


def shapes_of(calls: Sequence[Call], rows: int) -> list[shared_memory.GridShape]:
    plan = planned(calls)
    return [shapes.with_shared(DEVICE, plan, s) for s in shapes.shapes(DEVICE, plan.phases, rows)]


def test_a_small_system_is_tried_on_a_cluster_first():
    cluster, grid = shapes_of(recorded("Cg", 16**3), 16**3)
    assert (cluster.cluster, cluster.block, cluster.rows) == (16, 256, 1)
    assert (grid.cluster, grid.blocks) == (0, 16)
    assert cluster.matrices and grid.matrices


def test_all_rows_have_a_work_item():
    for n in (1, 255, 40_000, 64**3, 100**3):
        for shape in shapes_of(recorded("Cg", n), n):
            assert shape.rows * shape.blocks * shape.block >= n
            assert shape.blocks <= 132


@pytest.mark.parametrize("n", [16**3, 32**3, 64**3, 80**3])
@pytest.mark.parametrize(("name", "jacobi"), IN_ONE_KERNEL, ids=IDS)
def test_what_is_kept_fits_shared_memory(name, jacobi, n):
    calls = recorded(name, rows=n, jacobi=jacobi)
    for shape in shapes_of(calls, n):
        made = text(calls, shape)
        assert made.shared + shapes.STATIC_SHARED <= DEVICE.shared_bytes


def test_the_basis_of_gmres_comes_before_its_matrix():
    (large,) = shapes_of(recorded("Gmres", 64**3, restart=30), 64**3)
    assert not large.matrices and 10 <= large.basis < 31
    small = shapes_of(recorded("Gmres", 16**3, restart=30), 16**3)[0]
    assert small.matrices and small.basis == 31


def text(calls: Sequence[Call], shape: shared_memory.GridShape) -> persistent.MadeKernel:
    plan = planned(calls)
    found = [pair for call in calls for pair in call.named]
    value = next(np.dtype(a.dtype).str[1:] for p, a in found if p.kind == "T" and p.dims)
    buffers = {where: vectors(1, 100)[0] for where in plan.double_buffered}
    status = next(a for p, a in found if p.is_status)
    return persistent.persistent_kernel(plan, status, value, shape, buffers, warp=32)


def restart(name: str) -> dict[str, int]:
    return {"restart": 30} if name == "Gmres" else {}


SHAPES = {
    "grid": shared_memory.GridShape(512, 132, 4, matrices=False, basis=5),
    "grid with matrices": shared_memory.GridShape(256, 128, 1, matrices=True, basis=31),
    "cluster": shared_memory.GridShape(256, 16, 2, 16, matrices=True, basis=31),
}


SOLVES_IN_DTYPES = in_dtypes(IN_ONE_KERNEL)


@pytest.mark.parametrize(
    ("name", "jacobi", "dtype"), swept(SOLVES_IN_DTYPES, SOLVES_IN_DTYPES[::2])
)
def test_an_iteration_compiles_as_one_kernel(name, jacobi, dtype):
    made = text(recorded(name, dtype=dtype, jacobi=jacobi), SHAPES["grid with matrices"]).kernel
    assert compiler.compile_source(made.source, "sm_90", made.symbol)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_users_own_solver_compiles_as_one_kernel(dtype):
    made = text(recorded_solver(SteepestDescent, dtype=dtype), SHAPES["grid with matrices"]).kernel
    assert compiler.compile_source(made.source, "sm_90", made.symbol)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "jacobi"), [("Bicgstab", False), ("Gmres", True)])
def test_every_shape_compiles(name, jacobi, shape):
    architectures = ("sm_90", "sm_100") if "cluster" in shape else ("sm_80", "sm_90", "sm_100")
    made = text(recorded(name, jacobi=jacobi, **restart(name)), SHAPES[shape]).kernel
    for architecture in architectures:
        assert compiler.compile_source(made.source, architecture, made.symbol)


@pytest.mark.parametrize(
    ("dtype", "stored", "shape"),
    [
        ("float64", "float32", "cluster"),
        ("float64", "bfloat16", "grid"),
        ("float32", "float16", "grid with matrices"),
        ("complex128", "float32", "grid"),
    ],
)
def test_a_basis_of_a_lower_precision_compiles_in_one_kernel(dtype, stored, shape):
    calls = recorded("Gmres", dtype=dtype, jacobi=True, basis=stored, restart=30)
    made = text(calls, SHAPES[shape]).kernel
    assert compiler.compile_source(made.source, "sm_90", made.symbol)


def test_shared_memory_holds_more_vectors_of_a_lower_precision():
    shapes = {
        basis: shapes_of(recorded("Gmres", 64**3, restart=30, basis=basis), 64**3)[0].basis
        for basis in (None, "float32", "float16")
    }
    assert 2 * shapes[None] <= shapes["float32"] <= shapes["float16"] == 31


@pytest.mark.parametrize("name", ["Cg", "Bicgstab", "Cgs", "Gmres"])
@pytest.mark.parametrize("jacobi", [False, True])
def test_a_text_does_not_depend_on_addresses(monkeypatch, name, jacobi):
    """Or it would be compiled anew in each process, and in no wheel."""
    shape = replace(SHAPES["cluster"], vectors=2)
    rising = text(recorded(name, jacobi=jacobi, **restart(name)), shape).kernel
    monkeypatch.setattr(fake_cuda, "_ADDRESSES", count(1 << 50, -(1 << 20)))
    falling = text(recorded(name, jacobi=jacobi, **restart(name)), shape).kernel
    assert (rising.symbol, rising.source) == (falling.symbol, falling.source)


def test_a_text_does_not_depend_on_the_blocks_of_a_grid():
    texts = {
        text(recorded("Gmres", restart=30), replace(SHAPES["grid"], blocks=blocks)).kernel.source
        for blocks in (118, 132)
    }
    assert len(texts) == 1


def fake_packed(code: int, width: int) -> packed.Packed:
    state = packed.Packed.__new__(packed.Packed)
    state.code, state.width, state.target = code, width, None
    state.slice_ptr, state.codes = FakeArray((5,), np.int64), FakeArray((700,), np.uint8)
    state.values = FakeArray((700,), np.float64)
    if code == packed.PATTERN:
        state.offsets, state.pattern_width = FakeArray((27 * 7,), np.int32), 7
    return state


@pytest.mark.parametrize("width", [0, 7])
@pytest.mark.parametrize("code", [packed.ABSOLUTE, packed.NEAR, packed.PATTERN])
def test_a_packed_matrix_compiles_where_it_is(code, width):
    calls = recorded("Cgs")
    for operation, arguments in calls:
        if operation is matrix.csr_spmv:
            arguments[0].plan.state = fake_packed(code, width)
    made = text(calls, SHAPES["grid"])
    assert compiler.compile_source(made.kernel.source, "sm_90", made.kernel.symbol)
    assert ("pattern_matrix" in made.kernel.source.split("wrappers")[-1]) == (
        code == packed.PATTERN
    )


def test_an_array_is_one_argument_however_often_it_occurs():
    values = text(recorded("Cg"), SHAPES["grid with matrices"]).kernel.values
    pointers = [v for v in values if isinstance(v, int) and v >= 1 << 20]
    # of vectors and cells; pointers to const have their own
    assert len(pointers) - len(set(pointers)) <= 1
