"""Systems of a batch, one for each block of a kernel."""
