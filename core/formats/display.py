"""Display of matrices: a plot of the pattern, and a card for notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import TO_HOST
from ..described import facts_table, side_by_side
from ..errors import InvalidArgument
from ..figures import save_figure

if TYPE_CHECKING:
    from .base import Matrix

#: Cells along the longer side of a plot, and of the small plot in a notebook's card.
CELLS, CARD_CELLS = 256, 48

#: A card shows no plot of a matrix with more entries, so that display stays fast.
CARD_ENTRIES = 1 << 20


class Displayed:
    """The methods that display a matrix."""

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the pattern (a spy plot); darker cells contain more entries.

        If the matrix has more rows or columns than the plot has cells, each cell shows the number
        of its entries. The pattern is copied to the host.

        Parameters
        ----------
        path : str or Path, optional
            The file to write; its suffix determines the format.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, to show or to change.

        Raises
        ------
        InvalidArgument
            If matplotlib is not installed, if the matrix has no rows or no columns, or if the
            format is unknown.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> figure = wl.Csr(np.eye(5)).plot()
        >>> figure.axes[0].get_title()
        'Csr, 5 x 5, 5 entries'
        """
        self.executor.refuse_host(TO_HOST)  # type: ignore[attr-defined]
        try:
            from matplotlib.colors import LogNorm
            from matplotlib.figure import Figure
        except ImportError:
            raise InvalidArgument('plots need matplotlib: pip install "wollemi[plot]"') from None
        matrix: Any = self
        rows, columns = matrix.shape
        if not rows or not columns:
            raise InvalidArgument(
                f"a matrix of {rows} x {columns} has no entries to draw: give one with rows and "
                "columns"
            )
        counts = cell_counts(matrix, CELLS)
        figure = Figure(figsize=(5.4, 5.4), layout="constrained")
        axes = figure.subplots()
        shown = np.ma.masked_equal(counts, 0)
        most = max(int(counts.max(initial=0)), 2)
        image = axes.imshow(
            shown,
            cmap="Greys",
            norm=LogNorm(0.5, most),  # a cell with one entry is visible
            interpolation="nearest",
            extent=(-0.5, columns - 0.5, rows - 0.5, -0.5),
            aspect="equal" if 0.05 < rows / columns < 20 else "auto",
        )
        if counts.shape != (rows, columns):
            bar = figure.colorbar(image, ax=axes, shrink=0.7)
            bar.set_label("entries in a square")
        axes.set_xlabel("column")
        axes.set_ylabel("row")
        entries = f"{matrix.nnz:,} entries"
        axes.set_title(f"{type(matrix).__name__}, {rows:,} x {columns:,}, {entries}", fontsize=11)
        if path is not None:
            save_figure(figure, path)
        return figure

    def _repr_html_(self) -> str:
        """Return the card for notebooks: the properties, and a small plot of the pattern."""
        matrix: Any = self
        rows, columns = matrix.shape
        share = matrix.nnz / (rows * columns) if rows and columns else 0.0
        facts = {
            "shape": f"{rows:,} x {columns:,}",
            "entries": f"{matrix.nnz:,} ({share:.2g} of all)",
            "dtype": f"{matrix.dtype}, indices {matrix.index_dtype}",
            "memory": f"{matrix.nbytes:,} bytes",
            "executor": matrix.executor.name,
        }
        picture = ""
        if rows and columns and matrix.nnz <= CARD_ENTRIES:
            picture = _svg(cell_counts(matrix, CARD_CELLS))
        return side_by_side(picture, facts_table(type(matrix).__name__, facts))


def cell_counts(matrix: Matrix, cells: int) -> np.ndarray[Any, Any]:
    """Return the number of entries in each cell of a grid over a matrix.

    Parameters
    ----------
    matrix : Matrix, shape (m, n)
        A matrix with at least one row and one column.
    cells : int
        Cells along the longer side; a matrix with fewer rows has one cell for each row.

    Returns
    -------
    ndarray of int64, shape (min(m, ...), min(n, ...))
        Counts that include stored zeros and count duplicates separately.
    """
    rows, columns = matrix.shape
    scale = min(1.0, cells / max(rows, columns))
    height, width = max(1, round(rows * scale)), max(1, round(columns * scale))
    coo = matrix.asformat("coo")
    row = coo.executor.to_host(coo.row).astype(np.int64)
    column = coo.executor.to_host(coo.col).astype(np.int64)
    at = _cell(row, height, rows) * width + _cell(column, width, columns)
    return np.bincount(at, minlength=height * width).reshape(height, width)


def _cell(index: np.ndarray[Any, Any], cells: int, of: int) -> np.ndarray[Any, Any]:
    """Return the cell of each index; the sizes of all cells differ by at most one index."""
    if cells == of:
        return index
    return np.minimum((index * (cells / of)).astype(np.int64), cells - 1)


def _svg(counts: np.ndarray[Any, Any]) -> str:
    """Return a grid of counts as an SVG image: the fewer entries in a cell, the paler it is."""
    height, width = counts.shape
    most = max(int(counts.max(initial=0)), 1)
    squares = "".join(
        f'<rect x="{x}" y="{y}" width="1" height="1" '
        f'fill-opacity="{0.25 + 0.75 * np.log1p(counts[y, x]) / np.log1p(most):.2f}"/>'
        for y, x in zip(*np.nonzero(counts), strict=True)
    )
    return (
        f'<svg role="img" aria-label="where the entries are" width="120" height="120" '
        f'viewBox="0 0 {width} {height}" preserveAspectRatio="xMidYMid meet" '
        f'fill="currentColor" style="border:1px solid currentColor">{squares}</svg>'
    )
