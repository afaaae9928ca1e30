"""Joules of products and of whole solves by wollemi and other libraries: the part ``energy``.

A device's counter includes its idle power, and advances in steps of up to 100 ms: a sample repeats
a call for a second. A peer's line is its energy divided by wollemi's.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.executor import Executor

from .acceptance import Goal, ratio
from .cases import SEED, case
from .page.numbers import Spread
from .peers import Absent, Peer, peers
from .race_peers import RacePeer, Wollemi, race_peers
from .race_systems import RaceSystem, systems

#: Matrices of products.
PRODUCTS = ("stencil7:160", "stencil27:100", "rmat:20,16000000", "uniform:2000000,2000000,40000000")

#: Systems of solves, by a part of their name.
SOLVES = ("Poisson 128^3", "Poisson 1000^2", "boxes", "convection")

#: Peers that run on a GPU. The other ones run on its host, and its energy is not measured.
ON_GPU = ("warp", "torch-sla", "jax", "cupy")

#: Samples of a call, the least seconds of each, and the seconds of calls between two waits.
SAMPLES, LEAST, BETWEEN = 3, 1.0, 0.01


@dataclass(frozen=True)
class Work:
    """A product or a solve of a library.

    Attributes
    ----------
    call : callable
        Submits the work.
    synchronize : callable
        Waits for it.
    """

    call: Callable[[], Any]
    synchronize: Callable[[], None]


def goals(on: Executor, scale: int) -> Iterator[Goal]:
    """Yield the energy of each product and solve, and each peer's divided by it."""
    least = LEAST if scale == 1 else 0.02
    for name in PRODUCTS if scale == 1 else ("stencil7:12",):
        yield from _products(name, on, least)
    for system in systems(scale):
        if any(part in system.name for part in SOLVES) or scale > 1:
            yield from _solves(system, on, least)


def _products(name: str, on: Executor, least: float) -> Iterator[Goal]:
    S = case(name).matrix()
    x = np.random.default_rng(SEED).standard_normal(S.shape[1]).astype(S.dtype)
    A, vector = wl.Csr(S, executor=on), on.from_host(x)
    y = on.allocate((S.shape[0],), A.dtype)
    works = {"wollemi": Work(lambda: A.apply(vector, out=y), on.synchronize)}
    for peer in peers(on):
        work = _product_of(peer, S, x)
        if work is not None:
            works[peer.name] = work
    yield from _lines(f"y = A x, {name}", "mJ", works, on, least)


def _product_of(peer: Peer, S: sp.csr_array, x: np.ndarray[Any, Any]) -> Work | None:
    """Return a peer's product, or None if it has none on this device."""
    try:
        peer.version()
        return Work(peer.spmv(S, x), peer.synchronize)
    except Absent:
        return None


def _solves(system: RaceSystem, on: Executor, least: float) -> Iterator[Goal]:
    method = "cg-jacobi" if system.definite else "bicgstab-jacobi"
    S = system.matrix()
    works: dict[str, Work] = {}
    for peer in (Wollemi(on), *race_peers(on)):
        same_device = on.backend != "cuda" or peer.name in ("wollemi", *ON_GPU)
        work = _solve_of(peer, method, system, S) if same_device else None
        if work is not None:
            works[peer.name] = work
    yield from _lines(f"{method}, {system.name}", "J", works, on, least)


def _solve_of(peer: RacePeer, method: str, system: RaceSystem, S: sp.csr_array) -> Work | None:
    """Return a peer's solve with its set-up, or None if it has no such method."""
    if method not in peer.methods or S.shape[0] > peer.most_rows:
        return None
    try:
        peer.version()
        entry = peer.entry(method, S, system.right_side(S), system.rtol)
    except Absent:
        return None
    return Work(entry, peer.synchronize)


def _lines(
    name: str, unit: str, works: dict[str, Work], on: Executor, least: float
) -> Iterator[Goal]:
    ours = joules(works.pop("wollemi"), on, least)
    factor = {"J": 1.0, "mJ": 1e3}[unit]
    low, median, high = factor * ours.low, factor * ours.median, factor * ours.high
    yield Goal(f"{name}, wollemi", median, low, high, unit)
    for peer, work in works.items():
        try:
            other = joules(work, on, least)
        except (RuntimeError, MemoryError, ValueError) as error:
            nothing = float("nan")
            yield Goal(f"{name}, {peer}: {error}", nothing, nothing, nothing, "x")
            continue
        yield ratio(f"{name}, {peer} over wollemi", other, ours, least=1.0)


def joules(work: Work, on: Executor, least: float = LEAST) -> Spread:
    """Return the joules of a call: the least, the median and the most of some samples.

    Raises
    ------
    UnsupportedOperation
        If the device has no energy counter that this process may read.
    """
    gc.collect()  # memory that is given back during a capture of another library ends it
    work.call()
    work.synchronize()
    samples = []
    for _ in range(SAMPLES):
        count = 0
        with wl.profile(energy=on) as seen:
            ends = waits = time.perf_counter()
            ends += least
            while (now := time.perf_counter()) < ends or not count:
                work.call()
                count += 1
                if now >= waits:
                    work.synchronize()
                    waits = time.perf_counter() + BETWEEN
            work.synchronize()
        assert seen.energy is not None
        samples.append(seen.energy.joules / count)
    return Spread(min(samples), float(np.median(samples)), max(samples))
