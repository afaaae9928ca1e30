"""Attention masks that store no entries: one interval of columns per row."""

from .core.formats.mask import Mask
from .core.formats.mask_union import MaskUnion
from .learning.masks import causal, documents, intervals, sliding_window

__all__ = ["Mask", "MaskUnion", "causal", "documents", "intervals", "sliding_window"]
