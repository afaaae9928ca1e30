"""Links between GPUs that load and store each other's memory."""
