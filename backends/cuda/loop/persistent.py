"""Generate the persistent kernel that runs all iterations of a small system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....core.calls import SpmvCall
from ....core.dtypes import real_dtype
from ....core.program import Call
from ...gpu.arguments import value_code
from ...gpu.spmv import packed
from ...simt.fused import REAL, Arguments, Kernel
from ...simt.operands import CODES, address, row_arrays
from ...unified.wrappers import INDEX_TYPES, VALUE_TYPES, functor, stored_type
from . import fused
from .schedule import Arnoldi, Barrier, Gather, Phase, Schedule
from .shared_memory import (
    GridShape,
    SharedMemory,
    counts_barriers,
    in_shared,
    live_in,
    mailboxes_of_sums,
    pattern_bytes,
)

if TYPE_CHECKING:
    from ....core.executor import Array
    from ....core.formats.compressed import CompressedRows

#: Members of a status that operations write only through other members.
_READ_ONLY = ("history", "threshold")


@dataclass(frozen=True)
class MadeKernel:
    """A kernel with its shared memory requirement."""

    kernel: Kernel
    shared: int


def persistent_kernel(
    plan: Schedule,
    status: Array,
    value: str,
    shape: GridShape,
    buffers: dict[int, Any],
    *,
    warp: int,
) -> MadeKernel:
    """Return the kernel that repeats all parts of a round.

    ``buffers`` are the second arrays of double-buffered vectors.

    Per-column scalars (first of all the status) are replicated in the shared memory of every block,
    and all blocks compute the same values. Only the first block writes them back at the end, and
    only it writes the history.
    """
    return _Text(plan, status, value, shape, buffers, warp).kernel()


class _Text:
    """The text of a kernel while it is generated."""

    def __init__(
        self,
        plan: Schedule,
        status: Array,
        value: str,
        shape: GridShape,
        buffers: dict[int, Any],
        warp: int,
    ) -> None:
        self.plan, self.shape, self.buffers, self.warp = plan, shape, buffers, warp
        self.arguments = arguments = Arguments(value)
        arguments.status = status
        self.real = VALUE_TYPES[value]
        self.vectors: dict[int, Any] = {}
        self.kinds: dict[int, str] = {}
        for phase in plan.phases:
            for array, kind in self._arrays(phase):
                self.vectors.setdefault(address(array), array)
                self.kinds.setdefault(address(array), kind)
        self.rows = next(int(array.shape[0]) for array in self.vectors.values())
        self.n = arguments.plain("wl::i64", self.rows)
        self.names = {where: f"k{at}" for at, where in enumerate(self.vectors)}
        self.global_names = {
            where: arguments.pointer(array, self.kinds[where])
            for where, array in self.vectors.items()
        }
        self.stored = set().union(*plan.stored.values()) if plan.stored else set()
        self.own = {w: (f"{name}.data", f"{name}.distance") for w, name in self.names.items()}
        arguments.renamed = dict(self.own)
        self.memory = SharedMemory()
        self.opening: list[str] = []
        self.closing: list[str] = []
        self.matrices: dict[int, str] = {}
        self.counts = counts_barriers(plan.phases)

    def _arrays(self, phase: Phase) -> list[tuple[Any, str]]:
        types = {"T": self.real, "R": REAL[self.arguments.value], "u8": "wl::u8"}
        result = [(array, types[p.kind]) for p, array in row_arrays(phase.rows)]
        if phase.spmv is not None:
            result += [(array, self.real) for array in (phase.spmv.x, phase.spmv.y)]
        if phase.arnoldi is not None:
            result.append((phase.arnoldi.w, self.real))
        return result

    # ---- the parts

    def kernel(self) -> MadeKernel:
        """Return the complete kernel."""
        lines = [self._phase(at, phase) for at, phase in enumerate(self.plan.phases)]
        body = self._frame(lines)
        headers = ["cuda/loop/grid_barrier.hpp", "cuda/loop/register_rows.hpp"]
        if any(phase.arnoldi for phase in self.plan.phases):
            headers.append("cuda/loop/arnoldi.hpp")
        # With one block per multiprocessor, a block may use all registers.
        defines: dict[str, object] = {"WL_RESIDENT": 1, "WL_BLOCKS_EACH": 1}
        launched = ""
        if self.shape.cluster:
            defines["WL_CLUSTER"] = self.shape.cluster
            launched = (
                f"__cluster_dims__({self.shape.cluster}) __launch_bounds__({self.shape.block}, 1)"
            )
        extra = ["wl::u64* mailboxes", f"wl::u32{'*' * self.counts} number", "wl::i64 limit"]
        made = fused.kernel(
            self.arguments, headers, extra, body, self.shape.block, self.warp, defines, launched
        )
        return MadeKernel(made, self.memory.nbytes)

    def _phase(self, at: int, phase: Phase) -> str:
        text = ""
        if self.plan.sync_before[at]:
            text += self._stores(Barrier(at, early=True)) + "wl::grid_sync(it, m);\n"
        if phase.spmv is not None:
            text += self._product(at, phase.spmv)
        if phase.arnoldi is not None:
            return text + self._arnoldi(at, phase.arnoldi)
        if phase.rows is None:
            return text
        text += self._functor(f"f{at}", phase.rows)
        text += f"const auto t{at} = f{at}.column(0);\n"
        visit = f"wl::visit<{self.shape.rows}>(it, {self.n}, f{at}, t{at});\n"
        text += f"const auto sum{at} = {visit}" if phase.has_sum else visit
        if phase.keeps_basis:
            text += (
                f"if (t{at}.active) basis.keep(it, j + 1, {self._name(phase.rows.arguments[0])});\n"
            )
        if self.plan.syncs[at]:
            text += self._barrier(at)
        return text

    def _functor(self, name: str, rows: Call) -> str:
        operation, given = rows
        kind = functor(operation, self.arguments.value)
        made = self.arguments.members(operation, given, together=True)
        return f"const {kind} {name}{made.removeprefix(kind)};\n"

    def _name(self, array: Array) -> str:
        return self.names[address(array)]

    def _barrier(self, at: int) -> str:
        """Return the statements that sum a part's terms, including the sums deferred to it."""
        earlier = [b for b in range(at) if self.plan.deferred[b] and self._syncs_next(b) == at]
        value, finishes = f"sum{at}", f"if (t{at}.active) f{at}.finish(0, total);"
        if earlier:
            (other,) = earlier
            sums = ", ".join(f"decltype(f{b})::sum" for b in (other, at))
            value = f"wl::both<{sums}>{{sum{other}, sum{at}}}"
            finishes = (
                f"if (t{other}.active) f{other}.finish(0, total.first); "
                f"if (t{at}.active) f{at}.finish(0, total.second);"
            )
        stores = self._stores(Barrier(at, early=False))
        publish = "true" if stores else "false"
        return (
            f"{stores}const auto all{at} = {value};\n"
            f"wl::add_up<{publish}, {REAL[self.arguments.value]}>(it, m, all{at}, "
            f"[&](const decltype(all{at})& total) {{ {finishes} }});\n"
        )

    def _syncs_next(self, at: int) -> int:
        return next(b for b in range(at + 1, len(self.plan.phases)) if self.plan.syncs[b])

    def _stores(self, where: Barrier) -> str:
        """Return the statements that store a work-item's own rows before a barrier."""
        text = ""
        stored = self.plan.stored.get(where, set())
        for vector in (w for w in self.names if w in stored):  # addresses must not affect the text
            name = self.names[vector]
            if vector in self.plan.double_buffered:
                text += f"{{ auto* const o = g{name}; g{name} = o{name}; o{name} = o; }}\n"
            text += (
                f"wl::each_kept<{self.shape.rows}>(it, {self.n}, [&](int r, wl::i64 row) "
                f"{{ g{name}[row] = {name}[r]; }});\n"
            )
        return text

    # ---- products

    def _product(self, at: int, product: SpmvCall) -> str:
        matrix, x, y, alpha, beta = product
        numbers = ", ".join(self.arguments.number(a, matrix.dtype) for a in (alpha, beta))
        given = f"{self._matrix(matrix)}, gathered, {self._name(y)}, {numbers}"
        first, later = self.plan.first[at], self.plan.later[at]

        def text(gather: Gather) -> str:
            kind = f"{self.shape.rows}, {max(len(gather.sources), 1)}, {self.real}"
            call = f"wl::multiply<{kind}>(it, {self.n}, {given});"
            return f"{{\n{self._gathered(gather, x)}  {call}\n}}"

        if first == later:
            return f"{text(later)}\n"
        return f"if (round == 0) {text(first)} else {text(later)}\n"

    def _gathered(self, gather: Gather, x: Array) -> str:
        """Return the definition of ``gathered``: a vector, or an expression for its elements."""
        if not gather.chain:
            return f"  const {self.real}* const gathered = {self._place(address(x))};\n"
        calls = [self.plan.phases[at].rows for at in gather.chain]
        functors = [call for call in calls if call is not None]
        touched = dict.fromkeys(address(a) for call in functors for _, a in row_arrays(call))
        text, inside = "", ""
        for where in touched:
            temporary = f"e{self.names[where]}"
            kind = self.kinds[where]
            value = f"{self._place(where)}[c]" if where in gather.sources else f"{kind}{{}}"
            inside += f"    {kind} {temporary} = {value};\n"
        for number, call in enumerate(functors):
            text += "  " + self._functor(f"own{number}", call)
            text += f"  const auto state{number} = own{number}.column(0);\n"
        self.arguments.renamed = {w: (f"&e{self.names[w]}", "1") for w in touched}
        for number, call in enumerate(functors):
            kind = functor(call.operation, self.arguments.value)
            made = self.arguments.members(*call, together=True)
            inside += f"    if (state{number}.active) {made}(0, 0, state{number});\n"
        self.arguments.renamed = dict(self.own)
        return (
            f"{text}  const auto gathered = wl::indexed([&](wl::i64 c) {{\n{inside}"
            f"    return e{self._name(x)};\n  }});\n"
        )

    def _place(self, where: int) -> str:
        """Return the pointer to a vector that all blocks can read."""
        return f"g{self.names[where]}" if where in self.stored else self.global_names[where]

    def _matrix(self, matrix: CompressedRows) -> str:
        """Return the name of a matrix, which is defined before the first round."""
        if id(matrix) in self.matrices:
            return self.matrices[id(matrix)]
        name = self.matrices[id(matrix)] = f"matrix{len(self.matrices)}"
        arguments, state = self.arguments, matrix.plan.state
        wide = INDEX_TYPES[CODES[matrix.indices.dtype]]
        if pattern_bytes(matrix, 0) and not self.shape.matrices:
            slots, count = self.shape.rows * self.shape.block, int(state.offsets.size)
            members = [
                arguments.pointer(state.slice_ptr, "const wl::i64"),
                arguments.pointer(state.values, f"const {self.real}"),
                arguments.plain("wl::i64", state.pattern_width),
                self.memory.array("wl::u8", slots, 1, f"patterns_of_{name}"),
                self.memory.array("wl::i32", count, 4, f"offsets_of_{name}"),
            ]
            given = [
                arguments.pointer(state.codes, "const wl::u8"),
                arguments.pointer(state.offsets, "const wl::i32"),
                arguments.plain("wl::i64", count),
            ]
            kind = f"wl::pattern_matrix<{self.shape.rows}, {state.width}, {self.real}>"
            self.opening.append(
                f"  const {kind} {name}{{{', '.join(members)}}};\n"
                f"  {name}.load(it, {self.n}, {', '.join(given)});\n"
            )
            return name
        if isinstance(state, packed.Packed) and not self.shape.matrices:
            members = [
                arguments.pointer(state.slice_ptr, "const wl::i64"),
                arguments.pointer(state.codes, "const wl::u8"),
                arguments.pointer(state.values, f"const {self.real}"),
                arguments.pointer(state.offsets, "const wl::i32"),
                arguments.plain("wl::i64", state.pattern_width),
            ]
            kind = f"wl::packed_matrix<{state.code}, {state.width}, {self.real}>"
            self.opening.append(f"  const {kind} {name}{{{', '.join(members)}}};\n")
            return name
        members = [
            arguments.pointer(matrix.indptr, f"const {wide}"),
            arguments.pointer(matrix.indices, f"const {wide}"),
            arguments.pointer(matrix.data, f"const {self.real}"),
        ]
        if not self.shape.matrices:
            kind = f"wl::csr_matrix<{self.real}, {wide}>"
            self.opening.append(f"  const {kind} {name}{{{', '.join(members)}}};\n")
            return name
        width = max(int(matrix.plan.statistics.longest), 1)
        count = width * self.shape.rows * self.shape.block
        values = self.memory.array(self.real, count, matrix.dtype.itemsize, f"values_of_{name}")
        columns = self.memory.array("wl::i32", count, 4, f"columns_of_{name}")
        kind = f"wl::kept_matrix<{self.shape.rows}, {width}, {self.real}>"
        self.opening.append(
            f"  const {kind} {name}{{{values}, {columns}}};\n"
            f"  {name}.load(it, {self.n}, {', '.join(members)});\n"
        )
        return name

    # ---- GMRES

    def _arnoldi(self, at: int, a: Arnoldi) -> str:
        arguments, memory, shape = self.arguments, self.memory, self.shape
        real = REAL[arguments.value]
        size, itemsize = int(a.basis.shape[0]), a.hessenberg.dtype.itemsize
        names = ("h", "turned", "correction", "sines", "g")
        small = [memory.array(self.real, size, itemsize, f"small_{name}") for name in names]
        real_size = real_dtype(a.hessenberg.dtype).itemsize
        small.append(memory.array(real, size, real_size, "small_cosines"))
        waves = shape.block // self.warp
        small.append(memory.array(self.real, size * waves, itemsize, "small_parts"))
        small.append(memory.array(self.real, size * shape.cluster, itemsize, "small_heard"))
        of_sums = arguments.plain(
            "wl::i64", mailboxes_of_sums(shape)
        )  # passed as an argument, because it grows with n
        small.append(f"mailboxes + {of_sums}")
        each = shape.rows * shape.block
        stored = stored_type(value_code(a.hessenberg.dtype, a.basis.dtype))
        kept = memory.array(stored, shape.basis * each, a.basis.dtype.itemsize, "kept_vectors")
        s = arguments.plain("wl::i64", size)
        basis = arguments.pointer(a.basis, stored)
        step = arguments.cell(a.step, "wl::i64")
        written = [
            arguments.pointer(a.hessenberg, self.real),
            arguments.pointer(a.cosine, real),
            arguments.pointer(a.sine, self.real),
            arguments.pointer(a.g, self.real),
        ]
        kind = f"wl::kept_basis<{shape.rows}, {shape.basis}, {self.real}, {stored}>"
        self.opening.append(
            f"  const {kind} basis{{{kept}, {basis}, {self.n}}};\n"
            f"  const wl::i64 first_step = *{step};\n"
            f"  basis.load(it, first_step);\n"
            f"  const wl::small_arrays<{self.real}> small{{{', '.join(small)}}};\n"
            f"  wl::read_columns(it, {s}, small, {', '.join(written[1:])});\n"
        )
        self.closing.append(f"  basis.leave(it, first_step + 1, *{step});\n")
        cells = [
            arguments.cell(a.before, real),
            arguments.cell(a.after, real),
            arguments.cell(a.count, "wl::i64"),
            step,
        ]
        return (
            f"const wl::i64 j = *{step};\n"
            f"wl::orthogonalize<{shape.rows}>(it, m, j, basis, {self._name(a.w)}.data, small, "
            f"{', '.join(cells)}, status, [&] {{\n{self._stores(Barrier(at, early=False))}}});\n"
            f"if (first) wl::write_column(it, {s}, j, small, {', '.join(written)});\n"
        )

    # ---- the frame

    def _frame(self, lines: list[str]) -> str:
        """Return the kernel's body: the variables of a block, the rounds, and the final stores."""
        arguments, status, shape = self.arguments, self.arguments.status, self.shape
        assert status is not None
        copies = arguments.copies(status)
        capacity = arguments.plain("wl::i64", status.capacity)
        history = next(pointer for _, name, pointer in copies if name == "history")
        members = "".join(f" {kind} {name};" for kind, name, _ in copies)
        loads = "".join(f"    s.{name} = *{pointer};\n" for _, name, pointer in copies)
        stores = "".join(
            f"    *{pointer} = s.{name};\n" for _, name, pointer in copies if name not in _READ_ONLY
        )
        written = set().union(*(phase.writes for phase in self.plan.phases))
        live = live_in(self.plan)
        shared = set(in_shared(self.plan, self.kinds, self.real)[: shape.vectors])
        each = f"wl::each_kept<{shape.rows}>(it, {self.n}, [&](int r, wl::i64 row)"
        kept = given = back = made = ""
        for where, name in self.names.items():
            kind, pointer = self.kinds[where], self.global_names[where]
            if where in shared:
                size = self.vectors[where].dtype.itemsize
                place = self.memory.array(kind, shape.rows * shape.block, size, f"all_{name}")
                kept += f"  const wl::kept<{kind}, WL_BLOCK> {name}{{{place} + it.thread()}};\n"
            else:
                local = f"{kind} own_{name}[{shape.rows}]; const wl::kept<{kind}, 1> {name}"
                line = f"  {local}{{own_{name}}};\n"
                kept, made = (kept + line, made) if where in live else (kept, made + line)
            if where in live:
                given += f"{name}[r] = {pointer}[row]; "
                if where in written:
                    back += f"{pointer}[row] = {name}[r]; "
            if where in self.stored:
                kept += f"  {kind}* g{name} = {pointer};\n"
            if where in self.plan.double_buffered:
                spare = arguments.pointer(self.buffers[where], kind)
                kept += f"  {kind}* o{name} = {spare};\n"
        memory = ""
        if self.memory.nbytes:
            memory = "  extern __shared__ __align__(16) wl::u8 shared[];\n"
            memory += "".join(self.memory.lines)
        rounds = "".join(lines)
        return f"""\
  struct copies {{{members} }};
  WL_SHARED(copies, of_block, 1);
  copies& s = of_block[0];
{memory}  const wl::item it{{}};
  const bool first = it.block() == 0;
  if (it.thread() == 0) {{
{loads}  }}
{kept}  {each} {{ {given}}});
  it.barrier();
  const wl::status_of<{self.real}> status{{
      &s.stop, &s.iterations, &s.norm, &s.threshold, first ? {history} : &s.history, &s.running,
      first ? {capacity} : 1, 1}};
{"".join(self.opening)}  it.barrier();
  wl::grid_barrier m{{mailboxes, {"*" * self.counts}number}};
  wl::begin_barriers();
  for (wl::i64 round = 0; round < limit && s.running != 0; ++round) {{
{made}{rounds}  }}
  wl::grid_sync(it, m);
{"".join(self.closing)}  {each} {{ {back}}});
  if (first && it.thread() == 0) {{
{stores}{"    *number = m.number;" if self.counts else ""}
  }}
"""
