"""Every error that wollemi raises on purpose.

Messages state the input, the expectation and the remedy.
"""


class WollemiError(Exception):
    """The base of all errors of this package."""


class InvalidMatrix(WollemiError, ValueError):
    """Arrays or a file that do not describe a matrix; the message names the position."""


class InvalidArgument(WollemiError, ValueError):
    """An argument that the call does not accept."""


class NothingToAverage(InvalidArgument, ZeroDivisionError):
    """A mean of no entries, along an axis of length 0."""


class InvalidCall(InvalidArgument):
    """Arguments of an operation of an executor that do not agree with its signature."""


class FixedAttribute(InvalidArgument, AttributeError):
    """An attribute of an operator that keeps its value; the message names the alternative."""


class InvalidIndex(InvalidArgument, IndexError):
    """A key in ``A[key]`` that names no entries, rows or columns."""


class IndexOutOfRange(InvalidIndex):
    """A row or column that the matrix does not have."""


class ShapeMismatch(WollemiError, ValueError):
    """Operands with shapes that do not fit together."""


class GroupMismatch(WollemiError, ValueError):
    """Members of a group that were given different things; the message names the members."""


class MemberFailed(WollemiError, RuntimeError):
    """Another member of a group failed; the message has its name and the cause."""


class UnsupportedDtype(WollemiError, TypeError, ValueError):
    """A dtype that no kernel is made for; SciPy raises ValueError for one that it does not hold."""


class NoNumbers(InvalidArgument, UnsupportedDtype):
    """An array of texts, dates, objects or records, where numbers are expected."""


class UnsupportedOperand(WollemiError, TypeError):
    """Something that an operator of Python's, or a function of NumPy's, has no meaning for here."""


class UnsupportedOperation(WollemiError, NotImplementedError):
    """An operation that the executor at hand has no kernel for."""


class ArraysGivenUp(UnsupportedOperation, AttributeError):
    """A method that needs the arrays of a matrix without arrays (``A.plan_only()``).

    It is an AttributeError too, so that ``hasattr`` is False for unsupported methods of the matrix.
    """

    def __init__(self, message: str, *, name: str = "", obj: object = None) -> None:
        super().__init__(message)
        self.name, self.obj = name, obj


class ExecutorMismatch(WollemiError, ValueError):
    """Operands that live on different executors; nothing is copied between devices silently."""


class ExecutorUnavailable(WollemiError, RuntimeError):
    """An executor that is not available; the message says why and how to install it."""


class MissingPackage(WollemiError, ImportError):
    """A package that is optional and is not installed; the message says how to install it."""


class MissingFile(WollemiError, FileNotFoundError):
    """A file is not there, or the folder that a file goes to."""


class DeviceError(WollemiError, RuntimeError):
    """A device that failed while it worked: lost, asynchronous error, launch failure."""


class CaptureRefused(WollemiError, RuntimeError):
    """A call that a graph of the device cannot record; nothing of it was recorded."""


class OutOfDeviceMemory(DeviceError, MemoryError):
    """An allocation beyond the executor's memory."""


class KernelCompileError(WollemiError, RuntimeError):
    """A kernel source that the run-time compiler refused; the message holds its log."""


class NotConverged(WollemiError, RuntimeError):
    """Eigenvalues or singular values that were asked for and did not converge.

    Attributes
    ----------
    result : EigenResult or SingularResult
        The result so far: all pairs with their residuals and a verdict each.
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
        The result so far; its ``reason`` is ``interrupted``.
    """

    def __init__(self, message: str, result: object) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.result)


class SystemNotSolved(WollemiError, RuntimeError):
    """A system was not solved to its tolerance, and its solution is differentiated."""
