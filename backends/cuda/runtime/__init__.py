"""What an NVIDIA GPU is used through: availability, compiler, device, executor, graphs."""
