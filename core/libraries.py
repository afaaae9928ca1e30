"""Operands of other libraries: parts of the package register handlers, and the core calls them.

The core imports no other library, and no part of wollemi for a library.
``wollemi/_operand_handlers.py`` registers functions that import the handlers; they are called at
the first operand of a kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Protocol

    from .distributed.ranks import RankGroup
    from .executor import Array, Executor
    from .formats.base import Matrix
    from .linop import LinOp

    class MatrixHandler(Protocol):
        """Handler of another library's sparse matrices."""

        def matrix_from(self, arg: Any, executor: Executor | str | None, copy: bool, /) -> Matrix:
            """Convert an object of the library to a matrix; ``copy`` forbids shared memory."""

    class OperatorHandler(Protocol):
        """Handler of operators and matrices of all libraries."""

        def operator_beside(self, executor: Executor, other: Any, /) -> LinOp | None:
            """Convert an object to an operator, on ``executor`` if it is the host's, or None."""

    class RanksHandler(Protocol):
        """Handler of groups of another library's processes."""

        def group_of(
            self, process_group: Any, executor: Executor | str | None, reproducible: bool, /
        ) -> RankGroup:
            """Return the ranks of a process group as a group."""

    class BatchHandler(Protocol):
        """Handler of arrays with leading axes, which make batches of matrices."""

        def is_batch_of(self, format: str, arg: Any, /) -> bool:
            """Return whether a constructor's argument is a batch."""

        def made_of(
            self,
            format: str,
            arg: Any,
            *,
            shape: tuple[int, int] | None = None,
            dtype: Any = None,
            executor: Executor | str | None = None,
            **options: Any,
        ) -> Any:
            """Convert an argument to a batch in a format."""

    class GraphHandler(MatrixHandler, Protocol):
        """Handler of graphs and lists of edges."""

        def matrix_of(self, graph: Any, sources: int, /) -> Any:
            """Return the matrix of a product with a graph; other operands are unchanged."""

    class PatternOfTensors(Protocol):
        """A pattern stored in tensors."""

        @property
        def shape(self) -> tuple[int, int]:
            """The rows and columns."""

        @property
        def indptr(self) -> Any:
            """Where each row begins, and the number of entries."""

        @property
        def indices(self) -> Any:
            """The column of each entry."""

    class TensorHandler(MatrixHandler, Protocol):
        """Handler of PyTorch tensors: products with gradients."""

        @property
        def Pattern(self) -> type:
            """The class of patterns stored in tensors."""

        def spmm_again(self, A: Any, B: Any, alpha: Any, beta: Any, /) -> Any:
            """Return ``A @ B`` by repeating the launches of an earlier product, or None."""

        def spmm_traced(self, A: Any, B: Any, alpha: Any, beta: Any, /) -> Any:
            """Return ``A @ B`` as PyTorch's compiler can trace it, or None."""

        def spmm_anew(
            self, A: Any, B: Any, out: Any, alpha: Any, beta: Any, values: Any, kernel: str, /
        ) -> Any:
            """Return ``alpha A B + beta out``."""

        def sddmm(
            self, A: Any, C: Any, B: Any, /, *, alpha: Any, use_values: bool, kernel: str
        ) -> Any:
            """Return the inner products of rows at the positions of a pattern."""

        def fusedmm(
            self, A: Any, C: Any, B: Any, D: Any, /, *, edge: Any, alpha: Any, use_values: bool,
            kernel: str, return_lse: bool,
        ) -> Any:  # fmt: skip
            """Return a function of sampled inner products, multiplied by a dense matrix."""

        def tensor_of(self, array: Array, /) -> Any:
            """Return a native array as a tensor."""

        def numpy_of(self, tensor: Any, /) -> Any:
            """Return a host tensor as a NumPy array."""


#: For each function that recognizes operands of a kind: the function that imports the handler.
_MATRICES: dict[Callable[[Any], bool], Callable[[], MatrixHandler]] = {}
_OPERATORS: dict[str, Callable[[], OperatorHandler]] = {}
_RANKS: dict[str, Callable[[], RanksHandler]] = {}
_BATCHES: dict[str, Callable[[], BatchHandler]] = {}
_GRAPHS: dict[str, Callable[[], GraphHandler]] = {}
_TENSORS: dict[str, Callable[[], TensorHandler]] = {}
#: The handler of tensors after its import; every product reads it.
_LOADED: dict[str, TensorHandler] = {}


def register_matrices(recognizes: Callable[[Any], bool], load: Callable[[], MatrixHandler]) -> None:
    """Register a kind of sparse matrices of another library.

    Parameters
    ----------
    recognizes : callable
        Returns whether an object is of this kind, by its attributes alone.
    load : callable
        Imports the handler.
    """
    _MATRICES[recognizes] = load


def matrix_handler(operand: Any) -> MatrixHandler | None:
    """Return the handler for a sparse matrix of another library, or None."""
    for recognizes, load in _MATRICES.items():
        if recognizes(operand):
            return load()
    return None


def register_operators(load: Callable[[], OperatorHandler]) -> None:
    """Register the function that imports the handler of operators."""
    _OPERATORS["operators"] = load


def operator_handler() -> OperatorHandler:
    """Return the handler of operators."""
    return _OPERATORS["operators"]()


def register_ranks(load: Callable[[], RanksHandler]) -> None:
    """Register the function that imports the handler of process groups of PyTorch."""
    _RANKS["torch"] = load


def ranks_handler() -> RanksHandler:
    """Return the handler of process groups of PyTorch.

    Raises
    ------
    ImportError
        If PyTorch cannot be imported.
    """
    return _RANKS["torch"]()


def register_batches(load: Callable[[], BatchHandler]) -> None:
    """Register the function that imports the handler of batches."""
    _BATCHES["batches"] = load


def batch_handler() -> BatchHandler:
    """Return the handler of batches."""
    return _BATCHES["batches"]()


def register_graphs(load: Callable[[], GraphHandler]) -> None:
    """Register the function that imports the handler of graphs and lists of edges."""
    _GRAPHS["graphs"] = load


def graph_handler() -> GraphHandler:
    """Return the handler of graphs and lists of edges."""
    return _GRAPHS["graphs"]()


def register_tensors(load: Callable[[], TensorHandler]) -> None:
    """Register the function that imports the handler of tensors."""
    _TENSORS["tensors"] = load


def set_tensor_handler(handler: TensorHandler) -> None:
    """Store the handler of tensors; its package calls this function when it is imported."""
    _LOADED["tensors"] = handler


def tensor_handler() -> TensorHandler:
    """Return the handler of tensors."""
    loaded = _LOADED.get("tensors")
    return _TENSORS["tensors"]() if loaded is None else loaded


def loaded_tensor_handler() -> TensorHandler | None:
    """Return the handler of tensors, or None if there was no tensor operand so far."""
    return _LOADED.get("tensors")
