"""SciPy's own tests of LOBPCG, run with ours."""

import wollemi as wl

from .loading import test_module, tests_of

lobpcg = test_module(
    "scipy.sparse.linalg._eigen.lobpcg.tests.test_lobpcg",
    {"scipy.sparse.linalg._eigen.lobpcg": {"lobpcg": wl.linalg.lobpcg}},
)

globals().update(tests_of(lobpcg))
