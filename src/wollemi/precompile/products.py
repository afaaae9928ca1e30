"""The most used kernels of products of sparse and dense matrices, and of attention.

The settings of such a kernel depend on the columns of the dense operands, on their memory layout
and on the row lengths. Therefore, the algorithms run here as on a GPU, but on a described device
that records the requested programs and launches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..backends.cuda.products import slab_attention as slabs
from ..backends.cuda.products import tile_attention as attention
from ..backends.cuda.products import tile_shapes
from ..backends.cuda.products.launches import source
from ..backends.gpu.device import Program
from ..backends.gpu.products import declarations as ml
from ..backends.gpu.products.csr import CupyAdapter
from ..backends.gpu.products.gradient_kernels import OF_ENTRIES, launch_gradients
from ..backends.gpu.table import algorithms
from ..backends.simt.operands import CODES
from ..backends.unified.wrappers import SimtKernel
from ..core.algorithm import Algorithm, Facts
from ..core.calls import FusedmmCall, GradientCall, SddmmCall, SpmmCall
from ..core.devices import named
from ..core.formats import Csr
from ..core.statistics import row_statistics
from .recording import NativeArray, Recorder
from .target import Target

#: Columns of dense operands to compile for: blocks of right-hand sides, features, heads.
COLUMNS = (2, 4, 8, 16, 32, 64, 128, 256)

#: Algorithms that the rule chooses, except for single rows and nearly dense rows.
ALGORITHMS = {
    "spmm": ("rb-sr", "eb-sr", "eb-pr", "row-split", "row-segments"),
    "sddmm": ("flat", "row-split", "row-segments"),
    "fusedmm": ("row-split", "row-segments"),
}

#: Codes of the 16-bit dtypes for attention by tiles and slabs.
SIXTEEN_BITS = ("f2", "b2")

INDEX = np.dtype(np.int32)


def product_programs(target: Target, dtype: str) -> Iterator[Program]:
    """Yield the programs of products with dense matrices for values of a dtype."""
    device = Noting(target)
    on = CupyAdapter(described(device))
    chosen = [
        (p, algorithm) for p, algorithm in algorithms if algorithm.name in ALGORITHMS.get(p, ())
    ]
    for A in matrices(dtype):
        statistics = row_statistics(A.executor, A.indptr, A.shape[1])
        for columns in COLUMNS:
            for product, algorithm in chosen:
                _run(on, product, algorithm, A, Facts(statistics, columns, dtype, INDEX))
    value = CODES[np.dtype(dtype)]
    for kernel in (ml.edge_rows, ml.edge_gradients):
        for edge in ("sigmoid", "softmax"):
            device.simt_function(kernel, value, CODES[INDEX], EDGE=ml.EDGES[edge])
    yield from device.noted.items()


def attention_programs(target: Target) -> Iterator[Program]:
    """Yield the programs of attention by tiles and slabs that PyTorch requests, and gradients."""
    by_tiles: tuple[tuple[Any, dict[str, int]], ...] = (
        (attention.tile_attention, {}),
        (attention.tile_row_gradients, {"KNOWN": 1}),
        (attention.tile_column_gradients, {}),
    )
    by_slabs = slabs.slab_attention, slabs.slab_row_gradients, slabs.slab_column_gradients
    for value in SIXTEEN_BITS:
        for kernel, asked in by_tiles:
            for width in tile_shapes.WIDTHS:
                tiled = attention.kernel_for(target, kernel, width)
                yield _attention_program(tiled.kernel, value, {**tiled.constants, **asked})
        for kernel in by_slabs:
            for width in slabs.WIDTHS:
                made = slabs.kernel_for(target, kernel, width)
                yield _attention_program(made.kernel, value, made.constants)


def _attention_program(kernel: SimtKernel, value: str, constants: dict[str, int]) -> Program:
    whole = {**constants, "WHOLE": 1}
    symbol = kernel.symbol(value, CODES[INDEX], **whole)
    return symbol, lambda: source(kernel, value, CODES[INDEX], **whole)


class Noting(Target):
    """A described GPU that records the requested programs.

    Attributes
    ----------
    noted : dict
        The functions that return the programs' texts, by name.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target.name)
        self._variants = {}
        self.noted: dict[str, Callable[[], str]] = {}

    def function(self, symbol: str, text: Callable[[], str]) -> Any:
        """Record a program; there is nothing to launch."""
        self.noted.setdefault(symbol, text)
        return symbol


def described(device: Noting) -> Any:
    """Return a stand-in for an executor of a described device, sufficient for products."""
    there = np.zeros(1)
    return SimpleNamespace(
        device=device,
        xp=np,
        constants=named("unknown-nvidia"),
        scratch=lambda nbytes: (there.ctypes.data, there.ctypes.data),
        planned=lambda size, make, *arrays, **options: _native(make(np, *arrays, **options)),
        launch=lambda *operands: None,
    )


def _native(value: Any) -> Any:
    """Return NumPy arrays, single or in a named tuple, as arrays with an address."""
    if isinstance(value, tuple):
        return type(value)(*map(_native, value))
    return value.view(NativeArray) if isinstance(value, np.ndarray) else value


def matrices(dtype: str) -> Iterator[Csr]:
    """Yield a matrix with few rows, and one that fills a GPU and has a row that must be cut."""
    executor = Recorder()
    for rows in (64, 20_000):
        lengths = np.full(rows, 8)
        lengths[0] = min(rows, 4_000)
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(INDEX)
        indices = np.concatenate([np.arange(count) for count in lengths]).astype(INDEX)
        arrays = (np.ones(indices.size, dtype), indices, indptr)
        yield Csr._from_arrays(executor, (rows, rows), *map(executor.from_host, arrays))


def _run(on: CupyAdapter, product: str, algorithm: Algorithm, A: Csr, facts: Facts) -> None:
    state = algorithm.prepare(on, A, facts)

    def dense() -> Any:
        return A.executor.allocate((1, A.shape[0], facts.columns), facts.dtype)

    if product == "spmm":
        algorithm.run(on, state, SpmmCall(A, A.data[None], dense(), dense(), 1.0, 0.0))
        return
    C, B, D = dense(), dense(), dense()
    if product == "sddmm":
        sampled = A.executor.allocate((1, A.nnz), facts.dtype)
        algorithm.run(on, state, SddmmCall(A, None, C, B, sampled, 1.0, 0.0))
        return
    for edge in ml.EDGES:
        for sources in (B, D):
            call = FusedmmCall(A, None, C, B, sources, dense(), None, 1.0, edge)
            algorithm.run(on, state, call)
    G, E, *asked = (dense() for _ in range(5))
    of_C, of_B, of_D = asked
    log_totals = A.executor.allocate((1, A.shape[0]), facts.dtype)
    pattern = A.indptr, A.indices
    gradients = GradientCall(
        A, None, C, B, D, G, E, log_totals, None, of_C, of_B, of_D, 1.0, "softmax"
    )
    launch_gradients(on, OF_ENTRIES, pattern, lambda: pattern, gradients)
