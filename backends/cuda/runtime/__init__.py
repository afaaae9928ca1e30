"""The runtime of NVIDIA GPUs: availability, compiler, device, executor, graphs."""
