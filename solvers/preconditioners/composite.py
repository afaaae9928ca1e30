"""Combinations of preconditioners: multiplicative or additive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.deprecation import OldOptions
from ...core.errors import InvalidArgument
from ...core.formats import Matrix
from ...core.lazy import Temporary
from ...core.linop import LinOp
from ...core.operations import vector
from ...core.settings import Configurable, Settings, settings_of
from ..driver.as_preconditioner import as_preconditioner
from .base import Preconditioner, Transposable, savepoint
from .names import preconditioner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from ...core.executor import Array, Executor


class _OfParts(Configurable):
    """Metaclass of classes that are called with preconditioners, ``Multiplicative("ilu", M)``."""

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        """Return settings for names and settings, or an instance for the matrix of a built step."""
        if arguments and all(_is_part(part) for part in arguments) and "A" not in options:
            made = [part for part in arguments if isinstance(part, Preconditioner)]
            options["steps"] = list(arguments)
            if not made:
                return Settings(cls, options)
            arguments = (made[0]._matrix,)
        return super().__call__(*arguments, **options)


def _is_part(part: Any) -> bool:
    return isinstance(part, (str, Settings, Preconditioner))


class _Composite(Transposable, metaclass=_OfParts):
    """Base of compositions: steps that are built from one matrix, and updated with it."""

    parts = ("matrix",)

    matrix: Matrix
    steps: list[LinOp]
    _refreshed: object = None

    def __init__(
        self, A: Any, steps: Sequence[Any] = (), *, executor: Executor | str | None = None
    ) -> None:
        if isinstance(steps, str) or not isinstance(steps, (list, tuple)) or not steps:
            raise InvalidArgument(
                f"steps: expected a list of preconditioners, names or settings, got {steps!r}"
            )
        self._requested_steps = list(steps)
        super().__init__(A, executor=executor)

    def _setup(self, A: Matrix) -> None:
        made = (preconditioner(step, A) for step in self._requested_steps)
        self.matrix = A
        self.steps = [
            as_preconditioner(step, A).astype(A.dtype) for step in made if step is not None
        ]
        self._temporaries = Temporary(), Temporary()
        self._collect_notes()

    def _refresh(self, A: Matrix) -> None:
        """Update every step that can be updated."""
        restore = savepoint(self.steps, A)
        try:
            for step in self.steps:
                follow = getattr(step, "update", None)
                if follow is not None:
                    follow(A)
            self.matrix = A
            self._require_finite()
        except BaseException:  # also Ctrl-C: steps of two matrices do not match
            restore()
            raise
        self._refreshed = object()  # loops with constants of a step are recorded again
        self._collect_notes()

    def _collect_notes(self) -> None:
        for step in self.steps:
            self.notes += getattr(step, "notes", [])

    @property
    def settings(self) -> Settings:
        """The class and the steps, by their own settings."""
        steps = [
            settings_of(s) if isinstance(s, Preconditioner) else s for s in self._requested_steps
        ]
        return Settings(type(self), {**self._options, "steps": steps})

    def _operators(self) -> list[LinOp]:
        return [self.matrix, *self.steps]

    def _remade(self, change: Callable[[LinOp], LinOp]) -> Self:
        result = super()._remade(change)
        result.steps = [change(step) for step in self.steps]
        result._temporaries = Temporary(), Temporary()
        return result


class Multiplicative(_Composite):
    """Preconditioners in sequence, each applied to the residual of the earlier ones.

    ``Multiplicative(M1, M2)`` applies ``M1 + M2 - M2 A M1``. With ``symmetric=True``, the adjoint
    of ``M1`` is applied again at the end, so that Hermitian steps give a Hermitian preconditioner.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Any square matrix; optional if all steps are names or settings, or if a step was built from
        a matrix.
    steps : list of str, Settings, Preconditioner or LinOp
        The steps in order. Names and settings are built from ``A``.
    symmetric : bool
        Whether the steps before the last one are repeated in reverse order.

    Raises
    ------
    InvalidArgument
        If there are no steps.

    Notes
    -----
    An application takes a product with ``A`` for every step but the first. If a solver is among the
    steps, applications vary: use :class:`Fcg` or another flexible method.

    References
    ----------
    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., SIAM 2003, section 14.3.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> from wollemi.preconditioners import Multiplicative
    >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> M = Multiplicative("jacobi", "ilu")
    >>> wl.solvers.Gmres(A, M=M, rtol=1e-10).solve(np.ones(2)).iterations
    1
    """

    old_options = OldOptions(
        since="0.3",
        removal="0.5",
        positions=("symmetric",),
        positional=2,
    )

    def __init__(
        self,
        A: Any,
        steps: Sequence[Any] = (),
        *,
        symmetric: bool = False,
        executor: Executor | str | None = None,
    ) -> None:
        self.symmetric = bool(symmetric)
        super().__init__(A, steps, executor=executor)

    @property
    def _all(self) -> list[LinOp]:
        return [*self.steps, *self._again]

    def _setup(self, A: Matrix) -> None:
        super()._setup(A)
        self._repeat()

    def _refresh(self, A: Matrix) -> None:
        super()._refresh(A)
        self._repeat()

    def _repeat(self) -> None:
        """Build the adjoints of the repeated steps."""
        self._again = [step.H for step in self.steps[-2::-1]] if self.symmetric else []
        self._known = _updates_of(self.steps)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self._follow_steps()
        (n, k), run = x.shape, self.executor.run
        first, second = self._temporaries
        with (
            first.block(self.executor, n, k, self.dtype) as z,
            second.block(self.executor, n, k, self.dtype) as r,
        ):
            for at, step in enumerate(self._all):
                if at == 0:
                    step._apply(x, z, 1.0, 0.0)
                    continue
                run(vector.axpby, x, r, 1.0, 0.0)
                self.matrix._apply(z, r, -1.0, 1.0)
                step._apply(r, z, 1.0, 1.0)
            run(vector.axpby, z, y, alpha, beta)

    @property
    def _rebuilds(self) -> int:  # type: ignore[override]
        # adjoints of steps may be copies that no update of a step reaches
        return super()._rebuilds + (_updates_of(self.steps) if self.symmetric else 0)

    def _remade(self, change: Callable[[LinOp], LinOp]) -> Self:
        self._follow_steps()
        result = super()._remade(change)
        result._again = [change(step) for step in self._again]
        result._known = _updates_of(result.steps)
        return result

    def _follow_steps(self) -> None:
        """Rebuild the adjoints if a step was updated by its owner."""
        known = _updates_of(self.steps)
        if self.symmetric and self._again and self._known != known:
            self._again, self._known = [step.H for step in self.steps[-2::-1]], known

    def _turned(self, turn: Callable[[LinOp], LinOp]) -> Self:
        result = self._remade(turn)
        steps = [*result.steps, *result._again][::-1]
        result.steps, result._again, result.symmetric = steps, [], False
        return result


class Additive(_Composite):
    """The sum of preconditioners, each applied to the whole residual.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Any square matrix; optional if all steps are names or settings, or if a step was built from
        a matrix.
    steps : list of str, Settings, Preconditioner or LinOp
        The summands.

    Raises
    ------
    InvalidArgument
        If there are no steps.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> M = wl.preconditioners.Additive(wl.Csr(np.diag([2.0, 4.0])), ["jacobi", "jacobi"])
    >>> M @ np.ones(2)
    array([1. , 0.5])
    """

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        for step in self.steps:
            step._apply(x, y, alpha, beta)
            beta = 1.0


def _updates_of(steps: list[LinOp]) -> int:
    return sum(getattr(step, "_updates", 0) for step in steps)
