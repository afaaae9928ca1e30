"""``wollemi doctor``: test the installation and print remedies."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Annotated, Final, Literal

import numpy as np
import scipy.sparse as sp
import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from ..core import cache
from ..core.errors import WollemiError
from ..core.formats import Csr
from ..core.registry import available_executors
from ..core.wording import counted
from ..solvers.auto.choose import solve
from .console import console

OK: Final = "ok"
ADVICE: Final = "advice"
MISSING: Final = "not available"
FAILED: Final = "failed"
State = Literal["ok", "advice", "not available", "failed"]

#: Unknowns of the test system, which shows that kernels compile, load and compute.
UNKNOWNS = 400
RTOL = 1e-8

#: Tolerance for the difference between a product and SciPy's, relative to its largest element: a
#: few roundings.
TOLERANCE = 64 * float(np.finfo(np.float64).eps)


#: The suffix of the names of checks that solve a system.
_SOLVE = ": solve"


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Parameters
    ----------
    name : str
        The name of the check.
    state : str
        ``ok``, ``advice`` (works, but a setting would make it faster), ``not available`` (needs a
        device or a package that this machine lacks) or ``failed``.
    detail : str
        The finding.
    remedy : str
        The remedy; empty if none is needed.
    """

    name: str
    state: State
    detail: str
    remedy: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Check the installation: the cache, and a product and a solve on each executor.

    Exit status: 0 if everything that is installed works, 1 if a check failed.
    """
    if as_json:
        checks = list(examine())
        print(json.dumps([asdict(check) for check in checks], indent=2))
        raise typer.Exit(int(any(check.state == FAILED for check in checks)))
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("finding, and remedy", overflow="fold")
    failed, working = 0, []
    for check in examine():
        colour = {OK: "green", ADVICE: "yellow", MISSING: "dim", FAILED: "red"}[check.state]
        text = escape(check.detail) + (f"\n[bold]{escape(check.remedy)}[/]" if check.remedy else "")
        table.add_row(check.name, f"[{colour}]{check.state}[/]", text)
        failed += check.state == FAILED
        if check.state == OK and check.name.endswith(_SOLVE):
            working.append(check.name.removesuffix(_SOLVE))
    console().print(table)
    if failed:
        console().print(f"{counted(failed, 'check')} failed")
    else:
        console().print(
            f"no check failed; executors that work here: {', '.join(working) or 'none'}"
        )
    raise typer.Exit(int(failed > 0))


def examine() -> Iterator[Check]:
    """Yield the results of all checks of this machine, one by one."""
    yield _cache_check()
    for line in available_executors():
        if not line.available:
            yield Check(line.name, MISSING, line.reason)
            continue
        yield _tried(f"{line.name}: product", line.name, _product)
        yield _tried(f"{line.name}{_SOLVE}", line.name, _solve)
    if find_spec("torch") is not None:
        yield _threads_check(os.environ.get("OMP_WAIT_POLICY", ""))


def _threads_check(policy: str) -> Check:
    """Check whether PyTorch's idle threads leave the cores to wollemi's threads."""
    name = "idle threads of PyTorch"
    if policy.lower() == "passive":
        return Check(name, OK, "they sleep: OMP_WAIT_POLICY=passive")
    remedy = "in programs with PyTorch on shared cores set OMP_WAIT_POLICY=passive"
    return Check(name, ADVICE, "they spin, which slows wollemi between calls of PyTorch", remedy)


def _cache_check() -> Check:
    """Check the folder for compiled code; create it if it does not exist."""
    try:
        folder = cache.require_private_root()
    except OSError as error:
        remedy = "set WOLLEMI_CACHE_DIR to a folder that you alone can write"
        return Check("cache of compiled code", FAILED, str(error), remedy)
    return Check("cache of compiled code", OK, str(folder))


def _tried(name: str, executor: str, body: Callable[[str], str]) -> Check:
    """Return the result of a computation on an executor."""
    begin = time.perf_counter()
    try:
        detail = body(executor)
    except _WrongResult as wrong:
        remedy = "this is a bug: report it with the output of `wollemi info`"
        return Check(name, FAILED, str(wrong), remedy)
    except WollemiError as error:
        return Check(name, FAILED, str(error), "repair the cause in the message, and try again")
    except Exception as error:  # drivers and compilers raise errors of their own
        remedy = f"{executor} is found and does not work: check its driver and its packages"
        return Check(name, FAILED, f"{type(error).__name__}: {error}", remedy)
    return Check(name, OK, f"{detail}; the first call took {time.perf_counter() - begin:.2g} s")


class _WrongResult(Exception):
    """A computation gave a wrong result."""


def _system() -> tuple[sp.csr_array, np.ndarray]:
    """Return a chain of springs, and the forces that move each of its points by one."""
    diagonals = [-1.0, 2.5, -1.0]
    S = sp.diags_array(diagonals, offsets=[-1, 0, 1], shape=(UNKNOWNS, UNKNOWNS)).tocsr()
    return S, np.ones(UNKNOWNS)


def _product(executor: str) -> str:
    S, x = _system()
    x *= np.arange(UNKNOWNS)
    right = S @ x
    error = float(np.max(np.abs(Csr(S, executor=executor) @ x - right)) / np.max(np.abs(right)))
    if not error <= TOLERANCE:
        raise _WrongResult(f"a product differs from SciPy by {error:.1e}")
    said = (
        f"differs from SciPy's by {error:.1e} at most, by rounding" if error else "equals SciPy's"
    )
    return f"the product {said}"


def _solve(executor: str) -> str:
    S, ones = _system()
    b = S @ ones
    result = solve(Csr(S, executor=executor), b, method="cg", rtol=RTOL)
    residual = float(np.linalg.norm(b - S @ result.x) / np.linalg.norm(b))
    if not (result.converged and residual <= 2 * RTOL):
        raise _WrongResult(f"{result.reason}; the residual is {residual:.1e}, asked {RTOL:.0e}")
    return f"converged: {result.iterations} iterations of CG, residual {residual:.1e} of b"
