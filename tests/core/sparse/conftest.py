"""Functions that make matrices are tested on every executor: tests that take ``on``."""

from ..formats.conftest import on, pytest_generate_tests

__all__ = ["on", "pytest_generate_tests"]
