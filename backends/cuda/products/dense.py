"""Sparse times dense by the dense product, where zeros are few or the numbers short.

The fastest kernel for a matrix that is hardly sparse is that of the vendor's library. With 16-bit
numbers it reads a whole matrix in less time than rows of ``B`` take for a few entries in a hundred,
and nothing that knows the zeros is as fast (``benchmarks/results/ml-h200.md``).

The dense copy of the values is kept with the matrix, and made again when they change; for values
that are not the matrix's own it is made for every call, zeros and entries in one pass. Infinities
and NaN of ``B`` stay where the sparse product has them: see ``dense.hpp``. Products of float32 are
in float32, never in TF32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ....core.algorithm import Estimate, Facts, Unsuited
from ....core.calls import SpmmCall
from ....core.executor import Array
from ....core.store import Key
from ...gpu.products import choice as ml_choice
from ...gpu.products.algorithm import GpuAlgorithm
from ...gpu.reductions import every, some
from ...unified.wrappers import SimtKernel
from . import tensor_choice
from .constants import DenseProductConstants, TensorCoreConstants
from .dense_library import is_captured, is_taken, multiply, taken
from .launches import launch_kernel

if TYPE_CHECKING:
    from types import ModuleType

    from ....core.formats.csr import Csr
    from ...gpu.products.adapter import Adapter

_PATTERN = "indptr: in I[l], indices: in I[z], values: in T[z]"

dense_fill = SimtKernel(
    "dense_fill",
    "cuda/products/dense.hpp",
    f"m: i64, n: i64, rows: i64, parts: i64, width: i64, {_PATTERN}, dense: out T[l]",
    "{BYTES}, {TEAM}, {T}, {I}",
    variants=(),
)
dense_scatter = SimtKernel(
    "dense_scatter",
    "cuda/products/dense.hpp",
    f"m: i64, n: i64, {_PATTERN}, dense: inout T[l]",
    "{T}, {I}",
    variants=(),
)
dense_add = SimtKernel(
    "dense_add",
    "cuda/products/dense.hpp",
    f"m: i64, k: i64, {_PATTERN}, B: in T[l], B_ld: i64, product: in u8[l], C: inout T[l], "
    "C_ld: i64, alpha: T, beta: T",
    "{T}, {I}",
    variants=(),
)
dense_mend = SimtKernel(
    "dense_mend",
    "cuda/products/dense.hpp",
    f"m: i64, k: i64, {_PATTERN}, B: in T[l], B_ld: i64, C: inout T[l], C_ld: i64, alpha: T",
    "{T}, {I}",
    block=512,
    variants=(),
)

DTYPES = ("float16", "bfloat16", "float32", "float64")
#: The dtypes for which the rule selects it: for float32, tensor cores take half of the time, and
#: float64 has not been timed.
CHOSEN = ("float16", "bfloat16")

#: Blocks that look for values that are not finite: more blocks correct rare cases sooner, but cost
#: every product time.
MENDERS = 32
#: The part of the free memory that a copy may take.
MEMORY = 0.25

#: Bytes of shared memory that a block which fills rows may have, and of a vector.
FILLED_BYTES, VECTOR = (8192, 16384, 24576, 32768), 16
#: Bytes that the waves of a block fill together where they have a row each.
SHORT_ROWS = 16384
#: Parts of a row at most: each of them looks at all of the row's entries.
MOST_PARTS = 4


class DenseProduct(GpuAlgorithm):
    """The product of the matrix with all of its zeros."""

    name: ClassVar[str] = "dense"
    copies: ClassVar[bool] = True

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why it cannot run here."""
        if facts.dtype not in DTYPES:
            return f"it is for {', '.join(DTYPES)}, not {facts.dtype}"
        rows, columns = facts.statistics.rows, facts.statistics.columns
        if max(rows, columns, facts.columns) >= 2**31:
            return "the library counts rows and columns in 32 bits"
        return None

    def estimate(self, on: Adapter, A: Csr, facts: Facts) -> Estimate | None:
        """Return the expected cost of a product in 16 bits; longer values were not timed."""
        if facts.dtype not in CHOSEN:
            return None
        rules = on.executor.constants.of(DenseProductConstants)
        positions, nbytes = facts.statistics.rows * facts.statistics.columns, facts.itemsize
        multiplied = 2 * positions * facts.columns / rules.flops
        peak = on.executor.device.peak_bandwidth
        rate = rules.share * peak if peak else rules.rate
        moved = positions * nbytes
        dense = rules.mend + max(rules.least, rules.launch + max(moved / rate, multiplied))
        return Estimate(dense * 1e6, moved)

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return that it is faster, if it should be."""
        statistics, columns = facts.statistics, facts.columns
        constants = on.executor.constants
        rules = constants.of(DenseProductConstants)
        expected = self.estimate(on, A, facts)
        if expected is None or columns < rules.least_columns:
            return None
        dense, waves = expected.microseconds, on.waves
        sparse = ml_choice.estimate(statistics, waves, columns, facts.itemsize, on.rules)
        of_cores = constants.of(TensorCoreConstants)
        hopper = on.executor.device.capability == (9, 0)
        if hopper and tensor_choice.reason(facts, waves, of_cores, on.rules):
            sparse = tensor_choice.with_tensor_cores(facts, of_cores)
        if dense * rules.margin > sparse:
            return None
        if statistics.rows * statistics.columns * 2 > MEMORY * on.executor.free_memory():
            return None
        return (
            f"with {facts.density:.1%} of the entries the dense product should take "
            f"{dense:.0f} microseconds and the sparse one {sparse:.0f}"
        )

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> None:
        """Return nothing, because it needs the values only; find out whether positions repeat."""
        if _has_duplicates(on.executor.xp, A):
            raise Unsuited("positions repeat: add their entries up with A.sum_duplicates()")

    def run(self, on: Adapter, state: None, call: SpmmCall) -> None:
        """Multiply block by block, and mend."""
        A, values, B, C = call.A, call.values, call.B, call.C
        alpha, beta = call.alpha, call.beta
        executor, (batch, m, k), n = on.executor, C.shape, A.shape[1]
        held = np.dtype(np.float64 if C.dtype.itemsize == 8 else np.float32)
        weights: Array = on.weights(values)[0]
        one = batch == 1 or values.strides[0] == 0
        dense = _dense_of(on, A, weights[0]) if one else None
        for b in range(batch):
            block = dense if dense is not None else _filled(on, A, weights[b])
            mine = weights[0] if one else weights[b]
            in_place = beta == 0 and is_taken(C[b])
            product = C[b] if in_place else executor.allocate((m, k), held)
            if n:
                right = taken(executor, B[b])
                multiply(executor, block, right, product, alpha if in_place else 1.0)
            else:
                product.fill(0)
            of_B, of_C = on.operand(B[b][None]), on.operand(C[b][None])
            of_A = (A.indptr, A.indices, mine, of_B.address, of_B.rows)
            to, kinds = (of_C.address, of_C.rows, alpha), (C.dtype, A.indices.dtype)
            if in_place:
                launch_kernel(on, dense_mend, min(m, MENDERS), (m, k, *of_A, *to), *kinds)
            else:
                items = m * -(-k // on.wave) * on.wave
                given = (m, k, *of_A, on.address(product), *to, beta)
                launch_kernel(on, dense_add, -(-items // dense_add.block), given, *kinds)


class _Copy:
    """The dense matrix, for as long as the values stay."""

    dense: Array | None = None

    def update_values(self, matrix: Csr) -> None:
        """Forget the copy: the next use makes it again."""
        self.dense = None


#: The dense matrix of the values, and whether a pattern stores a position twice.
_DENSE: Key[_Copy] = Key("dense copy")
_TWICE: Key[bool] = Key("places twice")


def _dense_of(on: Adapter, A: Csr, values: Array) -> Array:
    """Return the dense matrix of the values, kept if they are the matrix's own."""
    if values.dtype != A.dtype or on.address(values) != on.address(A.data):
        return _filled(on, A, values)
    stored = A._copies.get(_DENSE, _Copy)
    if stored.dense is not None:
        return stored.dense
    made = _filled(on, A, values)
    if not is_captured():  # else it is filled when the graph is launched, not now
        stored.dense = made
    return made


def _filled(on: Adapter, A: Csr, values: Array) -> Array:
    """Return a new dense matrix of such values."""
    m, n = A.shape
    dense = on.executor.allocate((m, n), values.dtype)
    if not m * n:
        return dense
    of_matrix, kinds = (A.indptr, A.indices, values, dense), (values.dtype, A.indices.dtype)
    shape = filling(m, n, values.dtype.itemsize, on.wave)
    if shape is None:
        dense.view(np.uint8).fill(0)
        blocks = -(-(m * on.wave) // dense_scatter.block)
        launch_kernel(on, dense_scatter, blocks, (m, n, *of_matrix), *kinds)
        return dense
    launch_kernel(
        on,
        dense_fill,
        -(-m // shape.rows) * shape.parts,
        (m, n, shape.rows, shape.parts, shape.width, *of_matrix),
        *kinds,
        BYTES=shape.nbytes,
        TEAM=shape.team,
    )
    return dense


class Filling(NamedTuple):
    """How blocks share the rows of a dense matrix that they fill.

    Attributes
    ----------
    rows, parts : int
        Rows of a block, or blocks of a row.
    width : int
        Columns of a part.
    team : int
        Lanes that have a row together.
    nbytes : int
        Shared memory of a block.
    """

    rows: int
    parts: int
    width: int
    team: int
    nbytes: int


def filling(m: int, n: int, itemsize: int, wave: int) -> Filling | None:
    """Return how rows of a dense matrix are filled in one pass, or None where they are too wide.

    Examples
    --------
    >>> filling(11008, 4096, 2, 32)
    Filling(rows=1, parts=1, width=4096, team=256, nbytes=8192)
    >>> filling(4096, 28672, 2, 32)
    Filling(rows=1, parts=2, width=14336, team=256, nbytes=32768)
    >>> filling(100_000, 64, 4, 32)
    Filling(rows=32, parts=1, width=64, team=32, nbytes=8192)
    """
    row, teams = n * itemsize, dense_fill.block // wave
    if teams * row <= SHORT_ROWS:
        rows = teams * max(1, FILLED_BYTES[0] // (teams * row))
        rows = min(rows, max(teams, -(-m // teams) * teams))
        return Filling(rows, 1, n, wave, _memory(rows * row))
    # Where rows are no multiple of a vector, one begins within a vector.
    most = FILLED_BYTES[-1] - VECTOR
    parts = -(-row // (most if row % VECTOR else FILLED_BYTES[-1]))
    if parts > MOST_PARTS:
        return None
    each = VECTOR // itemsize
    width = n if parts == 1 else -(-n // (parts * each)) * each
    return Filling(1, parts, width, dense_fill.block, _memory(width * itemsize, row % VECTOR))


def _memory(nbytes: int, within: int = 0) -> int:
    need = nbytes + (VECTOR if within else 0)
    return next(size for size in FILLED_BYTES if size >= need)


def _has_duplicates(xp: ModuleType, A: Csr) -> bool:
    """Return whether a position is stored twice, determined once for a pattern."""
    return A._pattern.get(_TWICE, lambda: _finds_duplicates(xp, A))


def _finds_duplicates(xp: ModuleType, A: Csr) -> bool:
    bounds = A.indptr.astype(np.int64)
    row_of = xp.searchsorted(bounds[1:], xp.arange(A.nnz), side="right")
    place = row_of * A.shape[1] + A.indices
    step = place[1:] - place[:-1]
    if not every(step > 0):
        place = xp.sort(place)
        step = place[1:] - place[:-1]
    return some(step == 0)
