"""Public objects print as more than a class and an address."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import wollemi as wl
from wollemi.extend import OPERATIONS, Engine, Steps, Temporary, Transfer, kernel_table

from .record import MODULES


def test_every_public_class_has_a_representation():
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    bare = []
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:  # a package that this machine lacks
            continue
        for member in module.__all__:
            found = getattr(module, member)
            if isinstance(found, type) and found.__repr__ is object.__repr__:
                bare.append(f"{name}.{member}")
    assert not bare


def test_loggers_print_their_findings():
    A = wl.Csr(np.diag([1.0, 2.0, 3.0]))
    counts, history = wl.loggers.Counts(), wl.loggers.History(every=2)
    assert repr(counts) == (
        "<Counts: 0 products, 0 copies of 0 bytes (0 between executors), 0 allocations of 0 bytes>"
    )
    wl.solvers.Cg(A, rtol=1e-10).solve(np.ones(3), loggers=[counts, history])
    assert repr(counts).startswith("<Counts: 5 products (A 5), ")
    assert repr(history) == f"<History every=2: {len(history.snapshots)} snapshots>"
    assert repr(wl.loggers.Stream(true_residual=True)) == "<Stream every=100, true_residual=True>"


def test_a_recorded_solve_prints_its_solver():
    A = wl.Csr(np.diag([1.0, 2.0, 3.0]), executor="reference")
    b, x = np.ones(3), np.zeros(3)
    solve = wl.solvers.Cg(A, M="jacobi").recorded(b, out=x)
    assert repr(solve).startswith("<recorded Cg for 3 unknowns, float64 on reference with <Jacobi")


def test_parts_for_authors_print_their_names():
    steps = Steps("printed", vectors="x y", scalars="rho", status=False)
    assert repr(steps).startswith("<steps of printed: x ")
    assert repr(kernel_table("reference")).startswith("<kernels of reference: ")
    assert repr(OPERATIONS).startswith("<table of ") and repr(Temporary()).endswith("at hand>")
    on = wl.executor("reference")
    made = Transfer(on, [np.ones(2)])
    assert repr(made) == "<transfer of 1 array from reference, and of 0 arrays to it>"
    engine = wl.solvers.Direct(wl.Csr(np.eye(3)), engine="superlu")._engine
    assert isinstance(engine, Engine) and repr(engine).startswith("<engine 'superlu': ")


def test_a_criterion_of_a_program_prints_its_name():
    class Soon(wl.stop.Criterion):
        def done(self, state: wl.stop.State) -> bool:
            return state.iteration > 3

    assert repr(Soon()) == "<Soon>"
