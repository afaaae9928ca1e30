"""The steps of the restarted generalized minimal residual method.

``basis`` is the Krylov basis, stored as ``s`` consecutive vectors. ``step`` holds the iteration
number ``j`` within the cycle, from 0, on the device, so that every iteration runs the same
operations. ``hessenberg`` stores the triangular factor: entry ``(i, j)`` is in row ``i`` of column
``j``. For each right-hand side, ``count`` is the number of valid columns: it is smaller for
right-hand sides that stopped earlier.

The basis may be stored in a lower dtype ``S`` than the dtype of the computation. It then contains
the vectors times :func:`unit_of` of that dtype, and ``v`` is the stored vector after rounding. Thus
``A v`` and results from the basis belong to the same vectors.
"""

from collections.abc import Callable
from typing import Any

from ..operation import Cost, Shrunk, declare

#: Scaling factors of stored vectors. Unit vectors have elements of at most 1, most of them near
#: ``1 / sqrt(n)``. float16 has full precision only between 6e-5 and 65504, so vectors are
#: multiplied by a power of two, which is exact.
_UNITS = {"float16": 2.0**15}


def unit_of(stored: str) -> float:
    """Return the scaling factor of basis vectors that are stored in a dtype.

    Examples
    --------
    >>> unit_of("float16"), unit_of("bfloat16")
    (32768.0, 1.0)
    """
    return _UNITS.get(stored, 1.0)


def _of_vectors(
    first: int, count: Callable[[float], tuple[float, float]], flops: float
) -> Callable[..., Cost]:
    """Return the average cost over a cycle for moving vectors.

    The step is on the device, so the cost cannot depend on it. ``first`` is the position of a
    vector among the arguments. If the basis has ``j + 1`` vectors, ``count`` is the number of
    vectors that are moved, of the basis and others; on average half of the basis is moved.
    ``flops`` is the number of floating-point operations per vector.
    """

    def cost(*arguments: Any) -> Cost:
        vector, basis = arguments[first], next(a for a in arguments if getattr(a, "ndim", 0) == 3)
        stored, others = count(basis.shape[0] / 2)
        nbytes = stored * vector.size * basis.itemsize + others * vector.nbytes
        return Cost(int(nbytes), int(flops * (stored + others) * vector.size))

    return cost


start = declare(
    "gmres.start",
    "r: in T[n,k], v: out T[n,k], basis: out S[s,n,k], g: out T[s,k], count: out i64[k], "
    "step: out i64[1], status: in Status[k]",
    "v = basis_0 = r / |r| (0 where not running), g = (|r|, 0, ...), count = 0, step = 0; "
    "|r| is the status's norm",
    cost=_of_vectors(0, lambda basis: (1, 2), 1 / 3),
)

project = declare(
    "gmres.project",
    "basis: in S[s,n,k], w: in T[n,k], h: out T[s,k], before: out R[k], step: in i64[1], "
    "status: in Status[k]",
    "h_i = <basis_i, w> for i <= j; before = |w|",
    cost=_of_vectors(1, lambda basis: (basis, 1), 2),
    totals={"h": "sum", "before": "norm"},
)

subtract = declare(
    "gmres.subtract",
    "basis: in S[s,n,k], w: inout T[n,k], h: in T[s,k], after: out R[k], step: in i64[1], "
    "status: in Status[k]",
    "w -= sum_i h_i basis_i for i <= j; after = |w|",
    cost=_of_vectors(1, lambda basis: (basis, 2), 2),
    totals={"after": "norm"},
)

#: Orthogonalization criterion of Daniel, Gragg, Kaufman, Stewart (1976): a vector that keeps this
#: fraction of its length is orthogonal up to one digit; a vector that loses more is projected a
#: second time. With 0.7071, their strictest value, the real systems of the tests take the same
#: iterations and twice the projections.
KEPT_LENGTH = 0.1

#: The columns that must be orthogonalized a second time.
LOSES_DIGITS = Shrunk("after", "before", KEPT_LENGTH)

reproject = declare(
    "gmres.reproject",
    "basis: in S[s,n,k], w: in T[n,k], correction: out T[s,k], before: in R[k], after: in R[k], "
    "step: in i64[1], status: in Status[k]",
    "where after < 0.1 before: correction_i = <basis_i, w> for i <= j",
    cost=_of_vectors(1, lambda basis: (0, 0), 0),
    totals={"correction": "sum"},
    changed=LOSES_DIGITS,
)

resubtract = declare(
    "gmres.resubtract",
    "basis: in S[s,n,k], w: inout T[n,k], h: inout T[s,k], correction: in T[s,k], "
    "before: in R[k], after: inout R[k], step: in i64[1], status: in Status[k]",
    "where after < 0.1 before: w -= sum_i correction_i basis_i, h += correction, after = |w|",
    cost=_of_vectors(1, lambda basis: (0, 0), 0),
    totals={"after": "norm"},
    changed=LOSES_DIGITS,
)

rotate = declare(
    "gmres.rotate",
    "h: in T[s,k], after: inout R[k], before: in R[k], hessenberg: inout T[s,s,k], "
    "cosine: inout R[s,k], sine: inout T[s,k], g: inout T[s,k], count: inout i64[k], "
    "step: in i64[1], status: inout Status[k]",
    "applies the earlier rotations to (h, after), makes the j-th, applies it to g; count = j + 1; "
    "observes |g_(j+1)|; after <= eps before is taken as 0: the space is exhausted",
    flops=lambda e: 12 * e["s"] * e["k"],
)

append = declare(
    "gmres.append",
    "w: in T[n,k], after: in R[k], v: out T[n,k], basis: inout S[s,n,k], step: inout i64[1], "
    "status: in Status[k]",
    "v = basis_(j+1) = w / after (0 where after is 0); step = j + 1",
    cost=_of_vectors(0, lambda basis: (1, 2), 1 / 3),
)

extend = declare(
    "gmres.extend",
    "basis: inout S[s,n,k], w: inout T[n,k], h: inout T[s,k], correction: inout T[s,k], "
    "before: inout R[k], after: inout R[k], hessenberg: inout T[s,s,k], cosine: inout R[s,k], "
    "sine: inout T[s,k], g: inout T[s,k], count: inout i64[k], v: out T[n,k], step: inout i64[1], "
    "status: inout Status[k]",
    "makes w orthogonal to the basis, appends it, and makes the j-th rotation",
    parts=(project, subtract, reproject, resubtract, rotate, append),
)

augment = declare(
    "gmres.augment",
    "z: inout T[n,k], extra: in T[l,n,k], size: in R[l,k], first: i64, basis: inout T[s,n,k], "
    "step: in i64[1], status: in Status[k]",
    "z = extra_(j-first) / size_(j-first) where j >= first and that size is not 0; basis_j = z",
    cost=_of_vectors(0, lambda basis: (1, 1), 0),
)

solve = declare(
    "gmres.solve",
    "hessenberg: in T[s,s,k], g: in T[s,k], count: in i64[k], y: out T[s,k]",
    "y = the solution of the upper triangle of count rows, 0 beyond it and for zero pivots; of 1, "
    "2, 4, ... fewer rows where the rounding of the product, eps | |H| |y| |, exceeds the rest "
    "of g and they leave less, both added up",
    flops=lambda e: e["s"] * e["s"] * e["k"],
)

combine = declare(
    "gmres.combine",
    "basis: in S[s,n,k], y: in T[s,k], count: in i64[k], u: out T[n,k]",
    "u = sum_i y_i basis_i for i < count",
    flops=lambda e: 2 * e["s"] * e["n"] * e["k"],
)
