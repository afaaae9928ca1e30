"""Generate the kernel that solves a batch, from the programs of one system.

Each block solves one system and runs the operations of the programs one after the other. A barrier
of the block replaces the barrier of the grid in the solve of a single system. Shared memory holds
the scalars of a system (first of all its status) and, if they fit, the vectors that the programs
write. Arrays that no program writes are shared by all systems.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.operations import matrix as products
from ...core.program import Call
from ..unified.wrappers import INDEX_TYPES, VALUE_TYPES, functor
from . import batch_gmres as basis_steps
from . import batch_inverse as inverse_steps
from . import fused
from .batch_programs import (
    PROGRAMS,
    Part,
    UnsuitedProgram,
    Vector,
    arrays_of,
    is_of_cells,
    is_of_matrix,
    numbers_of,
    own_vectors_of,
    parts_of,
    type_of,
    value_of,
    vectors_of,
)
from .batch_shape import (
    TILE_LANES,
    BatchShape,
    BatchTarget,
    cells_of_tile,
    distance_in_tile,
    padded,
    parts_of_lane,
)
from .fused import REAL, Arguments, Kernel
from .operands import CODES, address, row_arrays

if TYPE_CHECKING:
    from ...core.batch.systems import MemberPrograms

#: Parameters of a kernel after the arguments of its operations.
_OPERANDS = (
    "wl::i64 first_system", "const {real}* all_values", "const wl::i64* matrices",
    "wl::i64 width", "const {real}* all_b", "{real}* all_x", "wl::i64 started",
    "const double* relative", "const double* absolute", "wl::i64 apart", "wl::i64 limit",
    "double least", "double most", "double least_norm", "wl::u8* codes", "wl::i64* iterations",
    "double* norms", "double* thresholds", "wl::i32* undecided", "wl::u8* arena",
)  # fmt: skip

#: The body of a kernel; it decides as ``solve_system`` in ``backends/omp/batch.hpp`` does.
_BODY = """\
  struct cells {{{members} }};
  WL_SHARED(cells, of_block, 1);
  cells& s = of_block[0];
  const wl::item it{{}};
{memory}  const wl::i64 k = first_system + it.block(), entries = {entries};
  const wl::i64 matrix = matrices ? matrices[k] : width == 1 ? k : k / width;
  const {real}* const own_values = all_values + matrix * entries;
{own}{opening}{values}  if (started) {{
    {load_x}
  }}
  if (it.thread() == 0) {{
{loads}    s.iterations = 0;
  }}
  it.barrier();
  const wl::status_of<{real}> status{{&s.stop, &s.iterations, &s.norm, &s.threshold,
                                           &s.history, &s.running, 1, 1}};
{lambdas}  using R = {size};
  wl::u8 code = 255;
  refresh_system();
{after_refresh}  if (!({failed})) {{
    measure_system();
{after_measure}    const R length = *{first};
    const bool is_zero = length == R(0) && !started && wl::are_zero(it, {n}, all_b + k * {n});
    if (is_zero || (length >= R(least) && length <= R(most))) {{
      const R by_length = R(relative[k * apart]) * length,
              at_least = R(absolute[k * apart]);
      const R threshold = by_length > at_least ? by_length : at_least;
      R before(0), best(0);
      for (bool again = false;; again = true) {{
        it.barrier();
        if (it.thread() == 0)
          s.threshold = threshold, s.stop = 0, s.running = 1;
        it.barrier();
        restart_system();
{after_restart}        best = again && best < s.norm ? best : s.norm;
        const bool begins = s.running != 0;
        if (begins) {{
          const wl::i64 left = limit - s.iterations, turns = left < {cycle} ? left : {cycle};
          for (wl::i64 turn = 0; turn < turns && s.running != 0; ++turn) {{
            iterate_system();
{after_iterate}          }}
          finish_system();
{after_finish}        }}
        judge_system();
{after_judge}        const R truth = *{truth}, largest = *{largest};
        if (!(truth - truth == R(0)) || !(largest - largest == R(0)))
          break;
        if (truth <= threshold) {{
          const bool is_exact = truth == R(0) && (is_zero || threshold >= R(least_norm));
          if (truth >= R(least_norm) || is_exact)
            code = 1;
          break;
        }}
        const bool exhausted = s.iterations >= limit, ended = s.stop != 0 || !begins;
        if (exhausted && !ended && truth <= best) {{
          code = 6;
          break;
        }}
        if (exhausted || (ended && again && !(truth <= R({progress}) * before)))
          break;
        before = truth;
      }}
      if (code != 255) {{
        {store_x}
        if (it.thread() == 0) {{
          iterations[k] = s.iterations;
          norms[k] = double(*{truth});
          thresholds[k] = double(threshold);
        }}
      }}
    }}
  }}
  if (it.thread() == 0) {{
    codes[k] = code;
    if (code == 255) {{
      iterations[k] = 0;
      norms[k] = thresholds[k] = wl::not_a_number();
      wl::fetch_add(undecided, 1);
    }}
  }}
"""


@dataclass(frozen=True)
class SizedKernel:
    """A kernel with its memory requirements.

    Attributes
    ----------
    kernel : Kernel
        The kernel's text and its constant arguments.
    shape : BatchShape
        The launch shape.
    shared : int
        Bytes of shared memory per block.
    arena : int
        Bytes of other device memory per block.
    kept : tuple of array
        Arrays that the kernel reads, to be kept alive.
    """

    kernel: Kernel
    shape: BatchShape
    shared: int
    arena: int
    kept: tuple[Any, ...] = ()


def system_kernel(
    member: MemberPrograms, programs: dict[str, list[Call]], shape: BatchShape, target: BatchTarget
) -> SizedKernel:
    """Return the kernel that solves one system of a batch in each of its blocks.

    Its arguments are ``kernel.values``, followed by ``_OPERANDS``: the first system, the values of
    all matrices, the matrix of each system or none, the number of systems per matrix in that case,
    right-hand sides, solutions, whether solutions hold starting values, relative and absolute
    tolerances and their stride, the iteration limit, the smallest and largest norm of a right-hand
    side, the smallest norm of a residual, the arrays of verdicts, and the arena.
    """
    return _Text(member, programs, shape, target).kernel()


class _Text:
    def __init__(
        self,
        member: MemberPrograms,
        programs: dict[str, list[Call]],
        shape: BatchShape,
        target: BatchTarget,
    ) -> None:
        self.member, self.programs, self.shape, self.target = member, programs, shape, target
        value = CODES[member.x.dtype]
        self.arguments = Arguments(value)
        self.arguments.status = member.status
        self.real, self.size = VALUE_TYPES[value], REAL[value]
        n = int(member.x.shape[0])
        self.rows, self.n = n, self.arguments.plain("wl::i64", n)
        self.opening: list[str] = []
        #: Bytes of a block's memory so far, and of its arrays outside of it.
        self.memory = self.far = 0
        self.cells = numbers_of(programs)
        #: Arrays that the kernel reads and that have no other owner.
        self.kept: list[Any] = []
        own = own_vectors_of(member, programs)
        #: C expressions of vectors, and of a work-item's elements of vectors, by address.
        self.names: dict[int, str] = {}
        self.elements: dict[int, str] = {}
        #: C pointers to arrays that are not vectors, by address or name.
        self.parts: dict[int | str, str] = {}
        for at, (where, vector) in enumerate(vectors_of(member, programs).items()):
            name, kind = f"v{at}", type_of(vector.array)
            if where == address(member.b) and vector.is_written:
                raise UnsuitedProgram("a program writes b")
            if shape.held and where in own:
                self._in_register(where, vector, name, kind)
            else:
                self._in_memory(where, vector, name, kind)
            # a functor takes non-const pointers, even to arrays that it only reads
            element = f"const_cast<{kind}*>({self.elements[where]})"
            self.arguments.renamed[where] = (element, self._distance(where))
        for at, (key, part) in enumerate(parts_of(programs, value, shape.block).items()):
            self._define_part(key, part, f"k{at}")

    def _distance(self, where: int) -> str:
        """Return the stride of a work-item's elements of a vector."""
        return "own.distance" if self.shape.held and where in self.names else "1"

    def _define_part(self, key: int | str, part: Part, name: str) -> None:
        """Define a pointer to an array that is not a vector."""
        may_leave = part.is_far or (part.is_long and not self.shape.basis_shared)
        outside = may_leave and self.shape.vectors_shared
        place = self._part(part.nbytes, part.kind, outside=outside)
        self.opening.append(f"  {part.kind}* const {name} = {place};\n")
        self.parts[key] = name

    def _in_memory(self, where: int, vector: Vector, name: str, kind: str) -> None:
        """Define a pointer to all elements of a vector."""
        if where == address(self.member.b):
            self.opening.append(f"  const {kind}* const {name} = all_b + k * {self.n};\n")
        elif vector.is_written:
            clear = f"wl::clear_rows(it, {self.n}, {name})"
            if self.shape.held:
                clear = f"wl::clear_own_rows(own, {name} + own.first, own.distance)"
            self.opening.append(
                f"  {kind}* const {name} = {self._part(int(vector.array.nbytes), kind)};\n"
                f"  {clear};\n"
            )
        else:
            pointer = self.arguments.pointer(vector.array, kind)
            self.opening.append(f"  {kind}* const {name} = {pointer};\n")
        self.names[where] = name
        self.elements[where] = f"{name} + own.first" if self.shape.held else name

    def _part(self, nbytes: int, kind: str, *, outside: bool = False) -> str:
        """Reserve memory of a block for a new array and return the pointer to it."""
        if outside:
            begin, self.far = self.far, self.far + padded(nbytes)
        else:
            begin, self.memory = self.memory, self.memory + padded(nbytes)
        # Compilers of static targets are slow: one program serves systems of many sizes.
        place = self.arguments.plain("wl::i64", begin) if self.target.static else str(begin)
        return f"reinterpret_cast<{kind}*>({'far' if outside else 'memory'} + {place})"

    def _in_register(self, where: int, vector: Vector, name: str, kind: str) -> None:
        """Define a work-item's elements of a vector, with zeros beyond its rows."""
        self.opening.append(f"  {kind} {name}[{self.shape.rows}]{{}};\n")
        if not vector.is_written:
            pointer = self.arguments.pointer(vector.array, kind)
            taken = f"own, {pointer} + own.first, own.distance, {name}, 1"
            self.opening.append(f"  wl::copy_own_rows({taken});\n")
        self.elements[where] = name

    # ---- programs

    def _program(self, name: str) -> tuple[str, bool]:
        """Return the statements of a program, and whether the last one is a barrier.

        A barrier precedes the program and separates operations in which one work-item reads
        elements that another one writes. In all operations except products with shared rows, each
        row belongs to the same work-item.
        """
        lines: list[str] = []
        written: set[int] = set()
        gathered: set[int] = set()
        for call in self.programs[name]:
            if is_of_cells(call, self.rows, self.cells):
                made = self._in_own_dtype(call, self._of_cells)
                lines += ["it.barrier();\n", made, "it.barrier();\n"]
                written, gathered = set(), set()
                continue
            is_product = inverse_steps.is_product(call)
            vectors = list(arrays_of(call))
            gathers = {address(call.arguments[1])} if is_product else set()
            writes = {address(a) for a, w in vectors if w}
            crosses = bool(gathers & written) or bool(writes & gathered)
            if is_product and self.shape.lanes > 1:
                crosses = crosses or bool({address(a) for a, _ in vectors} & written)
            if crosses:
                lines.append("it.barrier();\n")
                written, gathered = set(), set()
            lines.append(self._in_own_dtype(call, self._statement))
            if call.operation.sums or basis_steps.is_step(call):
                written, gathered = set(), set()  # the statement ends with a barrier
            else:
                written |= writes
                gathered |= gathers
            if is_product and self.shape.lanes > 1:
                lines.append("it.barrier();\n")
                written, gathered = set(), set()
        together = not lines or not (written or gathered)
        return "".join(f"    {line}" for line in lines), together

    def _in_own_dtype(self, call: Call, statement: Callable[[Call], str]) -> str:
        """Return the statement of an operation, in its own dtype of computation."""
        usual = self.arguments.value
        self.arguments.value = value_of(call, usual)
        try:
            return statement(call)
        finally:
            self.arguments.value = usual

    def _statement(self, call: Call) -> str:
        arguments, (operation, given) = self.arguments, call
        real = VALUE_TYPES[arguments.value]
        if inverse_steps.is_inversion(call):
            return self._inversion(call)
        if inverse_steps.is_product(call):
            matrix, x, y, alpha, beta = given
            numbers = [self._factor(a, x.dtype) for a in (alpha, beta)]
            source = self.names[address(x)]
            if not is_of_matrix(call, self.member):
                constant, size = int(bool(self.shape.held)), inverse_steps.block_size(matrix)
                data, target = self.parts[address(matrix.data)], self.elements[address(y)]
                vectors = [data, source, target]
                taken = ", ".join([self.n, str(size), *self._pattern(matrix), *vectors, *numbers])
                return f"wl::multiply_inverse<{constant}, {real}>(it, {taken});\n"
            if self.shape.held:
                written = [self.elements[address(y)], self._distance(address(y))]
                taken = ", ".join(["held", source, *written, *numbers])
                return f"wl::multiply_own_rows<{real}>(it, own, {taken});\n"
            vectors = [source, self.names[address(y)]]
            taken = ", ".join([self.n, *self._pattern(given[0]), "values", *vectors, *numbers])
            return f"wl::multiply_rows<{self.shape.lanes}, {real}>(it, {taken});\n"
        if operation is products.csr_diagonal:
            target = self.elements[address(given[1])]
            if self.shape.held:
                distance = self._distance(address(given[1]))
                return f"wl::diagonal_of_own_rows(own, held, {target}, {distance});\n"
            taken = ", ".join([self.n, *self._pattern(given[0]), "values", target])
            return f"wl::diagonal_of_rows(it, {taken});\n"
        if basis_steps.is_step(call):
            return self._step_of_basis(call)
        if self.shape.held:
            run = "add_up_own_rows(it, own" if operation.sums else "for_own_rows(own"
            return self._functor(call, run)
        run = "add_up_rows" if operation.sums else "for_rows"
        return self._functor(call, f"{run}(it, {self.n}")

    def _factor(self, value: complex, dtype: np.dtype[Any]) -> str:
        """Return a factor of a product; compilers leave out 0, 1 and -1 where the text has them."""
        if value in (0, 1, -1):
            return f"{VALUE_TYPES[self.arguments.value]}({int(value.real)})"
        return self.arguments.number(value, dtype)

    def _inversion(self, call: Call) -> str:
        """Return the statement that computes rows of an approximate inverse."""

        def expression(name: str, argument: Any) -> str:
            if name in self.parts:
                return self.parts[name]
            if name == "w":
                return self.parts[address(argument)]
            if name == "singular":
                return self.arguments.cell(argument, "wl::i64")
            if name == "data":
                return "values"
            kind = f"const {INDEX_TYPES[CODES[argument.dtype]]}"
            return self.arguments.pointer(argument, kind)

        return inverse_steps.inversion(call, expression)

    def _step_of_basis(self, call: Call) -> str:
        """Return the statement of a step of GMRES."""
        arguments, of_rows = self.arguments, basis_steps.STEPS[call.operation].of_rows
        named = {parameter.name: (parameter, array) for parameter, array in call.named}

        def expression(name: str) -> str:
            if name in ("n", "s"):
                return self.n if name == "n" else str(basis_steps.length_of(call))
            if name in self.parts:
                return self.parts[name]
            parameter, array = named[name]
            if parameter.is_status:
                return "status"
            where = address(array)
            if where in self.parts:
                return self.parts[where]
            if len(parameter.dims) == 1:
                kind = REAL[arguments.value] if parameter.kind == "R" else f"wl::{parameter.kind}"
                return arguments.cell(array, kind)
            return (self.elements if of_rows and name != "w" else self.names)[where]

        return basis_steps.statement(call, bool(self.shape.held), expression)

    def _functor(self, call: Call, run: str) -> str:
        """Return the statement that runs the functor of a rowwise operation through ``run``."""
        kind = functor(call.operation, self.arguments.value)
        made = self.arguments.members(*call, together=True).removeprefix(kind)
        return f"{{ const {kind} f{made}; wl::{run}, f); }}\n"

    def _of_cells(self, call: Call) -> str:
        """Return the statement of an operation on scalars of the system."""
        arguments, known = self.arguments, dict(self.arguments.renamed)
        for _, array in row_arrays(call):
            arguments.renamed[address(array)] = (arguments.cell(array, type_of(array)), "1")
        statement = self._functor(call, "for_rows(it, 1")
        arguments.renamed = known
        return statement

    def _pattern(self, matrix: Any) -> list[str]:
        kind = f"const {INDEX_TYPES[CODES[matrix.indices.dtype]]}"
        return [self.arguments.pointer(a, kind) for a in (matrix.indptr, matrix.indices)]

    # ---- the frame

    def _cells(self) -> tuple[str, str]:
        """Return the declarations of a system's scalars, and the statements that load them."""
        copies = self.arguments.copies(self.member.status)
        members = "".join(f" {kind} {name};" for kind, name, _ in copies)
        return members, "".join(f"    s.{name} = *{pointer};\n" for _, name, pointer in copies)

    def _values(self) -> str:
        """Return the definition of the matrix's values."""
        if not self.shape.values_shared:
            plain = f"  [[maybe_unused]] const {self.real}* const values = own_values;\n"
            return plain + (self._held() if self.shape.held else "")
        part = self._part(int(self.member.values.nbytes), self.real)
        return (
            f"  {self.real}* const values = {part};\n"
            "  wl::copy_rows(it, entries, own_values, values);\n"
        )

    def _own(self) -> str:
        """Return the definition of a work-item's rows."""
        shape = self.shape
        if not shape.held:
            return ""
        made = f"wl::tile_rows<{shape.held}>" if shape.tiled else f"wl::own_rows<{shape.rows}>"
        return f"  [[maybe_unused]] const {made} own{{it, {self.n}}};\n"

    def _held(self) -> str:
        """Return the statements that load a work-item's rows."""
        shape = self.shape
        matrix = next(
            call.arguments[0]
            for name in PROGRAMS
            for call in self.programs[name]
            if is_of_matrix(call, self.member)
        )
        made = f"wl::held_rows<{self.real}, {shape.held}, {shape.rows}>"
        taken = ["it", *self._pattern_of_items(matrix), "own_values"]
        if shape.dense:
            made = f"wl::dense_row<{self.real}, {shape.held}>"
            places = [self._places_in_tile(matrix)]
            cells = shape.held * (shape.held | 1)
            if shape.tiled:
                made = f"wl::dense_tile<{self.real}, {shape.held}, {shape.kept}>"
                places = self._moves_to_tile(matrix)
                cells = cells_of_tile(shape.held, shape.kept)
            tile = self._part(cells * self.member.values.itemsize, self.real)
            taken = ["it", *places, "entries", "own_values", tile]
        return f"  {made} held;\n  held.load({', '.join(taken)});\n"

    def _pattern_of_items(self, matrix: Any) -> list[str]:
        """Return pointers to the packed column pairs of work-items' rows, and to row starts."""
        shape, (indptr, indices) = self.shape, self._pattern_on_host(matrix)
        rows, words = shape.rows * shape.block, -(-shape.held // 2)
        begins = np.full(rows + 1, indptr[-1])
        begins[: indptr.size] = indptr
        # Pad a short row with its own column: any other element of the vector may be NaN.
        own = np.minimum(np.arange(rows), self.rows - 1)
        columns = np.repeat(own[:, None], 2 * words, axis=1)
        row = np.repeat(np.arange(self.rows), np.diff(indptr))
        columns[row, np.arange(indices.size) - indptr[row]] = indices
        pairs = columns[:, ::2] | columns[:, 1::2] << 16
        pairs = pairs.reshape(shape.rows, shape.block, words).transpose(0, 2, 1)
        return [
            self._keep(pairs.astype(np.uint32), "const wl::u32"),
            self._keep(begins.astype(np.int32), "const wl::i32"),
        ]

    def _places_in_tile(self, matrix: Any) -> str:
        """Return a pointer to each entry's element in the staging tile of dense rows."""
        indptr, indices = self._pattern_on_host(matrix)
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        places = rows * (self.shape.held | 1) + indices
        return self._keep(places.astype(np.int32), "const wl::i32")

    def _moves_to_tile(self, matrix: Any) -> list[str]:
        """Return a pointer to the moves (entry, element) that load a wave's matrix, and a number.

        The number counts the moves to registers, which come first.
        """
        shape, (indptr, indices) = self.shape, self._pattern_on_host(matrix)
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        height, _ = parts_of_lane(shape.held)
        column, in_group = indices // TILE_LANES, rows % height
        lane = rows // height * TILE_LANES + indices % TILE_LANES
        is_kept = column < shape.kept
        column = np.where(is_kept, column, column - shape.kept)
        places = column * distance_in_tile(shape.held) + in_group * shape.block + lane
        entries = np.argsort(~is_kept, kind="stable")
        moves = (entries | places[entries] << 16).astype(np.uint32)
        count = self.arguments.plain("wl::i64", int(is_kept.sum()))
        return [self._keep(moves, "const wl::u32"), count]

    def _pattern_on_host(self, matrix: Any) -> list[Any]:
        on = self.member.status.executor
        return [np.asarray(on.to_host(a)) for a in (matrix.indptr, matrix.indices)]

    def _keep(self, array: Any, kind: str) -> str:
        """Copy a host array to the device, keep it alive, and return the pointer to it."""
        there = self.member.status.executor.from_host(np.ascontiguousarray(array))
        self.kept.append(there)
        return self.arguments.pointer(there, kind)

    def _solution(self) -> tuple[str, str]:
        """Return the statements that load the starting values and that store the solution."""
        where = address(self.member.x)
        if not self.shape.held:
            x = self.names[where]
            load = f"wl::copy_rows(it, {self.n}, all_x + k * {self.n}, {x});"
            return load, f"wl::copy_rows(it, {self.n}, {x}, all_x + k * {self.n});"
        x = f"{self.elements[where]}, {self._distance(where)}"
        place = f"all_x + k * {self.n} + own.first, own.distance"
        return f"wl::copy_own_rows(own, {place}, {x});", f"wl::copy_own_rows(own, {x}, {place});"

    def _memory_of_block(self) -> str:
        """Return the definition of a block's memory."""
        if not self.shape.vectors_shared:
            return self._place_in_arena("memory", self.memory)
        return self._shared_memory() + (self._place_in_arena("far", self.far) if self.far else "")

    def _place_in_arena(self, name: str, nbytes: int) -> str:
        """Return the definition of a block's part of the arena."""
        distance = self.arguments.plain("wl::i64", nbytes) if self.target.static else str(nbytes)
        return f"  wl::u8* const {name} = arena + wl::i64(it.block()) * {distance};\n"

    def _shared_memory(self) -> str:
        """Return the definition of a block's shared memory."""
        nbytes = self.memory
        if not self.target.static:
            return (
                "  extern __shared__ __align__(16) wl::u8 shared[];\n"
                "  wl::u8* const memory = shared;\n"
            )
        words = -(-min(1 << (nbytes - 1).bit_length(), self.target.shared) // 16)
        return (
            f"  WL_SHARED(wl::complex<double>, shared, {max(words, 1)});\n"
            "  wl::u8* const memory = reinterpret_cast<wl::u8*>(shared);\n"
        )

    def kernel(self) -> SizedKernel:
        """Return the complete kernel."""
        member, arguments, shape = self.member, self.arguments, self.shape
        programs = {name: self._program(name) for name in PROGRAMS}
        barriers = {
            f"after_{name}": "" if together else "    it.barrier();\n"
            for name, (_, together) in programs.items()
        }
        cell = arguments.cell
        status = member.status
        first, truth, largest = (
            cell(array, self.size) for array in (status.first, status.true, status.largest)
        )
        failed = "false"
        if member.flags is not None:
            flags = (member.flags[f : f + 1] for f in range(int(member.flags.size)))
            failed = " || ".join(f"*{cell(flag, 'wl::i64')} != 0" for flag in flags)
        members, loads = self._cells()
        lambdas = "".join(
            f"  const auto {name}_system = [&] {{\n{body}  }};\n"
            for name, (body, _) in programs.items()
        )
        values = self._values()
        nbytes = self.memory
        memory = self._memory_of_block()
        load_x, store_x = self._solution()
        entries = arguments.plain("wl::i64", int(member.values.size))
        cycle = arguments.plain("wl::i64", member.cycle)
        progress = arguments.plain("double", np.float64(member.progress))
        body = _BODY.format(
            members=members, memory=memory, entries=entries, real=self.real, own=self._own(),
            opening="".join(self.opening), values=values, n=self.n, load_x=load_x, store_x=store_x,
            loads=loads, **barriers,
            lambdas=lambdas, size=self.size, failed=failed, first=first, cycle=cycle, truth=truth,
            largest=largest, progress=progress,
        )  # fmt: skip
        extra = [operand.format(real=self.real) for operand in _OPERANDS]
        headers = ["unified/status.hpp", "unified/precision.hpp", "simt/one_system.hpp"]
        calls = [call for name in PROGRAMS for call in self.programs[name]]
        if any(basis_steps.is_step(call) for call in calls):
            headers.append(basis_steps.HEADER)
        if any(inverse_steps.is_inversion(call) for call in calls):
            headers.append(inverse_steps.HEADER)

        def compose(headers: Sequence[str], texts: Sequence[str]) -> Callable[[], str]:
            return partial(self.target.program, headers, texts, shape.block, shape.resident)

        told = f"{shape.block} {shape.resident}"
        made = fused.kernel(arguments, headers, extra, body, compose, told, grid=self.target.grid)
        in_shared = nbytes if shape.vectors_shared and not self.target.static else 0
        in_arena = self.far if shape.vectors_shared else nbytes
        return SizedKernel(made, shape, in_shared, in_arena, tuple(self.kept))
