"""SciPy's own tests of its iterative solvers, run with ours."""

import wollemi as wl

from .loading import NotOurs, test_module, tests_of

SCIPYS = ["bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr"]

solvers = {name: getattr(wl.linalg, name, NotOurs(name)) for name in SCIPYS}
module = test_module(
    "scipy.sparse.linalg._isolve.tests.test_iterative", {"scipy.sparse.linalg._isolve": solvers}
)
module._SOLVERS = [s for s in module._SOLVERS if not isinstance(s, NotOurs)]

globals().update(tests_of(module, fixtures=("solver", "case")))
