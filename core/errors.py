"""All errors that wollemi raises on purpose.

Messages state the input, the expectation and the remedy.
"""


class WollemiError(Exception):
    """The base class of all errors of this package."""


class InvalidMatrix(WollemiError, ValueError):
    """Arrays or a file do not describe a valid matrix; the message names the position."""


class InvalidArgument(WollemiError, ValueError):
    """The call does not accept an argument."""


class NothingToAverage(InvalidArgument, ZeroDivisionError):
    """A mean of no entries was requested, along an axis of length 0."""


class InvalidCall(InvalidArgument):
    """The arguments of an executor's operation do not agree with its signature."""


class FixedAttribute(InvalidArgument, AttributeError):
    """An attribute of an operator cannot be changed; the message names the alternative."""


class InvalidIndex(InvalidArgument, IndexError):
    """A key in ``A[key]`` selects no entries, rows or columns."""


class IndexOutOfRange(InvalidIndex):
    """A row or column number is outside of the matrix."""


class ShapeMismatch(WollemiError, ValueError):
    """The shapes of operands do not fit together."""


class GroupMismatch(WollemiError, ValueError):
    """Members of a group got different arguments; the message names the members."""


class MemberFailed(WollemiError, RuntimeError):
    """Another member of a group failed; the message has its name and the cause."""


class UnsupportedDtype(WollemiError, TypeError, ValueError):
    """No kernel supports a dtype; it is a ValueError too, as in SciPy for unsupported dtypes."""


class NoNumbers(InvalidArgument, UnsupportedDtype):
    """An array holds texts, dates, objects or records instead of numbers."""


class UnsupportedOperand(WollemiError, TypeError):
    """A Python operator or a NumPy function has no meaning for an operand."""


class UnsupportedOperation(WollemiError, NotImplementedError):
    """The executor has no kernel for an operation."""


class ArraysGivenUp(UnsupportedOperation, AttributeError):
    """A method needs the arrays of a matrix that has released them (``A.plan_only()``).

    It is an AttributeError too, so that ``hasattr`` is False for unsupported methods of the matrix.
    """

    def __init__(self, message: str, *, name: str = "", obj: object = None) -> None:
        super().__init__(message)
        self.name, self.obj = name, obj


class ExecutorMismatch(WollemiError, ValueError):
    """Operands are on different executors; wollemi copies nothing between devices silently."""


class ExecutorUnavailable(WollemiError, RuntimeError):
    """An executor is not available; the message gives the reason and how to install it."""


class MissingPackage(WollemiError, ImportError):
    """An optional package is not installed; the message says how to install it."""


class MissingFile(WollemiError, FileNotFoundError):
    """A file, or the folder of an output file, does not exist."""


class DeviceError(WollemiError, RuntimeError):
    """A device failed during work: it was lost, a launch failed, or an asynchronous error."""


class CaptureRefused(WollemiError, RuntimeError):
    """A graph of the device cannot record a call; nothing of the call was recorded."""


class OutOfDeviceMemory(DeviceError, MemoryError):
    """An allocation does not fit into the executor's memory."""


class KernelCompileError(WollemiError, RuntimeError):
    """The run-time compiler rejected a kernel source; the message contains its log."""


class NotConverged(WollemiError, RuntimeError):
    """Some of the requested eigenvalues or singular values did not converge.

    Attributes
    ----------
    result : EigenResult or SingularResult
        The result so far: all pairs, each with its residual and its verdict.
    """

    def __init__(self, message: str, result: object) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.result)


class SolveInterrupted(WollemiError, KeyboardInterrupt):
    """Ctrl-C interrupted a solve.

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
    """A gradient needs the solution of a system that was not solved to its tolerance."""
