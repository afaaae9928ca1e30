"""Pictures of matrices and cards for notebooks."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument
from wollemi.core.formats.display import CARD_ENTRIES, cell_counts

FORMATS = ("csr", "csc", "coo", "ell", "sellp", "hybrid", "bsr", "dense")


@pytest.mark.parametrize("format", FORMATS)
def test_a_small_matrix_has_a_square_for_every_place(format):
    dense = np.array([[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 3.0]])
    counts = cell_counts(wl.Csr(dense).asformat(format), 10)
    stored = (dense != 0) if format != "bsr" else counts  # blocks of a Bsr store zeros too
    assert counts.shape == (2, 4)
    assert np.array_equal(counts != 0, stored != 0)


def test_a_large_matrix_is_counted_in_squares_without_losing_entries(rng):
    S = sp.random_array((1000, 400), density=0.05, rng=rng, format="csr")
    counts = cell_counts(wl.Csr(S), 100)
    present = (S.toarray() != 0).astype(int)
    assert np.array_equal(counts, present.reshape(100, 10, 40, 10).sum(axis=(1, 3)))


def test_a_long_row_is_one_line_of_squares():
    A = wl.Csr(np.ones((1, 1000)))
    assert cell_counts(A, 100).tolist() == [[10] * 100]


def test_a_plot_is_written_where_asked(tmp_path):
    A = wl.Csr(sp.diags_array(np.ones(2000)).tocsr())
    figure = A.plot(tmp_path / "spy.png")
    assert (tmp_path / "spy.png").read_bytes().startswith(b"\x89PNG")
    assert figure.axes[0].get_title() == "Csr, 2,000 x 2,000, 2,000 entries"
    assert figure.axes[1].get_ylabel() == "entries in a square"


def test_a_matrix_without_entries_is_an_empty_picture(tmp_path):
    wl.Csr(sp.csr_array((4, 4))).plot(tmp_path / "spy.svg")
    assert (tmp_path / "spy.svg").stat().st_size


def test_a_matrix_without_rows_is_refused():
    with pytest.raises(InvalidArgument, match="0 x 3 has no entries to draw"):
        wl.Csr(sp.csr_array((0, 3))).plot()


def test_the_card_of_a_notebook_has_the_facts_and_a_picture():
    A = wl.Csr(np.eye(3, dtype=np.float32), executor="reference")
    card = ElementTree.fromstring(A._repr_html_())
    text = " ".join(card.itertext())
    for fact in ("Csr", "3 x 3", "3 (0.33 of all)", "float32, indices int32", "reference"):
        assert fact in text
    assert len(card.findall(".//rect")) == 3


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0)])
def test_the_card_of_an_empty_matrix_has_no_picture(shape):
    card = ElementTree.fromstring(wl.Csr(sp.csr_array(shape))._repr_html_())
    assert card.find(".//svg") is None


def test_the_card_of_a_large_matrix_has_no_picture():
    A = wl.Diagonal(np.ones(CARD_ENTRIES + 1, np.float32))
    assert "<svg" not in A._repr_html_()
