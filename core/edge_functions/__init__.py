"""User-defined functions between the two products of ``fusedmm``, traced once for kernels."""
