"""Links between GPUs that access each other's memory."""
