"""The backends: what computes, each in a package of its own."""
