"""Formulas as MathML, which browsers typeset by themselves: no script, no font, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

#: The bar of a norm, which browsers stretch and move below the line where it has an index.
_BAR = "<mo>&#x02016;</mo>"
_SHORT_BAR = '<mo fence="false" stretchy="false">&#x02016;</mo>'


def mathml(text: str, display: str) -> str:
    """Return the MathML of a formula.

    Parameters
    ----------
    text : str
        The formula in the notation of LaTeX.
    display : {"inline", "block"}
        Where it is.
    """
    return str(convert(text, display=display)).replace(_BAR, _SHORT_BAR)


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math-block">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the renderer ``mathml`` to Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
