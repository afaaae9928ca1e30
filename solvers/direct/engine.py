"""Engines: interfaces to libraries that factorize sparse matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ...core.errors import InvalidArgument, InvalidMatrix, UnsupportedOperation
from ...core.registry import entry_points
from ...core.registry import executor as executor_by_name
from .shared_library import shared_library

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.batch.factors import FactoredSystems
    from ...core.executor import Array, Executor
    from ...core.formats import Csr

#: Packages register engines here: a name, and a class derived from :class:`Engine`.
ENTRY_POINT_GROUP = "wollemi.direct"


class Singular(InvalidMatrix):
    """A matrix is singular to working precision."""


def singular(cause: str) -> Singular:
    """Return the error for a matrix without factors; ``cause`` is the library's message."""
    return Singular(
        f"Direct: {cause}: the matrix is singular to working precision; wl.solve(A, b) finds a "
        "solution, or the least squares solution"
    )


class LogDeterminant(NamedTuple):
    """A determinant in the form of NumPy's ``slogdet``: ``sign * exp(logarithm)``."""

    sign: complex
    logarithm: float


class EngineFactors(ABC):
    """The factors of one matrix.

    Attributes
    ----------
    nnz : int
        Number of entries of the factors.
    notes : list of str
        Remarks on the factorization for the user.
    """

    nnz: int
    notes: list[str]

    @abstractmethod
    def solve(self, b: Array, transposed: str) -> Array:
        """Return the solution for a block of shape (n, k), native to :attr:`Engine.executor`.

        ``transposed`` is ``"N"``, ``"T"`` or ``"H"``: the matrix, its transpose, its adjoint.
        """

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant of the matrix."""
        raise UnsupportedOperation("this engine gives no determinant; use engine='superlu'")

    def inertia(self) -> tuple[int, int, int]:
        """Return the numbers of positive, negative and zero eigenvalues of a Hermitian matrix."""
        raise UnsupportedOperation("this engine gives no inertia: it does not factorize L D L^H")


class NoRows(EngineFactors):
    """The factors of an empty matrix, which libraries refuse."""

    nnz = 0

    def __init__(self) -> None:
        self.notes = []

    def solve(self, b: Array, transposed: str) -> Array:
        """Return the right-hand sides, which are empty."""
        return b

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant: 1."""
        return LogDeterminant(1.0, 0.0)

    def inertia(self) -> tuple[int, int, int]:
        """Return the numbers of eigenvalues: zeros."""
        return 0, 0, 0


class Engine(ABC):
    """The interface to a library; an instance keeps the analysis of one pattern.

    Parameters
    ----------
    ordering : str, optional
        The library's name for the ordering; by default, its best ordering.
    """

    #: The value of ``engine="..."``, the library, and its license.
    name: ClassVar[str]
    library: ClassVar[str]
    licence: ClassVar[str]
    orderings: ClassVar[tuple[str, ...]]
    #: The backend of the engine's devices; "" for the host.
    backend: ClassVar[str] = ""
    #: The shared library that the engine loads, and the command that installs it; None without one.
    shared: ClassVar[tuple[str, str] | None] = None
    #: Whether the engine factorizes the matrices of a batch one after the other; set before the
    #: analysis.
    many = False

    def __init__(self, ordering: str | None = None) -> None:
        if ordering is not None and ordering not in self.orderings:
            raise InvalidArgument(
                f"{self.name} has no ordering {ordering!r}; known: {', '.join(self.orderings)}"
            )
        self.ordering = ordering

    def __repr__(self) -> str:
        ordering = f", ordering {self.ordering!r}" if self.ordering is not None else ""
        return f"<engine {self.name!r}: {self.library}{ordering}>"

    @classmethod
    def objection(cls, executor: Executor) -> str:
        """Return why the engine cannot be used on an executor; "" if it can.

        The default checks for its shared library.
        """
        if cls.shared is None or shared_library(cls.shared[0]) is not None:
            return ""
        return f"the library {cls.shared[0]} was not found; {cls.shared[1]} brings it"

    @property
    def executor(self) -> str:
        """The name of the executor on which :meth:`factorize` and the factors have their arrays.

        The default uses NumPy arrays.
        """
        return "reference"

    @classmethod
    def stays_on(cls, executor: Executor) -> bool:
        """Return whether the engine works on the device of ``executor``, if that is a device."""
        return bool(cls.backend) and cls.backend == executor.backend

    def solve_systems(self, pattern: Csr, systems: FactoredSystems) -> bool:
        """Factorize and solve the systems of a batch, and judge them.

        Parameters
        ----------
        pattern : Csr
            The pattern of all matrices; its values are not used.
        systems : FactoredSystems
            The systems. Solutions and verdicts are written to it. A system may stay undecided, and
            is then solved separately.

        Returns
        -------
        bool
            False, without any solve, if the engine solves such systems one by one: the default.
        """
        return False

    @property
    def follows_exactly(self) -> bool:
        """Whether new factors are bitwise equal to factors after a new analysis.

        Then the matrices of a batch share an analysis; otherwise, each has its own.
        """
        return False

    def place(self, executor: Executor) -> Executor:
        """Return the executor that the engine works on for a matrix on ``executor``."""
        return executor_by_name(self.executor)

    @abstractmethod
    def analyse(self, A: Csr) -> None:
        """Compute an ordering and other data that depend on the pattern alone."""

    @abstractmethod
    def factorize(self, A: Csr) -> EngineFactors:
        """Factorize a matrix with the analysed pattern.

        Raises
        ------
        InvalidMatrix
            If the matrix is singular.
        """


@cache
def engines() -> Mapping[str, type[Engine]]:
    """Return the engines by name; SuperLU, which is always available, comes first."""
    from . import lapack
    from .cholmod import Cholmod
    from .cudss import CuDss
    from .klu import Klu
    from .pardiso import Pardiso
    from .superlu import SuperLU
    from .umfpack import Umfpack

    built_in: tuple[type[Engine], ...] = (
        SuperLU, Umfpack, Klu, Cholmod, Pardiso, CuDss, lapack.Banded, lapack.DenseEngine,
    )  # fmt: skip
    found: dict[str, type[Engine]] = {kind.name: kind for kind in built_in}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        found[point.name] = point.load()
    return found


def chosen_engine(name: str, executor: Executor) -> type[Engine]:
    """Return the engine ``name``; for ``"auto"``, the engine of the device, or SuperLU."""
    from .substitution import Substitution

    known = engines()
    if name == Substitution.name:  # it supports some matrices only
        return Substitution
    if name == "auto":
        usable = [kind for kind in known.values() if not kind.objection(executor)]
        return next((kind for kind in usable if kind.stays_on(executor)), usable[0])
    if name not in known:
        names = ", ".join(["auto", *known])
        raise InvalidArgument(f"no direct engine is called {name!r}; known: {names}")
    objection = known[name].objection(executor)
    if objection:
        raise UnsupportedOperation(f"{name}: {objection}")
    return known[name]
