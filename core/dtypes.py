"""The dtypes of kernels, and functions that classify and convert dtypes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from .errors import UnsupportedDtype
from .operation import STORED_UNDER

VALUE_DTYPES = tuple(np.dtype(t) for t in (np.float32, np.float64, np.complex64, np.complex128))
# The additional dtypes of the machine-learning kernels, by name, because NumPy itself has no
# bfloat16. Arrays of it need the package ml_dtypes.
ML_DTYPES = ("float16", "bfloat16")
INDEX_DTYPES = tuple(np.dtype(t) for t in (np.int32, np.int64))
#: NumPy's kind codes of numeric dtypes.
NUMBER_KINDS = "buifc"
#: The additional dtypes of matrices, which store such values exactly: structure, counts and masks.
#: Products with floating-point numbers and solvers convert them.
EXACT_DTYPES = tuple(
    np.dtype(t)
    for t in (
        np.bool_,
        np.int8,
        np.uint8,
        np.int16,
        np.uint16,
        np.int32,
        np.uint32,
        np.int64,
    )
)
#: A set for the test of every product: a lookup in a set is faster than in a tuple.
COMPUTED = frozenset(VALUE_DTYPES)

#: The values of ``casting`` in :func:`numpy.can_cast`.
Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]

_REAL: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}


def real_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype of the absolute value of ``dtype``."""
    dtype = np.dtype(dtype)
    return _REAL.get(dtype, dtype)


def is_complex(dtype: DTypeLike) -> bool:
    """Return whether ``dtype`` is complex."""
    return np.dtype(dtype).kind == "c"


def _dtype(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        return np.dtype(dtype)
    except TypeError:
        if dtype == "bfloat16":  # NumPy knows it once the package is imported
            return _bfloat16()
        raise UnsupportedDtype(f"not a dtype: {dtype!r}") from None


def _bfloat16() -> np.dtype[Any]:
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise UnsupportedDtype(
            "NumPy has no bfloat16 of its own: pip install ml_dtypes adds it"
        ) from None
    return np.dtype(bfloat16)


def value_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype in which values of ``dtype`` are computed.

    Booleans and integers become float64, as in a division.

    Raises
    ------
    UnsupportedDtype
        If the dtype is not numeric, or if no kernels have its precision.
    """
    return _value_dtype(_dtype(dtype))


# Every product of a vector calls this function; the cache avoids repeated checks.
@cache
def _value_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    dtype = dtype.newbyteorder("=")
    if dtype in VALUE_DTYPES:  # return NumPy's own object: it compares faster
        return VALUE_DTYPES[VALUE_DTYPES.index(dtype)]
    if dtype.kind in "bui":
        return np.dtype(np.float64)
    names = ", ".join(map(str, VALUE_DTYPES))
    if name_of(dtype) in ML_DTYPES:
        names += "; only spmm, sddmm and fusedmm compute with 16 bits"
    raise UnsupportedDtype(f"values of dtype {dtype} are not supported; convert to one of {names}")


def stored_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype in which a matrix stores values of ``dtype``, 16-bit dtypes included.

    Only the machine-learning kernels compute in 16-bit dtypes: :func:`value_dtype`, used everywhere
    else, refuses them.
    """
    dtype = _dtype(dtype)
    return dtype if is_narrow(dtype) else value_dtype(dtype)


def is_exact(dtype: DTypeLike) -> bool:
    """Return whether values of ``dtype`` are integers or booleans.

    Examples
    --------
    >>> from wollemi.core.dtypes import is_exact
    >>> is_exact("int32"), is_exact(bool), is_exact("float32")
    (True, True, False)
    """
    return np.dtype(dtype).kind in "bui"


def held_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype in which a matrix stores values of ``dtype``.

    Booleans and integers keep their dtype, except that uint64 becomes float64, as in NumPy's sums
    with int64. Floating-point values get the dtype of :func:`value_dtype`.

    Examples
    --------
    >>> from wollemi.core.dtypes import held_dtype
    >>> held_dtype("uint8"), held_dtype("bool"), held_dtype(">f4")
    (dtype('uint8'), dtype('bool'), dtype('float32'))
    """
    dtype = _dtype(dtype).newbyteorder("=")
    return dtype if dtype in EXACT_DTYPES else value_dtype(dtype)


def stored_or_held_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the result of :func:`held_dtype`, with 16-bit dtypes allowed."""
    dtype = _dtype(dtype)
    return dtype if is_narrow(dtype) else held_dtype(dtype)


def joint_dtype(*dtypes: DTypeLike) -> np.dtype[Any]:
    """Return the dtype of an expression of matrices: exact if all operands are exact.

    Examples
    --------
    >>> from wollemi.core.dtypes import joint_dtype
    >>> joint_dtype("bool", "int32"), joint_dtype("int32", "float32")
    (dtype('int32'), dtype('float64'))
    """
    return held_dtype(np.result_type(*dtypes))


def requested_dtype(dtype: DTypeLike, stored: Callable[[Any], np.dtype[Any]] = value_dtype) -> Any:
    """Return the dtype that a caller requested; raise an error if values cannot have it.

    Operators compute in floating-point dtypes. Matrices also store booleans and integers.

    Parameters
    ----------
    dtype : dtype
        The requested dtype.
    stored : callable
        The function that maps to the dtype of values: :func:`value_dtype` or :func:`held_dtype`.

    Raises
    ------
    UnsupportedDtype
        If values cannot have that dtype.

    Examples
    --------
    >>> from wollemi.core.dtypes import requested_dtype
    >>> requested_dtype("complex64")
    dtype('complex64')
    """
    asked = _dtype(dtype)
    if asked.kind in "bui" and stored(asked) != asked:
        names = ", ".join(map(str, VALUE_DTYPES))
        raise UnsupportedDtype(
            f"there are no values of dtype {asked} here: ask for one of {names}; matrices hold "
            "booleans and integers too, uint64 excepted"
        )
    return stored(asked)


def require_cast(source: DTypeLike, wanted: DTypeLike, casting: Casting) -> None:
    """Raise UnsupportedDtype unless NumPy's casting rule allows the conversion."""
    if casting != "unsafe" and not np.can_cast(source, wanted, casting):
        raise UnsupportedDtype(
            f"astype: the rule {casting!r} does not allow {source} to become {wanted}"
        )


def double_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the double-precision dtype that is real or complex like ``dtype``.

    Examples
    --------
    >>> from wollemi.core.dtypes import double_dtype
    >>> double_dtype("float32"), double_dtype("complex64")
    (dtype('float64'), dtype('complex128'))
    """
    return VALUE_DTYPES[3] if is_complex(dtype) else VALUE_DTYPES[1]


def storage_dtype(dtype: DTypeLike, computed: DTypeLike) -> np.dtype[Any]:
    """Return the dtype in which values are stored for products in another dtype.

    Parameters
    ----------
    dtype : dtype
        The requested dtype. If the products are complex, a real dtype means the complex dtype of
        that precision: float32 for complex64.
    computed : dtype
        The dtype of the products.

    Raises
    ------
    UnsupportedDtype
        If values of ``computed`` cannot be stored in ``dtype``; the message lists the allowed
        storage dtypes.

    Examples
    --------
    >>> from wollemi.core.dtypes import storage_dtype
    >>> storage_dtype("float16", "float64"), storage_dtype("float32", "complex128")
    (dtype('float16'), dtype('complex64'))
    """
    asked, computed = _dtype(dtype), np.dtype(computed)
    if is_complex(computed) and asked == np.float32:
        asked = np.dtype(np.complex64)
    if asked != computed and not may_store(asked, computed):
        lower = STORED_UNDER.get(name_of(computed), ())
        expected = f"one of {', '.join(lower)}" if lower else "no other dtype"
        hint = f"; A.astype({name_of(asked)!r}) also computes in it" if asked.kind in "fc" else ""
        raise UnsupportedDtype(
            f"values that are computed in {computed} are not stored in {asked}, but in "
            f"{expected}{hint}"
        )
    return asked


def may_store(stored: DTypeLike, computed: DTypeLike) -> bool:
    """Return whether products exist that read ``stored`` and compute in ``computed``."""
    return name_of(np.dtype(stored)) in STORED_UNDER.get(name_of(np.dtype(computed)), ())


def is_narrow(dtype: DTypeLike) -> bool:
    """Return whether a dtype has 16 bits: matrices can store it, few kernels compute in it."""
    dtype = np.dtype(dtype)
    return dtype.itemsize == 2 and name_of(dtype) in ML_DTYPES


@cache
def name_of(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype from a cache; NumPy builds it in a microsecond each time."""
    return dtype.name


_NARROW, _WIDE = np.dtype(np.int32), np.dtype(np.int64)
_MOST_NARROW = int(np.iinfo(np.int32).max)


def index_dtype(largest: int, *dtypes: DTypeLike) -> np.dtype[Any]:
    """Return the narrowest index dtype that holds ``largest``, at least as wide as ``dtypes``.

    Only the two index dtypes count as a requested width: index arrays of other integer dtypes
    (uint8, int16, ...) are converted anyway.
    """
    if largest > _MOST_NARROW or _WIDE in dtypes or any(np.dtype(d) == _WIDE for d in dtypes):
        return _WIDE
    return _NARROW


def common_dtype(*dtypes: DTypeLike) -> np.dtype[Any]:
    """Return the dtype in which an expression of operands with ``dtypes`` is computed.

    Integers that a floating-point dtype holds exactly do not widen it, as in NumPy.

    Examples
    --------
    >>> from wollemi.core.dtypes import common_dtype
    >>> common_dtype("float32", "int8"), common_dtype("float32", "int32"), common_dtype("int8")
    (dtype('float32'), dtype('float64'), dtype('float64'))
    """
    return _common_dtype(*(np.dtype(d) for d in dtypes))


@cache
def _common_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    return value_dtype(np.result_type(*(d if is_exact(d) else value_dtype(d) for d in dtypes)))
