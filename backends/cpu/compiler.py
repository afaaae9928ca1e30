"""The C++ compiler of this machine, which builds the libraries that no wheel can carry."""

from __future__ import annotations

import os
import shutil

from ...core.errors import ExecutorUnavailable


def find_compiler(purpose: str) -> str:
    """Return the C++ compiler: ``$CXX``, or the first of g++, clang++ and c++ that there is.

    Parameters
    ----------
    purpose : str
        The name of the library in the message: ``"the link between Python and SYCL"``.

    Raises
    ------
    ExecutorUnavailable
        If there is none; says how to install one.
    """
    for candidate in (os.environ.get("CXX", ""), "g++", "clang++", "c++"):
        if candidate and shutil.which(candidate):
            return candidate
    raise ExecutorUnavailable(
        f"no C++ compiler was found, which builds {purpose} once; install g++ (Debian, Ubuntu: "
        "apt install g++; Fedora: dnf install gcc-c++), or set CXX to one"
    )
