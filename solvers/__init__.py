"""Krylov solvers: algorithms over operators, with no knowledge of any device.

A solver is a class in a module of this folder, and is found there: nothing needs to list it. Its
module is imported when the solver is first used.
"""

from typing import TYPE_CHECKING

from ..core.deferred import deferred_names
from .registry import discover, find

if TYPE_CHECKING:
    from .bicgstab import Bicgstab
    from .bidiagonal_lanczos import SingularValues
    from .cg import Cg
    from .cgs import Cgs
    from .configuration import from_settings, read_settings
    from .direct import Direct
    from .gmres import Gmres
    from .krylov import KrylovSolver
    from .lanczos import Lanczos
    from .least_squares import LeastSquaresSolver
    from .lobpcg import Lobpcg
    from .lsmr import Lsmr
    from .lsqr import Lsqr

    def __getattr__(name: str) -> type: ...  # the others

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
    ]
else:
    _BESIDES = {
        "configuration": "from_settings read_settings",
        "direct": "Direct",
        "krylov": "KrylovSolver",
        "least_squares": "LeastSquaresSolver",
    }
    _find_besides, _dir_besides = deferred_names(__name__, _BESIDES)

    def __getattr__(name):
        """Import what a name stands for: a solver, or one of the names beside them."""
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
            raise AttributeError(f"no solver is called {name!r} (have: {', '.join(discover())})")
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *__getattr__("__all__")})
