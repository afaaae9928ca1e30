"""The constructor that formats share: it accepts any matrix, or arrays of the format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import validate
from .base import Matrix
from .given import converted, homeless

if TYPE_CHECKING:
    from ..executor import Executor


class Constructed(Matrix):
    """A format that can be constructed from any matrix, or from its own arrays."""

    def __init__(
        self,
        arg: Any,
        shape: tuple[int, int] | None = None,
        *,
        dtype: Any = None,
        executor: Executor | str | None = None,
        copy: bool | None = None,
    ) -> None:
        self._construct(arg, shape, dtype, executor, copy)

    def _construct(
        self, arg: Any, shape: Any, dtype: Any, executor: Any, copy: bool | None, **options: Any
    ) -> None:
        """Initialize from the arguments of a constructor; options belong to the format."""
        arg = validate.as_numbers(arg, dtype)
        made = self._of_arrays(arg, shape, executor, copy is not False)
        if made is None:
            made = converted(arg, self.format, shape, executor, copy=copy, **options)
        elif dtype is None:
            self._take_over(made, homeless(executor, arg))
            return
        if dtype is not None:
            made = made.astype(dtype)
        self._become(made, homeless(executor, arg))

    @staticmethod
    def _of_arrays(arg: Any, shape: Any, executor: Any, copy: bool) -> Matrix | None:
        """Return a matrix of checked arrays in this format; None for other arguments."""
        return None
