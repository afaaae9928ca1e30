"""Modules that stand for CuPy in its own tests: NumPy's arrays, and our matrices.

CuPy's tests call a function twice, with NumPy and SciPy and with CuPy, and compare the results.
With these modules the second call gets our matrices on the reference executor, so that no GPU is
needed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.formats.sparse_vector import SparseVector

#: Errors that must be of one kind on both sides, unless ours is derived from SciPy's class.
_KINDS = (AttributeError, IndexError, TypeError, ValueError, NotImplementedError)


class Kind(type):
    """The type of the classes that stand for CuPy's sparse arrays: calls make our matrices."""

    ours: tuple[type, ...]
    make: Callable[..., Any]

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.ours)

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        return cls.make(*arguments, **options)


def kind(name: str, make: Callable[..., Any], *ours: type) -> Kind:
    """Return a class with a name of CuPy's that stands for ours."""
    return Kind(name, (), {"make": staticmethod(make), "ours": ours, "__module__": __name__})


def _dimensions(arg: Any, shape: Any) -> int:
    """Return how many dimensions an argument of a constructor has."""
    if isinstance(arg, tuple):
        if len(arg) == 3:
            return 2 if shape is None else len(shape)
        return len(arg[1]) if len(arg) == 2 and isinstance(arg[1], tuple) else len(arg)
    return int(np.ndim(arg)) if isinstance(arg, list) else int(getattr(arg, "ndim", 2))


def maker(name: str, make: Callable[..., Any], *, vectors: bool) -> Callable[..., Any]:
    """Return a constructor that makes sparse vectors too, where CuPy's class does."""

    def made(arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> Any:
        given = _dimensions(arg, shape)
        asked = given if shape is None else len(shape)
        if given == 0 and not vectors:
            return getattr(wl, name.capitalize())(arg)
        if given > 1 and asked > 1:
            return make(arg, shape, dtype, copy)
        if not vectors:
            raise ValueError("an array of one dimension makes no such matrix")
        if asked == 2 and name == "csr":
            return make(on_reference(wl.SparseVector)(arg).row, shape, dtype, copy)
        return on_reference(wl.SparseVector)(arg, shape, dtype=dtype).asformat(name)

    return made


def _from_parts(make: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return CuPy's private constructor of arrays that are known to be right."""

    def made(data: Any, first: Any, second: Any, shape: Any) -> Any:
        arrays = (data, (first, second)) if name == "coo" else (data, first, second)
        return make(arrays, shape)

    return made


def modules(makers: dict[str, Callable[..., Any]]) -> dict[str, ModuleType]:
    """Return the modules by their names, for ``sys.modules``.

    Parameters
    ----------
    makers : dict
        Constructors by the names of formats: ``csr``, ``csc`` and ``coo``.
    """
    classes = {"csr": wl.Csr, "csc": wl.Csc, "coo": wl.Coo}
    sparse = _Sparse("cupyx.scipy.sparse")
    for name, make in makers.items():
        vectors = name in ("csr", "coo")
        ours = (classes[name], SparseVector) if vectors else (classes[name],)
        made = kind(f"{name}_array", maker(name, make, vectors=vectors), *ours)
        made._from_parts = _from_parts(make, name)  # type: ignore[attr-defined]
        made._allow_nd = (1, 2) if vectors else (2,)  # type: ignore[attr-defined]
        setattr(sparse, f"{name}_array", made)
    sparse.sparray = kind("sparray", _refused, wl.Matrix, SparseVector)  # type: ignore[attr-defined]
    sparse.spmatrix = kind("spmatrix", _refused)  # type: ignore[attr-defined]
    sparse.issparse = lambda x: isinstance(x, (wl.Matrix, SparseVector))  # type: ignore[attr-defined]
    sparse.isspmatrix = lambda x: False  # type: ignore[attr-defined]
    names = ("kron", "kronsum", "vstack", "hstack", "block_diag", "block_array", "tril", "triu")
    for name in (*names, "find", "swapaxes", "permute_dims"):
        setattr(sparse, name, on_reference(getattr(wl.sparse, name)))
    sparse.matrix_transpose = lambda A: A.mT  # type: ignore[attr-defined]
    for name in ("get_index_dtype", "safely_cast_index_arrays"):  # SciPy's take our matrices
        setattr(sparse, name, getattr(sp, name))
    sparse.SparseEfficiencyWarning = sp.SparseEfficiencyWarning  # type: ignore[attr-defined]
    sparse.eye_array = on_reference(wl.sparse.eye)  # type: ignore[attr-defined]
    sparse.diags_array = on_reference(_diags_array)  # type: ignore[attr-defined]
    sparse.random_array = on_reference(_random_array)  # type: ignore[attr-defined]
    linalg = ModuleType("cupyx.scipy.sparse.linalg")
    linalg.aslinearoperator = wl.linalg.aslinearoperator  # type: ignore[attr-defined]
    linalg.matrix_power = on_reference(wl.linalg.matrix_power)  # type: ignore[attr-defined]
    linalg.spsolve = lambda A, b: wl.solvers.Direct(A).solve(b).x  # type: ignore[attr-defined]
    sparse.linalg = linalg  # type: ignore[attr-defined]

    testing = ModuleType("cupy.testing")
    testing.assert_allclose = _compared(np.testing.assert_allclose)  # type: ignore[attr-defined]
    testing.assert_array_equal = _compared(np.testing.assert_array_equal)  # type: ignore[attr-defined]
    testing.with_requires = lambda *requirements: lambda test: test  # type: ignore[attr-defined]
    testing.numpy_cupy_allclose = functools.partial(_both, sparse)  # type: ignore[attr-defined]
    testing.numpy_cupy_equal = functools.partial(_both, sparse)  # type: ignore[attr-defined]

    cupy = _Arrays("cupy")
    cupy.testing = testing  # type: ignore[attr-defined]
    cupy.asnumpy = np.asarray  # type: ignore[attr-defined]
    cupy.get_array_module = lambda *arrays: cupy  # type: ignore[attr-defined]
    cupyx, scipy_of_cupy = ModuleType("cupyx"), ModuleType("cupyx.scipy")
    cupyx.scipy, scipy_of_cupy.sparse = scipy_of_cupy, sparse  # type: ignore[attr-defined]
    scipy_of_cupy.get_array_module = cupy.get_array_module  # type: ignore[attr-defined]
    found = (cupy, testing, cupyx, scipy_of_cupy, sparse, linalg)
    return {module.__name__: module for module in found}


class _Sparse(ModuleType):
    """``cupyx.scipy.sparse``: a test of a class that wollemi does not have is skipped."""

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_matrix"):
            pytest.skip("there are no matrices with the product of matrices as A * B")
        if name.startswith("dia_"):
            pytest.skip("there is no format of diagonals: wl.sparse.diags makes compressed rows")
        raise AttributeError(f"wollemi has no {name}")


class _Arrays(ModuleType):
    """NumPy under the name of CuPy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _refused(*arguments: Any, **options: Any) -> Any:
    raise TypeError("the class has no instances of its own")


def on_reference(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes matrices on the reference executor."""

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        with wl.default_executor("reference"):
            return function(*arguments, **options)

    return called


def _diags_array(diagonals: Any, *, offsets: Any = 0, **options: Any) -> Any:
    return wl.sparse.diags(diagonals, offsets, **options)


def _random_array(
    shape: tuple[int, ...], *, density: float = 0.01, format: str = "coo", **options: Any
) -> Any:
    if len(shape) == 1:
        row = wl.sparse.random(1, *shape, density, "csr", **options)
        return row.reshape(-1).asformat(format)
    return wl.sparse.random(*shape, density, format, **options)


def _compared(check: Callable[..., None]) -> Callable[..., None]:
    """Return an assertion that takes sparse operands too."""

    def checked(actual: Any, desired: Any, *arguments: Any, **options: Any) -> None:
        check(dense(actual), dense(desired), *arguments, **options)

    return checked


def dense(result: Any) -> Any:
    """Return a sparse result as an array; others as they are."""
    return result.toarray() if hasattr(result, "toarray") else result


def _both(
    sparse: ModuleType,
    *,
    sp_name: str | None = None,
    rtol: float = 1e-7,
    atol: float = 0.0,
    accept_error: Any = (),
    type_check: bool = True,
    check_sparse_format: bool = True,
    contiguous_check: bool = True,
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator that compares a function of NumPy and SciPy with one of ours."""

    def decorator(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(*arguments: Any, **values: Any) -> None:
            ours, failed = _outcome(
                test, arguments, values, {"xp": _Arrays("cupy")}, sp_name, sparse
            )
            if isinstance(failed, pytest.skip.Exception):
                raise failed
            theirs, wrong = _outcome(test, arguments, values, {"xp": np}, sp_name, sp)
            if failed is not None or wrong is not None:
                accepted = Exception if accept_error is True else accept_error or ()
                if failed is None or wrong is None or not isinstance(failed, accepted):
                    raise AssertionError(f"ours: {failed!r}, SciPy: {wrong!r}") from failed
                kinds = [[isinstance(e, kind) for kind in _KINDS] for e in (failed, wrong)]
                caught = isinstance(failed, type(wrong)) or kinds[0] == kinds[1]
                assert caught, f"ours: {failed!r}, SciPy: {wrong!r}"
                return
            pairs = (
                zip(ours, theirs, strict=True)
                if isinstance(theirs, (tuple, list))
                else [(ours, theirs)]
            )
            for mine, other in pairs:
                assert not sp.issparse(other) or isinstance(mine, (wl.Matrix, SparseVector)), (
                    f"{type(mine).__name__} for {type(other).__name__}"
                )
                mine, other = dense(mine), dense(other)
                if type_check:
                    assert np.asarray(mine).dtype == np.asarray(other).dtype
                assert np.shape(mine) == np.shape(other)
                np.testing.assert_allclose(mine, other, rtol=rtol, atol=atol)

        names = {"xp": None} | ({sp_name: None} if sp_name else {})
        run.__signature__ = inspect.signature(  # type: ignore[attr-defined]
            functools.partial(test, **names)
        )
        return run

    return decorator


def _outcome(
    test: Callable[..., Any],
    arguments: Iterable[Any],
    values: dict[str, Any],
    given: dict[str, Any],
    sp_name: str | None,
    sparse: ModuleType,
) -> tuple[Any, BaseException | None]:
    """Return the result of a call, or its error."""
    if sp_name:
        given = {**given, sp_name: sparse}
    try:
        return test(*arguments, **values, **given), None
    except (Exception, pytest.skip.Exception) as error:
        return None, error
