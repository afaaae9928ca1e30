"""The executor of SYCL devices."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ...core.dtypes import INDEX_DTYPES, VALUE_DTYPES, real_dtype
from ...core.errors import InvalidArgument
from ...core.executor import Array
from ...core.iteration import Iteration
from ...core.program import host_takes_part
from ...core.transfer import HostArray, Transfer
from ..simt.batch_executor import BlockExecutor
from ..unified.wrappers import SimtKernel
from . import dlpack
from .arguments import flatteners
from .array import Namespace, UsmArray
from .batch_launcher import SyclBlocks
from .devices import DeviceProperties, facts, name_of
from .launch import Launcher, Record
from .place import Place
from .programs import Programs, index_code, value_code
from .seen import seen_by_host
from .table import algorithms, kernel
from .templates import Family

#: Target duration of a batch of iterations, in seconds. Reading the status after a batch costs some
#: 20 microseconds; iterations beyond the stop are wasted.
BATCH_SECONDS = 1e-3

#: Upper bound of iterations per batch, which limits the wasted iterations.
LONGEST_BATCH = 32

#: Use one core for fewer elements: a second core costs more than it saves.
SERIAL_ELEMENTS = 16384

#: Work-groups per core on a CPU: if other programs delay some cores, the others take over.
GROUPS_PER_CORE = 4

#: On a GPU: minimum number of rows per work-item, and work-groups per compute unit.
ELEMENTS_PER_ITEM = 4
GROUPS_PER_UNIT = 8


class UsmTransfer(Transfer):
    """Transfers that wait once for all arrays."""

    executor: DpcppExecutor

    def read(self) -> list[HostArray]:
        """Return NumPy copies of the arrays."""
        return [array.copy() for array in self.peek()]

    def peek(self) -> list[HostArray]:
        """Return the arrays in memory that the thread's next transfer overwrites."""
        self.executor._host_takes_part()
        found = self.executor.place.gather([(a.pointer, a.nbytes) for a in self.arrays])
        return [
            part.view(array.dtype).reshape(array.shape)
            for part, array in zip(found, self.arrays, strict=True)
        ]


class DpcppExecutor(BlockExecutor):
    """A SYCL device: an Intel GPU through Level Zero or OpenCL, or the OpenCL CPU.

    Parameters
    ----------
    device : dpctl.SyclDevice
        The device; it must support unified shared memory.
    adapted_to : DeviceProperties, optional
        The device to adapt kernels to, by default the device itself. Tests use it to run the
        kernels of GPUs on a CPU.
    """

    kernels = kernel
    transfer_type = UsmTransfer
    algorithms = algorithms

    def __init__(self, device: Any, adapted_to: DeviceProperties | None = None) -> None:
        self.facts = facts(device) if adapted_to is None else adapted_to
        self.place = Place(device)
        self.launcher = Launcher(self.place)
        self.programs = Programs(self.place, self.facts)

    @cached_property
    def _name(self) -> str:
        return name_of(self.place.device)

    @property
    def name(self) -> str:
        """The name from which :func:`wollemi.executor` makes an equal executor."""
        return self._name

    @property
    def properties(self) -> dict[str, Any]:
        """Properties of the device."""
        f = self.facts
        return {
            **({"threads": f.units} if f.kind == "cpu" else {}),
            "name": f.name,
            "kind": f.kind,
            "driver": f"{f.backend} {self.place.device.driver_version}",
            "memory": f.memory,
            "units": f.units,
            "local_memory": f.local_memory,
            "sub_groups": f.sub_groups,
            "wave": f.wave,
            "dtypes": tuple(d for d in VALUE_DTYPES if f.fp64 or real_dtype(d) == np.float32)
            + INDEX_DTYPES,
        }

    @property
    def has_double(self) -> bool:  # type: ignore[override]
        """Whether the device supports double precision."""
        return bool(self.facts.fp64)

    @property
    def one_item_groups(self) -> bool:
        """Whether a work-group is one work-item, which is fastest on CPU devices."""
        return self.facts.block == 1

    @cached_property
    def xp(self) -> Any:
        """NumPy's functions for arrays of this device; they compute on the host."""
        return Namespace(self.place)

    # ---- memory

    def allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialized, C-contiguous array."""
        array = UsmArray.empty(self.place, shape, dtype)
        record = self.launcher.record
        if record is not None:
            record.kept.append(array)
        return array

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        """Copy ``array`` to this device."""
        self._host_takes_part()
        return UsmArray.of(self.place, array)

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """Return a NumPy copy of ``array``, after waiting for pending work."""
        self._host_takes_part()
        host: np.ndarray[Any, Any] = array.asnumpy() if isinstance(array, UsmArray) else array
        return host

    def seen_by_host(self, array: UsmArray) -> np.ndarray[Any, Any]:
        """Return an array that the host can read at once: without a copy on a CPU device."""
        self._host_takes_part()
        return seen_by_host(array)

    def copy(self, array: Array) -> Array:
        """Return a C-contiguous copy."""
        self._host_takes_part()
        return array.copy()

    def copy_into(self, target: Array, source: Array | np.ndarray[Any, Any]) -> None:
        """Overwrite ``target`` with ``source``, an array of this device or a NumPy array."""
        self._host_takes_part()
        if isinstance(source, UsmArray):
            target.assign(source)
        else:
            target.write(source)

    def address(self, array: Array) -> int:
        """Return the address of an array."""
        return int(array.pointer)

    def owns(self, array: object) -> bool:
        """Return whether ``array`` belongs to this device and is aligned for kernels."""
        if not isinstance(array, UsmArray) or array.place is not self.place:
            return False
        return gcd(array.pointer, *array.strides) % array.itemsize == 0

    def adopt(self, array: object) -> Array | None:
        """Wrap another library's array on this device without a copy; return None if impossible.

        dpnp exports the memory through ``__sycl_usm_array_interface__``, PyTorch through DLPack.
        The queues differ, so the other library's work is awaited if its queue is known.
        """
        interface = getattr(array, "__sycl_usm_array_interface__", None)
        if isinstance(interface, dict):
            return self._adopt_interface(array, interface)
        if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
            kind, number = array.__dlpack_device__()
            if (int(kind), int(number)) == (dlpack.ONEAPI, self.place.number):
                return self._adopt_tensor(array)
        return None

    def _adopt_interface(self, array: Any, interface: dict[str, Any]) -> Array | None:
        queue = getattr(array, "sycl_queue", interface.get("syclobj"))
        context = getattr(queue, "sycl_context", None)
        if queue is None or context != self.place.queue.sycl_context:
            return None
        if getattr(queue, "sycl_device", None) != self.place.device:
            return None
        queue.wait()
        dtype = np.dtype(interface["typestr"])
        shape, strides = interface["shape"], interface["strides"]
        return UsmArray(
            self.place,
            array,
            interface["data"][0] + interface.get("offset", 0) * dtype.itemsize,
            tuple(shape),
            dtype,
            None if strides is None else tuple(s * dtype.itemsize for s in strides),
        )

    def _adopt_tensor(self, array: Any) -> Array | None:
        if hasattr(array, "detach"):  # tensors that track gradients refuse to be shared
            array = array.detach()
        if hasattr(array, "resolve_conj"):
            array = array.resolve_conj()
        taken = dlpack.take(array)
        if taken is None or (taken.address and not self.place.reaches(taken.address)):
            return None
        adopted = UsmArray(
            self.place, taken.owner, taken.address, taken.shape, taken.dtype, taken.strides
        )
        return adopted.copy() if taken.read_only else adopted

    def synchronize(self) -> None:
        """Wait for all submitted work."""
        self.place.wait()

    def release_idle_memory(self) -> None:
        """Free the memory that is cached for later arrays."""
        self.place.release_idle_memory()

    # ---- work

    def drive(self, iteration: Iteration, limit: int) -> None:
        """Run ``iteration`` until no column of its status is running, at most ``limit`` times.

        Its launches are recorded once; the shim submits them in batches. Iterations of a batch
        after the stop change nothing, because no column is running.
        """
        if not iteration.resident or self.observed:
            super().drive(iteration, limit)
            return
        if iteration.program is None:
            program = self.record(iteration.body)
            with self._recording() as record:
                program.run()
            record.kept.append(program)  # with the arrays that were made for it
            record.replayable = record.replayable and not program.by_host
            iteration.program = record
        record = iteration.program
        if not record.replayable:
            super().drive(iteration, limit)
            return
        running = iteration.status.running
        if limit <= 0 or self.transfer(running).peek()[0][0] == 0:
            return
        left, batch = limit, 1
        while left > 0:
            batch = min(batch, left)
            began = time.perf_counter()
            if record.run(batch, running) == 0:
                return
            left -= batch
            if time.perf_counter() - began < BATCH_SECONDS:
                batch = min(2 * batch, LONGEST_BATCH)

    @contextmanager
    def _recording(self) -> Iterator[Record]:
        record = Record(self.place)
        if self.launcher.record is not None:
            raise InvalidArgument("an iteration cannot be recorded within another one")
        self.launcher.record = record
        try:
            yield record
        finally:
            self.launcher.record = None

    def launch(
        self,
        kernel: SimtKernel,
        family: Family,
        grid: tuple[int, int],
        arguments: tuple[Any, ...],
        value: DTypeLike,
        index: DTypeLike = np.int32,
        stored: DTypeLike | None = None,
        **constants: int,
    ) -> None:
        """Launch a template for the given dtypes, with a number and a size of work-groups.

        ``stored`` is the dtype of stored values, if it differs from ``value``.
        """
        code = value_code(value, stored)
        found = self.programs.of_template(kernel, family, code, index_code(index), constants)
        flat: list[Any] = []
        for flatten, argument in zip(flatteners(kernel, code), arguments, strict=True):
            flatten(flat, argument)
        self.launcher.submit(found, *grid, *flat)

    @cached_property
    def blocks(self) -> SyclBlocks:
        """The launcher of batch kernels."""
        return SyclBlocks(self.programs, self.launcher)

    def _host_takes_part(self) -> None:
        host_takes_part()
        record = self.launcher.record
        if record is not None:
            record.replayable = False

    def grid(self, work: int) -> tuple[int, int]:
        """Return the number and size of the work-groups that share ``work`` elements.

        The result, and thereby the order of sums, depends only on the device and on ``work``.
        """
        f = self.facts
        if self.one_item_groups:
            return (1 if work < SERIAL_ELEMENTS else GROUPS_PER_CORE * f.units), 1
        wanted = -(-work // (f.block * ELEMENTS_PER_ITEM))
        return max(1, min(wanted, f.units * GROUPS_PER_UNIT)), f.block

    def row_grid(self, rows: int, work: int) -> tuple[int, int]:
        """Return the grid for rows of a pattern; on a GPU, each row is processed by a wave."""
        return self.grid(work) if self.one_item_groups else self.grid(rows * self.facts.wave)

    def map_grid(self, rows: int, columns: int, in_lanes: bool = True) -> tuple[int, int]:
        """Return the grid for a functor; work-groups are adjacent across many columns.

        On a CPU a work-group fills a vector register; without ``in_lanes``, it is one work-item.
        """
        f = self.facts
        if self.one_item_groups:
            return self.grid(rows * columns)[0], f.map_block if in_lanes else f.block
        width = min(columns, f.block)
        across = -(-columns // width)
        wanted = -(-rows // (f.block // width * ELEMENTS_PER_ITEM))
        return max(1, min(wanted, f.units * GROUPS_PER_UNIT // across)) * across, f.block
