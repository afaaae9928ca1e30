"""Compiled functions as operators: called by compiled loops without Python."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.compiled_function import address_of
from wollemi.core.errors import InvalidArgument, UnsupportedOperation

from ..backends.needs import tool

COMPILER = shutil.which("cc") or shutil.which("gcc")
N = 200
EXECUTORS = ("omp", "reference")
DTYPES = {"float32": "float", "float64": "double"}
SOURCE = """
#include <stdint.h>
#define STENCIL(T, name)                                                        \\
  void name(const T *x, T *y, int64_t n, int64_t m, void *data) {              \\
    const double shift = data ? *(const double *)data : 0.0;                    \\
    for (int64_t i = 0; i < n; ++i)                                             \\
      y[i] = (T)((2 + shift) * x[i] - (i ? x[i - 1] : 0) - (i < n - 1 ? x[i + 1] : 0)); \\
  }
STENCIL(float, of_float32)
STENCIL(double, of_float64)
void of_complex128(const double *x, double *y, int64_t n, int64_t m, void *data) {
  for (int64_t i = 0; i < n; ++i) { y[2 * i] = -x[2 * i + 1]; y[2 * i + 1] = x[2 * i]; }
}
void first(const double *x, double *y, int64_t n, int64_t m, void *data) {
  for (int64_t i = 0; i < m; ++i) y[i] = x[i];
}
void padded(const double *x, double *y, int64_t n, int64_t m, void *data) {
  for (int64_t i = 0; i < m; ++i) y[i] = i < n ? x[i] : 0;
}
"""

pytestmark = tool(COMPILER is not None, "no C compiler: install gcc")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("compiled")
    source, made = folder / "stencil.c", folder / "stencil.so"
    source.write_text(SOURCE)
    assert COMPILER is not None
    subprocess.run([COMPILER, "-O2", "-shared", "-fPIC", "-o", made, source], check=True)
    return ctypes.CDLL(str(made))


def stencil(n: int = N, shift: float = 0.0) -> Any:
    return np.diag(np.full(n, 2.0 + shift)) - np.eye(n, k=1) - np.eye(n, k=-1)


def test_addresses_of_compiled_functions(library: Any) -> None:
    function = library.of_float64
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address_of(function) == address_of(address) == address
    assert address_of(SimpleNamespace(address=address, ctypes=function)) == address  # Numba's
    assert address_of(len) is None
    assert address_of(True) is None


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_equal_those_of_the_matrix(library: Any, executor: str, dtype: str) -> None:
    function = getattr(library, f"of_{dtype}")
    A = wl.LinearOperator((N, N), function, function, dtype=dtype, executor=executor)
    rng = np.random.default_rng(0)
    x, X = (rng.standard_normal(shape).astype(dtype) for shape in ((N,), (N, 3)))
    tolerance = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(A @ x, stencil() @ x, **tolerance)
    np.testing.assert_allclose(A @ X, stencil() @ X, **tolerance)
    np.testing.assert_allclose(A.H @ x, stencil() @ x, **tolerance)
    out = np.ones((N, 3), dtype)
    A.apply(X, out, alpha=2.0, beta=-1.0)
    np.testing.assert_allclose(out, 2 * stencil() @ X - 1, **tolerance)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_functions_may_be_complex_or_rectangular(library: Any, executor: str) -> None:
    turn = wl.LinearOperator((4, 4), library.of_complex128, dtype=complex, executor=executor)
    x = np.arange(4) + 1j
    np.testing.assert_array_equal(turn @ x, 1j * x)
    P = wl.LinearOperator((2, 5), library.first, library.padded, executor=executor)
    np.testing.assert_array_equal(P @ np.arange(5.0), [0.0, 1.0])
    np.testing.assert_array_equal(P.T @ np.array([3.0, 4.0]), [3, 4, 0, 0, 0])


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("solver", ["Cg", "Bicgstab", "Gmres", "Minres", "Idr"])
def test_solvers_call_a_compiled_function_in_their_loops(
    library: Any, executor: str, solver: str
) -> None:
    shift = np.array([0.5])
    A = wl.LinearOperator((N, N), library.of_float64, data=shift, executor=executor)
    M = wl.LinearOperator((N, N), library.of_float64, data=np.array([30.0]), executor=executor)
    b = np.random.default_rng(1).standard_normal(N)
    assert A.resident is (executor == "omp")
    for preconditioner in (None, M):
        made = getattr(wl.solvers, solver)(A, M=preconditioner, rtol=1e-10)
        result = made.solve(b)
        assert result.converged
        np.testing.assert_allclose(stencil(shift=0.5) @ result.x, b, atol=1e-7)
        reference = getattr(wl.solvers, solver)(
            wl.Csr(stencil(shift=0.5), executor=executor), M=preconditioner, rtol=1e-10
        ).solve(b)
        assert abs(result.iterations - reference.iterations) <= 2


def test_new_data_is_read_by_recorded_loops(library: Any) -> None:
    shift = np.array([0.5])
    A = wl.LinearOperator((N, N), library.of_float64, data=shift, executor="omp")
    cg, b = wl.solvers.Cg(A, rtol=1e-10), np.ones(N)
    for value in (0.5, 4.0):
        shift[0] = value
        np.testing.assert_allclose(stencil(shift=value) @ cg.solve(b).x, b, atol=1e-7)


def prototypes() -> dict[str, Any]:
    """Return functions of other signatures than an operator of float64 calls, by name."""
    integer, pointer, double = ctypes.c_int64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_double)
    single, after = ctypes.POINTER(ctypes.c_float), (integer, integer, pointer)

    def of(*parameters: Any) -> Any:
        return ctypes.CFUNCTYPE(None, *parameters)(lambda *_: None)

    return {
        "float32 *, float64 *, int64, int64, void *": of(single, double, *after),
        "float64 *, float64 *": of(double, double),
        "float64, void *, int64, int64, void *": of(ctypes.c_double, pointer, *after),
        "float64 *, float64 *, int32, int64, void *": of(
            double, double, ctypes.c_int32, integer, pointer
        ),
    }


@pytest.mark.parametrize("parameters", prototypes())
def test_functions_of_another_signature_are_refused(parameters: str) -> None:
    function = prototypes()[parameters]
    for name, given in (("matvec", (function,)), ("rmatvec", (lambda x: x, function))):
        with pytest.raises(
            InvalidArgument, match=re.escape(f"{name}: the compiled function takes ({parameters})")
        ):
            wl.LinearOperator((3, 3), *given, executor="omp")
    with pytest.raises(InvalidArgument, match="got 0"):
        wl.LinearOperator((3, 3), 0, executor="omp")


def test_signatures_of_cffi_and_numba_are_read() -> None:
    cffi, numba = pytest.importorskip("cffi"), pytest.importorskip("numba")
    callback = cffi.FFI().callback("void(float *, float *, int64_t, int64_t, void *)")
    vector = numba.types.CPointer(numba.types.float32)
    types = (vector, vector, numba.int64, numba.int64, numba.types.voidptr)
    functions = (
        callback(lambda *_: None),
        numba.cfunc(numba.void(*types))(lambda x, y, n, m, d: None),
    )
    for function in functions:
        wl.LinearOperator((3, 3), function, dtype="float32", executor="omp")
        wl.LinearOperator((3, 3), function, dtype="complex64", executor="omp")
        with pytest.raises(InvalidArgument, match=r"takes \(float32 \*, float32 \*, int64, int64"):
            wl.LinearOperator((3, 3), function, executor="omp")


def test_a_python_function_is_refused_where_loops_are_compiled() -> None:
    with pytest.raises(InvalidArgument, match="cfunc"):
        wl.LinearOperator((3, 3), lambda x: 2 * x, capture=True, executor="omp")
    B = wl.LinearOperator((3, 3), lambda x: 2 * x, capture=True, executor="reference")
    np.testing.assert_array_equal(B @ np.ones(3), 2 * np.ones(3))
    with wl.default_executor("omp"):
        free = wl.LinearOperator((3, 3), lambda x: 2 * x, capture=True)  # follows its operands
        for call in (lambda: free @ np.ones(3), lambda: wl.solvers.Cg(free).solve(np.ones(3))):
            with pytest.raises(InvalidArgument, match="cfunc"):
                call()
    with pytest.raises(InvalidArgument, match="cfunc"):
        free.to(wl.executor("omp:1"))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_transpose_in_python_of_a_compiled_function_is_called(
    library: Any, executor: str
) -> None:
    A = wl.LinearOperator((N, N), library.of_float64, lambda x: stencil() @ x, executor=executor)
    np.testing.assert_allclose(A.H @ np.ones(N), stencil() @ np.ones(N))


def twice(x: Any, out: Any) -> None:
    np.multiply(x, 2, out=out)


class Twice:
    """A function that looks at its operands, as a kernel that takes their addresses does."""

    def __call__(self, x: Any, out: Any) -> None:
        assert x.flags.c_contiguous
        assert out.flags.c_contiguous
        twice(x, out)


@pytest.mark.parametrize("function", [twice, Twice()], ids=["function", "object"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_functions_with_out_write_there(executor: str, dtype: str, function: Any) -> None:
    captures = (False,) if executor == "omp" else (False, True)
    x, X = np.arange(3).astype(dtype), np.arange(6).astype(dtype).reshape(3, 2)
    for capture in captures:
        A = wl.LinearOperator(
            (3, 3), function, function, dtype=dtype, executor=executor, capture=capture
        )
        B = wl.LinearOperator((3, 3), function, matmat=function, dtype=dtype, executor=executor)
        for made in (A, A.H, A.T, B, A.astype("complex128")):
            np.testing.assert_array_equal(made @ x, 2 * x)
            np.testing.assert_array_equal(made @ X, 2 * X)
            np.testing.assert_array_equal(
                made.apply(X, X.astype(made.dtype), alpha=3.0, beta=1.0), 7 * X
            )
        b = np.ones((3, 2), dtype)
        np.testing.assert_allclose(wl.solvers.Cg(A).solve(b).x, b / 2, rtol=1e-5)
        half = wl.Diagonal(np.full(3, 4.0, dtype), executor=executor)
        np.testing.assert_allclose(wl.solvers.Cg(half, M=function).solve(b).x, b / 4, rtol=1e-5)


def test_an_optional_out_is_left_away_unless_loops_are_recorded() -> None:
    given: list[Any] = []

    def doubled(x: Any, out: Any = None) -> Any:
        given.append(out)
        return np.multiply(x, 2, out=out)

    for capture in (False, True):
        A = wl.LinearOperator((3, 3), doubled, capture=capture, executor="reference")
        np.testing.assert_array_equal(A @ np.ones(3), [2, 2, 2])
        assert (given.pop() is not None) == capture


def test_a_function_that_returns_another_array_than_out_is_believed() -> None:
    A = wl.LinearOperator((3, 3), lambda x, out: 2 * x, executor="reference")
    np.testing.assert_array_equal(A @ np.ones(3), [2, 2, 2])
    np.testing.assert_array_equal(A @ np.ones((3, 2)), np.full((3, 2), 2))


def test_a_compiled_function_keeps_its_dtype(library: Any) -> None:
    A = wl.LinearOperator((N, N), library.of_float32, dtype="float32")
    with pytest.raises(UnsupportedOperation, match="float32"):
        A.astype("float64")
    with pytest.raises(InvalidArgument, match="data"):
        wl.LinearOperator((N, N), library.of_float32, data="text")
