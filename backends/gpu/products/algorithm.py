"""What the algorithms for products of matrices have in common on GPUs.

``on`` is an :class:`~.adapter.Adapter` in all of their methods. Algorithms whose kernels are the
text of ``backends/simt`` run on every GPU; what needs one vendor's hardware (tensor cores, much
shared memory) or library is in a module of that backend, and registers in its table.
"""

from __future__ import annotations

from typing import ClassVar

from ....core.algorithm import Algorithm


class GpuAlgorithm(Algorithm):
    """An algorithm for products of sparse and dense matrices on GPUs."""

    #: Whether all that it does is to launch kernels: on its operands, on what the pattern keeps and
    #: on scratch memory. Then launches for operands of one layout may be repeated for others.
    repeats: ClassVar[bool] = False
