"""The code that all backends share: executors, operations, operators, formats, stopping and I/O.

Modules here import no backend and no solver; ``tests/core/test_architecture.py`` checks this.
"""
