"""Products of sparse and dense matrices on GPUs."""
