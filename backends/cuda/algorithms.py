"""The algorithms for NVIDIA GPUs only, in the order in which the rule considers them."""

from .products import mask_tiles as mask_tiles  # registers its kernels
from .products.dense import DenseProduct
from .products.dense_sampled import SampledDense
from .products.fusedmm_steps import StepsOrPass, TwoSteps
from .products.slab import Slab
from .products.slab_attention import SlabAttention
from .products.slab_choice import SlabsOrRows
from .products.tensor import TensorCores
from .products.tile_attention import TileAttention, TilesOrRows
from .products.tile_sddmm import Tile, TileMma
from .spmv.cached_columns import CachedColumns
from .table import algorithms

algorithms.register("spmv", CachedColumns())
algorithms.register("spmm", Slab(), DenseProduct(), TensorCores())
algorithms.register("sddmm", SampledDense(), Tile(), TileMma())
algorithms.register(
    "fusedmm",
    SlabAttention(),
    SlabsOrRows(),
    TileAttention(),
    TilesOrRows(),
    TwoSteps(),
    StepsOrPass(),
)
