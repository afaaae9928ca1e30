"""Predict the kernel that a GPU would select for a matrix on the host, without the GPU."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....core.algorithm import Estimate
from ....core.devices import constants_of
from ....core.registry import host_executor
from ....core.statistics import RowStatistics, lengths_in_numbers
from ...simt import kernels as simt
from ..constants import SpmvConstants
from . import packed, selection
from .measured import Measurements
from .on_device import FoundRowPatterns

if TYPE_CHECKING:
    from ....core.formats.csr import Csr

#: The header of each algorithm's kernel, relative to the folder `backends`.
HEADERS = {
    "csr-adaptive": simt.csr_adaptive.header,
    "row-segments": simt.sell_packed.header,
    "row-segments-cached": "cuda/spmv/cached_columns.hpp",
    "sell": simt.sell_packed.header,
    "sell-near": simt.sell_packed.header,
    "sell-pattern": simt.sell_packed.header,
    "stream": simt.csr_stream.header,
    "subwarp": simt.csr_subwarp.header,
}

#: Lanes per wave, by the kind of the device.
WAVES = {"nvidia": 32, "amd": 64}


class Forecast(NamedTuple):
    """The predicted kernel for matrix-vector products on a device.

    Attributes
    ----------
    kernel : str
        The name of the algorithm.
    reason : str
        The reason, in one sentence.
    estimate : Estimate or None
        The expected cost of a product.
    statistics : RowStatistics
        Statistics of the rows.
    device : str
        The title of the file of constants that was used; an unknown device's if no file matches.
    bandwidth : str
        The name of the file with the bandwidth of the estimate: the device's, or a base.
    """

    kernel: str
    reason: str
    estimate: Estimate | None
    statistics: RowStatistics
    device: str
    bandwidth: str

    @property
    def header(self) -> str:
        """The header of the kernel, relative to the folder `backends`."""
        return HEADERS[self.kernel]

    def __str__(self) -> str:
        expected = ""
        if self.estimate is not None:
            expected = f"; {self.estimate} by the bandwidth of {self.bandwidth}.json"
        name = f"{self.kernel} ({self.header}) on {self.device}"
        return f"{name}: {self.reason}{expected} ({self.statistics})"


class OnHost(Measurements):
    """Measurements of a matrix on the host by NumPy, for an absent device."""

    def __init__(self, A: Csr, rules: SpmvConstants, warp: int, free_bytes: int) -> None:
        self.A, self.rules, self.warp, self.free_bytes = A, rules, warp, free_bytes
        self.cached = rules.shared_bytes // A.dtype.itemsize if warp == WAVES["nvidia"] else 0

    @cached_property
    def statistics(self) -> RowStatistics:
        """The statistics of the rows."""
        return lengths_in_numbers(self.A.indptr, self.A.shape[1])

    @cached_property
    def _offsets(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The columns of the entries, relative to the diagonal."""
        lengths = np.diff(self.A.indptr)
        rows = np.repeat(np.arange(lengths.size), lengths)
        result: np.ndarray[Any, np.dtype[np.int64]] = self.A.indices.astype(np.int64) - rows
        return result

    @cached_property
    def patterns(self) -> FoundRowPatterns:
        """The patterns of the rows, if a byte can number them."""
        indptr, offsets = self.A.indptr.astype(np.int64), self._offsets
        lengths, models = np.diff(indptr), []
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            of_rows = offsets[indptr[rows][:, None] + np.arange(length)]
            distinct = np.unique(of_rows, axis=0, return_index=True)[1] if length else [0]
            models.append(rows[distinct])
            if sum(map(len, models)) > selection.MOST_PATTERNS:
                return FoundRowPatterns(self.reach)
        model = np.concatenate(models)
        return FoundRowPatterns(self.reach, model=model)

    @cached_property
    def reach(self) -> int:
        """The largest distance of an entry from the diagonal."""
        return int(abs(self._offsets).max(initial=0))

    def paddings(self, enough: float) -> tuple[float, float]:
        """Return the padding of rows in order and, if it exceeds ``enough``, of sorted rows."""
        return packed.paddings(np, self.A.indptr, self.warp, enough)

    def shared_share(self) -> float:
        """Return the fraction of entries in the columns that shared memory holds."""
        count = np.sort(np.bincount(self.A.indices, minlength=self.A.shape[1]))
        return float(count[-self.cached :].sum() / max(self.A.nnz, 1))


def forecast(A: Csr, device: str, kind: str = "nvidia", free_bytes: int = 2**36) -> Forecast:
    """Return the kernel that a GPU would select for matrix-vector products.

    The GPU need not be present: the rule depends only on measurements of the matrix, which NumPy
    makes here, and on the constants of the device (``core/devices``).

    Parameters
    ----------
    A : Csr
        The matrix, on any executor.
    device : str
        The device's name as its driver reports it: ``"NVIDIA H100"``.
    kind : {"nvidia", "amd"}
        The kind of the device.
    free_bytes : int
        Free memory of the device in bytes.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> from wollemi.backends.gpu.spmv.forecast import forecast
    >>> print(forecast(wl.Csr(np.eye(1000)), "NVIDIA H100"))
    ... # doctest: +NORMALIZE_WHITESPACE
    subwarp (simt/spmv.hpp) on NVIDIA H100: small: 4 lanes a row end the longest row soon; about
    2.09 microseconds for 0.0305 MiB by the bandwidth of h200.json (1000 rows of 1 +- 0 entries,
    longest 1, 0.0% empty)
    """
    constants = constants_of(kind, device)
    here = OnHost(A.to(host_executor()), constants.of(SpmvConstants), WAVES[kind], free_bytes)
    kernel, reason = here.choice
    expected = here.estimate(kernel)
    bandwidth = constants.sections["spmv"]["bandwidth"].device
    return Forecast(kernel, reason, expected, here.statistics, constants.title, bandwidth)
