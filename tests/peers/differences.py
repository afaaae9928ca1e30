"""Expectations of other libraries' tests from which wollemi deviates, with the reasons.

A test that is listed here must fail: one that passes again is to be taken off the list.
"""

#: The formats for which SciPy's tests of sparse arrays run.
_FORMATS = ("CSR", "CSC", "COO", "BSR")

#: Of SciPy's tests of sparse arrays, by the reason for which they fail: of all formats, or of the
#: formats named before a colon.
_OF_SPARSE_ARRAYS = {
    "values are not assigned one by one or by slices: the test does, or expects errors of it": (
        "CSR,CSC,COO:assign_1d_slice CSR,CSC,COO:assign_empty CSR,CSC,COO:bad_index_assign "
        "CSR,CSC,COO:fancy_assign_empty CSR,CSC,COO:fancy_assign_list "
        "CSR,CSC,COO:fancy_assign_ndarray CSR,CSC,COO:fancy_assign_slice "
        "CSR,CSC,COO:fancy_assignment_dtypes CSR,CSC,COO:fancy_indexing_2d_assign "
        "CSR,CSC,COO:fancy_indexing_multidim_set CSR,CSC,COO:fancy_indexing_seq_assign "
        "CSR,CSC,COO:fancy_indexing_set CSR,CSC,COO:index_scalar_assign "
        "CSR,CSC,COO:negative_index_assignment CSR,CSC,COO:scalar_assign_2 "
        "CSR,CSC,COO:self_self_assignment CSR,CSC,COO:sequence_assignment CSR,CSC,COO:set_slice "
        "CSR,CSC,COO:setelement CSR,CSC,COO:slice_assign_2 CSR,CSC,COO:slice_assignment "
        "CSR,CSC,COO:slice_scalar_assign CSR,CSC,COO:sparsity_modifying_assignment"
    ),
    "SciPy refuses here: values of 16 bits, and counts by axis": "dtype_check BSR:count_nonzero",
    "a matrix has two dimensions": (
        "CSR,COO:resize COO:fancy_indexing COO:fancy_indexing_ndarray COO:constructor4"
    ),
    "a wrong statement about the order of rows is refused": (
        "CSR:has_sorted_indices CSR,COO,BSR:has_canonical_format"
    ),
    "results of two matrices, and functions of entries, are compressed rows": (
        "CSC,BSR:elementwise_multiply CSC:ufuncs CSC:scalar_idx_dtype"
    ),
    "reshape gives compressed rows": "COO:reshape_copy",
    "a matrix of blocks takes another blocksize where the shape needs it": "BSR:resize_blocked",
    "matrices show themselves, and pickle, in our way": "pickle repr str str_maxprint",
}


def _of_sparse_arrays() -> dict[str, str]:
    """Return the differences of SciPy's tests of sparse arrays by the name of the test."""
    made = {}
    for why, names in _OF_SPARSE_ARRAYS.items():
        for name in names.split():
            formats, _, test = name.rpartition(":")
            for format in formats.split(",") if formats else _FORMATS:
                made[f"Test{format}::test_{test}"] = why
    return made


#: Of CuPy's tests of sparse arrays, by the reason for which they fail.
_OF_CUPY = {
    "values are not assigned one by one or by slices": (
        "1dIndexingEdges:setitem_ellipsis SparseArray1D:1d_setitem_int "
        "SparseArray1D:1d_setitem_slice SparseArray1D:1d_setitem_sparse_rhs "
        "SparseArrayTypeIdentity:setitem_scalar_from_sparse_rhs"
    ),
    "the test reads a private attribute of CuPy": (
        "MajorFancyFlagPreservation:row_fancy_preserves_sort_flags"
    ),
    "index arrays are not replaced: plans are made of them": (
        "SparseArray1D:int64_csrgeam_shape_mismatch_raises SparseArrayTypeIdentity:prune_csr"
    ),
    "A *= 2 of booleans is refused, as by SciPy; CuPy makes floating-point numbers": (
        "SparseArrayTypeIdentity:inplace_bool_scalar_diverges_from_scipy"
    ),
    "matrices show themselves in our way": (
        "SparseArrayTypeIdentity:array_maxprint_kwarg SparseArrayTypeIdentity:repr_array"
    ),
    "CuPy refuses todia; here it is a dia_array of SciPy": (
        "SparseArrayConversions:conversion_type_and_format[dia-*"
    ),
    "a matrix has H": "LegacyApiSurfaceVia:array_has_no_matrix_only_api[H]",
    "the entries of a sparse vector are numbers of the host": (
        "SparseArray1D:1d_iter_yields_elements"
    ),
    "an error is a class of wollemi, derived from SciPy's": (
        "1dConstructorParity:scalar_input_matches_scipy_exc_type"
    ),
    "parts of every format are compressed rows": (
        "1dIndexingEdges:getitem_none_adds_axis CooArrayGetitem:coo_2d_getitem"
    ),
    "float32 values divided by a number stay float32": (
        "SparseArrayTypeIdentity:truediv_float32_promotes"
    ),
}


def _of_cupy() -> dict[str, str]:
    """Return the differences of CuPy's tests by the name of the test."""
    made = {}
    for why, names in _OF_CUPY.items():
        for name in names.split():
            kind, _, test = name.partition(":")
            made[f"Test{kind}::test_{test}"] = why
    return made


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
        "TestGCROTMK::test_nans": "a matrix with NaN is refused, where SciPy returns info=1",
    },
    "test_scipy_lgmres": {
        "TestLGMRES::test_outer_v": "corrections come after the Krylov vectors: others are refused",
        "TestLGMRES::test_nans": "a matrix with NaN is refused, where SciPy returns info=1",
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
    "test_scipy_least_squares": {
        "test_lsmr_maxiter_zero_with_show": (
            "istop is 7 after no iterations; 0 says that the start is the solution, and it is not"
        ),
    },
    "test_scipy_sparse_arrays": _of_sparse_arrays(),
    "test_cupy_sparse_arrays": _of_cupy(),
    "test_pyamg_krylov": {
        "TestStoppingCriteria::test_stoppingcriteria": (
            "PyAMG's criteria rr+, MrMr and rMr are its own"
        ),
    },
}

#: Tests of solvers that wollemi does not have, by the name of the solver: left out.
TESTS_OF_ONE_SOLVER = {"test_show": "tfqmr", "TestQMR": "qmr"}
