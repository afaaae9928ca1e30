"""The common part of solvers of eigenvalue problems.

Vectors live and are computed on the executor: products, sums, and products of tall blocks with
small matrices, which the library behind the executor's array namespace makes. Problems of the size
of the number of vectors (Rayleigh-Ritz problems, Cholesky factors) are computed by LAPACK on the
host.
"""
