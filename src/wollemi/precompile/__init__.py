"""Compiling kernels when a wheel is built: which ones, and the archives that they go to.

Nothing here needs a GPU: programs are texts, and NVRTC compiles them anywhere.
"""
