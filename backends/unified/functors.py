"""Generate the C++ functors of :class:`wollemi.core.step.Step` for the compiled backends.

docs/design-operations.md describes functors. A functor holds the arrays in the order of the
signature and the values of a column that its elements need; one method computes an element, another
finishes a column with its sums. A member's name is the array's name and an underscore, so that no
workspace name can have another meaning in C++.

This module imports only the standard library.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache

from ...core.kernel_text import without_comments
from ...core.operation import Operation, Parameter
from ...core.step.symbols import (
    ARITHMETIC,
    COLUMN,
    ELEMENT,
    EQUALITY,
    LOGIC,
    ORDER,
    SUMS,
    Symbol,
)
from ...core.step.trace import KINDS, OF_STATUS, Event, Traced

#: Lines of a header that do not belong into a program: ``#pragma once`` and includes of our
#: headers.
_OF_HEADERS = re.compile(r'\s*#\s*(pragma\s+once|include\s+"(unified|simt)/)')
_BINARY = (*ARITHMETIC, *ORDER, *EQUALITY)
_LOGIC = {"&": "&&", "|": "||"}
_TYPES = {"T": "T", "R": "real_t<T>", "bool": "bool"}
_STORED = {"T": "T", "R": "real_t<T>", "u8": "u8"}


def member(operation: Operation, parameter: Parameter) -> str:
    """Return the name of the functor member that holds an argument of a map operation."""
    traced = operation.step is not None and not parameter.is_status
    return f"{parameter.name}_" if traced else parameter.name


def rows_differ(operation: Operation) -> bool:
    """Return whether the rows and columns of a map operation cannot be exchanged.

    They cannot where arrays have one element per row. They cannot either in a functor of another
    package, which may compute with the row number.
    """
    assert operation.over is not None
    rows = operation.over[:1]
    by_row = any(p.is_array and p.dims == rows for p in operation.parameters)
    return by_row or bool(operation.functor)


def strides(operation: Operation, symbol: str, *facts: str) -> str:
    """Return the C++ text that describes the row strides of an operation's blocks to the launcher.

    ``have(f, ld)`` returns whether all blocks have the stride ``ld``; ``set_unit(f)`` makes the
    stride the constant 1; ``by_row`` states that rows and columns are not exchangeable. ``facts``
    are further members.
    """
    blocks = [f"f.{member(operation, p)}.ld" for p in operation.parameters if p.is_block]
    return (
        f"struct {symbol}_strides {{\n"
        f"  static constexpr bool by_row = {str(rows_differ(operation)).lower()};\n"
        + "".join(f"  {fact}\n" for fact in facts)
        + "  template <class F> static bool have(const F& f, wl::i64 ld) {\n"
        f"    return {' && '.join(f'{block} == ld' for block in blocks) or 'true'};\n"
        "  }\n"
        "  template <class F> static void set_unit(F& f) {\n"
        f"    {' = '.join([*blocks, '1']) if blocks else ''};\n"
        "  }\n"
        "};\n"
    )


@cache
def functor_text(operation: Operation) -> str:
    """Return the functor of a step, or of an operation that was declared with a functor.

    ``#pragma once`` and includes of our headers are dropped: the text becomes part of a program,
    after the headers that it needs.
    """
    if operation.functor:
        lines = operation.functor.splitlines()
        kept = (line if not _OF_HEADERS.match(line) else "" for line in lines)
        return f'#line 1 "{operation.name}"\n' + "\n".join(kept) + "\n"
    return _Functor(operation).text()


def text_digest(operation: Operation) -> str:
    """Return a digest of the text of a functor without comments."""
    text = without_comments(functor_text(operation))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _type(symbol: Symbol) -> str:
    return _TYPES[symbol.type]


def _expression(symbol: Symbol, parts: list[str]) -> str:
    """Return the C++ of an operator, a function or a number."""
    kind = symbol.kind
    if kind in _BINARY:
        return f"({parts[0]} {kind} {parts[1]})"
    if kind in LOGIC:
        return f"({parts[0]} {_LOGIC[kind]} {parts[1]})"
    if kind == "where":
        made = _type(symbol)
        return f"({parts[0]} ? {made}({parts[1]}) : {made}({parts[2]}))"
    plain = {
        "neg": f"(-{parts[0]})" if parts else "",
        "not": f"!{parts[0]}" if parts else "",
        "cast": f"T({parts[0]})" if parts else "",
        "number": f"real_t<T>({symbol.name})",
        "epsilon": "epsilon<T>",
    }
    return plain[kind] if kind in plain else f"{kind}({parts[0]})"


class _Functor:
    """The text of one functor while it is generated."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.traced: Traced = operation.step.traced
        self.has_status = any(p.is_status for p in operation.parameters)
        #: Values of a column that its elements need: computed once per column, not once per
        #: element.
        self.state: dict[int, tuple[str, Symbol]] = {}

    def at_hand(self, symbol: Symbol, place: str) -> bool:
        """Return whether a value is available without computing it where it is used."""
        of_column = place == ELEMENT and symbol.place == COLUMN
        return symbol.kind == "name" or symbol.kind in SUMS or of_column

    def access(self, symbol: Symbol, place: str) -> str:
        """Return the expression of an available value."""
        if place == ELEMENT and symbol.place == COLUMN:
            return f"s.{self._state_member(symbol)}"
        if symbol.kind in SUMS:
            return self._sum(symbol)
        if symbol.name == OF_STATUS:
            return "status.threshold[c]"
        name = f"{symbol.name}_"
        return {
            "vectors": f"{name}(i, c)",
            "rows": f"{name}[i]",
            "scalars": f"{name}[c]",
            "reals": f"{name}[c]",
            "flags": f"({name}[c] != 0)",
            "numbers": name,
        }[self.traced.kinds[symbol.name]]

    def _state_member(self, symbol: Symbol) -> str:
        if id(symbol) not in self.state:
            name = f"{symbol.name}_" if symbol.kind == "name" else f"v{len(self.state)}"
            self.state[id(symbol)] = (name, symbol)
        return self.state[id(symbol)][0]

    def _sum(self, symbol: Symbol) -> str:
        place = next(i for i, s in enumerate(self.traced.sums) if s.key == symbol.key)
        made = "total" if len(self.traced.sums) == 1 else f"total.v{place}"
        return f"{made}.value" if symbol.kind == "largest" else made

    # ---- the parts

    def text(self) -> str:
        """Return the text of the functor."""
        element = self._element()  # registers the column state that it needs
        body = [*self._members(), *self._sum_type(), *self._state(), ""]
        body += [*self._column(), *element, *self._finish()]
        return "\n".join(
            [
                f"// {self.operation.summary}",
                "template <class T>",
                f"struct {self.operation.symbol} {{",
                *(f"  {line}" if line else "" for line in body),
                "};\n",
            ]
        )

    def _members(self) -> list[str]:
        lines = []
        for name, kind in self.traced.kinds.items():
            const = "const " if self.traced.intent(name) == "in" else ""
            shape = KINDS[kind][0]
            if shape == "T[n,k]":
                lines.append(f"mat<{const}T> {name}_;")
            elif shape == "T":
                lines.append(f"T {name}_;")
            else:
                lines.append(f"{const}{_STORED[shape.partition('[')[0]]}* {name}_;")
        return [*lines, "status_of<T> status;"] if self.has_status else lines

    def _sum_type(self) -> list[str]:
        types = [
            f"maximum<{_type(s)}>" if s.kind == "largest" else _type(s) for s in self.traced.sums
        ]
        if len(types) < 2:
            nothing = "real_t<T>" if self.traced.has_finish else "none"
            return [f"using sum = {types[0] if types else nothing};"]
        return [
            "struct sum {",
            *(f"  {kind} v{i};" for i, kind in enumerate(types)),
            "  WL_DEVICE sum& operator+=(sum o) {",
            *(f"    v{i} += o.v{i};" for i in range(len(types))),
            "    return *this;",
            "  }",
            "  template <class V>",
            "  WL_DEVICE void each(const V& visit) {",
            *(f"    each_number(v{i}, visit);" for i in range(len(types))),
            "  }",
            "};",
        ]

    def _state(self) -> list[str]:
        if not self.state:
            return ["using column_state = taking_part;"]
        members = [f"  {_type(symbol)} {name};" for name, symbol in self.state.values()]
        return ["struct column_state {", "  bool active;", *members, "};"]

    def _column(self) -> list[str]:
        active = "status.is_running(c)" if self.has_status else "true"
        if not self.state:
            named = "i64 c" if self.has_status else "i64"
            return [f"WL_DEVICE column_state column({named}) const {{ return {{{active}}}; }}"]
        roots = [symbol for _, symbol in self.state.values()]
        block = _Block(self, COLUMN, roots)
        found = ", ".join(block.text(symbol) for symbol in roots)
        nothing = ", ".join(f"{_type(symbol)}(0)" for symbol in roots)
        if self.has_status and len(roots) == 1 and not block.lines:
            return [
                "WL_DEVICE column_state column(i64 c) const {",
                f"  const bool active = {active};",
                f"  return {{active, active ? {found} : {nothing}}};",
                "}",
            ]
        skip = [f"  if (!{active})", f"    return {{false, {nothing}}};"]
        return [
            "WL_DEVICE column_state column(i64 c) const {",
            *(skip if self.has_status else []),
            *(f"  {line}" for line in block.lines),
            f"  return {{true, {found}}};",
            "}",
        ]

    def _element(self) -> list[str]:
        traced = self.traced
        terms = [s.parts[0] for s in traced.sums]
        block = _Block(self, ELEMENT, [*traced.elements.values(), *terms])
        # Load everything before the first store: a store waits for its value and would delay later
        # loads.
        made = {name: block.define(value, f"new_{name}") for name, value in traced.elements.items()}
        added = [block.text(term) for term in terms]
        if not terms:
            result = "real_t<T>(0)" if traced.has_finish else "{}"
        elif len(terms) == 1 and traced.sums[0].kind != "largest":
            result = added[0]
        else:
            several = len(terms) > 1  # a maximum among several sums is an aggregate in an aggregate
            members = [
                f"{{{text}}}" if several and s.kind == "largest" else text
                for text, s in zip(added, traced.sums, strict=True)
            ]
            result = "{" + ", ".join(members) + "}"
        works = bool(made or added)
        arguments = "i64 i, i64 c" if works else "i64, i64"
        state = "const column_state&" + (" s" if self.state else "")
        return [
            f"WL_DEVICE sum operator()({arguments}, {state}) const {{",
            *(f"  {line}" for line in block.lines),
            *(f"  {name}_(i, c) = {value};" for name, value in made.items()),
            f"  return {result};",
            "}",
        ]

    def _finish(self) -> list[str]:
        traced = self.traced
        if not traced.has_finish:
            return ["WL_DEVICE void finish(i64, sum) const {}"]
        roots = [*traced.columns.values(), *(event.value for event in traced.events)]
        block = _Block(self, COLUMN, roots)
        stores = []
        for name, value in traced.columns.items():
            kind = _STORED[KINDS[traced.kinds[name]][0].partition("[")[0]]
            local = block.unused(f"new_{name}")
            block.lines.append(f"const {kind} {local} = {block.text(value)};")
            stores.append(f"{name}_[c] = {local};")
        told = _told((event, block.text(event.value)) for event in traced.events)
        uses_sum = any(s.kind in SUMS for root in roots for s in root.below())
        return [
            f"WL_DEVICE void finish(i64 c, sum{' total' if uses_sum else ''}) const {{",
            *(f"  {line}" for line in [*block.lines, *stores, *told]),
            "}",
        ]


def _told(events: Iterable[tuple[Event, str]]) -> list[str]:
    """Return the statements that update the status; the first true reason halts a column."""
    lines: list[str] = []
    indent = first = ""
    for event, value in events:
        if event.kind != "halt":
            lines += ["}"] if indent else []
            lines += [f"status.{event.kind}(c, {value});", "if (status.is_running(c)) {"]
            indent, first = "  ", ""
            continue
        lines += [f"{indent}{first}if ({_bare(value)})", f"{indent}  status.halt(c, {event.why});"]
        first = "else "
    if lines and lines[-1].endswith("{"):
        return lines[:-1]
    return [*lines, "}"] if indent else lines


def _bare(expression: str) -> str:
    """Return an expression without the parentheses that enclose all of it."""
    depth = 0
    for at, letter in enumerate(expression):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return expression[1:-1] if at == len(expression) - 1 > 0 else expression
    return expression


class _Block:
    """The statements of one scope of a functor; expressions that are used twice become locals."""

    def __init__(self, functor: _Functor, place: str, roots: list[Symbol]) -> None:
        self.functor, self.place = functor, place
        self.lines: list[str] = []
        self._known: dict[int, str] = {}
        self._uses: dict[int, int] = {}
        self._taken = {"i", "c", "s", "total", *functor.traced.kinds}
        for root in roots:
            self._count(root)

    def _count(self, symbol: Symbol) -> None:
        self._uses[id(symbol)] = self._uses.get(id(symbol), 0) + 1
        if self._uses[id(symbol)] == 1 and not self.functor.at_hand(symbol, self.place):
            for part in symbol.parts:
                self._count(part)

    def text(self, symbol: Symbol) -> str:
        """Return the C++ expression of a value."""
        if id(symbol) not in self._known:
            self._known[id(symbol)] = self._made(symbol)
        return self._known[id(symbol)]

    def _made(self, symbol: Symbol) -> str:
        if self.functor.at_hand(symbol, self.place):
            result = self.functor.access(symbol, self.place)
            loads = self.place == ELEMENT and symbol.place == ELEMENT
            return self._local(symbol, f"{symbol.name}_i", result) if loads else result
        result = _expression(symbol, [self.text(part) for part in symbol.parts])
        if symbol.parts and self._uses[id(symbol)] > 1:
            return self._local(symbol, f"e{len(self.lines)}", result)
        return result

    def define(self, symbol: Symbol, name: str) -> str:
        """Return a local that holds a value, or the value itself if it is a number or a local."""
        if id(symbol) not in self._known and symbol.place == ELEMENT and symbol.parts:
            made = _expression(symbol, [self.text(part) for part in symbol.parts])
            self._known[id(symbol)] = self._local(symbol, name, made)
        return self.text(symbol)

    def _local(self, symbol: Symbol, name: str, expression: str) -> str:
        result = self.unused(name)
        self.lines.append(f"const {_type(symbol)} {result} = {expression};")
        return result

    def unused(self, name: str) -> str:
        """Return a name that is not yet used in the block."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
