"""Expectations of other libraries' tests from which wollemi deviates, with the reasons.

A test that is listed here must fail: one that passes again is to be taken off the list.
"""

#: Of SciPy's tests of csr_array, by the reason for which they fail.
_OF_SPARSE_ARRAYS = {
    "values are not assigned one by one or by slices: the test does, or expects errors of it": (
        "assign_1d_slice assign_empty bad_index_assign fancy_assign_empty fancy_assign_list "
        "fancy_assign_ndarray fancy_assign_slice fancy_assignment_dtypes "
        "fancy_indexing_2d_assign fancy_indexing_multidim_set fancy_indexing_seq_assign "
        "fancy_indexing_set index_scalar_assign negative_index_assignment scalar_assign_2 "
        "self_self_assignment sequence_assignment set_slice setelement slice_assign_2 "
        "slice_assignment slice_scalar_assign sparsity_modifying_assignment"
    ),
    "axes are None, 0 and 1, errors are in our words, and there is no out=": (
        "mean mean_invalid_param mean_out sum sum_invalid_params sum_out"
    ),
    "extremes of rows and columns are dense arrays; no explicit=, no nanmax": (
        "minmax minmax_axis minmax_container_type minmax_invalid_params nanminmax"
    ),
    "functions of NumPy raise an error that names the method": (
        "numpy_mean numpy_nonzero numpy_sum transpose"
    ),
    "a matrix of SciPy's on the left of a comparison asks ours for an array": ("eq ge gt le lt ne"),
    "SciPy refuses or deprecates what is computed here": "dtype_check inplace_dense neg pow",
    "matrices hold int32, int64 and bool of the integer dtypes": (
        "constructor4 dtype_preservation dtype_preservation_empty_index "
        "dtype_preservation_empty_slice from_array from_list from_matrix from_sparse "
        "maximum_minimum"
    ),
    "arrays that are longer than indptr says are refused": "constructor5 constructor6",
    "keys of no meaning raise InvalidArgument, in our words": (
        "None_slicing argmax bad_index ellipsis_fancy_bool ellipsis_slicing fancy_indexing "
        "fancy_indexing_ndarray getelement missized_masking multiple_ellipsis_slicing"
    ),
    "functions of SciPy take A.to_scipy()": "expm inv solve",
    "a matrix is neither true nor false, of whatever size": "bool",
    "exponents are numbers": "elementwise_power",
    "a shape is a fact that is not assigned; there is no resize to one dimension": (
        "reshape resize"
    ),
    "the options order=, copy= and casting= are SciPy's, and so are the formats dia, lil and dok": (
        "astype astype_immutable copy size_zero_conversions sparse_format_conversions toarray "
        "todense"
    ),
    "has_sorted_indices and has_canonical_format are found, not assigned": (
        "has_canonical_format has_sorted_indices setdiag_cooconvert setdiag_noconvert"
    ),
    "matrices show themselves, and pickle, in our way": (
        "constructor1_base pickle repr str str_maxprint"
    ),
}

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
    "test_scipy_sparse_arrays": {
        f"TestCSR::test_{name}": why
        for why, names in _OF_SPARSE_ARRAYS.items()
        for name in names.split()
    },
    "test_pyamg_krylov": {
        "TestStoppingCriteria::test_stoppingcriteria": (
            "PyAMG's criteria rr+, MrMr and rMr are its own"
        ),
    },
}

#: Tests of solvers that wollemi does not have, by the name of the solver: left out.
TESTS_OF_ONE_SOLVER = {"test_show": "tfqmr", "TestQMR": "qmr"}
