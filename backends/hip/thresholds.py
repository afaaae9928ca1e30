"""AMD's table of the numbers that selection rules compare with."""

from ..gpu.thresholds import NVIDIA

#: No AMD GPU has been measured: these are NVIDIA's constants, except the constants that the
#: hardware determines. Run `wollemi bench` on an AMD GPU to fit them.
AMD = NVIDIA._replace(
    # 64 KiB of shared memory hold too few columns: that product is NVIDIA's own.
    shared_share=float("inf"),
)
