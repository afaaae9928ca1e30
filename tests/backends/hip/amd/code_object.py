"""The data of kernels in a code object of AMD's compilers: ELF, with a note in MessagePack."""

from __future__ import annotations

import struct
from typing import Any

_PT_LOAD, _PT_NOTE, _NT_AMDGPU_METADATA = 1, 4, 32


def kernels(code: bytes) -> dict[str, dict[str, Any]]:
    """Return the metadata of each kernel by its name.

    Among it ``.wavefront_size``, ``.vgpr_spill_count`` and ``.group_segment_fixed_size``.
    """
    for kind, _, segment in _segments(code):
        if kind != _PT_NOTE:
            continue
        at = 0
        while at + 12 <= len(segment):
            name_size, size, note = struct.unpack_from("<3I", segment, at)
            begin = at + 12 + (name_size + 3) // 4 * 4
            if note == _NT_AMDGPU_METADATA:
                metadata, _ = _unpack(segment, begin)
                return {kernel[".name"]: kernel for kernel in metadata["amdhsa.kernels"]}
            at = begin + (size + 3) // 4 * 4
    raise ValueError("no metadata in the code object")


def words(code: bytes) -> list[int]:
    """Return the executable part as words of 32 bits."""
    text = b"".join(s for kind, flags, s in _segments(code) if kind == _PT_LOAD and flags & 1)
    return [word for (word,) in struct.iter_unpack("<I", text[: len(text) // 4 * 4])]


def count_permutes(code: bytes, target: str) -> int:
    """Return how many ``ds_bpermute_b32`` there are: the instruction that a shuffle becomes."""
    # Encoding DS, from the instruction-set documents of Vega and of RDNA 2.
    shift, opcode = (17, 0x3F) if target.startswith("gfx9") else (18, 0xB3)
    return sum(word >> 26 == 0x36 and word >> shift & 0xFF == opcode for word in words(code))


def _segments(code: bytes) -> list[tuple[int, int, bytes]]:
    if code[:4] != b"\x7fELF":
        raise ValueError("not an ELF file")
    (table,) = struct.unpack_from("<Q", code, 32)
    entry_size, count = struct.unpack_from("<2H", code, 54)
    found = []
    for i in range(count):
        kind, flags, offset, _, _, size = struct.unpack_from("<2I4Q", code, table + i * entry_size)
        found.append((kind, flags, code[offset : offset + size]))
    return found


def _unpack(data: bytes, at: int) -> tuple[Any, int]:
    """Return the MessagePack value at an offset, and the offset after it."""
    tag = data[at]
    at += 1
    if tag <= 0x7F or tag >= 0xE0:
        return (tag if tag <= 0x7F else tag - 256), at
    if tag <= 0x8F:
        return _unpack_map(data, at, tag & 0x0F)
    if tag <= 0x9F:
        return _unpack_list(data, at, tag & 0x0F)
    if tag <= 0xBF:
        return _unpack_text(data, at, tag & 0x1F)
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag], at
    if 0xCC <= tag <= 0xD3:
        width, letters = 1 << (tag & 3), "BHIQ" if tag <= 0xCF else "bhiq"
        (number,) = struct.unpack_from(f">{letters[tag & 3]}", data, at)
        return number, at + width
    variable = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}[tag]
    size = int.from_bytes(data[at : at + variable], "big")
    unpack = _unpack_text if tag <= 0xDB else _unpack_list if tag <= 0xDD else _unpack_map
    return unpack(data, at + variable, size)


def _unpack_text(data: bytes, at: int, size: int) -> tuple[str, int]:
    return data[at : at + size].decode(), at + size


def _unpack_list(data: bytes, at: int, size: int) -> tuple[list[Any], int]:
    items = []
    for _ in range(size):
        item, at = _unpack(data, at)
        items.append(item)
    return items, at


def _unpack_map(data: bytes, at: int, size: int) -> tuple[dict[str, Any], int]:
    items = {}
    for _ in range(size):
        key, at = _unpack(data, at)
        items[key], at = _unpack(data, at)
    return items, at
