"""SciPy's own tests of its gcrotmk, run with ours."""

import wollemi as wl

from .loading import test_module, tests_of

module = test_module(
    "scipy.sparse.linalg._isolve.tests.test_gcrotmk",
    {
        "scipy.sparse.linalg._isolve": {
            name: getattr(wl.linalg, name) for name in ("gcrotmk", "gmres")
        }
    },
)
globals().update(tests_of(module))
