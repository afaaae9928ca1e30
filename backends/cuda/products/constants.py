"""The constants of the rules for products on tensor cores and by the vendor's library.

:mod:`wollemi.core.devices` has the values. Times are in microseconds unless a line says seconds.
"""

from __future__ import annotations

from typing import NamedTuple

from ....core.devices import DeviceConstants, named

#: A table by columns: up to a number of columns (None: any number), a value.
ByColumns = tuple[tuple[int | None, float], ...]


class TensorCoreConstants(NamedTuple):
    """The constants of sums on tensor cores.

    Attributes
    ----------
    panel : dict
        By dtype and columns of a panel: launches, bringing values of B and A to where they are
        read, the first steps and the last sums; and the time of every position of a matrix for
        each panel of columns, which does not depend on the number of entries.
    turns, turns_of_all, turn : float
        One lane each reads the values of a step from shared memory, with bank conflicts: a warp's
        loads of a step take ``turns`` turns without an entry, ``turns_of_all`` with all positions,
        and a position costs ``turn`` a turn.
    margin : float
        The factor by which tensor cores have to be faster.
    """

    panel: dict[str, dict[int, tuple[float, float]]]
    turns: float
    turns_of_all: float
    turn: float
    margin: float


class DenseProductConstants(NamedTuple):
    """The constants of products by the vendor's library; times are in seconds.

    Attributes
    ----------
    rate : float
        Bytes of a dense matrix per second, where the bandwidth of the device is not known.
    share : float
        The share of the memory bandwidth that the library reaches.
    flops : float
        Operations of dense products per second.
    launch, least : float
        Of a launch, and of a product of the library at least.
    mend : float
        Of looking whether values that are not finite have to be mended.
    margin : float
        The factor by which the dense product has to be faster.
    least_columns : int
        Columns from which it is considered.
    sampled_margin : float
        The factor by which the sampled dense product has to be faster.
    entry, entry_column : float
        Of an entry by rows, and in addition for every column.
    tile, tile_column, tile_entry, tile_entries : float
        Of a tile of 128 x 128, for every column of it, and for each entry beyond a density.
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
    """The constants of sampled products by dense tiles.

    Attributes
    ----------
    density : tuple of (int or None, float)
        Density from which tiles are faster, by the columns of ``C`` up to which it holds.
    same_density : tuple of (int or None, float)
        Density from which two steps are faster though one pass would load rows once, ``D`` being
        ``B``.
    few_tiles : int
        Tiles that fill the device.
    """

    density: ByColumns
    same_density: ByColumns
    few_tiles: int


class RowAttentionConstants(NamedTuple):
    """The constants of 16-bit attention by rows.

    Attributes
    ----------
    launch : float
        Of a launch.
    entry_column, row : float
        Of an entry for each column, and of a row, of the product.
    gradient_column, gradient_row, gradient_row_column : float
        The same of gradients by rows and by columns, where a row costs more with more columns.
    broken, broken_gradients : float
        The factor on the time of an entry if its row does not fill the lanes that share it, a power
        of 2 of vectors of 8 values: the product, and gradients.
    same : float
        How many times as fast the product is for each entry where ``D`` is ``B``.
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
    """The constants of attention by slabs.

    Attributes
    ----------
    forward, by_rows, by_columns : dict
        By columns: the time of a block on a full device for each slab, and for each batch of a warp
        in it; of the product, of the gradient of ``C``, and of the gradients of ``B`` and ``D``.
    copied : dict
        The least time of a slab, to be copied, by columns.
    measured_bytes : int
        The shared memory with which these were measured.
    launch, round : float
        Of a launch, and of each time that all multiprocessors have a block: until the first slab is
        there, and from when the first warp has ended to the last.
    margin : float
        The factor by which slabs have to be faster, because estimates err.
    least_bytes : int
        Bytes of shared memory of a block from which the rule takes slabs.
    least_columns : int
        Columns from which the rule takes slabs.
    even : float
        How many times as long as the average a row may be: all warps wait for the longest.
    least_mean : float
        Entries of a row and of a column, on average, from which estimates hold.
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
    """The constants of attention by tiles: kernels of warps, and of warpgroups.

    Attributes
    ----------
    launch : float
        Of a launch.
    not_whole : float
        How many times as long tiles take if rows are not copied 16 bytes at a time.
    in_turn, groups_in_turn : dict
        By columns: of a tile of one block, which has its tiles one after the other.
    together, groups_together : dict
        By columns: of a tile among all tiles that a device holds.
    gradients, groups_gradients : dict
        By columns: the time of gradients relative to the product, for ``C``, and for ``B`` and
        ``D``, which have panels of columns as blocks.
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
#: The constants of NVIDIA GPUs without a file of their own, for rules that are asked without a GPU.
TENSOR_CORES = _UNKNOWN.of(TensorCoreConstants)
DENSE_PRODUCTS = _UNKNOWN.of(DenseProductConstants)
ROW_ATTENTION = _UNKNOWN.of(RowAttentionConstants)
SLAB_ATTENTION = _UNKNOWN.of(SlabAttentionConstants)
TILE_ATTENTION = _UNKNOWN.of(TileAttentionConstants)


class AttentionRules(NamedTuple):
    """The constants of the three kinds of kernels of attention."""

    slabs: SlabAttentionConstants = SLAB_ATTENTION
    rows: RowAttentionConstants = ROW_ATTENTION
    tiles: TileAttentionConstants = TILE_ATTENTION

    @classmethod
    def of(cls, constants: DeviceConstants) -> AttentionRules:
        """Return the constants of a device."""
        kinds = SlabAttentionConstants, RowAttentionConstants, TileAttentionConstants
        return cls(*(constants.of(kind) for kind in kinds))  # type: ignore[arg-type]


#: The constants of NVIDIA GPUs without a file of their own.
ATTENTION = AttentionRules()


def by_columns(table: ByColumns, columns: int) -> float:
    """Return the value of a table for a number of columns.

    Examples
    --------
    >>> by_columns(((32, 0.5), (None, 0.25)), 32), by_columns(((32, 0.5), (None, 0.25)), 33)
    (0.5, 0.25)
    """
    return next(value for most, value in table if most is None or columns <= most)
