"""No public operation on a matrix of a GPU moves data of the matrix across the bus.

Every copy between the memories goes through the executor or through three functions of CuPy: they
are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

from ..needs import cuda

pytestmark = pytest.mark.gpu

#: More rows than the plans have that the host makes; the matrix takes 18 MB.
SIDE, MOST = 550, 1 << 16


class Moved:
    """The bytes that copies have moved."""

    def __init__(self) -> None:
        self.bytes = 0

    def count(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same and counts the arrays of the host in it."""

        def counted(*arguments: Any, **options: Any) -> Any:
            made = function(*arguments, **options)
            given = [a for a in arguments if isinstance(a, np.ndarray)]
            found = made if isinstance(made, (list, tuple)) else [made]
            self.bytes += max((a.nbytes for a in given), default=0)
            self.bytes += sum(a.nbytes for a in found if isinstance(a, np.ndarray))
            return made

        return counted


@pytest.fixture(scope="module")
def on() -> wl.Executor:
    found: wl.Executor = cuda()
    return found


@pytest.fixture
def moved(on: wl.Executor, monkeypatch: pytest.MonkeyPatch) -> Moved:
    counter = Moved()
    for name in ("asarray", "array", "asnumpy"):
        monkeypatch.setattr(on.xp, name, counter.count(getattr(on.xp, name)))
    for name in ("from_host", "copy_into", "to_host"):
        monkeypatch.setattr(type(on), name, counter.count(getattr(type(on), name)))
    for name in ("read", "peek", "write"):
        kind = on.transfer_type
        monkeypatch.setattr(kind, name, counter.count(getattr(kind, name)))
    return counter


class Given(NamedTuple):
    """The operands of an operation, all of them on the GPU."""

    A: wl.Csr
    B: wl.Csr
    K: wl.Csr
    x: Any
    rows: Any
    mask: Any
    integers: wl.Csr
    unsorted: wl.Csr
    order: Any


@pytest.fixture(scope="module")
def given(on: wl.Executor) -> Given:
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(SIDE, SIDE))
    S = sp.csr_array(sp.kronsum(line, line))
    n, rng = S.shape[0], np.random.default_rng(0)
    A = wl.Csr(S, executor=on)
    rows, mask = on.from_host(rng.permutation(n)[: n // 2]), on.from_host(rng.random(n) < 0.5)
    B = wl.Csr(sp.csr_array(S + sp.eye_array(n, k=3)), executor=on)
    x = on.from_host(rng.random(n))
    product = S @ S  # SciPy's products have rows that are not sorted
    assert not product.has_sorted_indices
    unsorted, order = wl.Csr(product, executor=on), on.from_host(rng.permutation(n))
    return Given(A, B, A[:300, :300], x, rows, mask, A.astype(np.int64), unsorted, order)


OPERATIONS: dict[str, Callable[[Given], Any]] = {
    "A @ x": lambda g: g.A @ g.x,
    "A.T @ x": lambda g: g.A.T @ g.x,
    "A @ B": lambda g: g.A @ g.B,
    "A @ B, rows not sorted": lambda g: g.A @ g.unsorted,
    "A + B": lambda g: g.A + g.B,
    "A + A.T": lambda g: g.A + g.A.T,
    "A * 2": lambda g: g.A * 2,
    "A * B": lambda g: g.A * g.B,
    "A * x": lambda g: g.A * g.x,
    "A / x": lambda g: g.A / g.x,
    "abs": lambda g: abs(g.A),
    "power": lambda g: g.A.power(2),
    "A - B": lambda g: g.A - g.B,
    "A ** 2": lambda g: g.A**2,
    "A / 2": lambda g: g.A / 2,
    "multiply": lambda g: g.A.multiply(g.B),
    "minimum": lambda g: g.A.minimum(g.B),
    "sqrt": lambda g: np.sqrt(abs(g.A)),
    "sign": lambda g: g.A.sign(),
    "real": lambda g: g.A.real,
    "conj": lambda g: g.A.conj(),
    "maximum": lambda g: g.A.maximum(g.B),
    "minimum with 0": lambda g: g.A.minimum(0),
    "A > 0": lambda g: g.A > 0,
    "A != B": lambda g: g.A != g.B,
    "A < B": lambda g: g.A < g.B,
    "sum": lambda g: g.A.sum(),
    "sum of columns": lambda g: g.A.sum(0),
    "sum of rows": lambda g: g.A.sum(1),
    "mean": lambda g: g.A.mean(),
    "mean of columns": lambda g: g.A.mean(axis=0),
    "max": lambda g: g.A.max(),
    "min": lambda g: g.A.min(),
    "min of rows": lambda g: g.A.min(axis=1),
    "argmin of columns": lambda g: g.A.argmin(axis=0),
    "max of columns": lambda g: g.A.max(axis=0),
    "argmax of rows": lambda g: g.A.argmax(axis=1),
    "norm": lambda g: wl.linalg.norm(g.A),
    "norm 1": lambda g: wl.linalg.norm(g.A, 1),
    "norm of columns": lambda g: wl.linalg.norm(g.A, axis=0),
    "trace": lambda g: g.A.trace(),
    "diagonal": lambda g: g.A.diagonal(),
    "count_nonzero": lambda g: g.A.count_nonzero(),
    "vstack": lambda g: wl.sparse.vstack([g.A, g.B]),
    "hstack": lambda g: wl.sparse.hstack([g.A, g.B]),
    "block_array": lambda g: wl.sparse.block_array([[g.A, None], [g.B, g.A]]),
    "block_diag": lambda g: wl.sparse.block_diag([g.A, g.B]),
    "kron": lambda g: wl.sparse.kron(g.K, g.K),
    "kronsum": lambda g: wl.sparse.kronsum(g.K, g.K),
    "eye": lambda g: wl.sparse.eye(g.A.shape[0], executor=g.A.executor),
    "tril": lambda g: g.A.tril(),
    "triu": lambda g: g.A.triu(),
    "diags": lambda g: wl.sparse.diags([g.x, g.x[5000:]], [0, 5000]),
    "find": lambda g: wl.sparse.find(g.A),
    "nonzero": lambda g: g.A.nonzero(),
    "resize": lambda g: g.A.copy().resize(1000, g.A.shape[1] + 5),
    "permute_dims": lambda g: wl.sparse.permute_dims(g.A, (1, 0), copy=True),
    "swapaxes": lambda g: wl.sparse.swapaxes(g.A, 0, 1),
    "prune": lambda g: g.A.copy().prune(),
    "eliminate_zeros": lambda g: g.A.copy().eliminate_zeros(),
    "sort_indices": lambda g: g.unsorted.copy().sort_indices(),
    "sum_duplicates": lambda g: g.unsorted.copy().sum_duplicates(),
    "reshape": lambda g: g.A.reshape(-1, 2 * g.A.shape[1]),
    "setdiag": lambda g: g.A.copy().setdiag(3.0),
    "A[rows]": lambda g: g.A[g.rows],
    "A[:, columns]": lambda g: g.A[:, g.rows],
    "A[:, mask]": lambda g: g.A[:, g.mask],
    "A[:, a:b]": lambda g: g.A[:, 1000:200_000],
    "A[a:b]": lambda g: g.A[1000:200_000],
    "A[rows, columns]": lambda g: g.A[g.rows, g.rows],
    "A[i]": lambda g: g.A[7],
    "A[:, j]": lambda g: g.A[:, 7],
    "permute": lambda g: g.A.permute(g.order),
    "apply": lambda g: g.A.apply(g.x),
    "matvec": lambda g: g.A.matvec(g.x),
    "rmatvec": lambda g: g.A.rmatvec(g.x),
    "matmat": lambda g: g.A.matmat(g.x.reshape(-1, 1)),
    "rmatmat": lambda g: g.A.rmatmat(g.x.reshape(-1, 1)),
    "dot": lambda g: g.A.dot(g.x),
    "nanmax": lambda g: g.A.nanmax(axis=0),
    "nanmin": lambda g: g.A.nanmin(axis=1),
    "sort": lambda g: g.unsorted.copy().sort(),
    "without_duplicates": lambda g: g.unsorted.copy().without_duplicates(),
    "update_values": lambda g: g.B.update_values(g.B.data * 1.0),
    "asformat": lambda g: g.A.asformat("ell"),
    "tobsr": lambda g: g.A.tobsr(),
    "tocsr": lambda g: g.A.tocoo().tocsr(),
    "tocsc": lambda g: g.A.tocsc(),
    "tocoo": lambda g: g.A.tocoo(),
    "transpose": lambda g: g.A.transpose(),
    "astype": lambda g: g.A.astype(np.float32),
    "copy": lambda g: g.A.copy(),
    "integers: sum of columns": lambda g: g.integers.sum(0),
    "integers: +": lambda g: g.integers + g.integers,
    "integers: A[:, columns]": lambda g: g.integers[:, g.rows],
    "integers: transpose": lambda g: g.integers.transpose(),
}


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_no_data_of_the_matrix_crosses_the_bus(given: Given, moved: Moved, name: str) -> None:
    OPERATIONS[name](given)
    assert moved.bytes <= MOST


def test_copies_are_counted(on: wl.Executor, moved: Moved) -> None:
    array = on.from_host(np.zeros(1000))
    on.to_host(array)
    assert moved.bytes >= 16_000
