"""Modules run by a new interpreter, as after an installation: with the byte code of modules."""

from __future__ import annotations

import os
import subprocess
import sys

#: Where it is set, Python compiles the text of each module at each start: of the modules of a first
#: ``wl.solve`` for 0.4 s, which an installed package does not take.
WITHOUT_BYTE_CODE = "PYTHONDONTWRITEBYTECODE"


def output_of(module: str, *words: str, **variables: str) -> str:
    """Run a module with arguments in a new process, and return its last line.

    Parameters
    ----------
    module : str
        Its name.
    *words : str
        Its arguments.
    **variables : str
        Changes of the environment.

    Raises
    ------
    RuntimeError
        If it fails; the message is the last line of its errors.

    Examples
    --------
    >>> from wollemi_bench.fresh_process import output_of
    >>> output_of("this")
    "Namespaces are one honking great idea -- let's do more of those!"
    """
    environment = {**os.environ, **variables}
    environment.pop(WITHOUT_BYTE_CODE, None)
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or f"status {done.returncode}").splitlines()[-1])
    return done.stdout.splitlines()[-1]
