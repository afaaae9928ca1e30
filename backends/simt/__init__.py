"""C++ kernels at the level of warps: one text for the compilers of all GPUs."""
