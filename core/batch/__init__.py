"""Batches: many matrices with the same shape and pattern and different values."""

from .csr import BatchCsr
from .dense import BatchDense
from .ell import BatchEll
from .make import batch, stack
from .matrix import BatchMatrix
from .mixed import MixedBatch
from .result import BatchResult

__all__ = [
    "BatchCsr",
    "BatchDense",
    "BatchEll",
    "BatchMatrix",
    "BatchResult",
    "MixedBatch",
    "batch",
    "stack",
]
