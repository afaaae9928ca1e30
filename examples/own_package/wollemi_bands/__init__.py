"""A package for wollemi: a format with kernels in C++, a solver and a preconditioner."""

from .matrix import Bands
from .product import bands_product
from .solver import HeavyBall
from .sweeps import Sweeps

__all__ = ["Bands", "HeavyBall", "Sweeps", "bands_product"]
