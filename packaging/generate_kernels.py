"""Compile the kernels that a wheel carries, from a checkout or an sdist that is not installed.

``generate_kernels.py FOLDER sm_80 sm_90`` is ``wollemi.precompile.build`` there. It needs NumPy and
SciPy, cuda-bindings and NVRTC.
"""

from __future__ import annotations

import ctypes
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/wollemi"

# One folder of an installed package is two folders here.
_spec = spec_from_file_location(
    "wollemi", PACKAGE / "__init__.py", submodule_search_locations=[str(PACKAGE), str(ROOT)]
)
assert _spec is not None and _spec.loader is not None
sys.modules["wollemi"] = _building = module_from_spec(_spec)
_spec.loader.exec_module(_building)


def load_nvrtc() -> None:
    """Load NVRTC from the environment of the build, if it is there.

    pip builds in an environment that is a folder on ``sys.path``. cuda-bindings looks for NVRTC in
    the site-packages of the interpreter alone, and takes a library that is loaded already.
    """
    for folder in map(Path, sys.path):
        for library in sorted(folder.glob("nvidia/*/lib/libnvrtc.so.*")):
            if "alt" not in library.name:
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
                return


if __name__ == "__main__":
    load_nvrtc()
    try:
        import_module("wollemi.precompile.build").main()
    except Exception as error:  # a build has no use for where it happened
        if type(error).__module__ != "wollemi.core.errors":
            raise
        sys.exit(f"WOLLEMI_CUDA_KERNELS: {error}")
