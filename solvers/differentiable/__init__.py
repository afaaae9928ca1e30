"""Solves that other libraries differentiate, as texts that their graphs carry."""
