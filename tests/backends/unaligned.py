"""Arrays with elements at addresses that are no multiples of their size."""

from __future__ import annotations

from typing import Any

import numpy as np

Numbers = np.ndarray[Any, Any]


def behind_a_byte(array: Numbers) -> Numbers:
    """Return a copy that begins one byte behind an aligned address, as in a file's content."""
    memory = bytearray(b"\0" + array.tobytes())
    return np.frombuffer(memory, np.uint8)[1:].view(array.dtype).reshape(array.shape)


def field_of_records(array: Numbers) -> Numbers:
    """Return a copy that is a field of packed records."""
    records = np.zeros(array.shape, [("flag", np.uint8), ("value", array.dtype)])
    records["value"] = array
    return records["value"]


LAYOUTS = (behind_a_byte, field_of_records)
