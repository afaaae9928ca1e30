"""Solves that other libraries differentiate; each module imports the library it is for."""
