"""The operations that a backend does not have, each with the reason. Everything else is owed."""

# {"backend": {"operation": "why"}}
KNOWN_GAPS: dict[str, dict[str, str]] = {}
