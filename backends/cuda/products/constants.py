"""Constants of the rules for products on tensor cores and by cuBLAS.

:mod:`wollemi.core.devices` has the values. Times are in microseconds unless a line says seconds.
"""

from __future__ import annotations

from typing import NamedTuple

from ....core.devices import DeviceConstants, named

#: A table by columns: pairs of an upper bound of columns (None: no bound) and a value.
ByColumns = tuple[tuple[int | None, float], ...]


class TensorCoreConstants(NamedTuple):
    """Constants of the cost model of products on tensor cores (``tensor-cores``).

    Attributes
    ----------
    panel : dict
        By dtype and by columns of a panel, two times. The first is the constant part: launches,
        moving values of B and A to where they are read, the first steps and the last sums. The
        second is the time per position of the matrix and panel, whatever the number of entries.
    turns, turns_of_all, turn : float
        Cost of bank conflicts. Each lane reads its values of a step from shared memory: a warp's
        loads of a step take ``turns`` turns without entries and ``turns_of_all`` with all positions
        filled. A position costs ``turn`` per turn.
    margin : float
        Choose tensor cores only if they are faster by this factor.
    """

    panel: dict[str, dict[int, tuple[float, float]]]
    turns: float
    turns_of_all: float
    turn: float
    margin: float


class DenseProductConstants(NamedTuple):
    """Constants of the cost model of dense products by cuBLAS; times are in seconds.

    Attributes
    ----------
    rate : float
        Bytes of a dense matrix per second, if the bandwidth of the device is unknown.
    share : float
        The fraction of the memory bandwidth that cuBLAS reaches.
    flops : float
        Floating-point operations per second of dense products.
    launch, least : float
        Time of a launch, and minimum time of a product by cuBLAS.
    mend : float
        Time to check whether nonfinite values need a correction.
    margin : float
        Choose the dense product only if it is faster by this factor.
    least_columns : int
        Minimum number of columns to consider it.
    sampled_margin : float
        Choose the sampled dense product only if it is faster by this factor.
    entry, entry_column : float
        Time per entry by rows, and additional time per entry and column.
    tile, tile_column, tile_entry, tile_entries : float
        Time per 128 x 128 tile, per tile and column, and per entry beyond a density of
        ``tile_entries``.
    """

    rate: float
    share: float
    flops: float
    launch: float
    least: float
    mend: float
    margin: float
    least_columns: int
    sampled_margin: float
    entry: float
    entry_column: float
    tile: float
    tile_column: float
    tile_entry: float
    tile_entries: float


class TileConstants(NamedTuple):
    """Constants of the rules for sampled products by dense tiles.

    Attributes
    ----------
    density : tuple of (int or None, float)
        Density from which tiles are faster, by the columns of ``C``.
    same_density : tuple of (int or None, float)
        If ``D`` is ``B``: density from which two steps are faster, although one pass would load
        rows only once.
    few_tiles : int
        Number of tiles that fills the device.
    """

    density: ByColumns
    same_density: ByColumns
    few_tiles: int


class RowAttentionConstants(NamedTuple):
    """Constants of the cost model of 16-bit attention by rows.

    Attributes
    ----------
    launch : float
        Time of a launch.
    entry_column, row : float
        For the product: time per entry and column, and time per row.
    gradient_column, gradient_row, gradient_row_column : float
        For gradients by rows and by columns: time per entry and column, per row, and per row and
        column.
    broken, broken_gradients : float
        Factors on the time per entry, for products and for gradients, if a row does not fill its
        lanes: their number is a power of 2, of vectors of 8 values.
    same : float
        Factor by which the product is faster per entry if ``D`` is ``B``.
    """

    launch: float
    entry_column: float
    row: float
    gradient_column: float
    gradient_row: float
    gradient_row_column: float
    broken: float
    broken_gradients: float
    same: float


class SlabAttentionConstants(NamedTuple):
    """Constants of the cost model of attention by slabs.

    Attributes
    ----------
    forward, by_rows, by_columns : dict
        By columns: time per slab, and per batch of a warp in it, of a block on a full device. For
        the product, for the gradient of ``C``, and for the gradients of ``B`` and ``D``.
    copied : dict
        Minimum time per slab, by columns: the time to copy it.
    measured_bytes : int
        The shared memory, in bytes, at which these times were measured.
    launch, round : float
        Time of a launch, and time per round (one block on every multiprocessor): until the first
        slab has arrived, and from the end of the first warp to the end of the last.
    margin : float
        Choose slabs only if they are faster by this factor, because estimates err.
    least_bytes : int
        Minimum shared memory of a block, in bytes, for the rule to choose slabs.
    least_columns : int
        Minimum number of columns for the rule to choose slabs.
    even : float
        Upper bound of the longest row relative to the mean: all warps wait for the longest row.
    least_mean : float
        Minimum average number of entries per row and per column for the estimates to hold.
    """

    forward: dict[int, tuple[float, float]]
    by_rows: dict[int, tuple[float, float]]
    by_columns: dict[int, tuple[float, float]]
    copied: dict[int, float]
    measured_bytes: int
    launch: float
    round: float
    margin: float
    least_bytes: int
    least_columns: int
    even: float
    least_mean: float


class TileAttentionConstants(NamedTuple):
    """Constants of the cost model of attention by tiles, for kernels of warps and of warpgroups.

    Attributes
    ----------
    launch : float
        Time of a launch.
    not_whole : float
        Factor on the time of tiles if rows cannot be copied 16 bytes at a time.
    in_turn, groups_in_turn : dict
        By columns: time per tile of one block, which processes its tiles one after the other.
    together, groups_together : dict
        By columns: time per tile while the device is full.
    gradients, groups_gradients : dict
        By columns: times of gradients relative to the product, for ``C``, and for ``B`` and ``D``,
        the kernel of which has one block per panel of columns.
    """

    launch: float
    not_whole: float
    in_turn: dict[int, float]
    together: dict[int, float]
    gradients: dict[int, tuple[float, float]]
    groups_in_turn: dict[int, float]
    groups_together: dict[int, float]
    groups_gradients: dict[int, tuple[float, float]]


_UNKNOWN = named("unknown-nvidia")
#: Constants of NVIDIA GPUs without a data file, for rules that are evaluated without a GPU.
TENSOR_CORES = _UNKNOWN.of(TensorCoreConstants)
DENSE_PRODUCTS = _UNKNOWN.of(DenseProductConstants)
ROW_ATTENTION = _UNKNOWN.of(RowAttentionConstants)
SLAB_ATTENTION = _UNKNOWN.of(SlabAttentionConstants)
TILE_ATTENTION = _UNKNOWN.of(TileAttentionConstants)


class AttentionRules(NamedTuple):
    """The constants of the three kinds of attention kernels."""

    slabs: SlabAttentionConstants = SLAB_ATTENTION
    rows: RowAttentionConstants = ROW_ATTENTION
    tiles: TileAttentionConstants = TILE_ATTENTION

    @classmethod
    def of(cls, constants: DeviceConstants) -> AttentionRules:
        """Return the rules of a device from its constants."""
        kinds = SlabAttentionConstants, RowAttentionConstants, TileAttentionConstants
        return cls(*(constants.of(kind) for kind in kinds))  # type: ignore[arg-type]


#: The rules of NVIDIA GPUs without a data file.
ATTENTION = AttentionRules()


def by_columns(table: ByColumns, columns: int) -> float:
    """Return the value of a table for a number of columns.

    Examples
    --------
    >>> by_columns(((32, 0.5), (None, 0.25)), 32), by_columns(((32, 0.5), (None, 0.25)), 33)
    (0.5, 0.25)
    """
    return next(value for most, value in table if most is None or columns <= most)
