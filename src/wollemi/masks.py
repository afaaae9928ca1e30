"""Masks of attention that need no memory for entries: one interval of columns in each row."""

from .core.formats.mask import Mask
from .core.formats.mask_union import MaskUnion
from .learning.masks import causal, documents, intervals, sliding_window

__all__ = ["Mask", "MaskUnion", "causal", "documents", "intervals", "sliding_window"]
