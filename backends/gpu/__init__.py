"""The common part of the CUDA and HIP backends: executors on CuPy, launches, plans and kernels."""
