"""Work of XLA programs on GPUs: launches that the native handler repeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...core.executor import Array
from ...core.foreign import ArrayShape, ForeignProduct, Step
from .function import packing
from .native_calls import native
from .products.repeated import addresses_of, spans_of
from .repeatable import RecordedLaunch, Span, pointer_places
from .scratch import Scratch

if TYPE_CHECKING:
    from .base import GpuExecutor

#: A launch in the handler's form: the driver's handle, blocks, work-items per block, bytes of
#: shared memory, the arguments in slots of 8 bytes, and which of them are addresses.
NativeLaunch = tuple[int, int, int, int, bytes, list[tuple[int, int, int]]]


def bind(
    on: GpuExecutor,
    shapes: Sequence[ArrayShape],
    work: Callable[[Any, Sequence[Array]], Sequence[Step]],
) -> ForeignProduct:
    """Return a call for a compiled program; see :meth:`wollemi.Executor.foreign_call`."""

    def compute(ordinal: int, stream: int, addresses: tuple[int, ...]) -> Any:
        executor = on.at(ordinal)
        executor.make_current()  # XLA calls from its own threads
        with executor.on_stream(stream):
            arrays = [
                executor.array_at(address, shape)
                for address, shape in zip(addresses, shapes, strict=True)
            ]
            steps = work(executor, arrays)
            # A list, so that all steps run even after one that cannot be repeated.
            complete = all([step() for step in steps])
            return launches_of(executor, steps, arrays) if complete else None

    call = native().DeviceCall(compute, on.launch_address(), on.alignment)
    return ForeignProduct(native().name_call(call), call)


def launches_of(
    on: GpuExecutor, steps: Sequence[Step], arrays: Sequence[Array]
) -> tuple[list[NativeLaunch], object] | None:
    """Return the launches of steps that ran before, and the owner of the memory that they use.

    Return None if a launch has an argument of another kind, or one that cannot be distinguished
    from an address.
    """
    spans = spans_of(arrays, addresses_of(arrays))
    if spans is None:
        return None
    scratch, launches = Scratch(), list[RecordedLaunch]()
    # The dry run reserves the scratch memory of all launches before its address is used.
    for into in (None, launches):
        with on.preparing(scratch, dry=True, into=into):
            for step in steps:
                step()
    made = [_native_launch(on, launch, spans) for launch in launches]
    if None in made:
        return None
    return made, (scratch, launches, steps)  # type: ignore[return-value]


def _native_launch(
    on: GpuExecutor, launch: RecordedLaunch, spans: Sequence[Span]
) -> NativeLaunch | None:
    handle, layout = on.launch_handle(launch), packing(*map(type, launch.arguments))
    if handle is None or layout is None:
        return None
    return (
        handle,
        launch.grid[0],
        launch.block[0],
        launch.shared,
        layout.pack(*launch.arguments),
        [(at, array, offset) for at, array, offset in pointer_places(launch.arguments, spans)],
    )
