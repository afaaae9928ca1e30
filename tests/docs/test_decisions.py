"""The diagram of ``wl.solve`` names the code's candidates, and its nodes lead to pages."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp

import wollemi as wl

DOCS = Path(__file__).parents[2] / "docs"
DIAGRAM = DOCS / "img/solve-decisions.svg"


def test_every_node_of_the_diagram_leads_to_a_page_and_every_edge_has_an_arrow():
    root = ElementTree.parse(DIAGRAM).getroot()
    space = {"s": "http://www.w3.org/2000/svg"}
    links = [node.get("href") for node in root.findall("s:a", space)]
    assert len(links) > 10
    assert all((DIAGRAM.parent / link).is_file() for link in links if link)
    assert all(line.get("marker-end") for line in root.findall("s:line", space))


def test_the_methods_of_the_diagram_are_the_first_choices_of_the_code():
    text = DIAGRAM.read_text()
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(18, 18))
    S = sp.kronsum(line, line).tocsr()
    skew = sp.diags_array([-1.5, 2.0, -0.5], offsets=[-1, 0, 1], shape=(324, 324)).tocsr()
    shifted = (S - 5.0 * sp.eye_array(324)).tocsr()
    for matrix, method in ((S, "Cg"), (shifted, "Minres"), (skew, "Bicgstab"), (S[:, :20], "Lsmr")):
        result = wl.solve(wl.Csr(matrix), np.ones(324))
        assert re.search(rf"\b{method}\b", text)
        assert result.notes[0].split(":")[0] == method.lower()
    waves = (S - 0.5 * sp.eye_array(324)).tocsr()  # a positive diagonal
    assert "most sums of rows negative?" in text
    assert wl.solve(wl.Csr(waves), np.ones(324)).attempts[0].method == "minres"
    assert "small and regular?" in text
    assert wl.solve(wl.Csr(S[:100, :100]), np.ones(100)).notes[0].startswith("direct: the matrix")


def test_the_matching_of_the_diagram_is_the_first_choice_of_the_code():
    text, rng = DIAGRAM.read_text(), np.random.default_rng(0)
    n = 2000
    skew = sp.diags_array([-1.5, 2.0, -0.5], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    H = sp.diags_array(10.0 ** rng.uniform(-4, 4, n))
    J = sp.random_array((n // 2, n), density=4 / n, rng=rng) + sp.eye_array(n // 2, n)
    unscaled = sp.block_array([[H, J.T], [J, None]]).tocsr()
    for word, matrix in (
        ("rows out of order?", skew[rng.permutation(n)]),
        ("zeros and many magnitudes?", unscaled),
    ):
        assert word in text
        result = wl.solve(wl.Csr(matrix), np.ones(matrix.shape[0]))
        first = result.attempts[0].method, result.attempts[0].M
        assert first == ("gmres", "ilu:match") or first[0] == "direct"
        assert any("the estimate is lower" in note for note in result.notes)
    assert "Gmres: Ilu with matching" in text
