"""``wollemi solve --report``: a self-contained HTML page about one solve, without scripts."""

from __future__ import annotations

import io
import platform
from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..core.errors import InvalidArgument
from ..core.result import ATTEMPT_COLUMNS, Result

#: A line of the table: a name and a text.
Line = tuple[str, str]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #111; background: #fff; }}
h1 {{ font-size: 1.4rem; }} h2 {{ font-size: 1.1rem; margin-top: 2rem; }}
.verdict {{ border-left: .4rem solid {colour}; padding: .3rem .8rem; font-weight: 600; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0;
         border-bottom: 1px solid #ddd; overflow-wrap: anywhere; }}
th {{ font-weight: 400; color: #555; white-space: nowrap; }}
figure {{ margin: 1rem 0; }} svg {{ max-width: 100%; height: auto; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="verdict">{verdict}</p>
<table>
{rows}
</table>
{attempts}
{pictures}
<h2>To repeat it</h2>
<table>
{versions}
</table>
</body>
</html>
"""


def page(name: str, lines: Sequence[Line], A: Any, result: Result, command: str = "") -> str:
    """Return the report of a solve.

    Parameters
    ----------
    name : str
        The name of the matrix.
    lines : sequence of pairs of str
        The table of ``wollemi solve``.
    A : matrix
        The matrix; it is drawn if possible.
    result : Result
        The outcome.
    command : str
        The command line that produced the result.

    Returns
    -------
    str
        HTML without external references: pictures are embedded as SVG.

    Raises
    ------
    InvalidArgument
        If matplotlib is not installed.
    """
    pictures = [_figure("Residual norms over the iterations", result.plot())]
    if hasattr(A, "plot"):
        pictures.append(_figure("Where the entries of the matrix are", A.plot()))
    repeat = [
        ("wollemi", version("wollemi")),
        ("NumPy, SciPy", f"{version('numpy')}, {version('scipy')}"),
        ("Python", f"{platform.python_version()} on {platform.platform()}"),
    ]
    if command:
        repeat.insert(0, ("command", command))
    return _PAGE.format(
        title=f"wollemi: {escape(name)}",
        colour="#176f2c" if result.converged else "#b3261e",
        verdict=escape(result.reason),
        rows=_rows(lines),
        attempts=_attempts(result),
        pictures="\n".join(pictures),
        versions=_rows(repeat),
    )


def write(path: Path, text: str) -> None:
    """Write a report to a file.

    Raises
    ------
    InvalidArgument
        If the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(f"{path}: {error.strerror}") from error


def _attempts(result: Result) -> str:
    """Return a table of the attempts, or "" if there was at most one."""
    if len(result.attempts) < 2:
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ATTEMPT_COLUMNS)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>"
        for row in result.rows_of_attempts()
    )
    return f"<h2>Attempts</h2>\n<table>\n<tr>{head}</tr>\n{body}\n</table>"


def _rows(lines: Sequence[Line]) -> str:
    return "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
        for name, text in lines
    )


def _figure(caption: str, figure: Any) -> str:
    """Return a matplotlib figure as a part of the page."""
    import matplotlib

    buffer = io.StringIO()
    # keep text as text for searching and screen readers; a fixed salt makes the output reproducible
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "wollemi"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    drawing = buffer.getvalue()
    drawing = drawing[drawing.index("<svg") :]  # drop the XML prologue, which HTML does not allow
    return f"<h2>{escape(caption)}</h2>\n<figure>{drawing}</figure>"
