"""The operator of the Lanczos process for a pencil: inverses and shifted operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.operations import vector

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.linop import LinOp
    from .pencil import Pencil

Numbers = np.ndarray[Any, Any]


class Transformed:
    """The operator of the process: its product, its inner product, and the way back.

    Parameters
    ----------
    pencil : Pencil
        The scaled operators.
    sigma : float or None
        The shift, in the units of the pencil.
    mode : {"normal", "buckling", "cayley"}
        The transformation.
    inverse : LinOp or None
        The inverse of ``A - sigma B``, or of ``B`` without ``sigma``.
    """

    def __init__(
        self, pencil: Pencil, sigma: float | None, mode: str, inverse: LinOp | None
    ) -> None:
        self.pencil, self.executor = pencil, pencil.executor
        self.A, self.B = pencil.A, pencil.B
        self.sigma, self.mode, self.inverse = sigma, mode, inverse
        self.between = self.executor.zeros((self.A.local_rows, 1), pencil.dtype)
        #: The operator of the inner product; None for the Euclidean one.
        self.inner: LinOp | None = self.A if mode == "buckling" else self.B
        self.rescaled = mode == "buckling"

    def apply(self, x: Array, Bx: Array, y: Array) -> None:
        """Set ``y`` to the operator times ``x``; ``Bx`` is ``inner`` times ``x``."""
        if self.inverse is None:
            self.A._apply(x, y, 1.0, 0.0)
            return
        if self.sigma is None:
            self.A._apply(x, self.between, 1.0, 0.0)
            self.inverse._apply(self.between, y, 1.0, 0.0)
            return
        if self.mode == "cayley":
            self.executor.run(vector.axpby, Bx, self.between, self.sigma, 0.0)
            self.A._apply(x, self.between, 1.0, 1.0)
            self.inverse._apply(self.between, y, 1.0, 0.0)
            return
        self.inverse._apply(Bx, y, 1.0, 0.0)

    def purified(self, X: Array, values: Numbers) -> Array:
        """Return ``(lambda - sigma) (A - sigma B)^-1 B x`` of Ritz vectors.

        This reduces rounding errors: their components along eigenvectors far from the shift (T.
        Ericsson and A. Ruhe). The transformations "cayley" and "buckling" map all far eigenvalues
        near 1, so that their own operators do not reduce these components.

        Parameters
        ----------
        X : array, shape (n, k)
            Ritz vectors.
        values : array, shape (k,)
            Their eigenvalues of the pencil. A vector with the eigenvalue ``sigma`` is not changed.
        """
        assert self.inverse is not None
        assert self.sigma is not None
        made = self.executor.copy(X)
        for c, value in enumerate(values):
            factor = float(value) - self.sigma
            if factor == 0:
                continue
            x, y, Bx = (self.executor.zeros((int(X.shape[0]), 1), X.dtype) for _ in range(3))
            self.executor.run(vector.axpby, X[:, c : c + 1], x, 1.0, 0.0)
            if self.B is None:
                Bx = x
            else:
                self.B._apply(x, Bx, 1.0, 0.0)
            self.inverse._apply(Bx, y, 1.0, 0.0)
            self.executor.run(vector.axpby, y, made[:, c : c + 1], factor, 0.0)
        return made

    def applied(self, X: Array, values: Numbers) -> Array:
        """Return the operator times Ritz vectors, divided by their values, none of which is 0.

        For "cayley" and "buckling", this reduces components along eigenvectors with values near 0,
        which are eigenvalues of the pencil near ``-sigma`` or 0.
        """
        made = self.executor.copy(X)
        for c, value in enumerate(values):
            x, y, Bx = (self.executor.zeros((int(X.shape[0]), 1), X.dtype) for _ in range(3))
            self.executor.run(vector.axpby, X[:, c : c + 1], x, 1.0, 0.0)
            if self.inner is None:
                Bx = x
            else:
                self.inner._apply(x, Bx, 1.0, 0.0)
            self.apply(x, Bx, y)
            self.executor.run(vector.axpby, y, made[:, c : c + 1], 1.0 / float(value), 0.0)
        return made

    def original(self, values: Numbers) -> Numbers:
        """Return eigenvalues of the pencil for eigenvalues of the operator."""
        sigma, mode = self.sigma, self.mode
        if sigma is None:
            return values.copy()
        with np.errstate(divide="ignore", invalid="ignore"):
            if mode == "buckling":
                return np.asarray(sigma * values / (values - 1))
            if mode == "cayley":
                return np.asarray(sigma * (values + 1) / (values - 1))
            return np.asarray(sigma + 1 / values)
