"""Direct solvers: engines that factorize, and the solver that uses them."""

from .engine import Engine, Factors, LogDeterminant, engines
from .solver import Direct

__all__ = ["Direct", "Engine", "Factors", "LogDeterminant", "engines"]
