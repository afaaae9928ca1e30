"""The loop that every iterative solve runs, its verdict, its workspace and its result."""
