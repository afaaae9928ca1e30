"""Products of sparse matrices and vectors that require an NVIDIA GPU."""
