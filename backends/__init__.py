"""The backends: the code of each executor, in a package of its own."""
