"""What solvers of eigenvalue problems share.

Vectors live and are computed on the executor: products, sums, and products of tall blocks with
small matrices, which the library behind the executor's array namespace makes. What is as small as
the number of vectors (Rayleigh-Ritz problems, Cholesky factors) is computed by LAPACK on the host.
"""
