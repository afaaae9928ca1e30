import pickle
import sys
import types
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.reference import ReferenceExecutor
from wollemi.core import registry
from wollemi.core.errors import ExecutorMismatch, ExecutorUnavailable, InvalidArgument
from wollemi.core.executor import same_executor
from wollemi.core.operation import OPERATIONS, KernelTable
from wollemi.core.registry import Backend


class SixthExecutor(ReferenceExecutor):
    """A user's backend: the reference's memory, another name, and one kernel."""

    kernels = KernelTable("sixth")

    def __init__(self, device: str = "") -> None:
        self._device = device

    @property
    def name(self):
        return f"sixth:{self._device}" if self._device else "sixth"

    @property
    def properties(self):
        return {"name": "sixth sense", "memory": 3 * 2**30}


@SixthExecutor.kernels(OPERATIONS["vector.fill"])
def fill(executor, y, value):
    y[...] = value


SIXTH = Backend("sixth", SixthExecutor, lambda: ["sixth", "sixth:1"], lambda: SixthExecutor.kernels)


@pytest.fixture
def install(monkeypatch):
    """Install backends as entry points: a name, and the module's BACKEND or its error."""
    real = registry.entry_points
    points = []

    def forget():
        registry._entry_points.cache_clear()
        registry._load.cache_clear()

    def install(name, backend=None, value=None):
        module = types.ModuleType(f"package_of_{name}")
        if backend is not None:
            module.BACKEND = backend
        monkeypatch.setitem(sys.modules, module.__name__, module)
        value = value or f"{module.__name__}:BACKEND"
        points.append(EntryPoint(name, value, registry.ENTRY_POINT_GROUP))
        forget()

    monkeypatch.setattr(registry, "entry_points", lambda group: [*real(group=group), *points])
    yield install
    monkeypatch.undo()
    forget()


# ---- names


def test_an_executor_is_made_by_its_name():
    assert isinstance(wl.executor("reference"), ReferenceExecutor)


def test_an_executor_is_its_own_name():
    executor = wl.ReferenceExecutor()
    assert wl.executor(executor) is executor


def test_executors_of_one_name_are_equal():
    assert wl.ReferenceExecutor() == wl.executor("reference")
    assert len({wl.ReferenceExecutor(), wl.executor("reference")}) == 1


def test_executors_of_different_names_are_not_equal():
    assert SixthExecutor() != wl.executor("reference")
    assert SixthExecutor() != SixthExecutor("1")
    assert wl.executor("reference") != "reference"


def test_repr_names_the_executor():
    assert repr(wl.ReferenceExecutor()) == "<ReferenceExecutor reference>"


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InvalidArgument, match=r"no backend is called 'metal'; known: .*omp"):
        wl.executor("metal")


@pytest.mark.parametrize("name", [None, 3, b"omp"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InvalidArgument, match="named by a string"):
        wl.executor(name)


@pytest.mark.parametrize(
    ("name", "meant"), [("cpu", "omp"), ("CUDA", "cuda"), ("rocm", "hip"), ("sycl", "dpcpp")]
)
def test_names_of_other_libraries_are_understood(name, meant):
    with pytest.raises(InvalidArgument, match=f"did you mean '{meant}'"):
        wl.executor(name)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("mpi", "wl.distribute(A, wl.distributed.world())"),
        ("cuda:*", "wl.distribute(A, 'cuda:*')"),
        ("omp:2, omp:2", "wl.distribute(A, ['omp:2', 'omp:2'])"),
    ],
)
def test_names_of_groups_are_no_executors(name, remedy):
    with pytest.raises(InvalidArgument) as caught:
        wl.executor(name)
    assert remedy in str(caught.value)


@pytest.mark.parametrize("name", ["cuda:x", "hip:x", "omp:x", "cuda:0:1"])
def test_a_device_that_is_no_number_is_quoted_with_its_backend(name):
    with pytest.raises(ExecutorUnavailable, match=f'"{name}" names no .*; write "'):
        wl.executor(name)


def test_a_device_of_another_library_is_written_as_a_name():
    class Device:
        type, index = "cuda", 1

    with pytest.raises(InvalidArgument, match='write "cuda:1"'):
        wl.executor(Device())
    with pytest.raises(InvalidArgument, match="not by the class Csr"):
        wl.executor(wl.Csr)


def test_an_executor_that_is_not_available_is_named_once():
    for line in wl.available_executors():
        assert not line.reason.startswith(line.name)


def test_the_reference_has_no_devices():
    with pytest.raises(ExecutorUnavailable, match="no device '3'"):
        wl.executor("reference:3")


def test_an_executor_pickles_as_its_name():
    pickled = pickle.dumps(wl.ReferenceExecutor())
    assert pickle.loads(pickled) == wl.ReferenceExecutor()
    assert len(pickled) < 100


# ---- the default


def test_the_default_is_what_was_set_last():
    before = wl.get_default_executor()
    wl.set_default_executor(SixthExecutor())
    try:
        assert wl.get_default_executor() == SixthExecutor()
    finally:
        wl.set_default_executor(before)


def test_a_default_lasts_as_long_as_its_block():
    with wl.default_executor(SixthExecutor()) as inside:
        assert inside == SixthExecutor()
        assert wl.Identity(2).executor == SixthExecutor()
    assert wl.get_default_executor() == wl.ReferenceExecutor()


def test_a_default_is_restored_after_an_error():
    with pytest.raises(RuntimeError), wl.default_executor(SixthExecutor()):
        raise RuntimeError
    assert wl.get_default_executor() == wl.ReferenceExecutor()


def test_an_unknown_default_changes_nothing():
    with pytest.raises(InvalidArgument):
        wl.set_default_executor("metal")
    assert wl.get_default_executor() == wl.ReferenceExecutor()


# ---- operations


def test_what_has_no_kernel_says_who_has_one(install):
    install("sixth", SIXTH)
    norm = OPERATIONS["vector.norm"]
    with pytest.raises(wl.errors.UnsupportedOperation) as caught:
        SixthExecutor().run(norm, np.ones((1, 1)), np.ones(1))
    message = str(caught.value)
    assert message.startswith("vector.norm has no kernel on sixth (have: reference")
    assert 'Move the data: .to("' in message


def test_an_executor_knows_what_it_has():
    assert SixthExecutor().supports(OPERATIONS["vector.fill"])
    assert not SixthExecutor().supports(OPERATIONS["vector.norm"])


def test_a_kernel_gets_the_executor_and_the_arguments():
    y = np.zeros((2, 1))
    SixthExecutor().run(OPERATIONS["vector.fill"], y, 3.0)
    assert y.tolist() == [[3], [3]]


def test_an_observer_stands_between():
    executor, seen = SixthExecutor(), []

    def observer(where, operation, kernel, arguments):
        seen.append((where, operation, arguments[1]))
        return kernel(where, *arguments)

    executor._observer = observer
    y = np.zeros((1, 1))
    executor.run(OPERATIONS["vector.fill"], y, 3.0)
    assert executor.observed
    assert seen == [(executor, OPERATIONS["vector.fill"], 3.0)]
    assert y.item() == 3


# ---- several executors


def test_operands_on_different_executors_are_named():
    class Placed:
        def __init__(self, executor):
            self.executor = executor

    here, there = Placed(wl.ReferenceExecutor()), Placed(SixthExecutor())
    assert same_executor("the sum", here, here) == wl.ReferenceExecutor()
    with pytest.raises(ExecutorMismatch, match=r"the sum: .* reference and on sixth.*\.to\("):
        same_executor("the sum", here, there)


def test_matrices_on_different_executors_have_no_product():
    A = wl.Csr(np.eye(2), executor="omp")
    B = A.to(SixthExecutor())
    for combine in (lambda: A @ B, lambda: A + B):
        with pytest.raises(ExecutorMismatch):
            combine()


# ---- a sixth backend


def test_an_installed_backend_is_found(install):
    install("sixth", SIXTH)
    assert wl.executor("sixth:1") == SixthExecutor("1")
    assert "sixth" in registry.backend_names()
    assert registry.backend_names()[0] == "reference"


def test_an_installed_backend_is_listed_with_its_devices(install):
    install("sixth", SIXTH)
    lines = [str(line) for line in wl.available_executors()]
    assert "sixth: sixth sense, 3.0 GiB" in lines
    assert "sixth:1: sixth sense, 3.0 GiB" in lines


def test_a_matrix_moves_to_an_installed_backend_and_back(install):
    install("sixth", SIXTH)
    A = wl.Csr(np.eye(2)).to("sixth")
    assert A.executor.name == "sixth"
    assert pickle.loads(pickle.dumps(A)).executor == SixthExecutor()
    assert A.to("reference").executor == wl.ReferenceExecutor()


def test_an_installed_backend_is_in_the_support_matrix(install):
    install("sixth", SIXTH)
    assert registry.kernel_tables()["sixth"] is SixthExecutor.kernels
    assert "sixth" in registry.backends_with(OPERATIONS["vector.fill"])
    assert "sixth" not in registry.backends_with(OPERATIONS["vector.norm"])


def test_a_backend_whose_package_is_missing_says_what_to_install(install):
    install("sixth", value="no_such_package.backend:BACKEND")
    with pytest.raises(
        ExecutorUnavailable, match=r"install the requirements of no_such_package\.backend"
    ):
        wl.executor("sixth")
    install("seventh", value="wollemi.backends.seventh:BACKEND")
    with pytest.raises(ExecutorUnavailable, match=r'pip install "wollemi\[seventh\]"'):
        wl.executor("seventh")
    (line,) = [line for line in wl.available_executors() if line.name == "sixth"]
    assert not line.available
    assert "no_such_package" in str(line)


def test_a_broken_backend_does_not_take_the_others_with_it(install):
    install("sixth", backend=None)
    lines = {line.name: line for line in wl.available_executors()}
    assert lines["reference"].available
    assert "AttributeError" in lines["sixth"].reason
    assert registry.kernel_tables()["sixth"] is None


def test_a_backend_that_cannot_count_its_devices_does_not_either(install):
    install(
        "sixth", Backend("sixth", SixthExecutor, lambda: [1 / 0], lambda: SixthExecutor.kernels)
    )
    lines = {line.name: line for line in wl.available_executors()}
    assert lines["reference"].available
    assert lines["sixth"].reason == "ZeroDivisionError: division by zero"


def test_a_kernel_is_that_of_an_operation():
    with pytest.raises(TypeError, match=r"not of 'csr\.spmv'"):
        SixthExecutor.kernels("csr.spmv")


def test_a_backend_can_be_registered_in_a_process(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register_backend(SIXTH)
    assert wl.executor("sixth") == SixthExecutor()
    assert registry.backend_names()[-1] == "sixth"


def test_an_installed_backend_is_not_replaced(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    imposter = Backend("reference", SixthExecutor, list, lambda: SixthExecutor.kernels)
    with pytest.raises(InvalidArgument, match="installed already"):
        registry.register_backend(imposter)


# ---- arrays made anew


def test_zeros_are_zero(reference):
    junk = [reference.allocate((1000,), np.float64) for _ in range(3)]
    for array in junk:
        array[...] = np.nan
    del junk, array
    assert not reference.zeros((1000,), np.float64).any()
