"""Conversions of batches between formats."""

from __future__ import annotations

from ..errors import UnsupportedOperation
from ..formats.dense import Dense
from .dense import BatchDense
from .ell import padded
from .matrix import BatchMatrix

#: The formats with a batched class.
BATCHED = ("csr", "ell", "dense")


def converted(batch: BatchMatrix, format: str) -> BatchMatrix:
    """Return a batch in another format; itself if it has that format.

    Raises
    ------
    UnsupportedOperation
        If the format has no batched class.
    """
    if format not in BATCHED:
        raise UnsupportedOperation(
            f"{format} has no batches (have: {', '.join(BATCHED)}): A[k].asformat({format!r}) "
            "converts one matrix"
        )
    if format == batch.format:
        return batch
    if format == "csr":
        return batch.tocsr()
    if format == "ell":
        return padded(batch.tocsr())
    on = batch.executor
    one = Dense._from_arrays(on, batch.shape, on.zeros(batch.shape, batch.dtype))
    values = on.from_host(batch.to_dense().reshape(batch.count, *batch.shape))
    return BatchDense._from_values(one, batch.batch_shape, values, follows=batch._follows)
