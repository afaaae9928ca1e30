"""Suggest the right option or argument where a user gives an unknown one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from ..core.distributed.mpi import SIZE_VARIABLES
from ..core.suggest import nearest
from .console import complain

#: Options of other programs and parameters of Python, by the equivalent options of the commands.
_SAME = {
    "--out": ("--save", "-o", "--output", "--write", "--solution"),
    "--precond": ("--M", "-M", "--preconditioner", "--prec", "--pc", "--pc_type"),
    "--method": ("--solver", "--ksp_type"),
    "--rtol": ("--tol", "--tolerance", "--eps", "--ksp_rtol"),
    "--maxiter": ("--max-iter", "--max_iter", "--iterations", "--ksp_max_it"),
    "--executor": (
        "--device", "--backend", "--gpu", "--cuda", "--cpu", "--threads", "--num-threads",
        "--nthreads", "-t", "-j", "-n", "--np", "--mpi",
    ),
    "--plot": ("--save", "--picture", "--figure", "--png"),
    "--report": ("--html",),
    "--quiet": ("--silent",),
    "--progress": ("--verbose", "-v"),
}  # fmt: skip

#: Matches a preconditioner or a method in a message for Python programs, such as ``M="ic"``.
_IN_PYTHON = re.compile(r"""\b(M|method)=(["'])([^"']+)\2""")


def same_options(name: str, known: Iterable[str]) -> list[str]:
    """Return the options of a command that are equivalent to an unknown option.

    Parameters
    ----------
    name : str
        The option that was given.
    known : iterable of str
        The options of the command.

    Examples
    --------
    >>> same_options("--save", ["--out", "--plot", "--rtol"])
    ['--out', '--plot']
    >>> same_options("--M", ["--method", "--precond"])
    ['--precond']
    """
    options = list(known)
    return [option for option, names in _SAME.items() if option in options and name in names]


def completed(error: Any, known: Iterable[str]) -> None:
    """Add equivalent options, and the accepted files, to an error of the parser.

    Parameters
    ----------
    error : Exception
        An error of Click, which has several classes with the same name.
    known : iterable of str
        The options of the command.
    """
    options = list(known)
    name = getattr(error, "option_name", None)
    if name is not None:
        near = nearest(name, options)
        found = same_options(name, options) or ([] if near is None else [near])
        error.possibilities = found or None
        return
    message = getattr(error, "message", None)
    if isinstance(message, str) and "extra argument" in message and "--out" in options:
        error.message = (
            f"{message}; the files are A and B, the matrix and the right-hand side: write the "
            "solution with --out x.mtx"
        )


def as_options(message: str) -> str:
    """Return a message with Python arguments replaced by command line options.

    Examples
    --------
    >>> as_options('use M="schwarz:inner=ic"')
    'use --precond schwarz:inner=ic'
    """
    return _IN_PYTHON.sub(
        lambda option: f"--{'precond' if option[1] == 'M' else option[1]} {option[3]}", message
    )


def warn_ranks_alone() -> None:
    """Tell a rank of MPI that it solves the whole system alone."""
    ranks = max(int(os.environ.get(name, "1")) for name in SIZE_VARIABLES)
    if ranks > 1:
        complain(
            f"the launcher has started {ranks} ranks, and each of them solves the whole system: "
            "--on mpi shares it among them"
        )
