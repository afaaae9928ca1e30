"""Products of sparse matrices and vectors that need an NVIDIA GPU."""
