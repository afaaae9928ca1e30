"""Products of sparse and dense matrices that need an NVIDIA GPU."""
