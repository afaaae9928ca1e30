"""Settings are values: they print, compare, pickle, become files, and solvers are made of them."""

import json
import pickle

import numpy as np
import pytest

import wollemi as wl
from wollemi import stop
from wollemi.preconditioners import Jacobi
from wollemi.solvers import Cg, Gmres, from_settings

from .conftest import poisson


class Remembering(Cg):
    """A user's solver with an option of its own."""

    def __init__(self, A, M=None, *, memory=3, **settings):
        super().__init__(A, M, **settings)
        self.memory = memory


def test_a_solver_without_a_matrix_is_its_settings():
    settings = Cg(rtol=1e-8, M=Jacobi())
    assert isinstance(settings, wl.Settings)
    assert repr(settings) == "Cg(rtol=1e-08, M=Jacobi())"
    assert settings == Cg(rtol=1e-8, M=Jacobi())
    assert settings != Cg(rtol=1e-9, M=Jacobi())
    assert hash(settings) == hash(Cg(rtol=1e-8, M=Jacobi()))
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert settings.replace(rtol=1e-9).options["rtol"] == 1e-9


def test_settings_do_not_change():
    settings = Cg(rtol=1e-8)
    with pytest.raises(wl.errors.InvalidArgument, match=r"replace\(rtol"):
        settings.rtol = 1e-3
    with pytest.raises(TypeError):
        settings.options["rtol"] = 1e-3


def test_an_unknown_option_is_named_with_those_that_exist():
    with pytest.raises(
        wl.errors.InvalidArgument, match=r"Gmres has no option 'rtoll'.*restart.*rtol"
    ):
        Gmres(rtoll=1e-8)


def test_settings_first_solves_as_the_matrix_first(on, rng):
    A, b = wl.Csr(poisson(8), executor=on), rng.standard_normal(64)
    first = Cg(rtol=1e-10, M=Jacobi()).on(A).solve(b)
    second = Cg(A, Jacobi(A), rtol=1e-10).solve(b)
    np.testing.assert_array_equal(first.x, second.x)


def test_a_solver_knows_its_settings():
    A = wl.Csr(poisson(3))
    assert Cg(A, "jacobi", rtol=1e-8).settings == Cg(M="jacobi", rtol=1e-8)
    assert Cg(A, Jacobi(A)).settings == Cg(M=Jacobi())
    assert Gmres(A, restart=7, stop=stop.Iterations(3)).settings == Gmres(
        restart=7, stop=stop.Iterations(3)
    )
    assert Gmres(A, M=Gmres(A, maxiter=5)).settings == Gmres(M=Gmres(maxiter=5))


def test_a_solver_precondition_is_made_of_settings(on, rng):
    A = wl.Csr(poisson(6), executor=on)
    solver = Gmres(A, M=Cg(rtol=1e-2, maxiter=5))
    assert isinstance(solver.M, Cg)
    assert solver.solve(rng.standard_normal(36)).converged


@pytest.mark.parametrize("change", ["to", "astype", "H", "T", "pickle"])
def test_every_setting_survives(change):
    A = wl.Csr(poisson(4))
    solver = Remembering(A, "jacobi", memory=7, rtol=1e-9)
    changed = {
        "to": lambda: solver.to("reference"),
        "astype": lambda: solver.astype(np.complex128),
        "H": lambda: solver.H,
        "T": lambda: solver.T,
        "pickle": lambda: pickle.loads(pickle.dumps(solver)),
    }[change]()
    assert changed.memory == 7
    assert repr(changed.stop) == repr(solver.stop)
    assert isinstance(changed.M, Jacobi)
    assert changed.settings.options["memory"] == 7


def test_the_transpose_of_a_solver_solves_with_the_transpose(on, rng):
    S = poisson(4, "complex128").astype(complex)
    S.data[3] += 0.25j
    A, b = wl.Csr(S, executor=on), rng.standard_normal(16) + 0j
    for name in ("T", "H"):
        x = getattr(Gmres(A, "jacobi", rtol=1e-12), name) @ b
        np.testing.assert_allclose((S.T if name == "T" else S.conj().T) @ x, b, atol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        Cg(rtol=1e-8, M=Jacobi()),
        Cg(M="jacobi"),
        Gmres(restart=5, M=Cg(maxiter=2)),
        Cg(stop=stop.RelativeResidual(1e-3) | stop.Iterations(5) | stop.Time(2.5)),
        Cg(stop=stop.RelativeResidual(1e-3) & stop.AbsoluteResidual(1e-2)),
        Cg(stop=stop.TrueResidual(1e-3, every=7)),
        Cg(rtol=np.float32(0.5), maxiter=np.int64(4)),
    ],
    ids=repr,
)
def test_settings_survive_json(settings):
    text = json.dumps(settings.to_dict())
    assert from_settings(json.loads(text)) == settings


def test_an_operator_is_no_part_of_a_file():
    with pytest.raises(wl.errors.InvalidArgument, match="M: a Identity cannot be written"):
        Cg(M=wl.Identity(3)).to_dict()


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"method": "cg"}, 'the key "solver"'),
        ({"solver": "cgg"}, "no solver is called 'cgg'; did you mean 'cg'.* known: .*cg"),
        ({"solver": "cg", "rtoll": 1}, "no option 'rtoll'"),
        ({"solver": "cg", "M": {"preconditioner": "x"}}, "no preconditioner is called 'x'"),
        ({"solver": "cg", "stop": {"criterion": "Never"}}, "stop: expected"),
        ({"solver": "cg", "stop": {"criterion": "Iterations", "n": 3}}, "stop: .*unexpected"),
        ([], "expected a dictionary"),
    ],
)
def test_what_describes_no_solver_is_refused(found, message):
    with pytest.raises(wl.errors.InvalidArgument, match=message):
        from_settings(found)


def test_names_take_options():
    A = wl.Csr(poisson(3))
    with pytest.raises(wl.errors.InvalidArgument, match="Jacobi has no option 'sweeps'"):
        Cg(A, "jacobi:sweeps=3")
    with pytest.raises(wl.errors.InvalidArgument, match="option=value"):
        Cg(A, "jacobi:sweeps")


def test_a_value_in_parentheses_has_options_of_its_own():
    A = wl.Csr(poisson(12))
    inner = "ilu:factor_sweeps=2,apply=jacobi:2"
    M = Cg(A, f"amg:smoother=({inner}),sweeps=(1, 2),coarse_rows=20").M
    assert (M.smoother, M.sweeps, M.coarse_rows) == (inner, (1, 2), 20)
    same = wl.preconditioners.Amg(A, smoother=inner, sweeps=(1, 2), coarse_rows=20)
    np.testing.assert_array_equal(M @ np.ones(144), same @ np.ones(144))
    schwarz = Cg(A, "schwarz:inner=(amg:smoother=(ic:level=1),cycle=W),overlap=1").M
    assert (schwarz.inner.smoother, schwarz.inner.cycle) == ("ic:level=1", "W")
    assert schwarz.overlap == 1
    for wrong in ("amg:smoother=(ilu:level=1", "amg:smoother=ilu)"):
        with pytest.raises(wl.errors.InvalidArgument, match=r"as many '\)' as '\('"):
            Cg(A, wrong)


# ---- new values


def test_update_follows_new_values_in_the_same_matrix(on, rng):
    S = poisson(6)
    A, b = wl.Csr(S.copy(), executor=on), rng.standard_normal(36)
    solver = Cg(A, "jacobi", rtol=1e-10)
    solver.solve(b)
    work = solver.workspace(A.dtype, 1)
    new = S.data * np.where(S.indices == np.repeat(np.arange(36), np.diff(S.indptr)), 2.0, 1.0)
    A.update_values(new)
    solver.update()
    assert solver.workspace(A.dtype, 1) is work, "recorded programs are kept"
    S.data[:] = new
    expected = Cg(wl.Csr(S, executor=on), "jacobi", rtol=1e-10).solve(b)
    found = solver.solve(b)
    assert found.iterations == expected.iterations
    np.testing.assert_array_equal(found.x, expected.x)


def test_update_takes_another_matrix(on, rng):
    S = poisson(6)
    b = rng.standard_normal(36)
    solver = Cg(wl.Csr(S, executor=on), "jacobi", rtol=1e-10)
    solver.solve(b)
    other = S.copy()
    other.setdiag(7.0)
    solver.update(wl.Csr(other, executor=on))
    result = solver.solve(b)
    assert result.converged
    np.testing.assert_allclose(other @ result.x, b, atol=1e-8)
    np.testing.assert_allclose(solver.M @ np.ones(36), np.full(36, 1 / 7))


def test_update_in_another_precision_makes_new_copies(on, rng):
    S = poisson(6, "float32")
    A, b = wl.Csr(S.copy(), executor=on), rng.standard_normal(36)
    solver = Cg(A, "jacobi", rtol=1e-10)
    solver.solve(b)  # float64 copies of the operators
    A.update_values(2 * S.data)
    solver.update()
    np.testing.assert_allclose(2 * S @ solver.solve(b).x, b, atol=1e-7)


def test_an_update_that_does_not_fit_changes_nothing(on, rng):
    A = wl.Csr(poisson(3), executor=on)
    solver = Cg(A, "jacobi")
    with pytest.raises(wl.errors.ShapeMismatch, match="expected an operator of 9x9, got 4x4"):
        solver.update(wl.Csr(poisson(2), executor=on))
    singular = poisson(3)
    singular.setdiag(0.0)
    with pytest.raises(wl.errors.InvalidMatrix, match="rows 0, 1"):
        solver.update(wl.Csr(singular, executor=on))
    assert solver.A is A
    np.testing.assert_array_equal(solver.M @ np.ones(9), np.full(9, 0.25))


def test_an_unknown_option_beside_a_matrix_names_the_nearest_one():
    A = wl.Csr(np.eye(2))
    for kind, wrong, near in (
        (wl.solvers.Cg, "rtl", "rtol"),
        (wl.solvers.Gmres, "restarts", "restart"),
        (wl.preconditioners.Ilu, "levels", "level"),
    ):
        with pytest.raises(wl.errors.InvalidArgument, match=f"did you mean {near}=.* its options"):
            kind(A, **{wrong: 1})


COUNTS = {
    "Cg": ("maxiter",), "Gmres": ("restart", "maxiter"), "Lgmres": ("augmentation",),
    "Gcrotmk": ("k",), "Idr": ("s",), "Lsmr": ("maxiter",), "Lanczos": ("k", "maxiter"),
    "SingularValues": ("k",), "Direct": ("refine",),
}  # fmt: skip
PARTS = {
    "Amg": ("width", "aggressive", "coarse_rows", "block_size"), "Chebyshev": ("degree",),
    "Polynomial": ("degree",), "BlockJacobi": ("size",), "Isai": ("power",),
    "BlockSchwarz": ("blocks", "overlap"),
}  # fmt: skip


@pytest.mark.parametrize("value", [True, False, 2.5, "two", -1, float("nan"), np.True_])
def test_numbers_of_things_are_integers_and_no_booleans(value):
    A = wl.Csr(poisson(4))
    for module, known in ((wl.solvers, COUNTS), (wl.preconditioners, PARTS)):
        for name, options in known.items():
            for option in options:
                with pytest.raises(wl.errors.InvalidArgument, match=option):
                    getattr(module, name)(A, **{option: value})
    for call in (
        lambda: wl.solve(A, np.ones(16), maxiter=value), lambda: stop.Iterations(value),
        lambda: wl.linalg.gmres(A, np.ones(16), restart=value),
        lambda: wl.linalg.eigsh(A, k=value), lambda: wl.linalg.svds(A, k=value),
    ):  # fmt: skip
        with pytest.raises(wl.errors.InvalidArgument):
            call()


def test_a_float_without_a_fraction_is_an_integer():
    A, b = wl.Csr(poisson(4)), np.ones(16)
    assert wl.solvers.Cg(A, maxiter=3.0, rtol=1e-14).solve(b).iterations == 3
    assert wl.solvers.Gmres(A, restart=np.int64(4)).restart == 4
