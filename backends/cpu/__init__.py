"""One text for omp and for SYCL's CPU devices: C++ bodies of products and of sums of rows."""
