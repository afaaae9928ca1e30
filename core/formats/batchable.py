"""Constructors of formats that make batches from arrays with leading axes."""

from __future__ import annotations

from typing import Any

from ..libraries import batch_handler
from ..operator_type import OperatorType


class Batchable(OperatorType):
    """The metaclass of formats with batches: a call with leading axes makes a batch."""

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        """Make a matrix, or a batch if the first argument is one or has leading axes."""
        if arguments and may_be_batch(arguments[0]):
            batches = batch_handler()
            format: str = cls.format  # type: ignore[attr-defined]
            if batches.is_batch_of(format, arguments[0]):
                if len(arguments) > 1:
                    options["shape"] = arguments[1]
                return batches.made_of(format, arguments[0], **options)
        return super().__call__(*arguments, **options)


def may_be_batch(arg: Any) -> bool:
    """Return whether a constructor's argument may be a batch and needs a closer check."""
    if type(arg) is tuple:
        return len(arg) == 3
    return getattr(arg, "ndim", 0) > 2  # batches and tensors have leading axes too
