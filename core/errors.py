"""Every error that wollemi raises on purpose.

Messages say what was given, what was expected, and what to do about it.
"""


class WollemiError(Exception):
    """The base of all errors of this package."""


class InvalidMatrix(WollemiError, ValueError):
    """Arrays or a file that do not describe a matrix; the message names the place."""


class InvalidArgument(WollemiError, ValueError):
    """An argument outside of what the call accepts."""


class IndexOutOfRange(InvalidArgument, IndexError):
    """A row or column that the matrix does not have."""


class ShapeMismatch(WollemiError, ValueError):
    """Operands whose shapes do not fit together."""


class GroupMismatch(WollemiError, ValueError):
    """Members of a group that were given different things; the message names the members."""


class MemberFailed(WollemiError, RuntimeError):
    """Another member of a group failed; the message has its name and the cause."""


class UnsupportedDtype(WollemiError, TypeError):
    """A dtype that no kernel is made for."""


class UnsupportedOperand(WollemiError, TypeError):
    """Something that an operator of Python's, or a function of NumPy's, has no meaning for here."""


class UnsupportedOperation(WollemiError, NotImplementedError):
    """An operation that the executor at hand has no kernel for."""


class ArraysGivenUp(UnsupportedOperation, AttributeError):
    """What needs the arrays of a matrix that gave them up (``A.plan_only()``).

    It is an AttributeError too, so that ``hasattr`` answers what can be done with the matrix.
    """

    def __init__(self, message: str, *, name: str = "", obj: object = None) -> None:
        super().__init__(message)
        self.name, self.obj = name, obj


class ExecutorMismatch(WollemiError, ValueError):
    """Operands that live on different executors; nothing is copied between devices silently."""


class ExecutorUnavailable(WollemiError, RuntimeError):
    """An executor that cannot be had here; the message says why and what to install."""


class MissingPackage(WollemiError, ImportError):
    """A package that is optional and is not installed; the message says how to install it."""


class DeviceError(WollemiError, RuntimeError):
    """A device that failed while it worked: lost, asynchronous error, launch failure."""


class OutOfDeviceMemory(DeviceError, MemoryError):
    """An allocation that the executor's memory has no room for."""


class KernelCompileError(WollemiError, RuntimeError):
    """A kernel source that the run-time compiler refused; the message holds its log."""


class NotConverged(WollemiError, RuntimeError):
    """Eigenvalues or singular values that were asked for and did not converge.

    Attributes
    ----------
    result : EigenResult or SingularResult
        What was reached: all pairs with their residuals and a verdict each.
    """

    def __init__(self, message: str, result: object) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.result)


class SolveInterrupted(WollemiError, KeyboardInterrupt):
    """Ctrl-C during a solve.

    Attributes
    ----------
    result : Result
        What had been reached; its ``reason`` is ``interrupted``.
    """

    def __init__(self, message: str, result: object) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.result)


class SystemNotSolved(WollemiError, RuntimeError):
    """A system whose solution is differentiated was not solved to its tolerance."""
