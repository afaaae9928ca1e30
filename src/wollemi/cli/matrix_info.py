"""``wollemi info A.mtx``: show facts about the matrix in a file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.markup import escape
from rich.table import Table

from ..core.errors import InvalidMatrix
from ..core.registry import default_executor, host_name
from ..solvers.auto.first_choice import first_choice
from ..solvers.auto.kept import facts_of
from .solve import STANDARD_INPUT, read_matrix


def facts_of_file(matrix: Path) -> dict[str, Any]:
    """Return facts about the matrix in a file as JSON-compatible values.

    Parameters
    ----------
    matrix : Path
        The file; ``-`` means standard input.

    Returns
    -------
    dict
        ``matrix``, the name; ``format``, ``rows``, ``columns``, ``entries``, ``share`` of all
        elements, ``dtype``, ``index_dtype``, ``memory`` in bytes; ``row_lengths``: ``mean``,
        ``deviation``, ``longest`` and ``empty`` (the fraction of empty rows). For a square matrix,
        also ``hermitian`` and ``diagonal`` (otherwise None): ``positive``, ``not_invertible``
        (mostly zeros) and ``constant``. ``first_choice``: ``method``, ``M`` and ``notes`` of
        ``wl.solve``; None if the matrix has NaN or Inf.
    """
    with default_executor(host_name()):
        A = read_matrix(matrix)
        rows, columns = A.shape
        entries = int(A.nnz)
        lengths = A.asformat("csr").row_statistics
        told: dict[str, Any] = {
            "matrix": "standard input" if str(matrix) == STANDARD_INPUT else matrix.name,
            "format": type(A).__name__,
            "rows": rows,
            "columns": columns,
            "entries": entries,
            "share": entries / (rows * columns) if rows and columns else 0.0,
            "dtype": str(A.dtype),
            "index_dtype": str(A.index_dtype),
            "memory": int(A.nbytes),
            "row_lengths": {
                "mean": float(lengths.mean),
                "deviation": float(lengths.deviation),
                "longest": int(lengths.longest),
                "empty": float(lengths.empty),
            },
            "hermitian": None,
            "diagonal": None,
        }
        if rows == columns:
            found = facts_of(A)
            told["hermitian"] = bool(found.hermitian)
            told["diagonal"] = {
                "positive": int(found.positive),
                "not_invertible": int(found.not_invertible),
                "constant": bool(found.constant_diagonal),
            }
        try:
            told["first_choice"] = asdict(first_choice(A)) if rows and columns else None
        except InvalidMatrix:
            told["first_choice"] = None
    return told


def matrix_table(facts: dict[str, Any]) -> Table:
    """Return the facts about a matrix as a printable table."""
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in _lines(facts):
        table.add_row(label, escape(text))
    return table


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the facts as pairs of a name and a text."""
    lengths = facts["row_lengths"]
    spread = f"{lengths['mean']:.3g} +- {lengths['deviation']:.2g} entries"
    lines = [
        (
            "matrix",
            f"{facts['matrix']}: {facts['format']} {facts['rows']:,} x {facts['columns']:,}",
        ),
        ("entries", f"{facts['entries']:,} ({facts['share']:.2g} of all)"),
        ("dtype", f"{facts['dtype']}, indices {facts['index_dtype']}"),
        ("memory", f"{facts['memory']:,} bytes"),
        ("rows", f"{spread}, longest {lengths['longest']:,}, {lengths['empty']:.1%} empty"),
    ]
    if facts["hermitian"] is not None:
        word = "Hermitian" if np.dtype(facts["dtype"]).kind == "c" else "symmetric"
        lines += [
            (word, "yes" if facts["hermitian"] else "no"),
            ("diagonal", _diagonal(facts["diagonal"], facts["rows"])),
        ]
    first = facts["first_choice"]
    if first is None:
        empty = not (facts["rows"] and facts["columns"])
        why = "nothing to do" if empty else "no method: the matrix has NaN or Inf"
        return [*lines, ("solve", why)]
    method = f"{first['method']} with {first['M']}" if first["M"] else first["method"]
    return [*lines, ("solve tries first", method), *(("", note) for note in first["notes"])]


def _diagonal(diagonal: dict[str, Any], rows: int) -> str:
    """Return a description of a diagonal's values."""
    if not rows:
        return "empty"
    positive, without = diagonal["positive"], diagonal["not_invertible"]
    parts = ["all positive" if positive == rows else f"{positive:,} of {rows:,} positive"]
    if without:
        parts.append(f"{without:,} zero or without an inverse")
    if diagonal["constant"]:
        parts.append("constant")
    return ", ".join(parts)
