"""A program for the pure wheel, as on a system that is not Linux and has no threads.

The modules and functions that POSIX or Linux alone have are taken away first, then wollemi is
imported and used: matrices, products, solvers, preconditioners, eigenvalues, files and commands.
The program needs the wheel, NumPy, SciPy, rich and typer, and ends at the first error.
"""

from __future__ import annotations

import builtins
import concurrent.futures
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rich.console  # noqa: F401
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.csgraph
import scipy.sparse.linalg
import typer.testing

#: Modules of the standard library that Windows or Pyodide lack.
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "syslog", "_posixshmem")

#: Names in ``os`` that Windows, macOS or Pyodide lack.
FUNCTIONS = (
    *("fork", "forkpty", "posix_spawn", "wait", "waitpid", "getppid"),
    *("sched_getaffinity", "sched_setaffinity", "sched_yield", "getloadavg", "sysconf"),
    *("getuid", "geteuid", "getgid", "getegid", "statvfs", "mkfifo", "memfd_create", "eventfd"),
    *("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_DIRECTORY", "O_PATH", "pipe2", "killpg", "chown"),
)

#: Folders of Linux.
FOLDERS = ("/proc", "/sys", "/dev/shm")


def forbid() -> None:
    """Take away the modules, functions, folders and threads of Linux."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for name in FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)
    for holder, name in (
        *((builtins, "open"), (io, "open"), (os, "open"), (os, "stat")),
        *((os, "lstat"), (os, "listdir"), (os, "scandir"), (os, "readlink")),
    ):
        setattr(holder, name, _outside_linux(getattr(holder, name)))

    def no_thread(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    def no_process(*_: object, **__: object) -> None:
        raise OSError("emscripten does not support processes")

    threading.Thread.start = no_thread  # type: ignore[method-assign]
    concurrent.futures.ThreadPoolExecutor.submit = no_thread  # type: ignore[assignment, method-assign]
    subprocess.Popen.__init__ = no_process  # type: ignore[assignment, method-assign]


def _outside_linux(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of files that finds none of Linux's folders."""

    def call(path: Any = ".", *arguments: Any, **options: Any) -> Any:
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(FOLDERS):
            raise FileNotFoundError(2, "No such file or directory", os.fspath(path))
        return function(path, *arguments, **options)

    return call


def check_installation() -> None:
    """Check that there are no native modules, and that the installation says so."""
    import wollemi as wl
    from wollemi.cli.app import app

    folder = Path(wl.__file__).parent
    assert not [*folder.rglob("*.so"), *folder.rglob("*.pyd")], "the wheel has native modules"
    assert importlib.util.find_spec("wollemi.backends.omp._cpu") is None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert wl.Identity(2).executor.name == "reference"
        assert wl.Identity(3).executor.name == "reference"
    (warning,) = [one for one in said if "no native modules" in str(one.message)]
    assert warning.category is RuntimeWarning
    try:
        wl.executor("omp")
    except wl.errors.ExecutorUnavailable as error:
        assert "no native modules" in str(error), error
    else:
        raise AssertionError("omp is available without its modules")
    run = typer.testing.CliRunner().invoke
    told = run(app, ["info"]).stdout
    assert "no native modules" in told, told
    told = run(app, ["info", "--json"])
    assert '"native": false' in told.stdout, told.output or told.exception
    doctor = run(app, ["doctor"])
    assert doctor.exit_code == 0, doctor.stdout
    assert "omp" in doctor.stdout


def check_products(S: sp.csr_array, x: np.ndarray) -> None:
    """Compare products, sums and structure in all formats with SciPy."""
    import wollemi as wl

    dense = S.toarray()
    for format in (wl.Csr, wl.Csc, wl.Coo, wl.Ell, wl.Sellp, wl.Hybrid, wl.Bsr, wl.Dense):
        A = format(dense) if format is wl.Dense else format(S)
        assert np.allclose(A @ x, dense @ x), format
        assert np.allclose(A.T @ x, dense.T @ x), format
        assert np.allclose(A @ np.stack([x, x], 1), (dense @ x)[:, None]), format
    A = wl.Csr(S)
    assert np.allclose((A @ A.T).toarray(), dense @ dense.T)
    assert np.allclose((A + 2 * A).toarray(), 3 * dense)
    assert np.allclose(A[:, 3:9].toarray(), dense[:, 3:9])
    assert np.allclose(wl.sparse.vstack([A, A]).toarray(), np.vstack([dense, dense]))
    assert np.allclose(A.sum(axis=0), dense.sum(axis=0))
    assert (A > 0).nnz == (dense > 0).sum()
    assert np.isclose(wl.linalg.norm(A), np.linalg.norm(dense))


def check_solvers(S: sp.csr_array, b: np.ndarray) -> None:
    """Solve one system by many solvers and preconditioners."""
    import wollemi as wl

    A = wl.Csr(S)
    for name in ("Cg", "Fcg", "Minres", "Gmres", "Fgmres", "Bicgstab", "Idr", "Cgs", "Qmr", "Bicg"):
        result = getattr(wl.solvers, name)(A, rtol=1e-9).solve(b)
        assert np.linalg.norm(S @ result.x - b) < 1e-7 * np.linalg.norm(b), (name, result)
    for M in ("jacobi", "ilu", "ic", "isai", "amg", "chebyshev"):
        result = wl.solve(A, b, method="cg", M=M, rtol=1e-9)
        assert np.linalg.norm(S @ result.x - b) < 1e-7 * np.linalg.norm(b), (M, result)
    assert np.allclose(wl.solvers.Direct(A).solve(b).x, result.x)
    assert wl.solve(A, b).converged
    assert np.allclose(S @ wl.linalg.lsqr(A, b, atol=1e-12, btol=1e-12)[0], b, atol=1e-6)
    found = wl.linalg.eigsh(A, k=2, which="SA", return_eigenvectors=False)
    assert np.allclose(np.sort(found), scipy.linalg.eigvalsh(S.toarray())[:2], atol=1e-6)


def check_files(S: sp.csr_array, folder: Path) -> None:
    """Write a matrix, read it, and solve with it on the command line."""
    import wollemi as wl
    from wollemi.cli.app import app

    file = folder / "matrix.mtx"
    wl.write(file, wl.Csr(S))
    assert np.array_equal(wl.read(file).toarray(), S.toarray())
    done = typer.testing.CliRunner().invoke(app, ["solve", str(file)])
    assert done.exit_code == 0, done.output
    assert "reference" in done.output


def main() -> None:
    """Make all checks; the first that fails ends the program."""
    began = time.perf_counter()
    forbid()
    import wollemi as wl

    n = 60
    S = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    x = np.linspace(1.0, 2.0, n)
    check_installation()
    check_products(S, x)
    check_solvers(S, S @ x)
    folder = Path(tempfile.mkdtemp())
    check_files(S, folder)
    for file in folder.iterdir():  # shutil.rmtree needs names of os that are taken away
        file.unlink()
    folder.rmdir()
    took = time.perf_counter() - began
    print(f"wollemi {wl.__version__} without native modules: all is well ({took:.1f} s)")


if __name__ == "__main__":
    main()
