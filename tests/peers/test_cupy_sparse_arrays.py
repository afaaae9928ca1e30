"""CuPy's own tests of its sparse arrays, run with our matrices.

CuPy's wheels have no tests: unpack the source of CuPy from PyPI (``cupy-*.tar.gz``) and set
``WOLLEMI_CUPY_SOURCE`` to its folder.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from unittest import mock

import pytest

from .loading import tests_of
from .standing_for_cupy import modules
from .test_scipy_sparse_arrays import coo_array, csc_array, csr_array

SOURCE = os.environ.get("WOLLEMI_CUPY_SOURCE", "")
PATH = Path(SOURCE, "tests/cupyx_tests/scipy_tests/sparse_tests/test_sparray.py")
if not SOURCE or not PATH.exists():
    pytest.skip("WOLLEMI_CUPY_SOURCE names no source of CuPy", allow_module_level=True)

spec = importlib.util.spec_from_file_location("cupy_test_sparray", PATH)
assert spec is not None and spec.loader is not None
module = importlib.util.module_from_spec(spec)
STANDING = modules({"csr": csr_array, "csc": csc_array, "coo": coo_array})
with mock.patch.dict(sys.modules, STANDING):
    spec.loader.exec_module(module)
globals().update(tests_of(module))
