"""C++ bodies of element-wise and reduction kernels, and the wrappers that compilers read."""
