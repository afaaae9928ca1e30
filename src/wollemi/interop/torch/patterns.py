"""Patterns of sparse tensors and matrices in the form that PyTorch operators take: two tensors.

A kernel needs more than a pattern's arrays: plans, and its transpose. They are found again by the
memory of the tensors, which is the same under every transform of PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...core.executor import Array

import ctypes
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from ...core.capture import public_call
from ...core.errors import ExecutorMismatch, InvalidMatrix
from ...core.executor import Executor
from ...core.formats import Csr, validate
from ...core.formats.compressed import keep_updated
from ...core.store import Key, PatternStore
from .captured import refuse_first, refuse_sharing
from .constants import constant
from .identities import Seen, identity
from .memory import borrowed, device_of, executor_of, lasting, native_of, numpy_of, tensor_of


class Pattern(NamedTuple):
    """The positions of a matrix's entries in CSR order, as tensors.

    Functions of this package take it instead of a matrix. It may be an argument of compiled and
    transformed functions, which then work for other patterns too.

    Attributes
    ----------
    indptr : Tensor of int32 or int64, shape (m + 1,)
        Row pointers: row ``i`` has the entries ``indptr[i]:indptr[i + 1]``.
    indices : Tensor of the same dtype, shape (nnz,)
        The columns of the entries.
    shape : tuple of int
        Rows and columns.
    """

    indptr: Tensor
    indices: Tensor
    shape: tuple[int, int]

    def __repr__(self) -> str:
        rows, columns = self.shape
        where, dtype = self.indices.device, str(self.indices.dtype).removeprefix("torch.")
        return f"<Pattern {rows}x{columns} of {self.nnz} entries, {dtype} tensors on {where}>"

    def to(self, device: torch.device | Executor | str) -> Pattern:
        """Return this pattern on a device or an executor's device; tensors there are kept."""
        device = device_of(device)
        return Pattern(self.indptr.to(device), self.indices.to(device), self.shape)

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self.indices.shape[0]


class _Known(NamedTuple):
    """A matrix that uses the memory of tensors, and whether the memory still belongs to them."""

    matrix: Csr
    storages: tuple[StorageWeakRef, StorageWeakRef]

    @property
    def lost(self) -> bool:
        indptr, indices = self.storages
        return indptr.expired() or indices.expired()


_known: dict[tuple[Any, ...], _Known] = {}
_lock = threading.Lock()

#: Matrices by the identity of their tensors: compiled functions and autograd pass the same tensor
#: objects in each call.
_seen = Seen[Csr]()


def matrix_of(indptr: Tensor, indices: Tensor, columns: int) -> Csr:
    """Return the matrix of a pattern given as tensors; it must not outlive them.

    Its prepared data are cached as long as the tensors live and are not written to.
    """
    result = _seen.get(indptr, indices, columns)
    if result is not None:
        return result
    key = (*identity(indptr), *identity(indices), columns)
    known = _known.get(key)
    if known is None or known.lost:
        refuse_first(indptr, public_call(), "the matrix of a pattern")
        known = _remember(key, executor_of(indptr.device), indptr, indices, columns, None)
    _seen.add(indptr, indices, columns, known.matrix)
    return known.matrix


def unwrapped(tensor: Tensor) -> Tensor:
    """Return a pattern's tensor without the wrappers of ``torch.func``, which do not affect it."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


_TRANSPOSED: Key[tuple[Csr, Tensor]] = Key("transpose, with its order as a tensor")


def transposed_of(A: Csr) -> tuple[Csr, Tensor]:
    """Return the transpose of a pattern, and an int64 tensor of its entries' original positions."""

    def make() -> tuple[Csr, Tensor]:
        transposed, order = A.transposed_pattern()
        return transposed, lasting(A.executor, tensor_of(order).long())

    return A._pattern.get(_TRANSPOSED, make)


def _remember(
    key: tuple[Any, ...],
    executor: Executor,
    indptr: Tensor,
    indices: Tensor,
    columns: int,
    store: PatternStore | None,
) -> _Known:
    if store is None:
        _check(indptr, indices, columns)
    arrays = [borrowed(executor, t) for t in (indices, indptr)]
    zeros = executor.zeros((indices.shape[0],), "float32")
    matrix = Csr._from_arrays(executor, (indptr.shape[0] - 1, columns), zeros, *arrays)
    if store is not None:
        matrix._pattern = store
    known = _Known(matrix, tuple(StorageWeakRef(t.untyped_storage()) for t in (indptr, indices)))
    with _lock:
        _forget()
        _known[key] = known
    return known


def _forget() -> None:
    for key in [key for key, known in _known.items() if known.lost]:
        del _known[key]


def _check(indptr: Tensor, indices: Tensor, columns: int) -> None:
    """Raise InvalidMatrix unless kernels can safely use the indices."""
    for name, tensor in (("indptr", indptr), ("indices", indices)):
        if tensor.dim() != 1 or tensor.dtype not in (torch.int32, torch.int64):
            raise InvalidMatrix(
                f"{name}: expected a tensor of one dimension of int32 or int64, got "
                f"{tensor.dtype} of shape {tuple(tensor.shape)}"
            )
    if indptr.dtype is not indices.dtype or indptr.device != indices.device:
        raise InvalidMatrix(
            f"indptr is {indptr.dtype} on {indptr.device}, indices {indices.dtype} on "
            f"{indices.device}: expected one dtype and one device"
        )
    if not (indptr.is_contiguous() and indices.is_contiguous()):
        raise InvalidMatrix("indptr and indices: expected contiguous tensors")
    if indptr.device.type == "cpu":  # data of a device would have to be read back
        validate.pointers(numpy_of(indptr), indptr.shape[0] - 1, indices.shape[0])
        validate.indices(numpy_of(indices), columns, "indices")


# ---- patterns of matrices


@contextmanager
def outside_of_transforms() -> Iterator[None]:
    """Return a context in which to create cached tensors: an active transform must not trace it."""
    modes = torch.utils._python_dispatch._disable_current_modes()
    with modes, torch._C._DisableFuncTorch(), torch.inference_mode(False):
        yield


class ValuesOfMatrix:
    """The values of a matrix as a tensor: PyTorch is told when the matrix gets new ones.

    A backward pass that needs the earlier values then raises PyTorch's error about variables that
    were modified in place, instead of returning the gradients of another matrix.

    Parameters
    ----------
    tensor : Tensor
        The tensor; it shares the matrix's memory.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def update_values(self, A: Csr) -> None:
        """Increment the version of the tensor."""
        if not self.tensor.is_inference():
            torch.autograd.graph.increment_version(self.tensor)


_VALUES: Key[ValuesOfMatrix] = Key("the values as a tensor of PyTorch")


class Tensors:
    """The arrays of a matrix as tensors.

    Attributes
    ----------
    pattern : Pattern
        The pattern of the matrix.
    sparse : object
        The structures that :mod:`.layouts` makes from these tensors.
    products : dict
        The products with this matrix that :mod:`.known_products` remembers.
    """

    __slots__ = ("_array", "_indices", "_owner", "_values", "pattern", "products", "sparse")

    def __init__(self, A: Csr, forget: Callable[[Any], Any]) -> None:
        refuse_sharing(A.executor)
        self._owner = weakref.ref(A, forget)
        with outside_of_transforms():
            self.pattern = Pattern(tensor_of(A.indptr), tensor_of(A.indices), A.shape)
            indptr, indices, (_, n) = self.pattern
            key = (*identity(indptr), *identity(indices), n)
            _remember(key, A.executor, indptr, indices, n, A._pattern)
        self.sparse: Any = None
        self.products: dict[Hashable, Any] = {}
        self._indices = A.indices
        self._array: Array | None = None
        self._values: Tensor | None = None

    def are_of(self, A: Csr) -> bool:
        """Return whether the tensors belong to a matrix, which may have been sorted since."""
        return self._owner() is A and self._indices is A.indices

    def values(self) -> Tensor:
        """Return the values; convert them again if the matrix now has another array of values."""
        owner = self._owner()
        assert owner is not None  # the caller keeps the matrix alive
        if self._array is not owner.data:
            with outside_of_transforms():
                self._array, self._values = owner.data, tensor_of(owner.data)
            keep_updated(owner, _VALUES, ValuesOfMatrix(self._values))
        result: Tensor = self._values
        return result


#: Tensors by the ``id`` of their matrix.
known_tensors: dict[int, Tensors] = {}


def _drop(tensors: dict[int, Tensors], number: int, _: object) -> None:
    tensors.pop(number, None)  # passed in: at exit, this module has no names


def tensors_of(A: Csr) -> Tensors:
    """Return the arrays of a matrix as tensors, converted once."""
    number = id(A)
    result = known_tensors.get(number)
    if result is None or not result.are_of(A):
        result = known_tensors[number] = Tensors(A, partial(_drop, known_tensors, number))
    return result


@constant
def indptr_of(identity: int, pattern: int) -> Tensor:
    """Return row pointers, by the ``id`` of a matrix and of its pattern."""
    return tensors_of(with_id(identity)).pattern.indptr


@constant
def indices_of(identity: int) -> Tensor:
    """Return the columns of entries, by the ``id`` of a matrix."""
    return tensors_of(with_id(identity)).pattern.indices


@constant
def data_of(identity: int) -> Tensor:
    """Return the values, by the ``id`` of a matrix."""
    return tensors_of(with_id(identity)).values()


def with_id(identity: int) -> Csr:
    """Return the matrix with this ``id``, which the caller keeps alive."""
    result: Csr = ctypes.cast(identity, ctypes.py_object).value
    return result


def pattern_tensors(A: Csr, device: torch.device) -> Pattern:
    """Return the pattern of a matrix as tensors that share its memory."""
    if torch.compiler.is_compiling():
        # The pattern's id is part of the key, because a matrix may be sorted in place.
        pattern = Pattern(indptr_of(id(A), id(A._pattern)), indices_of(id(A)), A.shape)
    else:
        pattern = tensors_of(A).pattern
        if torch._C._len_torch_dispatch_stack():
            pattern = Pattern(faked(pattern.indptr), faked(pattern.indices), A.shape)
    if pattern.indptr.device.type != device.type:
        raise ExecutorMismatch(
            f"the pattern lives on {A.executor.name} and a tensor on {device}; move one of them"
        )
    return pattern


def value_tensor(A: Csr) -> Tensor:
    """Return the values of a matrix as a tensor that shares their memory."""
    if torch.compiler.is_compiling():
        return data_of(id(A))
    values = tensors_of(A).values()
    return faked(values) if torch._C._len_torch_dispatch_stack() else values


def faked(tensor: Tensor) -> Tensor:
    """Return a tensor in the form that an active FakeTensorMode of the user requires."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    mode = _get_current_dispatch_mode()
    if isinstance(mode, FakeTensorMode) and not mode.allow_non_fake_inputs:
        faked: Tensor = mode.from_tensor(tensor)
        return faked
    return tensor


def owned_pattern(pattern: Pattern, values: Tensor) -> Csr:
    """Return a matrix that shares the tensors' memory and keeps it alive."""
    twin = matrix_of(pattern.indptr, pattern.indices, pattern.shape[1])
    on = twin.executor
    arrays = (native_of(on, t) for t in (values, pattern.indices, pattern.indptr))
    result = Csr._from_arrays(on, pattern.shape, *arrays)
    result._pattern = twin._pattern
    return result
