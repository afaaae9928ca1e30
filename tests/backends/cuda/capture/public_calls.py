"""The public objects of an executor and their calls, found by asking the package for its names.

They are made on a GPU, where captures are tried. On the host they tell the names of all calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import wollemi as wl

from ....api.record import names_of, public_module

#: Points of a line of the grid whose Laplacian all objects are made of.
LINE = 6
N = LINE * LINE
ON = "cuda:0"
#: Classes whose objects are no operators on a device, or are made only by other calls.
WITHOUT_DEVICE = {
    "BatchResult", "Executor", "LinOp", "LinearOperator", "Matrix", "MixedBatch", "Result",
    "Settings", "SparseVector", "KrylovSolver", "LeastSquaresSolver", "Preconditioner",
}  # fmt: skip
#: Solvers of which calls are tried after a first solve too; a first solve compiles kernels.
SOLVED_BEFORE = {"Cg", "Direct", "Gmres"}


class Case(NamedTuple):
    """An object: its name, its class if that is public, and the function that makes it.

    Attributes
    ----------
    warm : bool
        Whether calls are tried after a first call too.
    """

    name: str
    kind: type | None
    make: Callable[[], Any]
    warm: bool


def laplacian(dtype: Any = np.float64) -> Any:
    """Return the matrix of a grid as SciPy's."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(LINE, LINE))
    eye = sp.eye_array(LINE)
    return sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line)).astype(dtype)


def csr(on: str = ON) -> wl.Csr:
    """Return it on an executor."""
    return wl.Csr(laplacian(), executor=on)


def vector(*shape: int, dtype: Any = np.float64, on: str = ON) -> Any:
    """Return numbers on an executor."""
    rng = np.random.default_rng(sum(shape))
    return wl.executor(on).from_host(rng.uniform(0.5, 1.5, shape).astype(dtype))


def cases(on: str = ON) -> Iterator[Case]:
    """Yield the objects: every public class that a matrix makes one of, and lazy operators."""
    for name in names_of(wl):
        value = getattr(wl, name)
        if isinstance(value, type) and name not in WITHOUT_DEVICE and name in MADE:
            yield Case(name, value if name in KNOWN else None, partial(MADE[name], on), True)
    yield from (Case(name, None, partial(make, on), True) for name, make in LAZY.items())
    for module, warm in (("wollemi.preconditioners", True), ("wollemi.solvers", False)):
        for name in names_of(public_module(module)):
            value = getattr(public_module(module), name)
            if not isinstance(value, type) or name in WITHOUT_DEVICE:
                continue
            short = f"{module.rpartition('.')[2]}.{name}"
            make = partial(_of_matrix, value, OPTIONS.get(short, {}), on)
            yield Case(short, value, make, warm or name in SOLVED_BEFORE)


def _of_matrix(kind: Callable[..., Any], options: dict[str, Any], on: str) -> Any:
    return kind(csr(on), **options)


def unmade() -> list[str]:
    """Return the public classes of the package itself for which no object is made here."""
    return [
        name
        for name in names_of(wl)
        if isinstance(getattr(wl, name), type) and name not in WITHOUT_DEVICE | set(MADE)
    ]


def _tripled(x: Any) -> Any:
    return 3 * x


def _batch(on: str) -> Any:
    A = csr(on)
    return wl.Csr((vector(2, A.nnz, on=on), A.indices, A.indptr), shape=(N, N), executor=on)


def _identity(on: str) -> wl.Identity:
    return wl.Identity(N, dtype=np.float64, executor=on)


MADE: dict[str, Callable[[str], Any]] = {
    **{
        name: (lambda on, f=name: csr(on).asformat(f.lower()))
        for name in ("Bsr", "Coo", "Csc", "Ell", "Hybrid", "Sellp")
    },
    "BatchMatrix": _batch,
    "Csr": csr,
    "Dense": lambda on: wl.Dense(laplacian().toarray(), executor=on),
    "Diagonal": lambda on: wl.Diagonal(vector(N, on=on)),
    "Identity": _identity,
    "Permutation": lambda on: wl.Permutation(
        np.arange(N)[::-1].copy(), dtype=np.float64, executor=on
    ),
    "PlannedMatrix": lambda on: csr(on).with_kernel("sell").plan_only(),
    "StoredCsr": lambda on: csr(on).stored("float32"),
}
#: The names of :data:`MADE` that are the classes of the objects. A batch is of another class.
KNOWN = set(MADE) - {"BatchMatrix"}
LAZY: dict[str, Callable[[str], Any]] = {
    "A.T": lambda on: csr(on).T,
    "A + I": lambda on: csr(on) + 2.0 * _identity(on),
    "D @ A": lambda on: csr(on) @ wl.LinearOperator((N, N), _tripled, executor=on),
    "2 * A": lambda on: 2.0 * csr(on),
    "LinearOperator": lambda on: wl.LinearOperator((N, N), _tripled, _tripled, executor=on),
    "Mask": lambda on: wl.masks.sliding_window(N, 5, dtype=np.float64, executor=on),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "preconditioners.Additive": {"steps": ["jacobi", "ic"]},
    "preconditioners.Multiplicative": {"steps": ["jacobi", "ic"]},
    "preconditioners.Sequence": {"steps": ["jacobi", "ic"]},
    "preconditioners.Multigrid": {"levels": []},
    "solvers.Lobpcg": {"k": 2},
    "solvers.Lanczos": {"k": 2},
    "solvers.SingularValues": {"k": 2},
}

#: Arguments by the names of parameters.
ARGUMENTS: dict[str, Callable[[], Any]] = {
    "x": lambda: vector(N),
    "b": lambda: vector(N),
    "X": lambda: vector(N, 3),
    "other": csr,
    "A": csr,
    "data": lambda: vector(csr().nnz),
    "dtype": lambda: np.complex128,
    "executor": lambda: "reference",
    "format": lambda: "csr",
    "kernel": lambda: "subwarp",
    "n": lambda: 2,
    "product": lambda: "spmv",
    "columns": lambda: 3,
    "stop": lambda: wl.stop.Iterations(3),
    "values": lambda: vector(N),
}
#: Members that are not called, and the reasons.
NOT_CALLED = {
    **dict.fromkeys(("from_arrays", "from_levels", "from_pyamg", "of_batch"), "makes an object"),
    **dict.fromkeys(("apply_block", "beside", "call", "refuse"), "a part of calls that are tried"),
    **dict.fromkeys(
        (
            "allocate", "allocate_extra", "begin", "extend", "finish", "give_back", "initialize",
            "iterate", "least_squares", "loop_runs", "next_cycle", "notes_of", "rescale",
        ),
        "a part of the solver's loop",
    ),
    "recorded": "test_recorded_solves.py",
}  # fmt: skip
#: Operators of Python, with their operands.
OPERATORS: dict[str, tuple[Callable[[], Any], ...]] = {
    "__matmul__ of a vector": (lambda: vector(N),),
    "__matmul__ of a block": (lambda: vector(N, 3),),
    "__matmul__ of a matrix": (csr,),
    "__rmatmul__ of a vector": (lambda: vector(N),),
    "__add__ of a matrix": (csr,),
    "__sub__ of a matrix": (csr,),
    "__mul__ of a number": (lambda: 2.0,),
    "__neg__": (),
    "__abs__": (),
    "__getitem__": (lambda: slice(0, 3),),
}


class Call(NamedTuple):
    """A member of an object and the constructors of its arguments; None for a property."""

    name: str
    member: str
    arguments: tuple[Callable[[], Any], ...] | None


def calls_of(kind: type) -> Iterator[Call]:
    """Yield the public members of a class whose parameters have a known name, and operators."""
    for name in dir(kind):
        if name.startswith("_"):
            continue
        static = inspect.getattr_static(kind, name)
        if isinstance(static, (classmethod, staticmethod)):
            continue
        if isinstance(static, property) or not callable(static):
            yield Call(name, name, None)
            continue
        try:
            parameters = list(inspect.signature(getattr(kind, name)).parameters.values())[1:]
        except (TypeError, ValueError):
            continue
        needed = [
            p for p in parameters
            if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]  # fmt: skip
        if all(p.name in ARGUMENTS for p in needed):
            yield Call(name, name, tuple(ARGUMENTS[p.name] for p in needed))
    for name, operands in OPERATORS.items():
        member = name.partition(" ")[0]
        if hasattr(kind, member):
            yield Call(name, member, operands)


def bound(case: Case, call: Call, given: list[Any]) -> Callable[[], Callable[[], Any]]:
    """Return a function that makes the call on a new object, with the same arguments each time."""

    def make() -> Callable[[], Any]:
        thing = case.make()
        if call.arguments is None:
            return lambda: getattr(thing, call.member)
        return lambda: getattr(thing, call.member)(*given)

    return make
