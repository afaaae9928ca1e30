"""Products of sparse matrices and vectors on GPUs."""
