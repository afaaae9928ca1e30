"""Expectations of other libraries' tests from which wollemi deviates, with the reasons.

A test that is listed here must fail: one that passes again is to be taken off the list.
"""

# {"test module": {"test": "why"}}; a name with "[*-lgmres]" is of some parameters, of
# which some pass
DIFFERENCES: dict[str, dict[str, str]] = {
    "test_scipy_iterative": {
        "test_precond_inverse": (
            "three products with A are allowed there; the residual that is computed from x, before "
            "the first iteration and for the verdict, takes two besides those of BiCGSTAB and CGS"
        ),
        "test_show[case20]": "TFQMR converges on it: a breakdown is followed by another cycle",
        "test_maxiter[*-gcrotmk]": "a solve that converges in its only cycle has converged",
        "test_maxiter[*-lgmres]": "a solve that converges in its only cycle has converged",
        "TestGMRES::test_callback": (
            "the callback gets the norms of the system: M is used from the right"
        ),
    },
    "test_scipy_gcrotmk": {
        "TestGCROTMK::test_preconditioner": "the verdict takes a product with A",
        "TestGCROTMK::test_CU": "products that make C of U anew and the verdict's are counted",
        "TestGCROTMK::test_truncate": "the oldest vector is replaced: 'smallest' is refused",
    },
    "test_scipy_lgmres": {
        "TestLGMRES::test_outer_v": "corrections come after the Krylov vectors: others are refused",
    },
    "test_scipy_eigen": {
        "test_nonhermitian_warning": "SciPy warns; here a matrix that is not Hermitian is refused",
        "test_fiedler_small_8": "small matrices need no dense solver, and no warning of one",
        "test_failure_to_run_iterations_nonsymmetric": "a failure has wollemi's message",
        "test_verbosity": "a failure has wollemi's message",
        "test_inplace_warning": "nothing of the caller's is computed in place",
        "test_maxit": "wollemi's message of a failure; no postprocessing in the history",
        "test_symmetric_no_convergence": "a failure is NotConverged, with its result",
        "test_eigsh_for_k_greater": "the matrix is not symmetric there, and found not to be solved",
        "test_reentering": "the operator is not linear there, and found not to be solved",
        "Test_SVDS_ARPACK::test_svd_maxiter": "a failure is NotConverged",
        "Test_SVDS_ARPACK::test_svds_parameter_tol": "a solve ends when it has met its tolerance",
        "Test_SVDS_ARPACK::test_svds_input_validation_*": "errors are in our words",
        "Test_SVDS_once::test_svds_input_validation_solver[*": "there is one method: none is named",
    },
    "test_pyamg_krylov": {
        "TestStoppingCriteria::test_stoppingcriteria": (
            "PyAMG's criteria rr+, MrMr and rMr are its own"
        ),
    },
}

#: Tests of solvers that wollemi does not have, by the name of the solver: left out.
TESTS_OF_ONE_SOLVER = {"test_show": "tfqmr", "TestQMR": "qmr"}
