"""Generate the native entries of all operations on arrays and numbers.

``generate.py OUTDIR`` writes one C++ file per group of operations. An entry reads its arguments in
the order of the signature and constructs the operation's body from them by positional aggregate
initialization. The functor of a map operation goes to the launcher ``Map``. Any other body is a
struct of this folder: its last members are the extents of the dimensions, and it has
``operator()(int threads)``. Operations on matrices have hand-written entries.

The build runs this script before anything is installed, so it imports only the standard library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# Import the checkout as a package, so that its modules can import one another as usual.
_building = ModuleType("building_wollemi")
_building.__path__ = [str(ROOT)]
sys.modules[_building.__name__] = _building

import_module("building_wollemi.core.operations")  # fills the table of operations
_operation = import_module("building_wollemi.core.operation")
_functors = import_module("building_wollemi.backends.unified.functors")
import_module("building_wollemi.core.step.source").load_steps("building_wollemi", ROOT / "solvers")

OPERATIONS: Any = _operation.OPERATIONS
Operation: Any = _operation.Operation
Parameter: Any = _operation.Parameter
functor_text, member = _functors.functor_text, _functors.member

CTYPES = {
    "T": "T",
    "R": "real_t<T>",
    "L": "lower_t<T>",
    "S": "S",
    "I": "I",
    "u8": "u8",
    "i32": "i32",
    "i64": "i64",
}

#: Multiply at most this many extents: for arrays that fit into memory, the product is an integer.
MOST_FACTORS = 4

NOTE = (
    "// Made by backends/omp/generate.py from the declarations of operations; changes are lost.\n"
)


def has_entry(operation: Operation) -> bool:
    """Return whether an operation's entry can be generated from its signature."""
    return operation.parts is None and not any(p.is_matrix for p in operation.parameters)


def extents(operation: Operation) -> list[str]:
    """Return the names of an operation's dimensions in the order of the signature."""
    names = [d for p in operation.parameters for d in p.dims if d.isidentifier()]
    return list(dict.fromkeys(names))


def declared(operation: Operation) -> str:
    """Return the declaration of the dimensions; a number is its own extent."""
    fixed = {d for p in operation.parameters for d in p.dims if d.isdigit()}
    names = extents(operation) + [f"of_{d}{{{d}}}" for d in sorted(fixed)]
    return f"Extent {', '.join(names)};"


def reading(at: int, parameter: Parameter) -> str:
    """Return the C++ expression that reads an argument."""
    dims = ", ".join(f"of_{d}" if d.isdigit() else d for d in parameter.dims)
    if parameter.is_status:
        return f"call.status<T>({at}, {dims})"
    if parameter.is_scalar:
        return f"call.scalar<{CTYPES[parameter.kind]}>({at})"
    const = "const " if parameter.intent == "in" else ""
    how = "block" if is_block(parameter) else "contiguous"
    return f"call.{how}<{const}{CTYPES[parameter.kind]}>({at}, {dims})"


def is_block(parameter: Parameter) -> bool:
    """Return whether a parameter is a block of vectors, which may have any row stride."""
    return parameter.is_array and len(parameter.dims) == 2


def strides(operation: Operation) -> list[str]:
    """Return the members that describe row strides and halves to the launcher."""
    assert operation.over is not None
    columns = operation.over[1]
    by_row = _functors.rows_differ(operation)
    blocks = [f"f.{member(operation, p)}.ld" for p in operation.parameters if is_block(p)]
    named = (" f", " ld") if blocks else ("", "")
    return [
        f"  static constexpr bool by_row = {str(by_row).lower()};",
        f"  static constexpr bool one_column = {str(columns == '1' and not blocks).lower()};",
        f"  static constexpr bool has_halves = {str(operation.adds_up).lower()};",
        "  template <class F>",
        f"  static bool have(const F&{named[0]}, i64{named[1]}) {{",
        f"    return {' && '.join(f'{b} == ld' for b in blocks) or 'true'};",
        "  }",
        "  template <class F>",
        f"  static void set_unit(F&{named[0]}) {{",
        *([f"    {' = '.join(blocks)} = 1;"] if blocks else []),
        "  }",
    ]


def amount(names: list[str]) -> str:
    """Return an estimate of the work: the product of the extents.

    The product of more extents, some of which may be 0, could overflow.
    """
    if len(names) <= MOST_FACTORS:
        return " * ".join(names)
    return "i64(std::min(1e18, " + " * ".join(f"(1. + i64({name}))" for name in names) + "))"


def entry(operation: Operation) -> str:
    """Return the entry of one operation, and of its halves if a group can total its sums."""
    symbol = operation.symbol
    parameters = operation.parameters
    kinds = [p.kind if p.is_array else "" for p in parameters]
    types = [t for t in ("T", "S", "I") if t in kinds]
    body = f"{symbol}<{', '.join(types)}>"
    members = [reading(at, p) for at, p in enumerate(parameters)]
    if operation.over is not None:
        rows, columns = operation.over
        slots = f", call.slots<real_t<T>>({columns})" if operation.adds_up else ""
        launch = f"Map<{body}, {symbol}_entry>(body, {rows}, {columns}{slots})"
        submit = [f"call.submit({rows} * {columns}, {launch});"]
    else:
        members += [f"i64({name})" for name in extents(operation)]
        submit = [f"call.submit({amount(extents(operation))}, body);"]
    inner = [
        declared(operation),
        f"const {body} body{{",
        *(f"    {member}," for member in members),
        "};",
        *submit,
    ]
    dispatched = {"T": ("value", ""), "S": ("storage", "<T>"), "I": ("index", "")}
    for kind in reversed(types):
        at, (label, of) = kinds.index(kind), dispatched[kind]
        inner = [
            f"with_{label}_type{of}(call, names[{at}], call.array({at}), [&](auto {label}) {{",
            f"  using {kind} = decltype({label});",
            *(f"  {line}" for line in inner),
            "});",
        ]
    lines = [
        f"// {operation.summary}",
        f"struct {symbol}_entry {{",
        f'  static constexpr const char* operation = "{operation.name}";',
        f'  static constexpr const char* symbol = "{symbol}";',
        "  static constexpr const char* names[] = {",
        *(f'      "{p.name}",' for p in parameters),
        "  };",
        *(strides(operation) if operation.is_map else []),
        "  static Object run(const Call& call) {",
        *(f"    {line}" for line in inner),
        "    return none_object();",
        "  }",
        "};",
    ]
    return "\n".join(lines) + "\n"


def table_lines(operation: Operation) -> str:
    """Return the lines of an entry in the module's table; a step's line includes its origin."""
    symbol = operation.symbol
    digest = f'"{_functors.text_digest(operation)}"' if operation.step is not None else "nullptr"
    lines = f'      method<{symbol}_entry>("{symbol}", {digest}),\n'
    if operation.adds_up:
        for half in ("visiting", "finishing"):
            entry = f"method<{symbol}_entry, Half::{half.upper()}>"
            lines += f'      {entry}("{symbol}_{half}", {digest}),\n'
    return lines


def header_of(group: str) -> str:
    """Return the header with the functors of a group: this backend's own, or the shared one."""
    own = ROOT / "backends" / "omp" / f"{group}.hpp"
    return f"{'omp' if own.exists() else 'unified'}/{group}.hpp"


def group_file(group: str, members: list[Operation]) -> str:
    """Return the text of the file of one group."""
    steps = [operation for operation in members if operation.step is not None]
    functors = "".join(functor_text(operation) + "\n" for operation in steps)
    entries = "\n".join(entry(operation) for operation in members)
    table = "".join(table_lines(operation) for operation in members)
    table += "      {nullptr, nullptr, 0, nullptr},\n"
    launcher = '#include "omp/map.hpp"\n' if any(o.is_map for o in members) else ""
    if any(p.kind == "S" for o in members for p in o.parameters):
        launcher += '#include "omp/stored.hpp"\n'
    header = header_of(group) if len(steps) < len(members) else "unified/step.hpp"
    return (
        f'{NOTE}#include "omp/call.hpp"\n{launcher}#include "{header}"\n\n'
        f"namespace wl {{\n\n{functors}namespace {{\n\n"
        f"{entries}\n}} // namespace\n\n"
        f"void add_{group}_entries(PyObject* module) {{\n"
        f"  static PyMethodDef methods[] = {{\n{table}  }};\n"
        "  add_methods(module, methods);\n}\n\n} // namespace wl\n"
    )


def index_file(groups: list[str]) -> str:
    """Return the text of the file that adds all groups to the module."""
    declarations = "".join(f"void add_{group}_entries(PyObject* module);\n" for group in groups)
    calls = "".join(f"  add_{group}_entries(module);\n" for group in groups)
    return (
        f'{NOTE}#include "omp/call.hpp"\n\nnamespace wl {{\n\n'
        f"{declarations}\nvoid add_generated_entries(PyObject* module) {{\n{calls}}}\n\n"
        "} // namespace wl\n"
    )


def files() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every file."""
    groups: dict[str, list[Operation]] = {}
    for operation in OPERATIONS:
        if has_entry(operation):
            groups.setdefault(operation.group, []).append(operation)
    for group, members in groups.items():
        yield f"{group}_entries.cpp", group_file(group, members)
    yield "entries.cpp", index_file(list(groups))


def write(folder: Path) -> None:
    """Write all files; unchanged files keep their modification time and are not rebuilt."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = dict(files())
    for stale in folder.glob("*.cpp"):
        if stale.name not in wanted:
            stale.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):  # an option is no folder
        sys.exit("usage: generate.py OUTDIR")
    write(Path(sys.argv[1]))
