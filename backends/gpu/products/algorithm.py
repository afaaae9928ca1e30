"""The common base of the algorithms for products of matrices on GPUs.

``on`` is an :class:`~.adapter.Adapter` in all of their methods. Algorithms with kernels in
``backends/simt`` run on every GPU; an algorithm that needs one vendor's hardware (tensor cores,
much shared memory) or library is in a module of that backend, and registers in its table.
"""

from __future__ import annotations

from typing import ClassVar

from ....core.algorithm import Algorithm


class GpuAlgorithm(Algorithm):
    """An algorithm for products of sparse and dense matrices on GPUs."""

    #: Whether it only launches kernels: on its operands, on arrays of the pattern and on scratch
    #: memory. Then launches for operands of one layout may be repeated for others.
    repeats: ClassVar[bool] = False
