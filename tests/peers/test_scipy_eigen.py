"""SciPy's own tests of LOBPCG, run with ours."""

from typing import Any

import pytest

import wollemi as wl

from .loading import test_module, tests_of

lobpcg = test_module(
    "scipy.sparse.linalg._eigen.lobpcg.tests.test_lobpcg",
    {"scipy.sparse.linalg._eigen.lobpcg": {"lobpcg": wl.linalg.lobpcg}},
)

#: Of a function within SciPy's, and of long doubles, for which there are no kernels.
LEFT_OUT = {"test_b_orthonormalize", "test_dtypes"}

globals().update({n: test for n, test in tests_of(lobpcg).items() if n not in LEFT_OUT})


def eigsh(*arguments: Any, **options: Any) -> Any:
    """Skip the deliberate difference: SciPy solves with operators without entries by GMRES."""
    try:
        return wl.linalg.eigsh(*arguments, **options)
    except wl.errors.InvalidArgument as error:
        if "has no entries to factorize" not in str(error):
            raise
        pytest.skip("wollemi asks for OPinv= or Binv= where there are no entries to factorize")


arpack = test_module(
    "scipy.sparse.linalg._eigen.arpack.tests.test_arpack",
    {"scipy.sparse.linalg._eigen.arpack": {"eigsh": eigsh}},
)
svds = test_module(
    "scipy.sparse.linalg._eigen.tests.test_svds",
    {"scipy.sparse.linalg": {"svds": wl.linalg.svds}},
)

#: The tests of eigsh in a module that tests eigs too, which wollemi does not have.
OF_EIGSH = (
    "test_symmetric_modes",
    "test_hermitian_modes",
    "test_symmetric_starting_vector",
    "test_symmetric_no_convergence",
    "test_eigsh_for_k_greater",
    "test_reentering",
)

#: There is one method here, so the tests of one of SciPy's three are enough.
OF_SVDS = ("Test_SVDS_once", "Test_SVDS_ARPACK")

globals().update({name: getattr(arpack, name) for name in OF_EIGSH})
globals().update({name: getattr(svds, name) for name in OF_SVDS})
