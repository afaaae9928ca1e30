"""What the backends of CUDA and HIP share: executors on CuPy, launches, plans and kernels."""
