"""SciPy's own tests of its sparse arrays, run with our matrices in the places of those we have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg

import wollemi as wl
from wollemi.core.dtypes import EXACT_DTYPES, VALUE_DTYPES, held_dtype
from wollemi.core.formats.sparse_vector import SparseVector

from .loading import test_module

#: The dtypes that matrices hold.
DTYPES = [dtype.type for dtype in (*EXACT_DTYPES, *VALUE_DTYPES)]


def _made(cls: type, arg: Any, shape: Any, dtype: Any, **options: Any) -> Any:
    """Return an argument of SciPy's constructor as a matrix of ours; a shape alone makes zeros."""
    if (
        isinstance(arg, tuple)
        and len(arg) == 2
        and all(isinstance(n, (int, np.integer)) for n in arg)
    ):
        arg = sp.coo_array(arg, dtype=float if dtype is None else dtype)
    elif not (sp.issparse(arg) or isinstance(arg, (wl.Matrix, tuple))):
        arg = np.atleast_2d(np.asarray(arg))
    dtype = None if dtype is None else held_dtype(dtype) if dtype == np.uint64 else dtype
    with wl.default_executor("reference"):
        return cls(arg, shape, dtype=dtype, **options)


def csr_array(arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> Any:
    """Make a Csr with SciPy's signature."""
    return _made(wl.Csr, arg, shape, dtype)


def csc_array(arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> Any:
    """Make a Csc with SciPy's signature."""
    return _made(wl.Csc, arg, shape, dtype)


def coo_array(arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> Any:
    """Make a Coo with SciPy's signature."""
    return _made(wl.Coo, arg, shape, dtype)


def bsr_array(
    arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False, blocksize: Any = None
) -> Any:
    """Make a Bsr with SciPy's signature."""
    return _made(wl.Bsr, arg, shape, dtype, blocksize=blocksize)


def issparse(x: object) -> bool:
    """Return whether an object is a sparse matrix or vector, ours or SciPy's."""
    return isinstance(x, (wl.Matrix, SparseVector)) or sp.issparse(x)


def of_scipy(function: Any) -> Any:
    """Return a function of SciPy that takes our matrices as ``A.to_scipy()`` and returns ours."""

    def called(A: Any) -> Any:
        made = function(A.to_scipy().tocsc() if isinstance(A, wl.Matrix) else A)
        return wl.Csr(made, executor="reference") if sp.issparse(made) else made

    return called


module = test_module(
    "scipy.sparse.tests.test_base",
    {
        "scipy.sparse.linalg": {
            name: of_scipy(getattr(scipy.sparse.linalg, name)) for name in ("expm", "inv", "splu")
        },
        "scipy.sparse": {"issparse": issparse, "sparray": (wl.Matrix, SparseVector, sp.sparray)},
        "scipy.sparse._sputils": {"supported_dtypes": DTYPES},
    },
)

#: SciPy's classes of tests of sparse arrays that are run.
OURS = {"TestCSR": csr_array, "TestCSC": csc_array, "TestCOO": coo_array, "TestBSR": bsr_array}


class CooContainer(type):
    """The type of SciPy's coo_array: a sparse array of one dimension is a SparseVector here."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (wl.Coo, SparseVector))

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        return coo_array(*arguments, **options)


class CooArray(metaclass=CooContainer):
    """Stands for SciPy's class of coordinates."""


CONTAINERS = {
    "csr_container": csr_array,
    "csc_container": csc_array,
    "coo_container": CooArray,
    "bsr_container": bsr_array,
}

for name, creator in OURS.items():
    kind = getattr(module, name)
    kind.spcreator = staticmethod(creator)
    kind.math_dtypes = [np.bool_, np.int64, np.float64, np.complex128]
    for container, made in CONTAINERS.items():
        setattr(kind, container, made if isinstance(made, type) else staticmethod(made))
    if name != "TestCSR":  # nearly all of it is the code that TestCSR runs
        kind.pytestmark = [*getattr(kind, "pytestmark", []), pytest.mark.rare]
    kind.init_class()
    globals()[name] = kind
