"""Products inside programs that XLA compiled: native handlers, and patterns bound to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.executor import Array, Executor
from ...core.foreign import WHOLE_ROWS, ForeignProduct, Handlers
from .level import native
from .products import Partitioned, partition_of


def handlers(on: Executor) -> Handlers:
    """Return the handlers for XLA's foreign function interface."""
    functions: dict[str, Mapping[str, object]] = {}
    return Handlers(functions, native().ffi_handlers(on, functions))


def bind(
    on: Executor,
    product: str,
    A: Any,
    columns: int,
    dtype: Any,
    kernel: str,
    order: Array | None,
) -> ForeignProduct:
    """Return a pattern bound to its plan; see :meth:`wollemi.Executor.foreign_product`."""
    if product == WHOLE_ROWS:
        state = Partitioned(partition_of(on, A, "even"), "columns")
    else:
        state = A.plan_for(product, columns, kernel, dtype).state
    return ForeignProduct(*native().ffi_pattern(on, A, order, state.partition, state.lanes))
