"""Analyze the programs of a batch member: operations, vectors, and memory requirements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.operations import matrix as products
from ...core.program import Call
from ..unified.wrappers import NARROW_TYPES, VALUE_TYPES
from . import batch_gmres as basis_steps
from . import batch_inverse as inverse_steps
from .batch_shape import Needs, padded
from .fused import REAL
from .operands import CODES, address, is_contiguous, is_rowwise, is_vector, row_arrays

if TYPE_CHECKING:
    from ...core.batch.systems import MemberPrograms

#: A member's programs, in the order in which a system runs them.
PROGRAMS = ("refresh", "measure", "restart", "iterate", "finish", "judge")

#: Codes of the 16-bit dtypes in which a basis may be stored.
_NARROW = {"float16": "f2", "bfloat16": "b2"}


class UnsuitedProgram(Exception):
    """The programs contain an operation that a block cannot run."""


def recorded(member: MemberPrograms) -> dict[str, list[Call]]:
    """Return the operations of each program.

    Raises
    ------
    UnsuitedProgram
        If an operation is neither a product, nor a diagonal, nor a step of GMRES, nor rowwise on
        one contiguous vector.
    """
    executor = member.status.executor
    result: dict[str, list[Call]] = {}
    for name in PROGRAMS:
        program = getattr(member, name)
        result[name] = [] if program is None else list(executor.record(program.body).expanded())
    cells, inverses = numbers_of(result), set(inverse_steps.inverses_of(result))
    for call in (call for calls in result.values() for call in calls):
        _check(call, member, cells, inverses)
    return result


def numbers_of(programs: dict[str, list[Call]]) -> set[int]:
    """Return the addresses of arrays from which operations take one number per system."""
    return {
        address(array)
        for calls in programs.values()
        for call in calls
        for parameter, array in call.named
        if parameter.is_array
        and len(parameter.dims) == 1
        and array.size == 1
        and not is_vector(call.operation, parameter)
    }


def _check(call: Call, member: MemberPrograms, cells: set[int], inverses: set[int]) -> None:
    operation, arguments = call
    if operation is products.csr_diagonal:
        matrix, vectors = arguments[0], [arguments[1]]
    elif basis_steps.is_step(call):
        if basis_steps.adds_vectors(call):
            raise UnsuitedProgram(f"{operation.name} of further vectors")
        matrix, vectors = None, [array for array, _ in basis_steps.vectors_of_step(call)]
    elif inverse_steps.is_inversion(call):
        if address(inverse_steps.named(call)["data"]) != address(member.values):
            raise UnsuitedProgram(f"{operation.name} of another matrix")
        matrix, vectors = None, []
    elif inverse_steps.is_product(call):
        matrix, vectors = arguments[0], list(arguments[1:3])
        if address(matrix.data) in inverses:
            matrix = None
        elif operation is not products.csr_spmv:
            raise UnsuitedProgram(operation.name)
    elif is_rowwise(operation):
        matrix = None
        vectors = [array for _, array in row_arrays(call)]
    else:
        raise UnsuitedProgram(operation.name)
    n = int(member.x.shape[0])
    if matrix is not None and address(matrix.data) != address(member.values):
        raise UnsuitedProgram(f"{operation.name} of another matrix")
    if is_of_cells(call, n, cells):
        return
    if not all(v.size == n and is_contiguous(v.reshape(n, 1)) for v in vectors):
        raise UnsuitedProgram(f"{operation.name} of another shape")


def is_of_cells(call: Call, n: int, cells: set[int]) -> bool:
    """Return whether an operation works only on arrays with one element per system."""
    if call.operation.sums or not is_rowwise(call.operation):
        return False
    arrays = [array for _, array in row_arrays(call)]
    if n == 1:
        return all(address(array) in cells for array in arrays)
    return all(array.size == 1 for array in arrays)


def arrays_of(call: Call) -> Iterator[tuple[Any, bool]]:
    """Yield the vectors of an operation, and whether it writes each of them."""
    operation, arguments = call
    if inverse_steps.is_product(call):
        yield arguments[1], False
        yield arguments[2], True
    elif operation is products.csr_diagonal:
        yield arguments[1], True
    elif basis_steps.is_step(call):
        yield from basis_steps.vectors_of_step(call)
    elif inverse_steps.is_inversion(call):
        return
    else:
        for parameter, array in row_arrays(call):
            yield array, parameter.intent != "in"


def type_of(array: Any) -> str:
    """Return the C type of a vector's elements."""
    code = CODES.get(array.dtype, "")
    if array.dtype == np.uint8:
        return "wl::u8"
    if array.dtype.name in _NARROW:
        return NARROW_TYPES[_NARROW[array.dtype.name]]
    if code not in VALUE_TYPES:
        raise UnsuitedProgram(f"a vector of {array.dtype}")
    return VALUE_TYPES[code]


def value_of(call: Call, value: str) -> str:
    """Return the code of the dtype in which an operation computes."""
    if inverse_steps.is_product(call):
        return CODES[call.arguments[1].dtype]
    for parameter, array in call.named:
        if parameter.is_array and parameter.kind == "T":
            return CODES[array.dtype]
    return value


def gathered_by(programs: dict[str, list[Call]]) -> set[int]:
    """Return the addresses of the vectors from which work-items read elements of any row."""
    calls = [call for calls in programs.values() for call in calls]
    of_products = {address(c.arguments[1]) for c in calls if inverse_steps.is_product(c)}
    steps = (call for call in calls if basis_steps.is_step(call))
    return of_products | {address(v) for c in steps for v in basis_steps.gathered_by_step(c)}


@dataclass
class Vector:
    """An array with one element per row, and whether a program writes it."""

    array: Any
    is_written: bool


def vectors_of(member: MemberPrograms, programs: dict[str, list[Call]]) -> dict[int, Vector]:
    """Return the vectors of all programs by address; each system has its own copy of ``x``."""
    result = {address(member.x): Vector(member.x, is_written=True)}
    cells = numbers_of(programs)
    for calls in programs.values():
        for call in calls:
            if is_of_cells(call, int(member.x.shape[0]), cells):
                continue
            for array, writes in arrays_of(call):
                result.setdefault(address(array), Vector(array, False)).is_written |= writes
    return result


@dataclass(frozen=True)
class Part:
    """An array of each system besides its vectors.

    Attributes
    ----------
    nbytes : int
        Size in bytes.
    kind : str
        The C type of its elements.
    is_long : bool
        Whether it may be stored outside of shared memory.
    is_far : bool
        Whether it is always outside of shared memory if the vectors are in shared memory.
    """

    nbytes: int
    kind: str
    is_long: bool = False
    is_far: bool = False


def parts_of(programs: dict[str, list[Call]], value: str, block: int = 1) -> dict[int | str, Part]:
    """Return the arrays of Krylov spaces and of inverses, by address or by name.

    ``block`` is the number of work-items that need separate scratch memory.
    """
    result: dict[int | str, Part] = {}
    itemsize = np.dtype(value).itemsize
    for call in (call for calls in programs.values() for call in calls):
        if inverse_steps.is_inversion(call):
            known = result[inverse_steps.WORK].nbytes if inverse_steps.WORK in result else 0
            nbytes = max(known, inverse_steps.work_of(call, block) * itemsize)
            result[inverse_steps.WORK] = Part(nbytes, VALUE_TYPES[value], is_far=True)
    for where, w in inverse_steps.inverses_of(programs).items():
        result[where] = Part(int(w.nbytes), type_of(w), is_long=True)
    for call in (call for calls in programs.values() for call in calls):
        if not basis_steps.is_step(call):
            continue
        for array, is_long in basis_steps.arrays_of_step(call):
            result[address(array)] = Part(int(array.nbytes), type_of(array), is_long)
        own = basis_steps.scratch_of_step(call, VALUE_TYPES[value], REAL[value])
        for name, kind in own.items():
            nbytes = basis_steps.length_of(call) * itemsize
            result[name] = Part(nbytes, kind)
    return result


def needs_of(member: MemberPrograms, programs: dict[str, list[Call]]) -> Needs:
    """Return the memory requirements of one system."""
    n = max(int(member.x.shape[0]), 1)
    written = (v.array for v in vectors_of(member, programs).values() if v.is_written)
    vectors = sum(padded(int(array.nbytes)) for array in written)
    parts = parts_of(programs, CODES[member.x.dtype]).values()
    vectors += sum(padded(p.nbytes) for p in parts if not (p.is_long or p.is_far))
    basis = sum(padded(part.nbytes) for part in parts if part.is_long)
    longest, repeats = _row_facts(member, programs)
    values, calls = member.values, [call for calls in programs.values() for call in calls]
    return Needs(
        n, vectors, padded(int(values.nbytes)), values.size / n, longest, values.itemsize, repeats,
        basis, sum(own_vectors_of(member, programs).values()),
        any(basis_steps.is_step(c) or inverse_steps.is_inversion(c) for c in calls)
        or _takes_plain_elements(member, programs),
    )  # fmt: skip


def _takes_plain_elements(member: MemberPrograms, programs: dict[str, list[Call]]) -> bool:
    """Return whether an operation takes a vector in memory by a pointer without a stride."""
    own = own_vectors_of(member, programs)
    return any(
        parameter.is_array and len(parameter.dims) == 1 and address(array) not in own
        for calls in programs.values()
        for call in calls
        if is_rowwise(call.operation)
        for parameter, array in call.named
        if is_vector(call.operation, parameter)
    )


def own_vectors_of(member: MemberPrograms, programs: dict[str, list[Call]]) -> dict[int, int]:
    """Return the element sizes of vectors without reads of other rows, by address."""
    shared = gathered_by(programs) | {address(member.b)}
    found = vectors_of(member, programs).items()
    return {where: int(v.array.itemsize) for where, v in found if where not in shared}


def is_of_matrix(call: Call, member: MemberPrograms) -> bool:
    """Return whether an operation multiplies by the system's matrix."""
    is_product = call.operation is products.csr_spmv
    return is_product and address(call.arguments[0].data) == address(member.values)


def _row_facts(member: MemberPrograms, programs: dict[str, list[Call]]) -> tuple[int, bool]:
    """Return the length of the longest row, and whether a row has duplicate entries."""
    for call in (call for calls in programs.values() for call in calls):
        if is_of_matrix(call, member):
            on, matrix = member.status.executor, call.arguments[0]
            indptr, indices = (np.asarray(on.to_host(a)) for a in (matrix.indptr, matrix.indices))
            rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
            places = rows * max(int(matrix.shape[1]), 1) + indices
            repeats = np.unique(places).size < places.size
            return int(np.diff(indptr).max(initial=0)), bool(repeats)
    return 0, False
