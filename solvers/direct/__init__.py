"""Direct solvers: engines that factorize matrices, and the solver that uses them."""

from .engine import Engine, EngineFactors, LogDeterminant, engines
from .solver import Direct

__all__ = ["Direct", "Engine", "EngineFactors", "LogDeterminant", "engines"]
