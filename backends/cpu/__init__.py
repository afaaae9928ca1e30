"""C++ bodies of products over a range of rows: one text for omp and for SYCL's CPU devices."""
