"""Inputs of products of sparse and dense matrices as files: one run draws them, another reads them.

A file is a ``.npz`` of SciPy's keys for a sparse matrix, which other programs read as one, with the
dense operands as further keys.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wollemi.core.errors import InvalidArgument

from .generators import Csr

if TYPE_CHECKING:
    from .ml import Dense

#: How names of such files end.
ENDING = ".inputs.npz"


class Inputs(NamedTuple):
    """The description of a file.

    Attributes
    ----------
    operation : str
        ``spmm``, ``sddmm`` or ``fusedmm``.
    columns : int
        Of the dense operands.
    dtype : str
        Of values and operands.
    """

    operation: str
    columns: int
    dtype: str


def is_stored(path: Path | None) -> bool:
    """Return whether a file has dense operands too."""
    return path is not None and path.name.endswith(ENDING)


def write(path: Path, problem: Dense) -> None:
    """Write the matrix and the dense operands of a problem."""
    S = problem.S
    operands: dict[str, Any] = {
        f"operand_{i}": operand for i, operand in enumerate(problem.operands)
    }
    np.savez(
        path,
        format=np.bytes_(b"csr"),
        shape=S.shape,
        data=S.data,
        indices=S.indices,
        indptr=S.indptr,
        operation=problem.operation,
        columns=problem.columns,
        dtype=problem.dtype.name,
        **operands,
    )


def about(path: Path) -> Inputs:
    """Return the description of a file.

    Raises
    ------
    InvalidArgument
        If it was not made by :func:`write`.
    """
    try:
        with np.load(path, allow_pickle=False) as held:
            return Inputs(str(held["operation"]), int(held["columns"]), str(held["dtype"]))
    except (OSError, ValueError, KeyError) as error:
        raise InvalidArgument(f"{path}: no stored inputs ({error})") from error


def operands_of(path: Path) -> list[np.ndarray[Any, Any]]:
    """Return the dense operands that a file has."""
    with np.load(path, allow_pickle=False) as held:
        names = sorted(name for name in held.files if name.startswith("operand_"))
        return [held[name] for name in names]


def keeping(path: Path, make: Callable[[Csr], Dense], S: Csr) -> Dense:
    """Return the problem that ``make`` makes of a matrix, and write its inputs."""
    problem = make(S)
    write(path, problem)
    return problem


def path_in(folder: Path, case: str, benchmark: str) -> Path:
    """Return where the inputs of a contest are kept.

    Examples
    --------
    >>> from pathlib import Path
    >>> from wollemi_bench.stored_inputs import path_in
    >>> path_in(Path("kept"), "rmat:14,200000", "sddmm/32").name
    'rmat-14-200000-sddmm-32.inputs.npz'
    """
    words = f"{case}-{benchmark}"
    return folder / ("".join(c if c.isalnum() or c in "-_." else "-" for c in words) + ENDING)
