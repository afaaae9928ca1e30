"""Plots of hierarchies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .multigrid import Multigrid


def plot(M: Multigrid, *, most: int = 4, size: float = 3.0) -> Any:
    """Draw the patterns of the finest levels side by side.

    Parameters
    ----------
    M : Multigrid
        The hierarchy.
    most : int
        Upper bound of the levels that are drawn.
    size : float
        Size of each plot in inches.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    matrices = [*(level.A for level in M.levels), M._last][:most]
    figure = Figure(figsize=(size * len(matrices), size * 1.15), layout="constrained")
    axes = figure.subplots(1, len(matrices), squeeze=False)[0]
    for number, (axis, A) in enumerate(zip(axes, matrices, strict=True)):
        axis.spy(
            A.tocsr().to_scipy(), markersize=max(0.3, 80 / max(A.shape[0], 1)), color="#2a6f4e"
        )
        axis.set_title(f"level {number}: {A.shape[0]:,} rows\n{A.nnz:,} entries", fontsize=9)
        axis.set_xticks([])
        axis.set_yticks([])
    return figure
