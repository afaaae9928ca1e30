"""SciPy's own tests of LSQR and LSMR, run with ours."""

import wollemi as wl

from .loading import test_module, tests_of

OURS = {"scipy.sparse.linalg": {"lsqr": wl.linalg.lsqr, "lsmr": wl.linalg.lsmr}}

lsqr = test_module("scipy.sparse.linalg._isolve.tests.test_lsqr", OURS)
lsmr = test_module("scipy.sparse.linalg._isolve.tests.test_lsmr", OURS)

globals().update(tests_of(lsqr) | tests_of(lsmr))
