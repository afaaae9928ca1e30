"""What other libraries' tests expect and wollemi does otherwise on purpose, each with the reason.

A test that is listed here must fail: one that passes again is to be taken off the list.
"""

# {"test module": {"test": "why"}}
DIFFERENCES: dict[str, dict[str, str]] = {
    "test_scipy_iterative": {
        "test_precond_inverse": (
            "three products with A are allowed there; the residual that is computed from x, before "
            "the first iteration and for the verdict, takes two besides those of BiCGSTAB and CGS"
        ),
        "TestGMRES::test_callback": (
            "the norms that the callback gets are those of the system: M is used from the right"
        ),
    },
    "test_pyamg_krylov": {
        "TestStoppingCriteria::test_stoppingcriteria": (
            "PyAMG's criteria rr+, MrMr and rMr are its own"
        ),
    },
}

#: Tests of solvers that wollemi does not have, by the name of the solver: left out.
TESTS_OF_ONE_SOLVER = {"test_show": "tfqmr", "TestQMR": "qmr"}
