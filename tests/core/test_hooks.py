"""Classes of other packages define hooks by public names; wollemi's own names are the same."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import wollemi as wl
from wollemi.extend import Steps, Temporary

D = np.array([[4.0, 1.0], [1.0, 3.0]])


class Twice(wl.LinOp):
    """x -> 2 x."""

    def __init__(self, n, executor):
        self.executor = wl.executor(executor)
        self.shape, self.dtype = (n, n), np.dtype(np.float64)

    def apply_block(self, x, y, alpha, beta):
        y[...] = 2 * alpha * x if beta == 0 else 2 * alpha * x + beta * y

    @property
    def resident(self):
        return False

    def to(self, executor):
        return Twice(self.shape[0], executor)

    def astype(self, dtype):
        return self


class Scaled(wl.preconditioners.Preconditioner):
    """The inverse diagonal, with a temporary."""

    parts = ("inverse",)

    def setup(self, A):
        self.inverse = wl.preconditioners.Jacobi(A)
        self.buffers = (Temporary(),)
        self.buffer = Temporary()

    def refresh(self, A):
        self.refreshed = getattr(self, "refreshed", 0) + 1
        super().refresh(A)

    def apply_block(self, x, y, alpha, beta):
        self.inverse.apply_block(x, y, alpha, beta)


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_a_class_with_the_public_name_is_an_operator(executor):
    op = Twice(2, executor)
    assert (op @ np.array([1.0, 2.0])).tolist() == [2, 4]
    assert ((op + op) @ np.array([1.0, 2.0])).tolist() == [4, 8]
    result = wl.solvers.Cg(op).solve(np.ones(2))
    assert result.converged and result.x.tolist() == [0.5, 0.5]


def test_both_names_are_one_method_in_every_class():
    assert Twice._apply is Twice.apply_block
    assert wl.Csr._apply is wl.Csr.apply_block
    assert wl.Sellp._extra is wl.Sellp.other_state
    assert wl.preconditioners.Ilu._setup is wl.preconditioners.Ilu.setup


def test_a_subclass_calls_the_method_of_its_base_by_either_name():
    class More(Twice):
        def apply_block(self, x, y, alpha, beta):
            super().apply_block(x, y, 2 * alpha, beta)

    class Most(More):
        def apply_block(self, x, y, alpha, beta):
            super()._apply(x, y, 2 * alpha, beta)

    assert (More(1, "omp") @ np.ones(1)).tolist() == [4]
    assert (Most(1, "omp") @ np.ones(1)).tolist() == [8]


def test_a_mixin_before_the_base_defines_a_hook():
    class Mixin:
        def apply_block(self, x, y, alpha, beta):
            y[...] = 7.0

    class Mixed(Mixin, Twice):
        pass

    assert (Mixed(1, "omp") @ np.ones(1)).tolist() == [7]


def test_a_preconditioner_of_ones_own_has_hooks_by_their_public_names():
    A = wl.Csr(D)
    M = Scaled(A)
    np.testing.assert_allclose(M @ np.array([4.0, 3.0]), [1, 1])
    A.update_values(2 * A.data)
    M.update()
    assert M.refreshed == 1
    np.testing.assert_allclose(M @ np.array([8.0, 6.0]), [1, 1])
    assert pickle.loads(pickle.dumps(M)).refreshed == 1


def test_a_remade_preconditioner_has_temporaries_of_its_own():
    M = Scaled(wl.Csr(D, executor="omp"))
    moved = M.to("reference")
    assert moved.buffer is not M.buffer and moved.buffers[0] is not M.buffers[0]
    assert isinstance(moved.buffers[0], Temporary)


def test_private_names_still_work_in_subclasses_and_warn():
    with pytest.warns(DeprecationWarning, match="LinOp._apply .* use apply_block") as caught:

        class Old(Twice):
            def _apply(self, x, y, alpha, beta):
                y[...] = 5.0

    assert caught[0].filename == __file__
    assert (Old(1, "omp") @ np.ones(1)).tolist() == [5]
    assert Old.apply_block is Old._apply


@pytest.mark.filterwarnings("error")
def test_a_class_with_both_names_for_two_versions_of_wollemi_does_not_warn():
    class Both(Twice):
        def apply_block(self, x, y, alpha, beta):
            y[...] = 5.0

        _apply = apply_block

    assert (Both(1, "omp") @ np.ones(1)).tolist() == [5]


def test_a_hook_with_other_arguments_is_refused_when_the_class_is_defined():
    with pytest.raises(wl.errors.InvalidArgument, match=r"define apply_block\(self, x, y, alpha"):

        class Wrong(Twice):
            def apply_block(self, x):
                return x


def test_a_class_without_a_required_hook_names_its_public_name():
    class Empty(wl.preconditioners.Preconditioner):
        pass

    with pytest.raises(wl.errors.InvalidArgument, match=r"define .*apply_block.*setup"):
        Empty(wl.Csr(D))


def test_an_operator_that_parts_does_not_name_is_refused():
    class Forgotten(Scaled):
        parts = ()

    with pytest.raises(wl.errors.InvalidArgument, match=r"write parts = \('inverse',\)"):
        Forgotten(wl.Csr(D))


def test_a_part_that_the_setup_did_not_make_is_named():
    class Missing(Scaled):
        parts = ("inverse", "other")

    with pytest.raises(wl.errors.InvalidArgument, match=r"set self\.other"):
        Missing(wl.Csr(D))


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_a_solver_that_observes_no_norm_is_refused_with_the_remedy(executor):
    with wl.extend.OPERATIONS.locally():
        step = Steps("silent", vectors="x r")

        @step
        def go(w):
            """Set x += r."""
            w.x += w.r

        class Silent(wl.solvers.KrylovSolver):
            def allocate(self, work):
                work.make(step)

            def initialize(self, work):
                pass

            def iterate(self, work):
                go(work)

        solver = Silent(wl.Csr(D, executor=executor))
        with pytest.raises(wl.errors.InvalidArgument, match=r"Silent.iterate: .*w\.observe"):
            solver.solve(np.ones(2))
