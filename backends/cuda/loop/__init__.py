"""Loops of solvers that run on the device."""
