"""Solver loops that run on the device."""
