"""Published algorithms that no rule of wollemi selects, as algorithms from outside.

The algorithms of wollemi are measured against them, and tests compare them with the reference.
:func:`register` adds them to the tables of the GPU backends; then they run by name:
``wl.sddmm(A, C, B, kernel="sm-l2")``.
"""

from __future__ import annotations

from pathlib import Path

#: The folder with the texts of the kernels.
TEXTS = Path(__file__).parent


def register() -> None:
    """Add the algorithms to the tables of the GPU backends; later calls do nothing."""
    # The algorithms of wollemi come first in the tables.
    import wollemi.backends.cuda.algorithms
    import wollemi.backends.gpu.products.csr  # noqa: F401
    from wollemi.backends.cuda.table import algorithms as of_cuda
    from wollemi.backends.gpu.table import algorithms as of_gpus

    from .sddmm import ALGORITHMS as SAMPLED
    from .tca import ALGORITHMS as DENSE

    if SAMPLED[0].name not in of_gpus.names("sddmm"):
        of_gpus.register("sddmm", *SAMPLED)
        of_cuda.register("spmm", *DENSE)
