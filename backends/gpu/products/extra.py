"""Algorithms that not every GPU has, and how a backend adds them to those of all.

The algorithms of ``choice.KERNELS`` are kernels of this folder's text and run on every GPU. What
needs one vendor's hardware (tensor cores, much shared memory) or library is an :class:`Algorithm`:
an object of a module of that backend, which its ``Adapter.extra`` lists. Then

- ``kernel="its name"`` runs it, and on a backend that does not list it raises the error that names
  what there is;
- ``kernel="auto"`` asks those listed in their order for a :meth:`~Algorithm.reason`; the first that
  has one, and finds no :meth:`~Algorithm.defect`, is chosen, and what it said is the plan's. If
  none has, the rule of all GPUs chooses;
- :meth:`~Algorithm.plan` makes what the plan keeps as its state. Plans are kept with the pattern,
  which matrices with other values share, one for each operation, number of columns, dtype and
  name: a state holds nothing of the values;
- :meth:`~Algorithm.run` gets the arguments of the operation, and must be right for all of them:
  batches, rows any distance apart, any alpha and beta.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ....core.dtypes import ML_DTYPES
from ....core.statistics import RowStatistics

if TYPE_CHECKING:
    from .calls import Adapter


class Facts(NamedTuple):
    """What is known of a product before its operands are.

    Attributes
    ----------
    statistics : RowStatistics
        Of the rows of the sparse matrix.
    columns : int
        Of the dense operand: of ``B`` for spmm, of ``C`` for the others.
    dtype : str
        Of values and dense operands, ``"float32"``.
    index_dtype : dtype
        Of the pattern.
    """

    statistics: RowStatistics
    columns: int
    dtype: str
    index_dtype: np.dtype[Any]

    @property
    def itemsize(self) -> int:
        """Bytes of an element of the dense operands."""
        return 2 if self.dtype in ML_DTYPES else np.dtype(self.dtype).itemsize

    @property
    def density(self) -> float:
        """Entries over places."""
        s = self.statistics
        return s.nnz / max(s.rows * s.columns, 1)


class Algorithm(ABC):
    """An algorithm for an operation that only some backends have."""

    #: What ``kernel=`` calls it.
    name: ClassVar[str]
    #: Whether all that it does is to launch kernels: on its operands, on what the pattern keeps and
    #: on scratch memory. Then launches for operands of one layout may be repeated for others.
    repeats: ClassVar[bool] = False

    @abstractmethod
    def objection(self, to: Adapter, A: Any, facts: Facts) -> str | None:
        """Return why it cannot run here, for an error message that begins with its name."""

    @abstractmethod
    def reason(self, to: Adapter, A: Any, facts: Facts) -> str | None:
        """Return why the rule should choose it, or None; asked where there is no objection."""

    def defect(self, to: Adapter, A: Any) -> str | None:
        """Return what is wrong with the pattern where only all entries tell: it is asked last."""
        return None

    def chosen(self, to: Adapter, A: Any, facts: Facts) -> str | None:
        """Return why the rule takes it: the reason, if nothing speaks against it; else None."""
        if self.objection(to, A, facts):
            return None
        reason = self.reason(to, A, facts)
        return None if reason and self.defect(to, A) else reason

    @abstractmethod
    def plan(self, to: Adapter, A: Any, facts: Facts) -> Any:
        """Return what is made once for a pattern."""

    @abstractmethod
    def run(self, to: Adapter, A: Any, state: Any, *arguments: Any) -> None:
        """Run it.

        Parameters
        ----------
        to : Adapter
            The device.
        A : Csr
            The pattern; its values are the first of ``arguments``.
        state : object
            What :meth:`plan` returned.
        *arguments
            Those of the operation after ``A`` and without ``kernel``.
        """
