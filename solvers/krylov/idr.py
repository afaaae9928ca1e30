"""Induced dimension reduction with biorthogonal vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVarTuple

import numpy as np

from ...core.factors import whole_number
from ...core.step import (
    BREAKDOWN,
    NOT_FINITE,
    Steps,
    absolute,
    dot,
    finite,
    norm2,
    real,
    sqrt,
    where,
)
from ..driver.workspace import Workspace
from .base import KrylovSolver
from .bicgstab import divide_or_halt

Ts = TypeVarTuple("Ts")

#: Default number of shadow vectors; the steps for this number are compiled for the host's
#: executors.
SHADOWS = 4

#: Upper bound of the shadow vectors: more do not help, and each one takes three vectors.
MOST = 16

#: Omega is increased if the cosine between ``t`` and ``r`` is below this value: section 4.3 of the
#: paper.
ANGLE = 0.7

#: The seed of the random shadow vectors.
SEED = 20110


def kinds(s: int) -> dict[str, Any]:
    """Return the names of the steps for ``s`` shadow vectors.

    ``g``, ``u`` belong to the current number k; ``m`` with two numbers is an entry of the lower
    triangle of ``P^H G``, ``f`` with one of ``P^H r``, ``h`` of ``P^H g``.
    """
    each = range(s)
    return {
        "vectors": " ".join(["x r v z t g u", *(f"g{i} u{i}" for i in each)]),
        "rows": " ".join(f"p{i}" for i in each),
        "scalars": " ".join(
            [*(f"f{i} h{i}" for i in each), *(f"m{i}_{j}" for i in each for j in range(i + 1))]
        )
        + " omega",
    }


step = Steps("idr", **kinds(SHADOWS))


def get(w: Any, name: str, *numbers: int) -> Any:
    """Return the value of a numbered scalar such as ``m1_0``."""
    return getattr(w, name + "_".join(map(str, numbers)))


def put(w: Any, value: Any, name: str, *numbers: int) -> None:
    """Set the value of a numbered scalar such as ``m1_0``."""
    setattr(w, name + "_".join(map(str, numbers)), value)


def added(terms: list[Any]) -> Any:
    """Return the sum of at least one term."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def coefficients(w: Any, s: int) -> list[Any]:
    """Return the solution of ``M c = f``; leading zeros of f are zeros of c."""
    return leading(w, [get(w, "f", i) for i in range(s)])


def leading(w: Any, c: list[Any]) -> list[Any]:
    """Return the solution of the leading triangle of M for a right-hand side."""
    for i in range(len(c)):
        for j in range(i):
            c[i] = c[i] - get(w, "m", i, j) * c[j]
        c[i] = c[i] / get(w, "m", i, i)
    return c


def of_basis(w: Any, c: list[Any], name: str) -> Any:
    """Return ``sum_i c_i g_i`` or ``sum_i c_i u_i``."""
    return added([one * get(w, name, i) for i, one in enumerate(c)])


def begin_with(w: Any, s: int) -> None:
    """Set all vectors of the spaces to 0, M to the identity, omega = 1, f = P^H r."""
    for i in range(s):
        put(w, 0, "g", i)
        put(w, 0, "u", i)
        put(w, dot(get(w, "p", i) * 1, w.r), "f", i)
        for j in range(i + 1):
            put(w, 1 if i == j else 0, "m", i, j)
    w.omega = 1


def extend_by(w: Any, s: int) -> None:
    """Set u = omega (r - sum_i c_i g_i) + sum_i c_i u_i with M c = f."""
    c = coefficients(w, s)
    w.u = w.omega * (w.r - of_basis(w, c, "g")) + of_basis(w, c, "u")


def reduce_by(w: Any, s: int) -> None:
    """Set v = r - sum_i c_i g_i with M c = f."""
    w.v = w.r - of_basis(w, coefficients(w, s), "g")


def expand_by(w: Any, s: int) -> None:
    """Set u = omega z + sum_i c_i u_i with M c = f."""
    w.u = w.omega * w.z + of_basis(w, coefficients(w, s), "u")


def project_on(w: Any, s: int) -> None:
    """Set h_i = <p_i, g>."""
    for i in range(s):
        put(w, dot(get(w, "p", i) * 1, w.g), "h", i)


def update_number(w: Any, s: int, k: int) -> None:
    """Make g and u biorthogonal to p_0 .. p_(k-1), then r orthogonal to p_k.

    alpha_i for i < k follow from L alpha = h, the leading triangle of M.
    """
    alpha = leading(w, [get(w, "h", i) for i in range(k)])
    g, u = get(w, "g", k), get(w, "u", k)
    for i in range(k):
        g = g - alpha[i] * get(w, "g", i)
        u = u - alpha[i] * get(w, "u", i)
    column = []
    for i in range(k, s):
        entry = get(w, "h", i)
        for j in range(k):
            entry = entry - alpha[j] * get(w, "m", i, j)
        column.append(entry)
    quotient = divide_or_halt(w, get(w, "f", k), column[0])
    # a column that halts here keeps its iterate: if M is close to the inverse, r is already 0
    beta = where((column[0] == 0) | ~finite(quotient), 0, quotient)
    w.x += beta * u
    w.r -= beta * g
    if k:
        put(w, g, "g", k)
        put(w, u, "u", k)
    for i in range(k, s):
        put(w, column[i - k], "m", i, k)
        put(w, get(w, "f", i) - beta * column[i - k] if i > k else 0, "f", i)


def finish_with(w: Any, s: int) -> None:
    """Set x += omega z, r -= omega t, f = P^H r; observes |r|."""
    w.x += w.omega * w.z
    w.r -= w.omega * w.t
    for i in range(s):
        put(w, dot(get(w, "p", i) * 1, w.r), "f", i)
    w.observe(sqrt(norm2(w.r)))


@step
def start(w: Any) -> None:
    """Set g_i = u_i = 0, M = I, omega = 1, f = P^H r."""
    begin_with(w, SHADOWS)


@step
def extend(w: Any) -> None:
    """Set u = omega (r - sum_i c_i g_i) + sum_i c_i u_i with M c = f."""
    extend_by(w, SHADOWS)


@step
def reduce(w: Any) -> None:
    """Set v = r - sum_i c_i g_i with M c = f."""
    reduce_by(w, SHADOWS)


@step
def expand(w: Any) -> None:
    """Set u = omega z + sum_i c_i u_i with M c = f."""
    expand_by(w, SHADOWS)


@step
def project(w: Any) -> None:
    """Set h_i = <p_i, g>."""
    project_on(w, SHADOWS)


@step
def update_0(w: Any) -> None:
    """Set x += beta u_0, r -= beta g_0 with beta = f_0 / h_0; column 0 of M and f follow."""
    update_number(w, SHADOWS, 0)


@step
def update_1(w: Any) -> None:
    """Make g_1, u_1 biorthogonal to p_0; x += beta u_1, r -= beta g_1; column 1 of M and f."""
    update_number(w, SHADOWS, 1)


@step
def update_2(w: Any) -> None:
    """Make g_2, u_2 biorthogonal to p_0, p_1; x += beta u_2, r -= beta g_2; column 2 of M and f."""
    update_number(w, SHADOWS, 2)


@step
def update_3(w: Any) -> None:
    """Make g_3, u_3 biorthogonal to p_0 .. p_2; x += beta u_3, r -= beta g_3; column 3 of M, f."""
    update_number(w, SHADOWS, 3)


@step
def stabilize(w: Any) -> None:
    """Set omega = <t, r> / <t, t>, increased if t and r are almost orthogonal.

    If the cosine rho of their angle satisfies |rho| < 0.7, omega is multiplied by 0.7 / |rho|. A
    column with r nonzero and omega zero breaks down.
    """
    above, size, norm = dot(w.t, w.r), norm2(w.t), sqrt(norm2(w.r))
    cosine = absolute(above) / (sqrt(size) * norm)
    omega = where(size > 0, above / size, 0)
    w.omega = where((cosine < ANGLE) & (cosine > 0), (ANGLE / cosine) * omega, omega)
    w.halt(NOT_FINITE, when=~(finite(above) & finite(size)))
    w.halt(BREAKDOWN, when=(real(norm) > 0) & (omega == 0))


@step
def finish(w: Any) -> None:
    """Set x += omega z, r -= omega t, f = P^H r; observes |r|."""
    finish_with(w, SHADOWS)


def _sized_step(group: Steps, name: str, work: Callable[[Any, *Ts], None], *sizes: *Ts) -> Any:
    def function(w: Any) -> None:
        work(w, *sizes)

    function.__name__ = name
    function.__doc__ = work.__doc__
    function.__qualname__ = f"{group.group}.{name}"
    return group(function)


@cache
def steps_for(s: int) -> SimpleNamespace:
    """Return the steps for ``s`` shadow vectors."""
    if s == SHADOWS:
        result = SimpleNamespace(group=step, start=start, extend=extend, reduce=reduce)
        result.expand, result.project, result.stabilize, result.finish = (
            expand,
            project,
            stabilize,
            finish,
        )
        result.update = [update_0, update_1, update_2, update_3]
        return result
    group = Steps(f"idr{s}", **kinds(s))
    works = {
        "start": begin_with,
        "extend": extend_by,
        "reduce": reduce_by,
        "expand": expand_by,
        "project": project_on,
        "finish": finish_with,
    }
    result = SimpleNamespace(group=group, stabilize=stabilize)
    for name, work in works.items():
        setattr(result, name, _sized_step(group, name, work, s))
    result.update = [_sized_step(group, f"update_{k}", update_number, s, k) for k in range(s)]
    return result


class Idr(KrylovSolver):
    """Induced dimension reduction, IDR(s), for any square operator.

    With short recurrences and without a transpose, it needs almost as few products as GMRES without
    restarts. Use it for nonsymmetric matrices, such as matrices of convection, if :class:`Bicgstab`
    is erratic or stagnates and :class:`Gmres` would need a long basis.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``, applied from the right.
    s : int
        Number of shadow vectors, from 1 to 16: more of them need fewer products and more memory,
        three vectors each.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`. An iteration applies ``A`` and ``M`` ``s + 1`` times.

    Raises
    ------
    InvalidArgument
        If ``s`` is not an integer from 1 to 16.

    Notes
    -----
    The shadow vectors are random, from a fixed seed, and orthonormal. After a division by zero in
    its recurrence, a column restarts from its iterate as long as this reduces the true residual;
    otherwise it ends as a *breakdown*.

    One iteration without ``M`` reads the matrix ``s + 1`` times and, for ``s = 4``, moves 124
    vectors: 2 for each product, 10 for each vector u, 5 for each projection, 8 to 14 for each
    update, 2 and 9 for the last step. The build of ``omp`` contains the steps for ``s = 4``; other
    values use programs compiled at run time, like a user's own steps.

    References
    ----------
    M. B. van Gijzen and P. Sonneveld, Algorithm 913: an elegant IDR(s) variant that efficiently
    exploits biorthogonality properties, ACM Trans. Math. Softw. 38 (2011), figure 2 and section
    4.3; projections are classical Gram-Schmidt, in one pass.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> x, info = wl.solvers.Idr(A, s=2, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(10 * x, 6), info
    (array([1., 6.]), 0)
    """

    SPARE: ClassVar[str] = "t"

    def __init__(self, A: Any, M: Any = None, *, s: int = SHADOWS, **settings: Any) -> None:
        count = whole_number(s, "s", 1, MOST)
        super().__init__(A, M, **settings)
        self.s = count
        #: The number of shadow vectors in use: at most the number of unknowns.
        self.shadows = max(min(self.s, self.shape[0]), 1)

    def allocate(self, work: Workspace) -> None:
        """Allocate the spaces and the shadow vectors; without a preconditioner, z is r."""
        steps = steps_for(self.shadows)
        if work.M is None:
            work.z = work.r
            work.v = work.r  # of no use then
        work.make(steps.group, without=("g", "u"))  # other names of g0, u0 and so on
        for i, p in enumerate(shadow_vectors(work.n, self.shadows)):
            work.array(f"p{i}", (work.n,), work.dtype)
            work.executor.copy_into(getattr(work, f"p{i}"), p.astype(work.dtype))

    def initialize(self, work: Workspace) -> None:
        """Set the spaces to 0."""
        steps_for(self.shadows).start(work)

    def iterate(self, work: Workspace) -> None:
        """Compute the vectors of the next space one by one, then step into it."""
        w, steps = work, steps_for(self.shadows)
        for k, update in enumerate(steps.update):
            w.g, w.u = getattr(w, f"g{k}"), getattr(w, f"u{k}")
            if w.M is None:
                steps.extend(w)  # u_k = omega (r - G c) + U c
            else:
                steps.reduce(w)  # v = r - G c
                w.M._apply(w.v, w.z, 1.0, 0.0)  # z = M v
                steps.expand(w)  # u_k = omega z + U c
            w.A._apply(w.u, w.g, 1.0, 0.0)  # g_k = A u_k
            steps.project(w)  # P^H g_k
            update(w)  # g_k, u_k, x, r
        if w.M is not None:
            w.M._apply(w.r, w.z, 1.0, 0.0)
        w.A._apply(w.z, w.t, 1.0, 0.0)  # t = A M r
        steps.stabilize(w)  # omega
        steps.finish(w)  # x, r, P^H r


def shadow_vectors(n: int, s: int) -> np.ndarray[Any, Any]:
    """Return ``s`` orthonormal vectors of ``n`` random numbers, the same in every run."""
    p = np.random.default_rng(SEED).standard_normal((n, s))
    if n == 0:
        return p.T
    made: np.ndarray[Any, Any] = np.linalg.qr(p)[0].T if n >= s else p.T
    return np.ascontiguousarray(made)
