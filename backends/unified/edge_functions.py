"""The C++ text of programs of edge functions, which compilers at run time read."""

from __future__ import annotations

import math
from functools import lru_cache

from ...core.edge_functions.program import INDEX, INPUTS, VALUE, EdgeInstruction, program_of

_OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "and": "&&",
    "or": "||",
}
_FUNCTIONS = {
    "exp": "exponential",
    "log": "logarithm",
    "log1p": "logarithm_after_one",
    "tanh": "hyperbolic_tangent",
    "sqrt": "square_root",
    "sin": "sine",
    "cos": "cosine",
}
_TYPES = {VALUE: "S", INDEX: "i64", "condition": "bool"}
_INPUTS = {"of_row": ("rows", "row"), "of_column": ("columns", "column")}
_INPUTS["of_entry"] = ("entries", "entry")

#: The name of the struct in the text of a program.
NAME = "wl::edge_program"


def _number(one: EdgeInstruction) -> str:
    if one.type == INDEX:
        return f"i64({int(one.number)})"
    if math.isnan(one.number):
        return "S(float_of(0x7fc00000u))"
    if math.isinf(one.number):
        return f"S(float_of({'0x7f800000u' if one.number > 0 else '0xff800000u'}))"
    return f"S({one.number!r})"


def _expression(one: EdgeInstruction, parts: list[str]) -> str:
    kind = one.kind
    if kind in ("score", "row", "column"):
        return kind
    if kind == "number":
        return _number(one)
    if kind in INPUTS:
        member, at = _INPUTS[kind]
        return f"inputs.{member}(b, {int(one.number)}, {at})"
    if kind in _OPERATORS:
        return f"{parts[0]} {_OPERATORS[kind]} {parts[1]}"
    if kind in _FUNCTIONS:
        return f"{_FUNCTIONS[kind]}({parts[0]})"
    a = parts[0]
    b = parts[-1]
    return {
        "floordiv": f"{a} / {b} - i64({a} % {b} < 0)",
        "mod": f"{a} % {b} + ({a} % {b} < 0 ? {b} : i64(0))",
        "minimum": f"{a} < {b} || {a} != {a} ? {a} : {b}",
        "maximum": f"{a} > {b} || {a} != {a} ? {a} : {b}",
        "not": f"!{a}",
        "neg": f"-{a}",
        "cast": f"S({a})",
        "abs": f"{a} < 0 ? -{a} : {a}",
        "where": f"{a} ? {parts[1]} : {b}" if len(parts) == 3 else "",
    }[kind]


@lru_cache(256)
def program_text(text: str) -> str:
    """Return the struct of a program: ``run`` gives its first output and ``run_all`` all of them.

    Parameters
    ----------
    text : str
        The text of a :class:`~wollemi.core.edge_functions.program.Program`.

    Examples
    --------
    >>> print(program_text("identity 0 0 0;1;score value 0.0;exp value 0.0 0"))
    namespace wl {
    struct edge_program {
      static constexpr int OUTPUTS = 1;
      template <class S>
      WL_DEVICE static void run_all(S score, i64 b, i64 row, i64 column, i64 entry,
                                    const edge_inputs<S>& inputs, S* made) {
        const S v0 = score;
        const S v1 = exponential(v0);
        made[0] = v1;
      }
      template <class S>
      WL_DEVICE static S run(S score, i64 b, i64 row, i64 column, i64 entry,
                             const edge_inputs<S>& inputs) {
        S made[OUTPUTS];
        run_all(score, b, row, column, entry, inputs, made);
        return made[0];
      }
    };
    } // namespace wl
    <BLANKLINE>
    """
    program = program_of(text)
    lines = [
        f"    const {_TYPES[one.type]} v{at} = {_expression(one, [f'v{p}' for p in one.parts])};"
        for at, one in enumerate(program.instructions)
    ]
    stores = [f"    made[{number}] = v{at};" for number, at in enumerate(program.outputs)]
    arguments = "(S score, i64 b, i64 row, i64 column, i64 entry,\n"
    return "\n".join(
        [
            "namespace wl {",
            "struct edge_program {",
            f"  static constexpr int OUTPUTS = {len(program.outputs)};",
            "  template <class S>",
            f"  WL_DEVICE static void run_all{arguments}"
            "                                const edge_inputs<S>& inputs, S* made) {",
            *lines,
            *stores,
            "  }",
            "  template <class S>",
            f"  WL_DEVICE static S run{arguments}"
            "                         const edge_inputs<S>& inputs) {",
            "    S made[OUTPUTS];",
            "    run_all(score, b, row, column, entry, inputs, made);",
            "    return made[0];",
            "  }",
            "};",
            "} // namespace wl",
            "",
        ]
    )
