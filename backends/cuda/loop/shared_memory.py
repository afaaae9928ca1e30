"""On-chip data of the persistent kernel: in registers and in the shared memory of its blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...gpu.spmv import packed
from ...simt.operands import address, row_arrays
from .schedule import Arnoldi, Phase, Schedule

if TYPE_CHECKING:
    from ....core.formats.compressed import CompressedRows
    from ....core.formats.csr import Csr


@dataclass(frozen=True)
class GridShape:
    """The launch shape of a kernel, and its arrays in shared memory.

    Attributes
    ----------
    block, blocks : int
        Work-items per block, and number of blocks.
    rows : int
        Upper bound of rows per work-item.
    cluster : int
        Blocks per cluster; 0 for a grid.
    matrices : bool
        Whether shared memory holds the matrices.
    basis : int
        Number of basis vectors in shared memory.
    vectors : int
        Number of other vectors in shared memory.
    """

    block: int
    blocks: int
    rows: int
    cluster: int = 0
    matrices: bool = False
    basis: int = 0
    vectors: int = 0


@dataclass
class SharedMemory:
    """Allocates the shared memory of a block array by array."""

    nbytes: int = 0
    lines: list[str] = field(default_factory=list)

    def array(self, kind: str, count: int, itemsize: int, name: str) -> str:
        """Reserve an array and return its name."""
        self.lines.append(
            f"  auto* const {name} = reinterpret_cast<{kind}*>(shared + {self.nbytes});\n"
        )
        self.nbytes += -(-count * itemsize // 16) * 16
        return name


def matrices_of(phases: list[Phase]) -> list[Any]:
    """Return the distinct matrices of all products."""
    found = {id(a.spmv.A): a.spmv.A for a in phases if a.spmv is not None}
    return list(found.values())


def matrix_bytes(matrix: Csr, slots: int) -> int:
    """Return a block's shared memory for a matrix with ``slots`` rows per block."""
    width = max(int(matrix.plan.statistics.longest), 1)
    return width * slots * (matrix.dtype.itemsize + 4) + 32


def pattern_bytes(matrix: CompressedRows, slots: int) -> int:
    """Return the shared memory for column offsets shared by rows; 0 for other matrices."""
    state = matrix.plan.state
    if not isinstance(state, packed.Packed) or state.code != packed.PATTERN:
        return 0
    assert state.offsets is not None
    return 4 * int(state.offsets.size) + slots + 32


def small_bytes(arnoldi: Arnoldi, shape: GridShape, warp: int) -> int:
    """Return a block's shared memory for GMRES, except for basis vectors."""
    size, itemsize = int(arnoldi.basis.shape[0]), arnoldi.hessenberg.dtype.itemsize
    return size * (6 + shape.block // warp + shape.cluster) * itemsize + 9 * 16


def live_in(plan: Schedule) -> set[int]:
    """Return the vectors that a round reads before it writes them."""
    live: set[int] = set()
    written: set[int] = set()
    for at, phase in enumerate(plan.phases):
        if at in plan.first:
            live |= set(plan.first[at].sources) - written
        if phase.spmv is not None and phase.spmv.beta != 0:
            live |= {address(phase.spmv.y)} - written
        if phase.spmv is not None:
            written |= {address(phase.spmv.y)}
        live |= phase.reads - written
        written |= phase.writes
    return live


def in_shared(plan: Schedule, kinds: dict[int, str], kind: str) -> list[int]:
    """Return the vectors that may be in shared memory, least used first.

    Equally used vectors keep the order of ``kinds``, because the text must not depend on addresses.
    """
    used: dict[int, int] = {}
    for phase in plan.phases:
        for where in (*phase.reads, *phase.writes):
            used[where] = used.get(where, 0) + 1
    fixed = {address(phase.arnoldi.w) for phase in plan.phases if phase.arnoldi is not None}
    flat = {
        address(a) for phase in plan.phases for p, a in row_arrays(phase.rows) if len(p.dims) == 1
    }
    found = live_in(plan) - fixed - flat
    return sorted(
        (w for w in kinds if w in found and kinds[w] == kind), key=lambda w: used.get(w, 0)
    )


def mailboxes_of_sums(shape: GridShape) -> int:
    """Return the words of mailboxes for sums: two buffers of 16 words per block."""
    return 2 * 16 * shape.blocks


def mailboxes_of_many(phases: list[Phase], shape: GridShape) -> int:
    """Return the words of mailboxes for all inner products of GMRES at once."""
    sizes = [
        int(a.arnoldi.basis.shape[0]) * 2 * max(a.arnoldi.hessenberg.dtype.itemsize // 8, 1)
        for a in phases
        if a.arnoldi is not None
    ]
    return max(sizes, default=0) * (shape.blocks + 1)


def counts_barriers(phases: list[Phase]) -> bool:
    """Return whether a kernel keeps the number of its last barrier in memory.

    It must if a graph launches it repeatedly. Other kernels get the number by value: with a number
    read from memory, CG at 64^3 took 10.3 microseconds instead of 9.7 (H200).
    """
    return any(phase.arnoldi is not None for phase in phases)
