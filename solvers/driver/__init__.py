"""The loop that every iterative solver runs, its verdict, its workspace and its result."""
