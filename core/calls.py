"""Calls of products: one immutable record for each product; its fields name the operands.

A public function makes the record, an :class:`~wollemi.core.algorithm.Algorithm` reads it, and the
launch takes its operands from the fields. The operations declare the same operands, so that
:mod:`.call_kernels` can convert between records and arguments.

The records are named tuples: they are immutable and have no instance dictionary, and creating one
is several times as fast as creating a frozen data class. For small products the difference matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from .executor import Array
    from .formats import Csr
    from .formats.compressed import CompressedRows
    from .formats.mask import Mask

#: The type of the pattern of a call: a matrix, or a mask of intervals.
PatternT = TypeVar("PatternT", bound="Csr | Mask")


def _has_elements(E: Array, log_totals: Array | None) -> bool:
    return bool(E.size > 0 or (log_totals is not None and log_totals.size > 0))


class SpmvCall(NamedTuple):
    """``y = alpha A x + beta y``; with ``beta == 0`` the call does not read ``y``.

    Attributes
    ----------
    A : Csr, shape (m, n)
        The matrix.
    x : array, shape (n, k)
        One vector or several.
    y : array, shape (m, k)
        The output.
    alpha, beta : scalar
        Factors.
    """

    A: CompressedRows
    x: Array
    y: Array
    alpha: complex
    beta: complex


class SpmmCall(NamedTuple):
    """``C = alpha A B + beta C``; ``values`` are the entries of ``A``.

    Attributes
    ----------
    A : Csr, shape (m, n)
        The pattern.
    values : array, shape (b, nnz)
        Entries of the pattern, for each matrix of the batch.
    B : array, shape (b, n, k)
        The dense operand.
    C : array, shape (b, m, k)
        The output; with ``beta == 0`` the call does not read it.
    alpha, beta : scalar
        Factors.
    kernel : str
        The name of an algorithm, or ``"auto"``.
    """

    A: Csr
    values: Array
    B: Array
    C: Array
    alpha: complex
    beta: complex
    kernel: str = "auto"

    @property
    def product(self) -> str:
        """The name of the product in ``A.plan_for``."""
        return "spmm"

    @property
    def dense(self) -> Array:
        """The operand that determines the columns and the dtype of the plan."""
        return self.B

    @property
    def arrays(self) -> tuple[Array | None, ...]:
        """The arrays that change from call to call."""
        return self.values, self.B, self.C

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The arrays that the call overwrites."""
        return (self.C,)

    @property
    def has_output(self) -> bool:
        """Whether an output has elements."""
        return bool(self.C.size > 0)

    @property
    def factors(self) -> tuple[complex | str, ...]:
        """The scalars that the launch depends on."""
        return self.alpha, self.beta


class SddmmCall(NamedTuple):
    """``S_ij = alpha <C_i, B_j> values_ij + beta S_ij`` on the pattern of ``A``.

    Attributes
    ----------
    A : Csr, shape (m, n)
        The pattern.
    values : array, shape (b, nnz), or None
        Factors of the entries; None for 1.
    C : array, shape (b, m, k)
        The operand of the rows.
    B : array, shape (b, n, k)
        The operand of the columns.
    S : array, shape (b, nnz)
        The output; with ``beta == 0`` the call does not read it.
    alpha, beta : float
        Factors.
    kernel : str
        The name of an algorithm, or ``"auto"``.
    """

    A: Csr
    values: Array | None
    C: Array
    B: Array
    S: Array
    alpha: float
    beta: float
    kernel: str = "auto"

    @property
    def product(self) -> str:
        """The name of the product in ``A.plan_for``."""
        return "sddmm"

    @property
    def dense(self) -> Array:
        """The operand that determines the columns and the dtype of the plan."""
        return self.C

    @property
    def arrays(self) -> tuple[Array | None, ...]:
        """The arrays that change from call to call."""
        return self.values, self.C, self.B, self.S

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The arrays that the call overwrites."""
        return (self.S,)

    @property
    def has_output(self) -> bool:
        """Whether an output has elements."""
        return bool(self.S.size > 0)

    @property
    def factors(self) -> tuple[complex | str, ...]:
        """The scalars that the launch depends on."""
        return self.alpha, self.beta


class FusedmmCall(NamedTuple, Generic[PatternT]):
    """``E_i = sum_j f(alpha <C_i, B_j> values_ij) D_j`` over the pattern of ``A``.

    Attributes
    ----------
    A : Csr or Mask, shape (m, n)
        The pattern.
    values : array, shape (b, nnz), or None
        Factors of the entries; None for 1, and for a mask.
    C : array, shape (b, m, k)
        The operand of the rows (queries).
    B : array, shape (b, n, k)
        The operand of the columns (keys).
    D : array, shape (b, n, p)
        The rows that are summed.
    E : array, shape (b, m, p)
        The output.
    log_totals : array, shape (b, m), or None
        Second output of softmax: the logarithm of the sum of exponentials of each row.
    alpha : float
        Factor of the scores.
    edge : {"identity", "sigmoid", "softmax"}
        The function f.
    kernel : str
        The name of an algorithm, or ``"auto"``.
    """

    A: PatternT
    values: Array | None
    C: Array
    B: Array
    D: Array
    E: Array
    log_totals: Array | None
    alpha: float
    edge: str
    kernel: str = "auto"

    @property
    def product(self) -> str:
        """The name of the product in ``A.plan_for``."""
        return "fusedmm"

    @property
    def dense(self) -> Array:
        """The operand that determines the columns and the dtype of the plan."""
        return self.C

    @property
    def arrays(self) -> tuple[Array | None, ...]:
        """The arrays that change from call to call."""
        return self.values, self.C, self.B, self.D, self.E, self.log_totals

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The arrays that the call overwrites."""
        return (self.E,) if self.log_totals is None else (self.E, self.log_totals)

    @property
    def has_output(self) -> bool:
        """Whether an output has elements."""
        return _has_elements(self.E, self.log_totals)

    @property
    def factors(self) -> tuple[complex | str, ...]:
        """The scalars that the launch depends on."""
        return self.alpha, self.edge


class TracedCall(NamedTuple, Generic[PatternT]):
    """``E_i = sum_j f(alpha <C_i, B_j> values_ij) D_j`` with a user-defined function f.

    Attributes
    ----------
    A, values, C, B, D : Csr or Mask, and arrays
        As in :class:`FusedmmCall`.
    of_rows, of_columns, of_entries : array, shape (b, r, m), (b, c, n), (b, e, nnz), or None
        Inputs of the function, in the dtype of the sums.
    E, log_totals : array, shape (b, m, p) and (b, m)
        The outputs; ``log_totals`` is None if it was not requested.
    alpha : float
        Factor of the scores.
    function : str
        Text of the traced program of the function.
    kernel : str
        The name of an algorithm, or ``"auto"``.
    """

    A: PatternT
    values: Array | None
    C: Array
    B: Array
    D: Array
    of_rows: Array | None
    of_columns: Array | None
    of_entries: Array | None
    E: Array
    log_totals: Array | None
    alpha: float
    function: str
    kernel: str = "auto"

    @property
    def dense(self) -> Array:
        """The operand that determines the columns and the dtype of the plan."""
        return self.C

    @property
    def inputs(self) -> tuple[Array | None, Array | None, Array | None]:
        """The inputs of the function."""
        return self.of_rows, self.of_columns, self.of_entries

    @property
    def arrays(self) -> tuple[Array | None, ...]:
        """The arrays that change from call to call."""
        return self.values, self.C, self.B, self.D, *self.inputs, self.E, self.log_totals

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The arrays that the call overwrites."""
        return (self.E,) if self.log_totals is None else (self.E, self.log_totals)

    @property
    def has_output(self) -> bool:
        """Whether an output has elements."""
        return _has_elements(self.E, self.log_totals)

    @property
    def factors(self) -> tuple[complex | str, ...]:
        """The values that the launch depends on."""
        return self.alpha, self.function


class GradientCall(NamedTuple, Generic[PatternT]):
    """The gradients of ``<G, E>`` with respect to the operands of the call that computed ``E``.

    Attributes
    ----------
    A : Csr or Mask, shape (m, n)
        The pattern.
    values, C, B, D : array
        The operands of that :class:`FusedmmCall`.
    G : array, shape (b, m, p)
        The gradient of ``E``.
    E, log_totals : array or None
        The outputs of the softmax call; None if they are not known.
    of_values, of_C, of_B, of_D : array or None
        The outputs: gradients of values, ``C``, ``B`` and ``D``; None for each that was not
        requested.
    alpha : float
        Factor of the scores.
    edge : {"identity", "sigmoid", "softmax"}
        The function f.
    kernel : str
        The name of an algorithm, or ``"auto"``.
    """

    A: PatternT
    values: Array | None
    C: Array
    B: Array
    D: Array
    G: Array
    E: Array | None
    log_totals: Array | None
    of_values: Array | None
    of_C: Array | None
    of_B: Array | None
    of_D: Array | None
    alpha: float
    edge: str
    kernel: str = "auto"

    @property
    def dense(self) -> Array:
        """The operand that determines the columns and the dtype of the plan."""
        return self.C

    @property
    def arrays(self) -> tuple[Array | None, ...]:
        """The arrays that change from call to call."""
        made = self.G, self.E, self.log_totals
        return self.values, self.C, self.B, self.D, *made, *self.outputs

    @property
    def outputs(self) -> tuple[Array | None, ...]:
        """The arrays that the call overwrites; None for each that was not requested."""
        return self.of_values, self.of_C, self.of_B, self.of_D

    @property
    def factors(self) -> tuple[complex | str, ...]:
        """The scalars that the launch depends on."""
        return self.alpha, self.edge


#: A record of a product of a sparse matrix and dense ones.
ProductCall: TypeAlias = SpmmCall | SddmmCall | FusedmmCall
#: A record of any call.
AnyCall: TypeAlias = SpmvCall | ProductCall | TracedCall | GradientCall
