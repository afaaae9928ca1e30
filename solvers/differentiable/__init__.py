"""Differentiable solves: descriptions as text for the graphs of other libraries."""
