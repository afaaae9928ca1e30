"""Products of sparse and dense matrices that require an NVIDIA GPU."""
