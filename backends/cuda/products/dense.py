"""Sparse times dense by a dense cuBLAS product, for matrices with few zeros or 16-bit values.

The fastest kernel for a matrix that is hardly sparse is cuBLAS's dense product. With 16-bit numbers
it reads a whole matrix in less time than row kernels need to gather rows of ``B`` for a few percent
of entries, and no kernel that skips zeros is as fast (``benchmarks/results/ml-h200.md``).

The dense copy of the values is cached with the matrix and made again when they change. For values
that are not the matrix's own, each call makes it: one pass writes zeros and entries. Infinities and
NaN of ``B`` affect the same results as in the sparse product; see ``dense.hpp``. Products of
float32 use float32, never TF32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ....core.algorithm import Estimate, Facts, Unsuited
from ....core.calls import SpmmCall
from ....core.executor import Array
from ....core.store import Key
from ...gpu.products import choice as product_choice
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
#: Dtypes for which the rule may choose it. For float32, the tensor-core kernel takes half the time;
#: float64 has not been timed.
CHOSEN = ("float16", "bfloat16")

#: Blocks that search for nonfinite values: more blocks correct rare cases sooner, but slow down
#: every product.
MENDERS = 32
#: The fraction of the free memory that a dense copy may take.
MEMORY = 0.25

#: Possible sizes in bytes of the shared memory of a block that fills rows, and bytes of a vector.
FILLED_BYTES, VECTOR = (8192, 16384, 24576, 32768), 16
#: If each wave has a row: largest number of bytes that the waves of a block fill together.
SHORT_ROWS = 16384
#: Upper bound of parts per row: each part scans all entries of the row.
MOST_PARTS = 4


class DenseProduct(GpuAlgorithm):
    """The product with the dense matrix, including all zeros."""

    name: ClassVar[str] = "dense"
    copies: ClassVar[bool] = True

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why this algorithm cannot run, or None."""
        if facts.dtype not in DTYPES:
            return f"it is for {', '.join(DTYPES)}, not {facts.dtype}"
        rows, columns = facts.statistics.rows, facts.statistics.columns
        if max(rows, columns, facts.columns) >= 2**31:
            return "the library counts rows and columns in 32 bits"
        return None

    def estimate(self, on: Adapter, A: Csr, facts: Facts) -> Estimate | None:
        """Return the expected cost of a 16-bit product; wider values were not timed."""
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
        """Return that it is expected to be faster, or None."""
        statistics, columns = facts.statistics, facts.columns
        constants = on.executor.constants
        rules = constants.of(DenseProductConstants)
        expected = self.estimate(on, A, facts)
        if expected is None or columns < rules.least_columns:
            return None
        dense, waves = expected.microseconds, on.waves
        sparse = product_choice.estimate(statistics, waves, columns, facts.itemsize, on.rules)
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
        """Find out whether positions repeat; return None: a copy depends on the values."""
        if _has_duplicates(on.executor.xp, A):
            raise Unsuited("positions repeat: add their entries up with A.sum_duplicates()")

    def run(self, on: Adapter, state: None, call: SpmmCall) -> None:
        """Multiply block by block, then correct results with nonfinite values."""
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
    """The dense copy, valid until the values change."""

    dense: Array | None = None

    def update_values(self, matrix: Csr) -> None:
        """Drop the copy; the next use makes it again."""
        self.dense = None


#: The dense copy of a matrix's values, and whether a pattern has duplicate positions.
_DENSE: Key[_Copy] = Key("dense copy")
_TWICE: Key[bool] = Key("places twice")


def _dense_of(on: Adapter, A: Csr, values: Array) -> Array:
    """Return the dense matrix of the values, cached if they are the matrix's own."""
    if values.dtype != A.dtype or on.address(values) != on.address(A.data):
        return _filled(on, A, values)
    stored = A._copies.get(_DENSE, _Copy)
    if stored.dense is not None:
        return stored.dense
    result = _filled(on, A, values)
    if not is_captured():  # in a capture, the copy is filled only when the graph is launched
        stored.dense = result
    return result


def _filled(on: Adapter, A: Csr, values: Array) -> Array:
    """Return a new dense matrix with the given values."""
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
    """The work division for blocks that fill the rows of a dense matrix.

    Attributes
    ----------
    rows, parts : int
        Rows per block, or blocks per row.
    width : int
        Columns per part.
    team : int
        Lanes that fill a row together.
    nbytes : int
        Shared memory of a block in bytes.
    """

    rows: int
    parts: int
    width: int
    team: int
    nbytes: int


def filling(m: int, n: int, itemsize: int, wave: int) -> Filling | None:
    """Return the work division for one-pass filling, or None if rows are too wide.

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
    # If the row length is not a multiple of a vector, a row begins within a vector.
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
    """Return whether a position is stored twice; determined once per pattern."""
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
