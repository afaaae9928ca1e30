"""Machine code of compiled programs on disk, for devices of OpenCL.

The runtime's own cache (:mod:`.program_cache`) finds a program only after its text was preprocessed
with SYCL's headers, which takes 0.13 to 0.3 s. OpenCL drivers give the machine code of a program,
and a later process loads it in 5 to 70 ms.
"""

from __future__ import annotations

import ctypes
from functools import cached_property

from ...core.cache import CodeCache
from ...core.devices.processor import features, processor
from . import runtime
from .place import Place
from .shim import shim

#: By the device, the options of the compiler and the text of a program.
_CODE = CodeCache("dpcpp-code", ".bin")


class MachineCode:
    """The machine code that was kept for one device.

    Parameters
    ----------
    place : Place
        The queue that programs are loaded for.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._possible = bool(shim().wl_has_code(place.address))

    @cached_property
    def _device(self) -> str:
        """All that machine code depends on besides its program."""
        device = self._place.device
        host = f"{processor()}{features()}" if self._place.is_host else ""
        return f"{runtime.version()}{device.name}{device.driver_version}{host}"

    def load(self, key: str) -> int | None:
        """Return a handle of a program, or None if its machine code was not kept or is refused.

        Parameters
        ----------
        key : str
            The text of the program and the options of its compiler.
        """
        content = _CODE.load(self._device + key) if self._possible else None
        if content is None:
            return None
        return shim().wl_load(self._place.address, content, len(content)) or None

    def keep(self, key: str, program: int) -> None:
        """Keep the machine code of a compiled program, if the driver gives it."""
        code = shim().wl_code_new(program) if self._possible else None
        if code:
            content = ctypes.string_at(shim().wl_code_bytes(code), shim().wl_code_size(code))
            shim().wl_code_free(code)
            _CODE.save(self._device + key, content)

    def remove(self, key: str) -> None:
        """Forget a program."""
        _CODE.remove(self._device + key)
