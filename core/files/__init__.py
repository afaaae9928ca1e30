"""Readers and writers of matrices and vectors; :mod:`..io` is their public interface."""
