"""List the operations of an iteration, and group the ones that can share a kernel.

Two cases are detected. A product followed by an operation on the rows of its result becomes one
kernel, which saves reading the result. An iteration that consists only of products and such
operations, for one vector, becomes one persistent kernel with barriers between its blocks (see
:mod:`wollemi.backends.cuda.loop`).

The analysis uses only operations and addresses; it needs no GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...core.calls import SpmvCall
from ...core.operations import matrix as products
from ...core.program import Call
from ..simt.operands import address, is_contiguous, is_rowwise, is_vector


@dataclass(frozen=True)
class TapeStep:
    """Operations that share a kernel: a product, an operation on rows, or both in this order.

    Attributes
    ----------
    push : tuple or None
        ``halo.push`` of the vector from which the product gathers, and its arguments.
    product : tuple or None
        ``csr.spmv`` and its arguments.
    rows : tuple or None
        A map operation and its arguments.
    other : tuple or None
        Any other operation and its arguments, in a separate kernel.
    """

    product: Call | None = None
    rows: Call | None = None
    other: Call | None = None
    push: Call | None = None

    @property
    def calls(self) -> list[Call]:
        """The operations in order."""
        found = (self.other, self.push, self.product, self.rows)
        return [call for call in found if call is not None]

    @property
    def spmv(self) -> SpmvCall | None:
        """The operands of the product, by name."""
        return None if self.product is None else SpmvCall(*self.product.arguments)

    @property
    def gathers(self) -> int | None:
        """The address of the vector from which the product gathers."""
        return None if self.spmv is None else address(self.spmv.x)

    @property
    def writes(self) -> set[int]:
        """The addresses of written vectors."""
        return {a for call in self.calls for a in written_vectors(call)}

    @property
    def has_sum(self) -> bool:
        """Whether the operation on rows has a sum, which all blocks must wait for."""
        return self.rows is not None and bool(self.rows.operation.sums)


def steps_of(program: Sequence[Call]) -> list[TapeStep]:
    """Group the operations of a program into the kernels of a graph."""
    return list(_steps(program))


def _steps(calls: Sequence[Call]) -> Iterator[TapeStep]:
    at = 0
    while at < len(calls):
        call = calls[at]
        following = calls[at + 1] if at + 1 < len(calls) else None
        if call.operation is products.csr_spmv:
            if following is not None and may_follow(call, following):
                yield TapeStep(product=call, rows=following)
                at += 2
                continue
            yield TapeStep(product=call)
        elif is_rowwise(call.operation):
            yield TapeStep(rows=call)
        else:
            yield TapeStep(other=call)
        at += 1


def written_vectors(call: Call) -> set[int]:
    """Return the addresses of written vectors with one element per row."""
    operation, arguments = call
    if operation is products.csr_spmv:
        return {address(SpmvCall(*arguments).y)}
    return {
        address(argument)
        for parameter, argument in zip(operation.parameters, arguments, strict=True)
        if parameter.is_array
        and parameter.intent != "in"
        and (is_vector(operation, parameter) or operation.over is None)
    }


def may_follow(product: Call, rows: Call) -> bool:
    """Return whether an operation can process a row right after the row's product.

    It must work on the same rows of one vector, and must not write the vector from which the
    product gathers.
    """
    operation, arguments = rows
    operands = SpmvCall(*product.arguments)
    x, y = operands.x, operands.y
    if not is_rowwise(operation) or int(y.shape[1]) != 1:
        return False
    vectors = [
        argument
        for parameter, argument in zip(operation.parameters, arguments, strict=True)
        if parameter.is_array and is_vector(operation, parameter)
    ]
    same = all(int(v.shape[0]) == int(y.shape[0]) and v.dtype == y.dtype for v in vectors)
    if not (is_contiguous(x) and is_contiguous(y)):
        return False
    return same and address(x) not in written_vectors(rows)
