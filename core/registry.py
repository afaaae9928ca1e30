"""The registry of executors by name, and the default executor.

The registry finds backends through the entry-point group ``wollemi.backends``. An entry point names
a :class:`Backend`. Loading it may import the backend's libraries (CuPy, dpctl), so it is loaded at
the first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .algorithm import AlgorithmTable
from .caller import warn_caller
from .described import rows_table, side_by_side
from .errors import ExecutorUnavailable, InvalidArgument
from .executor import Executor
from .operation import KernelTable, Operation
from .suggest import hint

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "wollemi.backends"

# The order of lists and searches; other installed backends follow by name.
_ORDER = ("reference", "omp", "cuda", "hip", "dpcpp")

#: The end of the message about an unknown name, from which a user who asked for "gpu" learns the
#: name of the backend.
_DEVICES = "for GPUs of NVIDIA: cuda, of AMD: hip, for SYCL devices: dpcpp"

#: Device names of other libraries, with the backend of each.
_SYNONYMS = {
    "cpu": "omp", "threads": "omp", "openmp": "omp", "numpy": "reference", "nvidia": "cuda",
    "rocm": "hip", "amd": "hip", "sycl": "dpcpp", "xpu": "dpcpp", "intel": "dpcpp",
}  # fmt: skip


@dataclass(frozen=True)
class Backend:
    """The functions by which the registry uses a backend's package.

    Parameters
    ----------
    name : str
        Name of the backend, such as ``omp``.
    make : callable
        Makes an executor from the text after the colon in its name (``"4"`` in ``omp:4``; ``""``
        without a colon). It raises :class:`ExecutorUnavailable` with the reason and the remedy.
    devices : callable
        Returns the names of all executors that are available here. It raises
        :class:`ExecutorUnavailable` if there are none.
    kernels : callable
        Loads and returns the kernel table; it needs no device.
    note : str
        A limitation in one sentence; ``wollemi info`` prints it.
    algorithms : callable, optional
        Loads and returns the table of algorithms; it needs no device.
    built : callable
        Returns whether the compiled parts of the backend are installed.
    """

    name: str
    make: Callable[[str], Executor]
    devices: Callable[[], list[str]]
    kernels: Callable[[], KernelTable]
    note: str = ""
    algorithms: Callable[[], AlgorithmTable] | None = None
    built: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class Availability:
    """One line of :func:`available_executors`."""

    name: str
    available: bool
    device: str
    memory: int | None
    reason: str

    def __str__(self) -> str:
        if not self.available:
            return f"{self.name}: not available: {self.reason}"
        size = f", {self.memory / 2**30:.1f} GiB" if self.memory else ""
        return f"{self.name}: {self.device}{size}"


class Availabilities(list[Availability]):
    """The lines of :func:`available_executors`; a notebook shows them as a table."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        """Return the card for notebooks: a row for each executor."""
        rows = [
            (
                line.name,
                line.device if line.available else f"not available: {line.reason}",
                f"{line.memory / 2**30:.1f} GiB" if line.memory else "",
            )
            for line in self
        ]
        return side_by_side(rows_table("Executors", ("executor", "device", "memory"), rows))


def entry_points(*, group: str) -> Any:
    """Return the entry points of a group.

    The import is local, because importing ``importlib.metadata`` takes as long as importing
    NumPy's core.

    Parameters
    ----------
    group : str
        The name of the group.
    """
    from importlib import metadata

    return metadata.entry_points(group=group)


@cache
def _entry_points() -> dict[str, EntryPoint]:
    found = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    ordered = [name for name in _ORDER if name in found]
    return {name: found[name] for name in ordered + sorted(found.keys() - set(_ORDER))}


_registered: dict[str, Backend] = {}


def register_backend(backend: Backend) -> None:
    """Register a backend in this process; packages declare an entry point instead.

    Raises
    ------
    InvalidArgument
        If an installed backend has the same name.
    """
    if backend.name in _entry_points():
        raise InvalidArgument(f"a backend called {backend.name!r} is installed already")
    _registered[backend.name] = backend


def backend_names() -> list[str]:
    """Return the names of all registered backends, including those that cannot be used here."""
    return [*_entry_points(), *_registered]


def backend(name: str) -> Backend:
    """Return the backend called ``name``, loaded.

    Raises
    ------
    ExecutorUnavailable
        If it cannot be loaded, usually because a package that it requires is missing.
    """
    if name in _registered:
        return _registered[name]
    if name not in _entry_points():
        known = ", ".join(backend_names())
        working = dict.fromkeys(
            line.name.partition(":")[0] for line in available_executors() if line.available
        )
        same = _SYNONYMS.get(name.strip().lower())
        meant = hint(name, backend_names()) if same is None else f"did you mean {same!r}? "
        raise InvalidArgument(
            f"no backend is called {name!r}; {meant}known: {known}; "
            f"working on this machine: {', '.join(working)}; {_DEVICES}"
        )
    return _load(name)


@cache
def _load(name: str) -> Backend:
    point = _entry_points()[name]
    try:
        loaded: Backend = point.load()
    except ImportError as error:
        raise ExecutorUnavailable(
            f"the {name} backend could not be imported: {error}; install {_remedy(point)}"
        ) from error
    except Exception as error:  # a broken backend must not stop the others
        raise ExecutorUnavailable(
            f"the {name} backend ({point.value}) failed to load: {type(error).__name__}: {error}"
        ) from error
    return loaded


def _remedy(point: EntryPoint) -> str:
    """Return which package to install for a backend that cannot be imported."""
    if point.module.startswith("wollemi."):
        return f'its requirements with: pip install "wollemi[{point.name}]"'
    return f"the requirements of {point.dist.name if point.dist else point.module}"


def executor(name: str | Executor) -> Executor:
    """Return the executor called ``name``.

    Parameters
    ----------
    name : str or Executor
        For example ``reference``, ``omp``, ``omp:4``, ``cuda``, ``cuda:1``, ``hip:0``,
        ``dpcpp:cpu``. An executor is returned unchanged.

    Raises
    ------
    ExecutorUnavailable
        If it is not available on this machine; the message gives the reason and how to install it.
    InvalidArgument
        If no backend has that name.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.executor("reference")
    <ReferenceExecutor reference>
    """
    if isinstance(name, Executor):
        return name
    if not isinstance(name, str):
        raise InvalidArgument(_not_a_name(name))
    which, _, device = name.partition(":")
    if which == "mpi" or device == "*" or "," in name:
        group = "wl.distributed.world()" if which == "mpi" else repr(name)
        if "," in name:
            group = repr([part.strip() for part in name.split(",")])
        raise InvalidArgument(
            f"{name!r} names several devices, and an executor is one of them; share a matrix among "
            f"all with wl.distribute(A, {group})"
        )
    return backend(which).make(device)


def _not_a_name(value: object) -> str:
    """Return the message about an object that is not an executor, such as a PyTorch device."""
    said = 'an executor is named by a string, such as "omp" or "cuda:0", not by '
    if value is None or isinstance(value, (bool, int, float)):
        return f"{said}{value!r}"
    kind, number = getattr(value, "type", None), getattr(value, "index", None)
    if isinstance(value, type):
        return f"{said}the class {value.__name__}"
    if not isinstance(kind, str):
        return f"{said}an object of {type(value).__name__}"
    name = _SYNONYMS.get(kind, kind)
    return f'{said}{value!r}; write "{name}{f":{number}" if isinstance(number, int) else ""}"'


def available_executors() -> Availabilities:
    """List the executors of all installed backends, or why a backend has none and the remedy."""
    lines = Availabilities()
    for name in backend_names():
        try:
            for device in backend(name).devices():
                properties = executor(device).properties
                lines.append(
                    Availability(
                        device, True, properties.get("name", ""), properties.get("memory"), ""
                    )
                )
        except ExecutorUnavailable as error:
            reason = str(error).removeprefix(f"{name}: ")
            lines.append(Availability(name, False, "", None, reason))
        except Exception as error:  # a broken backend must not stop the others
            lines.append(Availability(name, False, "", None, f"{type(error).__name__}: {error}"))
    return lines


def backend_notes() -> dict[str, str]:
    """Return the limitations of the backends that can be loaded and have some."""
    notes = {}
    for name in backend_names():
        with suppress(ExecutorUnavailable):
            notes[name] = backend(name).note
    return {name: note for name, note in notes.items() if note}


def kernel_table(name: str) -> KernelTable:
    """Return the kernel table of a backend; called with an operation, it decorates a kernel.

    Parameters
    ----------
    name : str
        ``reference``, ``omp``, ``cuda``, ``hip``, ``dpcpp``, or the name of an installed backend.

    Raises
    ------
    InvalidArgument
        If there is no such backend.
    ExecutorUnavailable
        If it cannot be loaded here.

    Examples
    --------
    >>> from wollemi.extend import kernel_table, vector
    >>> kernel_table("reference").has(vector.norm)
    True
    """
    return backend(name).kernels()


def kernel_tables() -> dict[str, KernelTable | None]:
    """Return the kernel table of each installed backend, or None if it cannot be loaded."""
    tables: dict[str, KernelTable | None] = {}
    for name in backend_names():
        try:
            tables[name] = backend(name).kernels()
        except ExecutorUnavailable:
            tables[name] = None
    return tables


def algorithm_tables() -> dict[str, AlgorithmTable]:
    """Return the algorithm table of each installed backend that has one and can be loaded."""
    tables: dict[str, AlgorithmTable] = {}
    for name in backend_names():
        try:
            made = backend(name)
            if made.algorithms is not None:
                tables[name] = made.algorithms()
        except ExecutorUnavailable:
            continue
    return tables


def backends_with(operation: Operation) -> list[str]:
    """Return the names of the backends that have a kernel for ``operation``."""
    return [
        name
        for name, table in kernel_tables().items()
        if table is not None and table.has(operation)
    ]


#: The default executor, and the default of installations without native modules.
_FIRST, _WITHOUT_NATIVE_MODULES = "omp", "reference"


class _Default:
    """The default executor of new objects."""

    current: Any = _FIRST  # a name until the first use: importing wollemi loads no backend


def get_default_executor() -> Executor:
    """Return the executor of matrices that are created without ``executor=``.

    Initially it is ``omp``. An installation without native modules (a pure wheel on a platform
    without native wheels) starts with ``reference``, and a RuntimeWarning reports this once.
    """
    current = _Default.current
    if isinstance(current, str):
        current = _Default.current = _loaded_default(current)
    result: Executor = current
    return result


def host_executor() -> Executor:
    """Return the executor for host arrays: the default one if its arrays are NumPy's."""
    default = get_default_executor()
    return default if default.xp is np else executor(host_name())


def host_name() -> str:
    """Return the name of the fastest installed host executor."""
    return _FIRST if has_native_modules() else _WITHOUT_NATIVE_MODULES


def has_native_modules() -> bool:
    """Return whether the native CPU modules are installed; a pure wheel has none."""
    try:
        return backend(_FIRST).built()
    except ExecutorUnavailable:  # a request for the executor raises its message
        return True


def _loaded_default(name: str) -> Executor:
    if name != _FIRST or has_native_modules():
        return executor(name)
    warn_caller(
        "this installation of wollemi has no native modules: matrices are made on the executor "
        f"{_WITHOUT_NATIVE_MODULES}, which is NumPy and slow. Install a wheel for this platform, "
        f'or accept it with wl.set_default_executor("{_WITHOUT_NATIVE_MODULES}")',
        RuntimeWarning,
    )
    return executor(_WITHOUT_NATIVE_MODULES)


def executor_owning(array: object, name: str) -> Executor:
    """Return the executor of an array, given the name of its location.

    It is the default executor if the array is native to that. A default that was only named but
    never used owns no arrays, and its backend need not be installed.
    """
    default = _Default.current
    return default if isinstance(default, Executor) and default.owns(array) else executor(name)


def set_default_executor(which: str | Executor) -> None:
    """Make ``which`` the executor of matrices that are created without ``executor=``."""
    _Default.current = executor(which)


@contextmanager
def default_executor(which: str | Executor) -> Iterator[Executor]:
    """Use ``which`` as the default executor within a ``with`` block.

    Examples
    --------
    >>> import wollemi as wl
    >>> with wl.default_executor("reference"):
    ...     print(wl.Identity(3).executor)
    <ReferenceExecutor reference>
    """
    before = _Default.current
    set_default_executor(which)
    try:
        yield get_default_executor()
    finally:
        _Default.current = before
