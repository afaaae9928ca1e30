"""Reading and writing of matrices and vectors; :mod:`..io` is the face of it."""
