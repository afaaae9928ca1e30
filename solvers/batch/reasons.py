"""Explain why systems failed that a batch solver solved together: properties of their matrices.

The solver of one matrix tests ``A`` after a failure. Here all failed systems are tested together by
a few products of the batch, when a reason is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.status import Stop
from ..driver.constants import SLACK as SLACK_OF_CONSTANTS
from ..driver.constants import why_unsolved
from ..driver.hermitian import MAY_BE_OF_SYMMETRY, SLACK, Asymmetry
from ..driver.scaling import SAFE_SIZES, near_one

if TYPE_CHECKING:
    from ...core.batch import BatchMatrix
    from ...core.batch.verdicts import Verdicts
    from ...core.executor import Array, Executor

Numbers = np.ndarray[Any, Any]


class Reasons(Mapping[int, str]):
    """Reasons of failures, by the index of the system.

    Parameters
    ----------
    told : dict of int to str
        The reasons of systems that were solved separately.
    verdicts : Verdicts
        The verdict on each solve.
    kind : type
        The class of the solver.
    A : BatchMatrix
        The matrices; they are not tested if their values have changed before a reason is read.
    """

    def __init__(
        self, known_reasons: Mapping[int, str], verdicts: Verdicts, kind: type, A: BatchMatrix
    ) -> None:
        self._known_reasons, self._verdicts, self._kind, self._A = known_reasons, verdicts, kind, A
        self._version = A._changes

    @cached_property
    def _all(self) -> dict[int, str]:
        codes, count = self._verdicts.codes, self._A.count
        codes = codes.reshape(count, codes.size // max(count, 1))
        may_be = np.isin(codes, list(map(int, MAY_BE_OF_SYMMETRY)))
        failed = [
            int(k) for k in np.flatnonzero(may_be.any(axis=1)) if int(k) not in self._known_reasons
        ]
        if not failed or self._A._changes != self._version:
            return dict(self._known_reasons)
        stops = [Stop(int(codes[k][codes[k] != Stop.CONVERGED][0])) for k in failed]
        return {**self._known_reasons, **self._reasons_of_matrices(np.array(failed), stops)}

    def _reasons_of_matrices(self, systems: Numbers, stops: list[Stop]) -> dict[int, str]:
        """Return the reasons that the matrices of the given systems explain."""
        A, on = self._A, self._A.executor
        values = _of_usual_size(on, A._values[on.from_host(systems)])
        chosen = A._from_values(A._one, (systems.size,), values)
        needs_hermitian = bool(getattr(self._kind, "HERMITIAN", ()))
        hermitian = _are_hermitian(chosen) if needs_hermitian else np.zeros(systems.size, bool)
        constants = _map_constants_to_zero(chosen)
        columns = constants if needs_hermitian else _map_constants_to_zero(chosen.H)
        sentences = {}
        for place, (k, stop) in enumerate(zip(systems.tolist(), stops, strict=True)):
            if needs_hermitian and not hermitian[place]:
                why: str | None = "; ".join(Asymmetry.of("A"))
            else:
                holds = {"constants": bool(constants[place]), "columns": bool(columns[place])}
                at_limit = stop == Stop.MAX_ITERATIONS
                why = why_unsolved(None, _looked_up(holds), at_limit=at_limit)
            if why is not None:
                sentences[k] = f"{stop.sentence.partition(':')[0]}: {why}"
        return sentences

    def __getitem__(self, system: int) -> str:
        return self._all[system]

    def __iter__(self) -> Iterator[int]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return repr(self._all)

    def __reduce__(self) -> Any:
        return dict, (self._all,)


def _looked_up(holds: Mapping[str, bool]) -> Callable[[str, Any], bool]:
    """Return a function that looks up the answers to tests by their names."""
    return lambda name, _: holds[name]


def _of_usual_size(on: Executor, values: Array) -> Array:
    """Return the values of matrices; an extreme size is scaled by a power of two.

    Without scaling, products would leave the range of the dtype, or lose digits below its smallest
    normal number.
    """
    host = np.asarray(on.to_host(values))
    low, high = SAFE_SIZES[real_dtype(host.dtype)]
    of_one = host.reshape(host.shape[0], -1)
    sizes = np.abs(of_one).max(axis=1, initial=0.0)
    extreme = ~((sizes >= low) & (sizes <= high))
    if not extreme.any():
        return values
    scaled = np.array(of_one)
    scaled[extreme] = near_one(of_one[extreme].T).T
    return on.from_host(scaled.reshape(host.shape))


def _are_hermitian(A: BatchMatrix) -> Numbers:
    """Return for each matrix whether ``<u, A v>`` equals ``<A u, v>`` to rounding."""
    n, eps = A.shape[0], _rounding(A.dtype)
    u, v = np.random.default_rng(n).uniform(-1, 1, (2, n)).astype(A.dtype)
    with np.errstate(all="ignore"):
        of_u, of_v = (_product(A, x) for x in (u, v))
        apart = np.abs(of_v @ u.conj() - of_u.conj() @ v)
        size = np.linalg.norm(u) * np.linalg.norm(of_v, axis=1)
        size += np.linalg.norm(v) * np.linalg.norm(of_u, axis=1)
    return np.asarray(~np.isfinite(apart) | (apart <= SLACK * eps * n**0.5 * size))


def _map_constants_to_zero(A: BatchMatrix) -> Numbers:
    """Return for each matrix whether ``A @ 1`` is zero, relative to a product with random signs."""
    n, eps = A.shape[0], _rounding(A.dtype)
    signs = np.where(np.random.default_rng(n).random(n) < 0.5, -1, 1).astype(A.dtype)
    with np.errstate(all="ignore"):
        ones, other = (np.linalg.norm(_product(A, x), axis=1) for x in (np.ones(n, A.dtype), signs))
    return np.asarray((n > 1) & (ones <= SLACK_OF_CONSTANTS * eps * other))


def _product(A: BatchMatrix, x: Numbers) -> Numbers:
    wide = np.complex128 if A.dtype.kind == "c" else np.float64
    return np.asarray(A @ x).astype(wide)


def _rounding(dtype: np.dtype[Any]) -> float:
    return float(np.finfo(dtype).eps) if dtype.kind in "fc" else 2.0**-7
