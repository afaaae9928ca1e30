"""Dense products by cuBLAS, on CuPy's current stream, also while that is captured."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.errors import DeviceError
from ....core.executor import Array

if TYPE_CHECKING:
    from types import ModuleType

    from ..runtime.executor import CudaExecutor

#: Elements from row to row of an operand: cuBLAS counts them in 32 bits.
LARGEST_DISTANCE = 2**31 - 1
#: The mode in which parts of a sum are never added up in 16 bits and float32 is never TF32:
#: CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION.
MODE = 16
#: Bytes of the library's workspace on Hopper and newer GPUs, and on older ones: its own sizes.
WORKSPACE, OLDER_WORKSPACE = 32 << 20, 4 << 20


def is_taken(block: Array) -> bool:
    """Return whether cuBLAS takes a block: rows that do not overlap, at a distance it can count."""
    own = block.shape[1] * block.itemsize
    apart = block.shape[0] < 2 or block.strides[0] >= own
    return bool(apart and distance(block) <= LARGEST_DISTANCE)


def distance(block: Array) -> int:
    """Return the elements from row to row of a block."""
    rows, columns = block.shape
    return int(block.strides[0] // block.itemsize) if rows > 1 else max(int(columns), 1)


def is_captured() -> bool:
    """Return whether the current stream is being captured."""
    from cupy.cuda import get_current_stream, runtime

    return bool(runtime.streamIsCapturing(get_current_stream().ptr))


def taken(executor: CudaExecutor, block: Array) -> Array:
    """Return a block as cuBLAS takes it: itself, or a copy."""
    return block if is_taken(block) else executor.copy(block)


def multiply(
    executor: CudaExecutor,
    A: Array,
    B: Array,
    C: Array,
    alpha: complex,
    *,
    transposed: bool = False,
) -> None:
    """C = alpha A B by cuBLAS, which sees the transposes: C^T = B^T A^T. Sums are never narrower.

    Parameters
    ----------
    executor : GpuExecutor
        The arrays; their device's current stream is used.
    A, B, C : array
        By rows, any distance apart.
    alpha : float
        The factor.
    transposed : bool
        Multiply by B^T: rows of A by rows of B.
    """
    from cupy.cuda import cublas, device, get_current_stream, runtime

    m, n = A.shape
    kinds = {"float16": runtime.CUDA_R_16F, "bfloat16": runtime.CUDA_R_16BF}
    kinds |= {"float32": runtime.CUDA_R_32F, "float64": runtime.CUDA_R_64F}
    double = A.dtype.itemsize == 8
    held = np.float64 if double else np.float32
    factor, nothing = np.array(alpha, held), np.array(0, held)
    handle, none = device.get_cublas_handle(), cublas.CUBLAS_OP_N
    arguments = (
        handle, cublas.CUBLAS_OP_T if transposed else none, none, C.shape[1], m, n,
        factor.ctypes.data, B.data.ptr, kinds[B.dtype.name], distance(B), A.data.ptr,
        kinds[A.dtype.name], distance(A), nothing.ctypes.data, C.data.ptr, kinds[C.dtype.name],
        distance(C), cublas.CUBLAS_COMPUTE_64F if double else cublas.CUBLAS_COMPUTE_32F,
        cublas.CUBLAS_GEMM_DEFAULT,
    )  # fmt: skip
    with _in_mode(cublas, handle):
        if is_captured():
            _multiply_captured(executor, get_current_stream().ptr, arguments)
        else:
            cublas.gemmEx(*arguments)


@contextmanager
def _in_mode(cublas: ModuleType, handle: int) -> Iterator[None]:
    """Have the library add up as promised; the handle is CuPy's, which others use."""
    before = cublas.getMathMode(handle)
    cublas.setMathMode(handle, MODE)
    try:
        yield
    finally:
        cublas.setMathMode(handle, before)


def _multiply_captured(executor: CudaExecutor, stream: int, arguments: tuple[Any, ...]) -> None:
    """Call the library that CuPy has loaded: CuPy itself refuses to while a graph is captured.

    The workspace is memory of the capture: the library's own would be shared with later products.
    """
    P, N = ctypes.c_void_p, ctypes.c_int
    kinds = (P, N, N, N, N, N, P, P, N, N, P, N, N, P, P, N, N, N, N)
    given = [kind(argument) for kind, argument in zip(kinds, arguments, strict=True)]
    library, handle, before = _cublas(), given[0], P()
    newer = executor.device.capability >= (9, 0)
    workspace = executor.allocate((WORKSPACE if newer else OLDER_WORKSPACE,), np.uint8)
    status = (
        library.cublasGetStream_v2(handle, ctypes.byref(before))
        or library.cublasSetStream_v2(handle, P(stream))
        or library.cublasSetWorkspace_v2(
            handle, P(workspace.data.ptr), ctypes.c_size_t(workspace.nbytes)
        )
        or library.cublasGemmEx(*given)
    )
    # This takes the workspace back, too.
    status = library.cublasSetStream_v2(handle, before) or status
    if status:
        raise DeviceError(f"{executor.name}: cublasGemmEx failed with status {status}")


@cache
def _cublas() -> ctypes.CDLL:
    for version in (13, 12, 11):
        with suppress(OSError):
            return ctypes.CDLL(f"libcublas.so.{version}", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    raise DeviceError(
        "the dense product cannot be captured: CuPy's libcublas was not found among the loaded "
        'libraries; ask for another kernel, such as kernel="row-split"'
    )
