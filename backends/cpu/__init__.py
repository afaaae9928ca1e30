"""C++ bodies of products and row sums, shared by omp and SYCL's CPU devices."""
