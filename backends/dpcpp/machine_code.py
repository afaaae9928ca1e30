"""A disk cache of the machine code of compiled programs, for OpenCL devices.

The runtime's own cache (:mod:`.program_cache`) finds a program only after preprocessing its text
with SYCL's headers, which takes 0.13 to 0.3 s. OpenCL drivers export a program's machine code, and
a later process loads it in 5 to 70 ms.
"""

from __future__ import annotations

import ctypes
from functools import cached_property

from ...core.cache import CodeCache
from ...core.devices.processor import features, processor
from . import runtime
from .place import Place
from .shim import shim

#: Machine code, by the device, the compiler's options and the program's text.
_CODE = CodeCache("dpcpp-code", ".bin")


class MachineCode:
    """The cached machine code for one device.

    Parameters
    ----------
    place : Place
        The queue to load programs for.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._possible = bool(shim().wl_has_code(place.address))

    @cached_property
    def _device(self) -> str:
        """Everything besides the program that machine code depends on."""
        device = self._place.device
        host = f"{processor()}{features()}" if self._place.is_host else ""
        return f"{runtime.version()}{device.name}{device.driver_version}{host}"

    def load(self, key: str) -> int | None:
        """Return the handle of a program, or None if its machine code is not cached or is rejected.

        Parameters
        ----------
        key : str
            The program's text and the compiler's options.
        """
        content = _CODE.load(self._device + key) if self._possible else None
        if content is None:
            return None
        return shim().wl_load(self._place.address, content, len(content)) or None

    def keep(self, key: str, program: int) -> None:
        """Store the machine code of a compiled program, if the driver exports it."""
        code = shim().wl_code_new(program) if self._possible else None
        if code:
            content = ctypes.string_at(shim().wl_code_bytes(code), shim().wl_code_size(code))
            shim().wl_code_free(code)
            _CODE.save(self._device + key, content)

    def remove(self, key: str) -> None:
        """Remove a program from the cache."""
        _CODE.remove(self._device + key)
