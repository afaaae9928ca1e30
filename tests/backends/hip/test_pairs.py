"""The HIP executor at work on an NVIDIA GPU, with pairs of warps for waves of 64 lanes.

Python's part for AMD GPUs runs here, and kernels with 64 lanes; AMD's compiler and runtime are not
tested.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from wollemi.backends.hip.loop import BATCH, Batches
from wollemi.backends.simt import kernels as simt
from wollemi.core.operation import OPERATIONS, Operation

from ...solvers.conftest import SOLVERS, system
from .. import test_drive
from ..awkward import Block
from ..calls import make
from ..equality import assert_equals_reference, cases
from ..lockstep.test_equals_reference import INDEX
from ..needs import cuda, nvrtc
from ..test_big import IN_BLOCKS, rows_of
from .amd.compilers import programs
from .pairs.executor import LARGEST_BLOCK, PairedExecutor, paired
from .test_loop import DRIVES, assert_takes_the_references_iterations

#: Words of the dialect that are clang's: NVRTC has some of them, and the prelude others.
OF_CLANG = re.compile(r"__builtin_\w+")


@pytest.fixture(scope="session")
def pairs() -> PairedExecutor:
    cuda()
    return PairedExecutor(0)


def test_there_are_barriers_for_all_pairs_of_a_block() -> None:
    assert max(kernel.block for kernel in simt.simt_kernels()) <= LARGEST_BLOCK


def test_what_pairs_run_compiles() -> None:
    compiler, known = nvrtc(), set[str]()
    for name, source in programs("f8", "i4", 64):
        new = set(OF_CLANG.findall(source)) - known
        # one of maps, one that rounds products, one of waves, and programs with functions of their
        # own
        if new or name.startswith(("cg-", "parilut-", "spmv-128")):
            assert compiler.compile_source(paired(source), "sm_90", name)
        known |= new


# A test for an operation, not for a call: without a GPU each is a line that says so.
@pytest.mark.gpu
@pytest.mark.parametrize(
    "operation", [o for o in OPERATIONS if PairedExecutor.kernels.find(o)], ids=lambda o: o.name
)
def test_pairs_equal_the_reference(
    pairs: PairedExecutor, rng: np.random.Generator, operation: Operation
) -> None:
    for case in (case for case in cases() if case.values[0] is operation):
        _, block, rows, pattern, dtype, _, variant = case.values
        call = make(operation, block, rows, pattern, dtype, INDEX.get(dtype, "int32"), rng, variant)
        try:
            assert_equals_reference(call, pairs, rng)
        except AssertionError as error:
            raise AssertionError(f"{case.id}: {error}") from error


@pytest.mark.gpu
@pytest.mark.parametrize(("operation", "block"), IN_BLOCKS)
def test_pairs_add_up_many_rows(
    pairs: PairedExecutor, rng: np.random.Generator, operation: Operation, block: Block
) -> None:
    call = make(operation, block, rows_of(operation), None, "float64", "int64", rng)
    assert_equals_reference(call, pairs, rng)


@pytest.mark.gpu
@pytest.mark.parametrize("test", DRIVES, ids=lambda test: test.__name__)
def test_loops_on_pairs(pairs: PairedExecutor, test: object) -> None:
    assert callable(test)
    test(pairs)


@pytest.mark.gpu
def test_batches_on_pairs_are_graphs(pairs: PairedExecutor) -> None:
    solve = test_drive.PlainCg(pairs, "float64")
    solve.drive(BATCH + 1)
    program = solve.iteration.program
    assert isinstance(program, Batches)
    assert program.captured


@pytest.mark.gpu
@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_on_pairs_take_the_references_iterations(
    pairs: PairedExecutor, rng: np.random.Generator, solver: str
) -> None:
    b = rng.random(system(solver).shape[0])
    assert_takes_the_references_iterations(pairs, solver, b)
