"""Find this machine's C++ compiler, which builds the libraries that no wheel can contain."""

from __future__ import annotations

import os
import shutil

from ...core.errors import ExecutorUnavailable


def find_compiler(purpose: str) -> str:
    """Return the C++ compiler: ``$CXX``, or the first available of g++, clang++ and c++.

    Parameters
    ----------
    purpose : str
        The library to build, as the error message names it: ``"the link between Python and SYCL"``.

    Raises
    ------
    ExecutorUnavailable
        If there is no compiler; the message says how to install one.
    """
    for candidate in (os.environ.get("CXX", ""), "g++", "clang++", "c++"):
        if candidate and shutil.which(candidate):
            return candidate
    raise ExecutorUnavailable(
        f"no C++ compiler was found, which builds {purpose} once; install g++ (Debian, Ubuntu: "
        "apt install g++; Fedora: dnf install gcc-c++), or set CXX to one"
    )
