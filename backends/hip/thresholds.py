"""AMD's table of the numbers that selection rules compare with."""

from ..gpu.thresholds import NVIDIA

#: Nobody has measured an AMD GPU: NVIDIA's numbers stand in, but for what the hardware decides.
#: `wollemi bench` on one will tell them apart.
AMD = NVIDIA._replace(
    # 64 KiB of shared memory hold too few columns: that product is NVIDIA's own.
    shared_share=float("inf"),
)
