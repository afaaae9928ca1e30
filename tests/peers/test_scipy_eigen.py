"""SciPy's own tests of LOBPCG, run with ours."""

import wollemi as wl

from .loading import test_module, tests_of

lobpcg = test_module(
    "scipy.sparse.linalg._eigen.lobpcg.tests.test_lobpcg",
    {"scipy.sparse.linalg._eigen.lobpcg": {"lobpcg": wl.linalg.lobpcg}},
)

#: Of a function within SciPy's, and of long doubles, for which there are no kernels.
LEFT_OUT = {"test_b_orthonormalize", "test_dtypes"}

globals().update({n: test for n, test in tests_of(lobpcg).items() if n not in LEFT_OUT})
