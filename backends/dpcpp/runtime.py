"""Find and prepare the requirements of this backend: dpctl, the SYCL runtime and its headers.

The packages from PyPI install the OpenCL CPU device where no loader searches for it. :func:`load`
configures the loader before SYCL counts its devices, which it does once per process.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from types import ModuleType

from ...core.errors import ExecutorUnavailable
from . import program_cache

INSTALL = 'pip install "wollemi[dpcpp]"'

#: File name of the OpenCL driver for CPUs, for the loader.
CPU_DRIVER = "libintelocl.so"


def load() -> ModuleType:
    """Prepare the environment, and return dpctl.

    Raises
    ------
    ExecutorUnavailable
        If dpctl, or the SYCL runtime that it needs, is missing.
    """
    prepare()
    try:
        import dpctl
        import dpctl.memory
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == "dpctl":
            raise ExecutorUnavailable(
                f"dpcpp: dpctl, which finds SYCL devices, is not installed; {INSTALL}"
            ) from error
        raise ExecutorUnavailable(
            f"dpcpp: dpctl could not be imported: {error}; {INSTALL}"
        ) from error
    except ImportError as error:
        raise ExecutorUnavailable(
            f"dpcpp: dpctl found no SYCL runtime that fits it ({error}); {INSTALL} brings dpctl "
            "0.22 with the runtimes of 2026; runtimes of other years do not fit"
        ) from error
    return dpctl


def prepare() -> None:
    """Set the environment variables that the runtime reads; settings of the user are kept.

    ``OCL_ICD_FILENAMES`` names the CPU driver from PyPI; :mod:`.program_cache` lists the others.
    """
    driver = installed_file("intel-opencl-rt", CPU_DRIVER)
    if driver is not None:
        os.environ.setdefault("OCL_ICD_FILENAMES", str(driver))
    program_cache.prepare()


def installed_file(package: str, name: str) -> Path | None:
    """Return the file called ``name`` that a PyPI package installed, or None."""
    usual = Path(sys.prefix) / "lib" / name
    if usual.exists():
        return usual
    try:
        listed = files(package) or []
    except PackageNotFoundError:
        return None
    found = (Path(str(f.locate())).resolve() for f in listed if f.name == name)
    return next((path for path in found if path.exists()), None)


@cache
def library() -> Path:
    """Return the SYCL runtime library that dpctl loaded into this process.

    Raises
    ------
    ExecutorUnavailable
        If there is none, or if it cannot be identified.
    """
    load()
    maps = Path("/proc/self/maps")
    text = maps.read_text() if maps.exists() else ""
    found = re.search(r"(/\S*/libsycl\.so[.\d]*)$", text, re.MULTILINE)
    if found is None:
        raise ExecutorUnavailable(f"the SYCL runtime library was not found; {INSTALL}")
    return Path(found.group(1))


@cache
def version() -> str:
    """Return a string that differs between builds of :func:`library`."""
    path = library().resolve()
    facts = path.stat()
    return f"{path}{facts.st_size} {facts.st_mtime_ns}"


@cache
def headers() -> Path:
    """Return the folder with the headers that belong to :func:`library`.

    Raises
    ------
    ExecutorUnavailable
        If they are missing; the message says how to install them.
    """
    folders = [library().parent.parent / "include", Path(sys.prefix) / "include"]
    brought = installed_file("intel-sycl-rt", "sycl.hpp")
    if brought is not None:
        folders.append(brought.parent.parent)
    for folder in folders:
        if (folder / "sycl" / "sycl.hpp").exists():
            return folder
    raise ExecutorUnavailable(
        f"the headers of SYCL, which kernels are compiled with, are not in "
        f"{' or '.join(map(str, dict.fromkeys(folders)))}; they come with intel-sycl-rt: {INSTALL}"
    )
