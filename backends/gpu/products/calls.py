"""Products of sparse and dense matrices: from the arguments of an operation to launches.

What differs between backends is an :class:`Adapter`; the choices are the same for all GPUs, and
what only some of them have is added as :mod:`.extra` says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.errors import InvalidArgument
from ....core.executor import Array
from ....core.statistics import Plan
from ...unified.wrappers import SimtKernel
from . import choice as ml_choice
from . import declarations as ml
from . import sddmm_named, spmm_kernels
from .dots import dot_constants, dot_kernel, known_of_rows
from .extra import Algorithm, Facts
from .spmm_kernels import by_rows

#: What indices of so many bytes can say.
_LARGEST = {4: 2**31 - 1, 8: 2**63 - 1}


class Adapter(ABC):
    """A device as the functions here see it.

    Parameters
    ----------
    executor : Executor
        Of the arrays.

    Attributes
    ----------
    copies : list of array
        What was copied for the launches of a call, so that its memory stays until they are made.
    """

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        self.copies: list[Array] = []

    @property
    @abstractmethod
    def wave(self) -> int:
        """Lanes of a wave."""

    @property
    @abstractmethod
    def waves(self) -> int:
        """How many waves the device holds."""

    @abstractmethod
    def address(self, array: Array) -> int:
        """Return where an array begins."""

    @abstractmethod
    def scratch(self, nbytes: int) -> int:
        """Return the address of memory that the launches of one call may use."""

    @abstractmethod
    def cut(self, indptr: Array, piece: int, *, sampled: bool) -> ml_choice.Pieces:
        """Return :func:`.choice.cut_rows` with arrays of the device."""

    def extra(self, operation: str) -> Sequence[Algorithm]:
        """Return the algorithms besides those of ``choice.KERNELS``, best first."""
        return (*spmm_kernels.NAMED.get(operation, ()), *sddmm_named.NAMED.get(operation, ()))

    @abstractmethod
    def launch(
        self,
        kernel: SimtKernel,
        items: int,
        arguments: tuple[Any, ...],
        dtype: Any,
        index: Any,
        **constants: int,
    ) -> None:
        """Launch a kernel on so many work-items."""

    def pieces(self, A: Any, piece: int, *, sampled: bool) -> ml_choice.Pieces:
        """Return what waves work through, made once for a pattern; rows are whole if piece is 0."""
        if not piece:
            return ml_choice.Pieces(A.shape[0], A.indptr)
        key = ("pieces", piece, sampled)
        if key not in A._pattern:
            A._pattern[key] = self.cut(A.indptr, piece, sampled=sampled)
        found: ml_choice.Pieces = A._pattern[key]
        return found

    def read(self, array: Array, index: Any) -> Operand:
        """Return an operand whose distance of rows fits an index."""
        made = self.operand(array)
        if abs(made.rows) > _LARGEST[index.itemsize]:
            made = self.operand(self._copied(array))
        return made

    def _copied(self, array: Array) -> Array:
        self.copies.append(self.executor.copy(array))
        return self.copies[-1]

    def operand(self, array: Array) -> Operand:
        """Return a batch ``(b, rows, columns)`` whose columns are neighbours."""
        blocks, rows, columns = array.shape
        item = array.dtype.itemsize
        return Operand(
            self.address(array),
            int(array.strides[1] // item) if rows > 1 else max(int(columns), 1),
            int(array.strides[0] // item) if blocks > 1 else 0,
        )

    def weights(self, values: Array | None) -> tuple[Array | None, int]:
        """Return values of entries as neighbours, and the distance of blocks."""
        if values is None:
            return None, 0
        blocks, count = values.shape
        item = values.dtype.itemsize
        if count > 1 and values.strides[1] != item:
            values = self._copied(values)
        return values, int(values.strides[0] // item) if blocks > 1 else 0

    def lines(self, count: int, dtype: Any) -> int:
        """Return the address of memory for so many sums."""
        return self.scratch(count * max(dtype.itemsize, 4)) if count else 0


class Operand(NamedTuple):
    """A batch of matrices by address; distances of rows and blocks are in elements."""

    address: int
    rows: int
    blocks: int

    def places(self, itemsize: int) -> tuple[int, ...]:
        """Return the bytes that a vector's address is made of."""
        return self.address, self.rows * itemsize, self.blocks * itemsize


def make_plan(to: Adapter, A: Any, operation: str, columns: int, kernel: str, dtype: str) -> Plan:
    """Choose an algorithm, and make what it keeps with the pattern."""
    statistics = A.row_statistics
    extra = to.extra(operation)
    facts = Facts(statistics, columns, dtype, np.dtype(A.indices.dtype))
    for algorithm in extra:
        if kernel not in ("auto", algorithm.name):
            continue
        if kernel == "auto":
            reason = algorithm.chosen(to, A, facts)
        else:
            objection = algorithm.objection(to, A, facts) or algorithm.defect(to, A)
            if objection:
                raise InvalidArgument(f"{operation} cannot run {kernel!r}: {objection}")
            reason = "asked for"
        if reason:
            return Plan(algorithm.name, reason, statistics, algorithm.plan(to, A, facts))
    if kernel == "auto":
        choice = ml_choice.choose(operation, statistics, to.waves, columns, facts.itemsize)
        for algorithm in extra:
            if algorithm.name == choice.kernel:
                state = algorithm.plan(to, A, facts)
                return Plan(choice.kernel, choice.reason, statistics, state)
    else:
        names = [algorithm.name for algorithm in extra]
        is_sum = operation == "spmm"
        piece = ml_choice.summed_piece(statistics, columns) if is_sum else ml_choice.SUMMED_PIECE
        choice = ml_choice.asked(operation, kernel, to.executor.name, names, piece)
    items = to.pieces(A, choice.piece, sampled=operation == "sddmm")
    return Plan(choice.kernel, choice.reason, statistics, items)


def by_extra(to: Adapter, operation: str, plan: Plan, A: Any, *arguments: Any) -> bool:
    """Run the plan if its algorithm is one that not every device has, and say whether it is."""
    for algorithm in to.extra(operation):
        if algorithm.name == plan.kernel:
            algorithm.run(to, A, plan.state, *arguments)
            return True
    return False


def spmm(
    to: Adapter,
    A: Any,
    values: Array,
    B: Array,
    C: Array,
    alpha: complex,
    beta: complex,
    kernel: str,
) -> None:
    """Give waves rows or pieces of them, and add up the pieces."""
    batch, m, k = C.shape
    if batch * m * k == 0:
        return
    plan = A.plan_for("spmm", k, kernel, C.dtype)
    if by_extra(to, "spmm", plan, A, values, B, C, alpha, beta):
        return
    by_rows(to, A, plan.state, values, B, C, alpha, beta)


def sddmm(
    to: Adapter,
    A: Any,
    values: Array | None,
    C: Array,
    B: Array,
    S: Array,
    alpha: float,
    beta: float,
    kernel: str,
) -> None:
    """Give waves some entries of a row each."""
    batch, _, k = C.shape
    if S.size == 0:
        return
    plan = A.plan_for("sddmm", k, kernel, C.dtype)
    if by_extra(to, "sddmm", plan, A, values, C, B, S, alpha, beta):
        return
    items: ml_choice.Pieces = plan.state
    index, dtype = A.indices.dtype, C.dtype
    of_C, of_B = to.read(C, index), to.read(B, index)
    weights, step = to.weights(values)
    constants = dot_constants(dtype, k, batch, of_C, of_B)
    to.launch(
        dot_kernel(ml.csr_sddmm, dtype, constants["WHOLE"]),
        items.items * batch * to.wave,
        (
            items.items, k, batch, items.bounds, items.target, A.indices, weights, step, *of_C,
            *of_B, S, int(S.strides[0] // dtype.itemsize) if batch > 1 else 0, alpha, beta,
        ),
        dtype,
        index,
        **constants,
    )  # fmt: skip


def fusedmm(
    to: Adapter,
    A: Any,
    values: Array | None,
    C: Array,
    B: Array,
    D: Array,
    E: Array,
    alpha: float,
    edge: str,
    kernel: str,
) -> None:
    """Give waves rows or pieces of them; where D is B its rows are loaded once."""
    batch, m, p = E.shape
    k = int(C.shape[2])
    if batch * m * p == 0:
        return
    plan = A.plan_for("fusedmm", k, kernel, C.dtype)
    if by_extra(to, "fusedmm", plan, A, values, C, B, D, E, alpha, edge):
        return
    items: ml_choice.Pieces = plan.state
    index, dtype = A.indices.dtype, C.dtype
    item = dtype.itemsize
    of_C, of_B, of_D = (to.read(array, index) for array in (C, B, D))
    of_E = to.operand(E)
    weights, step = to.weights(values)
    dense = (of_C, of_B, of_D, of_E)
    each = ml.elements(item, (k, p), tuple(place for o in dense for place in o.places(item)))
    same = of_B == of_D and k == p
    lanes, of_k, of_p = ml.fused_shape(-(-k // each), -(-p // each), same=same)
    width = lanes * of_p * each
    tiles = -(-p // width)
    same = same and tiles == 1
    partial = to.lines(batch * items.lines * (p + 2), dtype)
    function = ml.EDGES[edge]
    whole = k == lanes * of_k * each and p % width == 0
    known = known_of_rows(whole, batch * tiles, k, of_C, of_B)
    if known == 2 and of_D.rows != p:
        known = 1
    to.launch(
        dot_kernel(ml.csr_fusedmm, dtype, known),
        items.items * tiles * batch * to.wave,
        (
            items.items, k, p, batch, items.bounds, items.target, A.indices, weights, step, *of_C,
            *of_B, *of_D, *of_E, alpha, items.lines, partial,
        ),
        dtype,
        index,
        L=lanes,
        VK=of_k,
        VP=of_p,
        E=each,
        A=ml.dots_ahead(lanes, max(of_k, of_p)),
        EDGE=function,
        SAME=int(same),
        WHOLE=known,
    )  # fmt: skip
    if items.lines:
        cuts = int(items.cut_rows.size)
        to.launch(
            ml.fusedmm_join,
            cuts * p * batch,
            (cuts, p, batch, items.cut_rows, items.first_line, items.lines, partial, *of_E),
            dtype,
            index,
            EDGE=function,
        )
