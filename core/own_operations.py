"""Declarations of operations in other packages."""

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

    Each call of ``executor.run`` checks its arguments against the signature before a kernel gets
    them: the number of arguments, the executor, dtypes, extents and strides.

    Parameters
    ----------
    name : str
        Group and verb, such as ``"example.shrink"``. The group is the name of your package or
        module; the groups of wollemi are reserved.
    signature : str
        The arguments, for example ``"x: in T[n,k], y: inout T[n,k], t: T"``.
    summary : str
        One sentence with the formula.
    flops : callable
        Returns the floating-point operations of a call, given its extents by name.
    over : tuple of str, optional
        For an element-wise operation: the dimensions of its rows and columns.
    cost : callable, optional
        Returns the :class:`Cost` of a call, given its arguments. By default each array moves once.
    dtypes : tuple of str
        Names of the dtypes that ``T`` may be.
    sums : tuple of str
        The types of the sums of an element-wise operation over the rows of a column: ``T``, ``R``,
        ``i64``, ``largest`` or ``extreme``.
    parts : tuple of Operation, optional
        Operations that an executor without a kernel runs instead.
    totals : mapping, optional
        For groups of executors: the kind of each output that is a sum over rows, by name: ``sum``,
        ``norm`` or ``largest``.
    changed : callable, optional
        Returns the columns with totals that a call recomputes; required if a total is ``inout``.
    functor : str or Path, optional
        C++ text with ``struct group_verb``, or a file that contains it. Every compiled backend
        makes its kernel from it.

    Returns
    -------
    Operation
        The operation, for ``executor.run`` and for kernel tables. If the declaration is repeated in
        the same words, the existing operation is returned.

    Raises
    ------
    InvalidArgument
        If the signature is invalid, if the name is taken or begins with a group of wollemi, or if
        the text of the functor has no struct for it.

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
    """Compile the functor of an operation for a backend; this tests it without the device.

    ``omp`` needs a C++ compiler, ``cuda`` the NVRTC package, and ``hip`` CuPy for ROCm; none of
    them needs a device. ``dpcpp`` needs a SYCL device, such as a CPU.

    Parameters
    ----------
    operation : Operation
        An operation that was declared with ``functor=``.
    backend : str
        ``"omp"``, ``"cuda"``, ``"hip"`` or ``"dpcpp"``.
    dtype, index : str
        The names of the dtypes of values and indices.

    Raises
    ------
    KernelCompileError
        If the compiler fails; the message contains its log.
    ExecutorUnavailable
        If the compiler is missing; the message says how to install it.
    InvalidArgument
        If the operation has no functor, or if the backend does not compile functors.

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
