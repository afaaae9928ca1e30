"""The bindings of cuDSS in NumPy, as far as the engine calls them: handles are numbers.

As strict as the library: addresses are read when a phase is executed, of a Hermitian matrix the
upper triangle alone, blocks by columns, and refactorization needs a factorization. Pivots are taken
from the diagonal, and tiny ones replaced.
"""

import ctypes
from enum import IntEnum
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import linear_sum_assignment

DataType = IntEnum(
    "DataType", {"R_32F": 0, "R_64F": 1, "C_32F": 4, "C_64F": 5, "R_32I": 10, "R_64I": 24}
)
Phase = IntEnum("Phase", {"ANALYSIS": 3, "FACTORIZATION": 4, "REFACTORIZATION": 8, "SOLVE": 1008})
Status = IntEnum("Status", "SUCCESS NOT_INITIALIZED ALLOC_FAILED INVALID_VALUE", start=0)
MatrixType = IntEnum("MatrixType", "GENERAL SYMMETRIC HERMITIAN SPD HPD", start=0)
MatrixViewType = IntEnum("MatrixViewType", "FULL LOWER UPPER", start=0)
IndexBase = IntEnum("IndexBase", "ZERO ONE", start=0)
Layout = IntEnum("Layout", "COL_MAJOR ROW_MAJOR", start=0)
ConfigParam = IntEnum("ConfigParam", {"REORDERING_ALG": 0, "MATCHING_ALG": 3, "UBATCH_SIZE": 14})
DataParam = IntEnum("DataParam", "INFO LU_NNZ NPIVOTS INERTIA", start=0)
ReorderingAlg = IntEnum(
    "ReorderingAlg", "DEFAULT BTF_COLAMD COLAMD AMD NESTED_DISSECTION NONE", start=0
)
MatchingAlg = IntEnum("MatchingAlg", {"NONE": 0, "MAX_DIAG_PRODUCT": 5})

_DTYPES = {0: "f4", 1: "f8", 4: "c8", 5: "c16", 10: "i4", 24: "i8"}

#: Live objects, by handle, and the executed phases.
alive: dict[int, Any] = {}
phases: list[str] = []
#: How many of the next phases find no memory.
out_of_memory = 0
_last = [0]


class cuDSSError(Exception):
    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(Status(status).name)


def _made(thing: Any) -> int:
    _last[0] += 1
    alive[_last[0]] = thing
    return _last[0]


def _array(address: int, size: int, dtype: Any) -> np.ndarray:
    dtype = np.dtype(_DTYPES[dtype] if isinstance(dtype, int) else dtype)
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype)


def get_property(which: int) -> int:
    return (0, 8, 0)[which]


def create() -> int:
    return _made("handle")


def config_create() -> int:
    return _made({})


def data_create(handle: int) -> int:
    assert alive[handle] == "handle"
    return _made({})


def matrix_create_csr(
    n, m, nnz, rows, rows_end, columns, values, offset, index, value, kind, view, base
):
    assert n == m and rows_end == 0 and base == 0 and offset == index
    return _made([n, nnz, rows, columns, values, index, value, kind, view])


def matrix_create_dn(n, k, distance, values, value, layout):
    assert distance == n and layout == Layout.COL_MAJOR
    return _made([n, k, value, values])


def matrix_set_values(matrix: int, values: int) -> None:
    alive[matrix][4 if len(alive[matrix]) > 4 else 3] = values


def destroy(handle: int) -> None:
    alive.pop(handle)


config_destroy = matrix_destroy = destroy


def data_destroy(handle: int, data: int) -> None:
    assert handle in alive
    alive.pop(data)


def set_stream(handle: int, stream: int) -> None:
    assert alive[handle] == "handle" and stream == 0


def config_set(config: int, parameter: int, address: int, size: int) -> None:
    alive[config][ConfigParam(parameter)] = int(_array(address, size // 4, "i4")[0])


def data_get(handle: int, data: int, parameter: int, address: int, size: int, written: int) -> None:
    found = alive[data][DataParam(parameter).name]
    # numbers of rows have the dtype of the indices; another size is refused
    by_index = parameter in (DataParam.NPIVOTS, DataParam.INERTIA)
    wide = parameter == DataParam.LU_NNZ or (by_index and alive[data]["index"] == DataType.R_64I)
    kind = np.dtype("i8" if wide else "i4")
    if size != kind.itemsize * np.size(found):
        raise cuDSSError(Status.INVALID_VALUE)
    _array(address, np.size(found), kind)[:] = found


def _dense(matrix: list[Any]) -> np.ndarray:
    n, nnz, rows, columns, values, index, value, kind, view = matrix
    indptr, indices = _array(rows, n + 1, index), _array(columns, nnz, index)
    made = np.zeros((n, n), _DTYPES[value])
    made[np.repeat(np.arange(n), np.diff(indptr)), indices] = _array(values, nnz, value)
    if kind == MatrixType.GENERAL:
        assert view == MatrixViewType.FULL
        return made
    assert view == MatrixViewType.UPPER
    above = np.triu(made, 1)
    mirrored = above.conj() if kind == MatrixType.HERMITIAN else above
    return above + np.diag(made.diagonal()) + mirrored.T


def execute(handle, phase, config, data, matrix, solution, given):
    global out_of_memory
    assert alive[handle] == "handle"
    phases.append(Phase(phase).name)
    if out_of_memory:
        out_of_memory -= 1
        raise cuDSSError(Status.ALLOC_FAILED)
    together = alive[config].get(ConfigParam.UBATCH_SIZE, 1)
    for at in range(together):
        state = alive[data].setdefault(at, {}) if together > 1 else alive[data]
        moved = (_moved(alive[of], at) for of in (matrix, solution, given))
        _execute_one(phase, alive[config], state, *moved)


def _moved(matrix, at):
    """Return matrix number ``at`` of a sequence."""
    values, value = (4, 6) if len(matrix) > 4 else (3, 2)
    size = (matrix[1] if len(matrix) > 4 else matrix[0] * matrix[1]) * at
    there = list(matrix)
    there[values] += size * np.dtype(_DTYPES[matrix[value]]).itemsize
    return there


def _execute_one(phase, config, state, A, solution, given):
    if phase == Phase.ANALYSIS:
        state["order"], state["index"] = np.arange(A[0]), A[5]
        if config.get(ConfigParam.MATCHING_ALG):
            sizes = np.abs(_dense(A))
            with np.errstate(divide="ignore"):
                cost = np.where(sizes > 0, -np.log(sizes), 1e9)
            rows, columns = linear_sum_assignment(cost)
            if np.any(sizes[rows, columns] == 0):
                raise cuDSSError(Status.INVALID_VALUE)
            state["order"][columns] = rows
    elif phase in (Phase.FACTORIZATION, Phase.REFACTORIZATION):
        assert "order" in state and (phase == Phase.FACTORIZATION or "L" in state)
        _factorize(state, _dense(A)[state["order"]])
    else:
        n, k, value, address = given
        b = _array(address, n * k, value).reshape(k, n).T[state["order"]]
        x = _array(solution[3], n * k, value).reshape(k, n).T
        options = {"check_finite": False}
        y = solve_triangular(state["L"], b, lower=True, unit_diagonal=True, **options)
        no_pivot = np.any(state["U"].diagonal() == 0)  # of a matrix of zeros
        x[:] = np.nan if no_pivot else solve_triangular(state["U"], y, **options)


def _factorize(state: dict[str, Any], U: np.ndarray) -> None:
    n, L, replaced = U.shape[0], np.eye(U.shape[0], dtype=U.dtype), 0
    tiny = 1e3 * np.finfo(U.dtype).eps * np.abs(U).max()
    for j in range(n):
        if abs(U[j, j]) <= tiny:
            U[j, j], replaced = tiny, replaced + 1
        below, right = (j + 1 + np.flatnonzero(part[j + 1 :]) for part in (U[:, j], U[j]))
        L[below, j] = U[below, j] / U[j, j]
        with np.errstate(all="ignore"):  # factors without pivoting may grow without bound
            U[np.ix_(below, right)] -= np.outer(L[below, j], U[j, right])
        U[below, j] = 0
    pivots = U.diagonal().real
    counts = [np.sum(pivots > 0), np.sum(pivots < 0)]
    state.update(L=L, U=U, INFO=0, NPIVOTS=replaced, INERTIA=counts)
    state["LU_NNZ"] = int(np.count_nonzero(U) + np.count_nonzero(np.tril(L, -1)))
