"""Functions of a user between the two products of ``fusedmm``, traced once for kernels."""
