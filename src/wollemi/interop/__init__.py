"""Other libraries' objects in and out; each module needs its library, and nothing else does."""
