"""C++ kernels at the level of warps, shared by the compilers of all GPUs."""
