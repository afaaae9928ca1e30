"""Eigenvalue and singular value solvers.

Vectors are stored and computed on the executor: products, sums, and products of tall blocks with
small matrices, by the library behind the executor's array namespace. LAPACK on the host solves
problems with the size of the number of vectors (Rayleigh-Ritz problems, Cholesky factors).
"""
