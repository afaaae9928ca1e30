"""Preconditioners: operators that approximate an inverse.

A preconditioner is a class in a module of this folder. The registry finds it there, without a list
of names. The module is imported when the preconditioner is first used.
"""

from typing import TYPE_CHECKING

from ...core.deferred import deferred_names
from ..registry import OWN_PRECONDITIONERS, find

if TYPE_CHECKING:
    from .base import Preconditioner
    from .block_jacobi import BlockJacobi
    from .block_schwarz import BlockSchwarz
    from .chebyshev import Chebyshev
    from .composite import Additive, Multiplicative
    from .ilu import Ic, Ilu
    from .ilut import Ict, Ilut
    from .isai import Fsai, Isai
    from .jacobi import Jacobi
    from .l1jacobi import L1Jacobi
    from .multigrid import Amg, Multigrid
    from .names import BY_NAME, preconditioner
    from .polynomial import Polynomial
    from .schwarz import Schwarz
    from .sor import Sor, Ssor

    def __getattr__(name: str) -> type: ...  # the remaining names

    __all__ = [
        "BY_NAME",
        "Additive",
        "Amg",
        "BlockJacobi",
        "BlockSchwarz",
        "Chebyshev",
        "Fsai",
        "Ic",
        "Ict",
        "Ilu",
        "Ilut",
        "Isai",
        "Jacobi",
        "L1Jacobi",
        "Multigrid",
        "Multiplicative",
        "Polynomial",
        "Preconditioner",
        "Schwarz",
        "Sor",
        "Ssor",
        "preconditioner",
    ]
else:
    _BESIDES = {"base": "Preconditioner", "names": "BY_NAME preconditioner"}
    _find_besides, _dir_besides = deferred_names(__name__, _BESIDES)

    def __getattr__(name):
        """Import the object of this name: a preconditioner, or another public name."""
        if name == "__all__":
            besides = " ".join(_BESIDES.values()).split()
            return sorted({*(kind.__name__ for kind in OWN_PRECONDITIONERS.values()), *besides})
        if name in _dir_besides():
            return _find_besides(name)
        found = find(name, OWN_PRECONDITIONERS) if name[:1].isupper() else None
        if found is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *__getattr__("__all__")})
