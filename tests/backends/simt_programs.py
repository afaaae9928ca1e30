"""Programs with many kernels of ``backends/simt``: tests compile them at once."""

from __future__ import annotations

from collections.abc import Mapping

from wollemi.backends.simt.kernels import simt_kernels
from wollemi.backends.unified.wrappers import SimtKernel, program, simt_wrapper


def simt_groups() -> list[tuple[str, int, bool]]:
    """Return the key of a program: a file, a size of blocks, and whether indices have a dtype."""
    return list(dict.fromkeys(group_of(kernel) for kernel in simt_kernels()))


def converts(group: tuple[str, int, bool]) -> bool:
    """Return whether a program has kernels for values that are stored in a dtype of their own."""
    return any(kernel.converts for kernel in simt_kernels() if group_of(kernel) == group)


def group_of(kernel: SimtKernel) -> tuple[str, int, bool]:
    """Return the program that a kernel is in."""
    return kernel.header, kernel.block, "{I}" in kernel.template


def simt_program(
    dialect: str,
    group: tuple[str, int, bool],
    value: str,
    index: str = "i4",
    *,
    warp: int = 32,
    defines: Mapping[str, object] | None = None,
) -> str:
    """Return the program of a group of kernels for these dtypes.

    For values that are stored in a dtype of their own it has the kernels that convert them.
    """
    wrappers = [
        simt_wrapper(kernel, value, index, **constants)
        for kernel in simt_kernels()
        if group_of(kernel) == group and (kernel.converts or "_" not in value)
        for constants in kernel.variants
        if constants.get("W", 1) <= warp  # type: ignore[operator]
    ]
    return program(dialect, [group[0]], wrappers, warp=warp, block=group[1], defines=defines)
