"""The algorithms for products of matrices that only NVIDIA's GPUs run."""

from __future__ import annotations

from collections.abc import Mapping

from ...gpu.products.extra import Algorithm
from .dense import DenseProduct
from .fusedmm_steps import StepsOrPass, TwoSteps
from .sddmm_tile import Tile as SampledTiles
from .sddmm_tile import TileMma
from .slab import Slab
from .tensor import TensorCores
from .tensor_tca import Tca, TcaTf32

#: In the order in which the rule asks for a reason.
EXTRA: Mapping[str, tuple[Algorithm, ...]] = {
    "spmm": (Slab(), DenseProduct(), TensorCores(), Tca(), TcaTf32()),
    "sddmm": (SampledTiles(), TileMma()),
    "fusedmm": (TwoSteps(), StepsOrPass()),
}
