"""Declarations of operations by other packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from .errors import InvalidArgument
from .operation import OPERATIONS, VALUE_DTYPE_NAMES, Cost, Operation
from .registry import kernel_table
from .step.groups import is_of_solvers


def declare(
    name: str,
    signature: str,
    summary: str,
    *,
    flops: Callable[[Mapping[str, int]], int] = lambda extents: 0,
    over: tuple[str, str] | None = None,
    cost: Callable[..., Cost] | None = None,
    dtypes: tuple[str, ...] = VALUE_DTYPE_NAMES,
    sums: tuple[str, ...] = (),
    parts: tuple[Operation, ...] | None = None,
    totals: Mapping[str, str] | None = None,
    changed: Callable[[Mapping[str, object]], object] | None = None,
    functor: str | Path = "",
) -> Operation:
    """Declare an operation of your own and return it.

    Each call of ``executor.run`` compares its arguments with the signature before a kernel gets
    them: the number of arguments, the executor, dtypes, extents, and the distances of elements.

    Parameters
    ----------
    name : str
        Group and verb, ``"example.shrink"``. The group is the name of your package or module; the
        groups of wollemi are its own.
    signature : str
        The arguments, ``"x: in T[n,k], y: inout T[n,k], t: T"``.
    summary : str
        One sentence with the formula.
    flops : callable
        Returns the floating-point operations of a call from its extents by name.
    over : tuple of str, optional
        For an element-wise operation: the dimensions of its rows and columns.
    cost : callable, optional
        Returns the :class:`Cost` of a call from its arguments; by default arrays move once.
    dtypes : tuple of str
        The names of the dtypes of ``T``.
    sums : tuple of str
        The types of the sums of an element-wise operation over the rows of a column: ``T``, ``R``,
        ``i64``, ``largest`` or ``extreme``.
    parts : tuple of Operation, optional
        Operations that an executor without a kernel runs in its place.
    totals : mapping, optional
        The outputs that are sums over rows, for groups of executors: ``sum``, ``norm`` or
        ``largest`` by name.
    changed : callable, optional
        Returns which columns' totals a call makes anew; needed where a total is ``inout``.
    functor : str or Path, optional
        C++ text, or a file with it, that has ``struct group_verb``: every compiled backend makes
        its kernel of it.

    Returns
    -------
    Operation
        The operation, for ``executor.run`` and for tables of kernels. A declaration repeated in
        the same words returns the existing one.

    Raises
    ------
    InvalidArgument
        If the signature is none, the name is taken or begins with a group of wollemi, or the text
        of the functor has no struct for it.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> from wollemi.extend import declare, kernel_table
    >>> double = declare("docs.double", "x: in T[n,k], y: out T[n,k]", "y = 2 x", over=("n", "k"))
    >>> @kernel_table("reference")(double)
    ... def double_numpy(executor, x, y):
    ...     y[...] = 2 * x
    >>> y = np.zeros((2, 1))
    >>> wl.executor("reference").run(double, np.ones((2, 1)), y)
    >>> y.ravel()
    array([2., 2.])
    """
    group = name.partition(".")[0]
    if is_of_solvers(group) or any(one.group == group and not one.checked for one in OPERATIONS):
        raise InvalidArgument(
            f"{name}: wollemi has operations of the group {group!r}; begin the name with that of "
            "your package"
        )
    return OPERATIONS.declare(
        name,
        signature,
        summary,
        flops=flops,
        over=over,
        cost=cost,
        dtypes=dtypes,
        sums=sums,
        parts=parts,
        totals=totals,
        changed=changed,
        functor=functor,
        checked=True,
    )


def compile_functor(
    operation: Operation, backend: str, *, dtype: str = "float64", index: str = "int32"
) -> None:
    """Compile the functor of an operation for a backend; for tests where the device is missing.

    ``omp`` needs a C++ compiler, ``cuda`` the package of NVRTC, ``hip`` CuPy for ROCm, none of them
    a device; ``dpcpp`` needs a SYCL device, such as a CPU.

    Parameters
    ----------
    operation : Operation
        One that was declared with ``functor=``.
    backend : str
        ``"omp"``, ``"cuda"``, ``"hip"`` or ``"dpcpp"``.
    dtype, index : str
        The names of the dtypes of values and of indices.

    Raises
    ------
    KernelCompileError
        With the compiler's log.
    ExecutorUnavailable
        If the compiler is missing; says how to install it.
    InvalidArgument
        If the operation has no functor, or the backend compiles none.

    Examples
    --------
    >>> from wollemi.extend import compile_functor, declare
    >>> text = '''
    ... template <class T>
    ... struct docs_twice {
    ...   mat<const T> x;
    ...   mat<T> y;
    ...   WL_NO_SUM;
    ...   WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    ...     y(i, c) = x(i, c) + x(i, c);
    ...     return {};
    ...   }
    ... };
    ... '''
    >>> signature = "x: in T[n,k], y: out T[n,k]"
    >>> twice = declare("docs.twice", signature, "y = 2 x", over=("n", "k"), functor=text)
    >>> compile_functor(twice, "omp", dtype="complex64")
    """
    if not operation.functor:
        raise InvalidArgument(f"{operation.name} has no functor: declare it with functor=")
    compiles = kernel_table(backend).compile_functor
    if compiles is None:
        raise InvalidArgument(
            f"the backend {backend} compiles no functors; omp, cuda, hip and dpcpp do"
        )
    if dtype not in operation.dtypes:
        raise InvalidArgument(
            f"{operation.name} has values of {', '.join(operation.dtypes)}, not of {dtype}"
        )
    compiles(operation, dtype, index)
