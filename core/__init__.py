"""The part that every backend shares: executors, operations, operators, formats, stopping and I/O.

Nothing in here knows a backend or a solver; ``tests/core/test_architecture.py`` keeps it so.
"""
