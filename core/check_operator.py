"""Consistency checks of an operator's methods, for tests of user-defined operator classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import is_complex, real_dtype
from .errors import InvalidArgument, UnsupportedOperation
from .linop import LinOp

#: Columns of the test blocks.
_COLUMNS = 3

#: For each dtype, the dtype of the test of ``astype``.
_CAST = {
    "float64": "float32",
    "float32": "float64",
    "complex128": "complex64",
    "complex64": "complex128",
}


def check_operator(A: LinOp, *, rtol: float | None = None) -> list[str]:
    """Check that the methods of an operator agree with each other; raise an error otherwise.

    The operator is applied to random blocks: with factors, with an output that contains NaN, column
    by column, to sums, and with strides between rows; it must not change them. Inner products
    compare the transposes with the operator, ``<y, A x> = <A.H y, x>``; a product checks
    ``astype``.

    Parameters
    ----------
    A : LinOp
        An operator of your own class.
    rtol : float, optional
        Allowed difference relative to the norms; by default 1,000 units of rounding.

    Returns
    -------
    list of str
        The methods that were checked: ``"apply_block"``, ``"T"``, ``"H"``, ``"astype"``. A method
        that raises UnsupportedOperation is left out.

    Raises
    ------
    InvalidArgument
        If two results differ; the message names the method and gives both results.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> from wollemi.extend import check_operator
    >>> check_operator(wl.Csr(np.array([[2.0, 0.0], [1.0, 3.0]])))
    ['apply_block', 'T', 'H', 'astype']
    """
    check = _Comparison(A, rtol)
    result = ["apply_block"]
    check.products()
    steps: dict[str, Callable[[], None]] = {
        "T": lambda: check.transpose("T"),
        "H": lambda: check.transpose("H"),
        "astype": check.cast,
    }
    for name, step in steps.items():
        try:
            step()
        except (UnsupportedOperation, NotImplementedError):
            continue
        result.append(name)
    return result


def fault_of_products(A: LinOp, rtol: float) -> str | None:
    """Return the message on the first product of an operator that is wrong; None if none is.

    Parameters
    ----------
    A : LinOp
        An operator of the user's own class.
    rtol : float
        Allowed difference relative to the norms.
    """
    try:
        with np.errstate(all="ignore"):
            _Comparison(A, rtol).products()
    except InvalidArgument as error:
        return str(error)
    except Exception:  # of the user's code: a class that takes no blocks, for example
        return None
    return None


class _Comparison:
    """The random operands, and the products to compare."""

    def __init__(self, A: LinOp, rtol: float | None) -> None:
        self.A, self.name = A, type(A).__name__
        self.rtol = 1000 * float(np.finfo(real_dtype(A.dtype)).eps) if rtol is None else rtol
        self.random = np.random.default_rng(7)
        self.x = self.block(A.shape[1])
        self.expected = self.product(A, self.x)

    def block(self, rows: int) -> Any:
        """Return random numbers of the operator's dtype."""
        made = self.random.standard_normal((rows, _COLUMNS))
        if is_complex(self.A.dtype):
            made = made + 1j * self.random.standard_normal((rows, _COLUMNS))
        return made.astype(self.A.dtype)

    def product(
        self, A: LinOp, x: Any, y: Any = None, alpha: complex = 1.0, beta: complex = 0.0
    ) -> Any:
        """Return ``alpha A x + beta y``; without ``y`` the output begins with NaN."""
        executor = A.executor
        if y is None:
            y = np.full((A.shape[0], x.shape[1]), np.nan, A.dtype)
        result, operand = executor.from_host(y.copy()), executor.from_host(x.copy())
        A._apply(operand, result, alpha, beta)
        if not np.array_equal(executor.to_host(operand), x, equal_nan=True):
            raise InvalidArgument(
                f"{self.name}: a product changed its operand x; solvers use x again after a "
                "product, so compute in a copy of it"
            )
        return executor.to_host(result).copy()

    def compare(self, got: Any, expected: Any, what: str, rtol: float | None = None) -> None:
        """Raise an error if two results differ."""
        scale = max(float(np.linalg.norm(expected)), float(np.linalg.norm(self.expected)))
        difference = float(np.linalg.norm(got - expected))
        if not difference <= (rtol or self.rtol) * (scale or 1.0):
            raise InvalidArgument(
                f"{self.name}: {what}: the results differ by {difference:.3g} of {scale:.3g}"
            )

    def products(self) -> None:
        """Compare products with each other."""
        A, x, expected = self.A, self.x, self.expected
        if not np.isfinite(expected).all():
            raise InvalidArgument(
                f"{self.name}.apply_block: the result is not finite: with beta = 0 it must "
                "overwrite y and not read it"
            )
        y = self.block(A.shape[0])
        of_factors = self.product(A, x, y, 2.0, -0.5)
        told = "apply_block(x, y, 2, -0.5) is not 2 A x - 0.5 y"
        self.compare(of_factors, 2.0 * expected - 0.5 * y, told)
        single = np.hstack([self.product(A, np.ascontiguousarray(x[:, [c]])) for c in range(3)])
        self.compare(single, expected, "apply_block of one column is not that column of a block")
        other = self.block(A.shape[1])
        together = self.product(A, x + 2 * other)
        if not A.varies:
            parts = expected + 2 * self.product(A, other)
            self.compare(together, parts, "A (x + 2 z) is not A x + 2 A z")
        wide = np.hstack([x, x])[:, :_COLUMNS]
        self.compare(self.product(A, wide), expected, "apply_block of rows with gaps between them")

    def transpose(self, name: str) -> None:
        """Compare a transpose with the operator by inner products."""
        A, x = self.A, self.x
        turned: LinOp = getattr(A, name)
        if turned.shape != A.shape[::-1]:
            raise InvalidArgument(
                f"{self.name}.{name}: expected shape {A.shape[::-1]}, got {turned.shape}"
            )
        y = self.block(A.shape[0])
        left = y.conj() if name == "H" else y
        back = self.product(turned, y)
        told = f"{name}: <y, A x> is not <A.{name} y, x>"
        self.compare((back.conj() if name == "H" else back).T @ x, left.T @ self.expected, told)

    def cast(self) -> None:
        """Compare the operator with the same operator in another dtype."""
        wanted = np.dtype(_CAST[self.A.dtype.name])
        cast = self.A.astype(wanted)
        if cast.dtype != wanted:
            raise InvalidArgument(
                f"{self.name}.astype({wanted}): expected that dtype, got {cast.dtype}"
            )
        single = 1000 * float(np.finfo(np.float32).eps)
        got = self.product(cast, self.x.astype(wanted))
        self.compare(got, self.expected, f"astype({wanted}) is another operator", single)
