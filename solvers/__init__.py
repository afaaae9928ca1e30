"""Solvers and preconditioners: algorithms over operators, with no knowledge of any device.

========================  ==================================================================
`krylov`                  one file for each solver of square systems
`least_squares`           solvers of least squares problems
`eigen`                   solvers of eigenvalue and singular value problems
`direct`                  factorizations, with one file for each library
`preconditioners`         preconditioners and multigrid
`driver`                  the loop of a solve, its verdict, and its workspace
`auto`                    the choice that ``wl.solve`` makes
`scipy_api`               functions with SciPy's signatures
========================  ==================================================================

A solver is a class in a module of `krylov`, `least_squares` or `eigen`. The registry finds it
there, without a list of names. The module is imported when the solver is first used.
"""

from typing import TYPE_CHECKING

from ..core.deferred import deferred_names
from ..core.suggest import hint
from .registry import discover, find

if TYPE_CHECKING:
    from .configuration import from_settings, read_settings
    from .direct import Direct
    from .eigen.bidiagonal_lanczos import SingularValues
    from .eigen.lanczos import Lanczos
    from .eigen.lobpcg import Lobpcg
    from .krylov.base import KrylovSolver
    from .krylov.bicgstab import Bicgstab
    from .krylov.cg import Cg
    from .krylov.cgs import Cgs
    from .krylov.gmres import Gmres
    from .least_squares.base import LeastSquaresSolver
    from .least_squares.lsmr import Lsmr
    from .least_squares.lsqr import Lsqr
    from .third_party import register

    def __getattr__(name: str) -> type: ...  # the remaining names

    __all__ = [
        "Bicgstab",
        "Cg",
        "Cgs",
        "Direct",
        "Gmres",
        "KrylovSolver",
        "Lanczos",
        "LeastSquaresSolver",
        "Lobpcg",
        "Lsmr",
        "Lsqr",
        "SingularValues",
        "from_settings",
        "read_settings",
        "register",
    ]
else:
    _BESIDES = {
        "configuration": "from_settings read_settings",
        "direct": "Direct",
        "krylov.base": "KrylovSolver",
        "least_squares.base": "LeastSquaresSolver",
        "third_party": "register",
    }
    _find_besides, _dir_besides = deferred_names(__name__, _BESIDES)

    def __getattr__(name):
        """Import the object of this name: a solver, or another public name."""
        if name == "__all__":
            besides = " ".join(_BESIDES.values()).split()
            return sorted({*discover(), *besides})
        if name in _dir_besides():
            return _find_besides(name)
        if not name[:1].isupper():
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}; solvers are classes such as Cg"
            )
        found = find(name)
        if found is None:
            have = ", ".join(discover())
            raise AttributeError(
                f"no solver is called {name!r}; {hint(name, __dir__())}have: {have}"
            )
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *__getattr__("__all__")})
