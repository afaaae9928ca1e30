"""Dense products by cuBLAS on CuPy's current stream, also during its capture."""

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

#: Largest row stride of an operand in elements: cuBLAS has 32-bit strides.
LARGEST_DISTANCE = 2**31 - 1
#: A math mode without 16-bit accumulation of partial sums and without TF32 for float32:
#: CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION.
MODE = 16
#: Workspace sizes in bytes, as cuBLAS chooses them: on Hopper and newer GPUs, and on older ones.
WORKSPACE, OLDER_WORKSPACE = 32 << 20, 4 << 20


def is_taken(block: Array) -> bool:
    """Return whether cuBLAS accepts a block: its rows do not overlap and its stride is in range."""
    own = block.shape[1] * block.itemsize
    apart = block.shape[0] < 2 or block.strides[0] >= own
    return bool(apart and distance(block) <= LARGEST_DISTANCE)


def distance(block: Array) -> int:
    """Return the row stride of a block in elements."""
    rows, columns = block.shape
    return int(block.strides[0] // block.itemsize) if rows > 1 else max(int(columns), 1)


def is_captured() -> bool:
    """Return whether the current stream is being captured."""
    from cupy.cuda import get_current_stream, runtime

    return bool(runtime.streamIsCapturing(get_current_stream().ptr))


def taken(executor: CudaExecutor, block: Array) -> Array:
    """Return a block that cuBLAS accepts: the block itself, or a copy."""
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
    """Compute C = alpha A B with cuBLAS, without sums of reduced precision.

    cuBLAS sees the transposes: C^T = alpha B^T A^T.

    Parameters
    ----------
    executor : GpuExecutor
        The executor of the arrays; its device's current stream is used.
    A, B, C : array
        Row-major blocks with any row stride.
    alpha : float
        The factor.
    transposed : bool
        Multiply by B^T, so that rows of A meet rows of B.
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
    """Set the math mode of the handle during a block; CuPy shares the handle with others."""
    before = cublas.getMathMode(handle)
    cublas.setMathMode(handle, MODE)
    try:
        yield
    finally:
        cublas.setMathMode(handle, before)


def _multiply_captured(executor: CudaExecutor, stream: int, arguments: tuple[Any, ...]) -> None:
    """Call the library that CuPy has loaded: CuPy itself refuses calls during a capture.

    The workspace belongs to the capture's memory: later products share the library's own workspace.
    """
    P, N = ctypes.c_void_p, ctypes.c_int
    kinds = (P, N, N, N, N, N, P, P, N, N, P, N, N, P, P, N, N, N, N)
    operands = [kind(argument) for kind, argument in zip(kinds, arguments, strict=True)]
    library, handle, before = _cublas(), operands[0], P()
    newer = executor.device.capability >= (9, 0)
    workspace = executor.allocate((WORKSPACE if newer else OLDER_WORKSPACE,), np.uint8)
    status = (
        library.cublasGetStream_v2(handle, ctypes.byref(before))
        or library.cublasSetStream_v2(handle, P(stream))
        or library.cublasSetWorkspace_v2(
            handle, P(workspace.data.ptr), ctypes.c_size_t(workspace.nbytes)
        )
        or library.cublasGemmEx(*operands)
    )
    # This call also resets the workspace.
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
