"""Operators that approximate an inverse."""

import sys
from typing import TYPE_CHECKING

from .core.deprecation import register_deprecation
from .core.suggest import no_attribute
from .solvers.third_party import register_preconditioner as register

if TYPE_CHECKING:
    from .solvers.preconditioners import (
        Additive,
        Amg,
        BlockJacobi,
        BlockSchwarz,
        Chebyshev,
        Fsai,
        Ic,
        Ict,
        Ilu,
        Ilut,
        Isai,
        Jacobi,
        L1Jacobi,
        Multigrid,
        Multiplicative,
        Polynomial,
        Preconditioner,
        Schwarz,
        Sor,
        Ssor,
    )

    __all__ = [
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
        "register",
    ]
else:
    from .solvers import preconditioners as _found

    _SEQUENCE = register_deprecation(f"{__name__}.Sequence", "0.3", "0.5", "Multiplicative")

    def __getattr__(name):
        """Return a preconditioner; a deprecated name warns."""
        if name == "__all__":
            return sorted({*_found.__all__, "register"} - {"BY_NAME", "preconditioner"})
        if name == "Sequence":
            _SEQUENCE.warn(stacklevel=2)
            return _found.Multiplicative
        if name in _found.__all__:
            return getattr(_found, name)
        raise no_attribute(sys.modules[__name__], name, __dir__())

    def __dir__():
        return sorted({*globals(), *__getattr__("__all__")})
