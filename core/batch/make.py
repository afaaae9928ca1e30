"""Construction of batches from arrays with leading axes, and from matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import MAKES
from ..dtypes import common_dtype, value_dtype
from ..errors import InvalidArgument, InvalidMatrix
from ..formats.base import Matrix
from ..formats.csr import Csr
from ..formats.dense import Dense
from ..formats.given import homeless, place
from ..operands import native
from ..small_values import as_dtype
from .convert import BATCHED
from .csr import BatchCsr
from .dense import BatchDense
from .ell import BatchEll
from .matrix import BatchMatrix
from .mixed import MixedBatch

if TYPE_CHECKING:
    from ..executor import Array, Executor

#: The number of axes of one matrix: 1 for CSR values, 2 for a dense matrix.
_AXES = {"csr": 1, "dense": 2}


def axes_of(array: Any) -> int:
    """Return the number of axes of an array, a tensor or nested sequences."""
    result = getattr(array, "ndim", None)
    if isinstance(result, int):
        return result
    if not isinstance(array, (list, tuple)):
        return 0
    try:
        return np.ndim(array)
    except ValueError:  # nested sequences of different lengths
        return 0


def is_batch_of(format: str, arg: Any) -> bool:
    """Return whether the argument of a constructor has leading axes."""
    if isinstance(arg, BatchMatrix):
        return True
    if format == "csr" and type(arg) is tuple and len(arg) == 3:
        return axes_of(arg[0]) > _AXES["csr"]
    if format not in _AXES or not hasattr(arg, "ndim"):
        return False
    return axes_of(arg) > 2 and not hasattr(arg, "tocsr")


def made_of(
    format: str,
    arg: Any,
    *,
    shape: tuple[int, int] | None = None,
    dtype: Any = None,
    executor: Executor | str | None = None,
    **options: Any,
) -> BatchMatrix:
    """Return the batch that the arguments of a constructor describe.

    Raises
    ------
    InvalidMatrix
        If the arrays do not describe matrices.
    """
    if isinstance(arg, BatchMatrix):
        made = arg.copy() if executor is None else arg.to(executor).copy()
        made = made.asformat(format)
    elif format == "dense":
        made = _dense(arg, executor)
    elif str(getattr(arg, "layout", "")).startswith("torch.sparse"):
        made = _of_tensor(arg, executor)
    elif isinstance(arg, tuple):
        made = _csr(arg, shape, executor, options.get("copy", True))
    else:
        made = _dense(arg, executor).asformat("csr")
    if shape is not None and tuple(shape) != made.shape:
        raise InvalidMatrix(f"shape: {shape} was given for matrices of {made.shape}")
    return made if dtype is None else made.astype(dtype)


def _csr(
    triple: tuple[Any, ...], shape: Any, executor: Executor | str | None, copy: bool
) -> BatchCsr:
    data, indices, indptr = triple
    on = place(executor, *triple)
    values = native(on, data, "data")
    values = as_dtype(on, values, value_dtype(values.dtype))
    axes = tuple(int(s) for s in values.shape[:-1])
    nnz = int(values.shape[-1])
    zeros = on.zeros((nnz,), values.dtype)
    try:
        one = Csr((zeros, indices, indptr), shape=shape, executor=on)
    except InvalidMatrix as error:
        raise InvalidMatrix(
            f"data of shape {tuple(values.shape)}, one row a matrix: {error}"
        ) from None
    rows = _rows(on, values, (int(np.prod(axes, dtype=np.int64)), nnz), copy)
    return BatchCsr._from_values(one, axes, rows, follows=homeless(executor, data))


def _rows(on: Executor, values: Array, shape: tuple[int, ...], copy: bool) -> Array:
    """Return values as contiguous rows; they are copied unless the caller allows sharing."""
    rows = values.reshape(shape)
    ours = rows.flags.c_contiguous and getattr(rows.flags, "writeable", True)
    return rows if ours and not copy else on.copy(rows)


def _dense(arg: Any, executor: Executor | str | None) -> BatchDense:
    on = place(executor, arg)
    entries = native(on, arg, "the matrices")
    if entries.ndim < 3:
        raise InvalidMatrix(f"expected matrices of two axes, got an array of {entries.shape}")
    entries = as_dtype(on, entries, value_dtype(entries.dtype))
    *axes, m, n = (int(s) for s in entries.shape)
    rows = _rows(on, entries, (int(np.prod(axes, dtype=np.int64)), m, n), True)
    one = Dense._from_arrays(on, (m, n), on.zeros((m, n), entries.dtype))
    return BatchDense._from_values(one, tuple(axes), rows, follows=homeless(executor, arg))


def _of_tensor(tensor: Any, executor: Executor | str | None) -> BatchCsr:
    """Return a batched CSR tensor of PyTorch as a batch; its matrices must share a pattern."""
    if "csr" not in str(tensor.layout):
        raise InvalidMatrix(
            f"a batch of layout {tensor.layout} is not taken: tensor.to_sparse_csr() has the "
            "layout that batches have"
        )
    m, n = (int(s) for s in tensor.shape[-2:])
    arrays = []
    for name in ("crow_indices", "col_indices"):
        array = getattr(tensor, name)()
        array = array.reshape(-1, array.shape[-1])
        if not bool((array == array[:1]).all()):
            raise InvalidMatrix(
                f"{name}: the matrices of the tensor have different patterns; wl.batch of its "
                "matrices groups them"
            )
        arrays.append(array[0])
    return _csr((tensor.values().detach(), *reversed(arrays)), (m, n), executor, True)


def stack(matrices: Iterable[Any], *, executor: Executor | str | None = None) -> BatchMatrix:
    """Return matrices with a common pattern as a batch.

    Parameters
    ----------
    matrices : sequence of matrices, shape (m, n) each
        Matrices of wollemi or of another library. If all are Csr, all Ell or all Dense, the batch
        has that format; otherwise it is Csr.
    executor : Executor or str, optional
        The executor of the batch; by default, the executor of the first matrix.

    Returns
    -------
    BatchMatrix, batch_shape (len(matrices),)
        A batch of the common dtype; it shares no values with the matrices.

    Raises
    ------
    InvalidMatrix
        If the patterns differ; the message names the first matrix with a different pattern.
    InvalidArgument
        If there are no matrices.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.stack([wl.Csr(np.diag([2.0, 4.0])), wl.Csr(np.diag([1.0, 3.0]))])
    >>> A.batch_shape, A @ np.ones(2)
    ((2,), array([[2., 4.],
           [1., 3.]]))
    """
    made = _matrices(matrices, executor, "stack")
    made[0].executor.refuse_capture(MAKES)
    formats = {A.format for A in made}
    format = formats.pop() if len(formats) == 1 else "csr"
    if format not in BATCHED:
        format = "csr"
    made = [A.asformat(format) for A in made]
    first = made[0]
    for k, other in enumerate(made):
        if not same_pattern(first, other):
            raise InvalidMatrix(
                f"stack: matrix {k} has another pattern or shape than matrix 0; wl.batch groups "
                "matrices of different patterns"
            )
    return stacked(made)


def stacked(matrices: Sequence[Matrix]) -> BatchMatrix:
    """Return matrices with the same format and pattern as a batch."""
    first = matrices[0]
    dtype = common_dtype(*(A.dtype for A in matrices))
    xp = first.executor.xp
    values = xp.stack([as_dtype(A.executor, A.data, dtype) for A in matrices])
    zeros = first.executor.zeros(first.data.shape, dtype)
    kinds: dict[str, type[BatchMatrix]] = {"csr": BatchCsr, "dense": BatchDense}
    if first.format == "ell":
        kinds["ell"] = BatchEll
    follows = all(A._follows for A in matrices)
    return kinds[first.format]._from_values(
        first._with_data(zeros), (len(matrices),), values, follows=follows
    )


def same_pattern(A: Matrix, B: Matrix) -> bool:
    """Return whether two matrices of the same format have equal shapes and patterns."""
    if A.shape != B.shape or A.data.shape != B.data.shape:
        return False
    arrays = zip(A._native_arrays()[1:], B._native_arrays()[1:], strict=True)
    return all(a is b or (a.shape == b.shape and bool((a == b).all())) for a, b in arrays)


def batch(matrices: Iterable[Any], *, executor: Executor | str | None = None) -> MixedBatch:
    """Return matrices of any shapes and patterns as groups, each a batch.

    Parameters
    ----------
    matrices : sequence of matrices
        Matrices of wollemi or of another library; all are converted to Csr.
    executor : Executor or str, optional
        The executor of the batches; by default, the executor of the first matrix.

    Returns
    -------
    MixedBatch
        One batch for each pattern. Products and solves accept lists and return lists.

    Raises
    ------
    InvalidArgument
        If there are no matrices.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.batch([wl.Csr(np.diag([2.0, 4.0])), wl.Csr(np.eye(3))])
    >>> len(A), len(A.groups)
    (2, 2)
    >>> A @ [np.ones(2), np.ones(3)]
    [array([2., 4.]), array([1., 1., 1.])]
    """
    given = _matrices(matrices, executor, "batch")
    given[0].executor.refuse_capture(MAKES)
    made = [A.asformat("csr") for A in given]
    groups: list[list[int]] = []
    for k, A in enumerate(made):
        known = next((g for g in groups if same_pattern(made[g[0]], A)), None)
        if known is None:
            groups.append([k])
        else:
            known.append(k)
    return MixedBatch([(places, stacked([made[k] for k in places])) for places in groups])


def _matrices(systems: Iterable[Any], executor: Executor | str | None, caller: str) -> list[Matrix]:
    """Return the caller's matrices on one executor."""
    result: list[Matrix] = []
    for k, item in enumerate(systems):
        if getattr(item, "_is_batch", False):
            raise InvalidArgument(
                f"{caller}: item {k} is a batch, and a matrix was expected: pass its matrices, "
                "A[k]; the data of batches of one pattern are joined by concatenate"
            )
        matrix = item if isinstance(item, Matrix) else Csr(item, executor=executor)
        where = executor if executor is not None else result[0].executor if result else None
        matrix.executor.refuse_capture(MAKES)
        result.append(matrix if where is None else matrix.to(where))
    if not result:
        raise InvalidArgument(f"{caller}: expected at least one matrix, got none")
    return result
