"""The wollemi replacements of names in other libraries, for error messages."""

from __future__ import annotations

#: The replacements of NumPy functions, by name.
OF_FUNCTIONS = {
    "norm": "wl.linalg.norm(A)",
    "sum": "A.sum()",
    "mean": "A.mean()",
    "average": "A.mean()",
    "max": "A.max()",
    "amax": "A.max()",
    "min": "A.min()",
    "amin": "A.min()",
    "argmax": "A.argmax()",
    "argmin": "A.argmin()",
    "transpose": "A.T",
    "matrix_transpose": "A.mT",
    "trace": "A.trace()",
    "real": "A.real",
    "imag": "A.imag",
    "diagonal": "A.diagonal()",
    "diag": "A.diagonal()",
    "dot": "A @ x",
    "inner": "A @ x",
    "vdot": "A @ x",
    "tensordot": "A @ x",
    "vstack": "wl.sparse.vstack(blocks)",
    "concatenate": "wl.sparse.vstack(blocks) or wl.sparse.hstack(blocks)",
    "stack": "wl.stack(matrices)",
    "hstack": "wl.sparse.hstack(blocks)",
    "block": "wl.sparse.block_array(blocks)",
    "kron": "wl.sparse.kron(A, B)",
    "tril": "A.tril(k)",
    "triu": "A.triu(k)",
    "reshape": "A.reshape(shape)",
    "ravel": "A.reshape(-1)",
    "resize": "A.resize(shape)",
    "nonzero": "A.nonzero()",
    "flatnonzero": "A.reshape(-1).nonzero()",
    "argwhere": "A.nonzero()",
    "count_nonzero": "A.count_nonzero()",
    "fill_diagonal": "A.setdiag(values)",
    "copy": "A.copy()",
    "astype": "A.astype(dtype)",
    "clip": "A.maximum(low).minimum(high)",
    "array_equal": "(A != B).nnz == 0",
    "allclose": "abs(A - B).max() <= tolerance",
    "isclose": "abs(A - B) > tolerance",
    "take": "A[rows] or A[:, columns]",
    "matrix_power": "wl.linalg.matrix_power(A, n)",
    "multi_dot": "A @ B @ C",
    "solve": "wl.solve(A, b)",
    "lstsq": "wl.linalg.lsmr(A, b)",
    "inv": "wl.solvers.Direct(A)",
    "slogdet": "wl.solvers.Direct(A).log_determinant()",
    "det": "wl.solvers.Direct(A).log_determinant()",
    "eigh": "wl.linalg.eigsh(A)",
    "eigvalsh": "wl.linalg.eigsh(A)",
    "svd": "wl.linalg.svds(A)",
    "svdvals": "wl.linalg.svds(A)",
    "cond": "wl.linalg.svds(A)",
    "size": "A.nnz, or A.shape",
}

#: The replacements of functions and classes of SciPy and other libraries, by name.
OF_NAMES = {
    "csr_matrix": "wl.Csr(S)",
    "csr_array": "wl.Csr(S)",
    "csc_matrix": "wl.Csc(S)",
    "csc_array": "wl.Csc(S)",
    "coo_matrix": "wl.Coo(S)",
    "coo_array": "wl.Coo(S)",
    "bsr_matrix": "wl.Bsr(S)",
    "bsr_array": "wl.Bsr(S)",
    "diags_array": "wl.sparse.diags(diagonals, offsets)",
    "eye_array": "wl.sparse.eye(n)",
    "identity": "wl.sparse.eye(n)",
    "random_array": "wl.sparse.random(m, n)",
    "rand": "wl.sparse.random(m, n, density)",
    "spdiags": "wl.sparse.diags(diagonals, offsets, shape)",
    "bmat": "wl.sparse.block_array(blocks)",
    "dia_array": "wl.Csr(S)",
    "lil_array": "wl.Csr(S)",
    "dok_array": "wl.Csr(S)",
    "issparse": "isinstance(A, wl.Matrix)",
    "isspmatrix": "isinstance(A, wl.Matrix)",
    "sparray": "isinstance(A, wl.Matrix)",
    "expand_dims": "A[None, i] or v.reshape(1, -1)",
    "spsolve": 'wl.solve(A, b, method="direct")',
    "factorized": "wl.solvers.Direct(A), which has .solve(b)",
    "splu": "wl.solvers.Direct(A), which has .solve(b)",
    "spilu": "wl.preconditioners.Ilu(A)",
    "inv": "wl.solvers.Direct(A), which has .solve(b)",
    "lstsq": "wl.solve(A, b)",
    "eigs": "scipy.sparse.linalg.eigs(A.to_scipy())",
    "expm": "scipy.sparse.linalg.expm(A.to_scipy())",
    "expm_multiply": "scipy.sparse.linalg.expm_multiply(A.to_scipy(), x)",
    "onenormest": "scipy.sparse.linalg.onenormest(A.to_scipy())",
    "funm_multiply_krylov": "scipy.sparse.linalg.funm_multiply_krylov(f, A.to_scipy(), b)",
    "spsolve_triangular": "A.solve_triangular(b, lower=True)",
    "is_sptriangular": "scipy.sparse.linalg.is_sptriangular(A.to_scipy())",
    "spbandwidth": "scipy.sparse.linalg.spbandwidth(A.to_scipy())",
    "use_solver": 'wl.solvers.Direct(A, engine="umfpack")',
    "SuperLU": "wl.solvers.Direct(A), which has .solve(b)",
    "ArpackNoConvergence": "wl.errors.NotConverged",
    "LaplacianNd": "scipy.sparse.linalg.LaplacianNd(shape).tosparse(), and wl.Csr of it",
    "csgraph": "scipy.sparse.csgraph, with A.to_scipy()",
    "lil_matrix": "wl.Csr(S)",
    "dok_matrix": "wl.Csr(S)",
    "dia_matrix": "wl.Csr(S)",
    **{f"isspmatrix_{name}": f'A.format == "{name}"' for name in ("bsr", "coo", "csc", "csr")},
    "spmatrix": "wl.Matrix",
    "load": "wl.read(file)",
    "load_npz": "wl.read(file)",
    "loadmat": "wl.read(file)",
    "mmread": "wl.read(file)",
    "hb_read": "wl.read(file)",
    "save": "wl.write(file, A)",
    "save_npz": "wl.write(file, A)",
    "savemat": "wl.write(file, A)",
    "mmwrite": "wl.write(file, A)",
    "spmv": "A @ x",
    "ruge_stuben_solver": "M = wl.preconditioners.Amg(A), and wl.solvers.Cg(A, M).solve(b)",
    "smoothed_aggregation_solver": (
        'M = wl.preconditioners.Amg(A, kind="aggregation"), and wl.solvers.Cg(A, M).solve(b)'
    ),
    "rootnode_solver": (
        'M = wl.preconditioners.Amg(A, kind="aggregation"), and wl.solvers.Cg(A, M).solve(b)'
    ),
}

#: The replacements of attributes of SciPy's and CuPy's matrices, by name.
OF_ATTRIBUTES = {
    "getrow": "A[i:i + 1], or A[i] for a sparse vector",
    "getcol": "A[:, j:j + 1], or A[:, j] for a sparse vector",
    "getnnz": "A.nnz, and A.astype(bool).sum(axis) of each row or column",
    "getH": "A.H",
    "getformat": "A.format",
    "get_shape": "A.shape",
    "set_shape": "A.reshape(shape), which returns a matrix",
    "asfptype": "A.astype(float)",
    "A": "A.to_dense()",
    "A1": "A.to_dense().ravel()",
    "sorted_indices": "A.sort()",
    "flatten": "A.reshape(-1)",
    "ravel": "A.reshape(-1)",
    "swapaxes": "wl.sparse.swapaxes(A, 0, 1)",
    "item": "A[i, j]",
    "tolist": "A.to_dense().tolist()",
    "numpy": "A.to_dense()",
    "solve": "wl.solve(A, b)",
    "cpu": 'A.to("omp")',
    "cuda": 'A.to("cuda")',
    "coalesce": "A.sum_duplicates()",
    "values": "A.data",
    "coords": "A.nonzero(), or A.tocoo().row and .col",
    "row": "A.tocoo().row",
    "col": "A.tocoo().col",
    "blocksize": "A.tobsr().blocksize",
    "iloc": "A[rows, columns]",
}

#: The replacements of methods of preconditioners and hierarchies in other libraries, by name.
OF_PRECONDITIONERS = {
    "solve": "wl.solvers.Cg(A, M).solve(b), or wl.solve(A, b, M=M); one application is M @ b",
    "psolve": "M @ b",
    "aspreconditioner": "wl.solvers.Cg(A, M): the object itself is the preconditioner",
}
OF_HIERARCHIES = {
    "solve": (
        "wl.solvers.Cg(A, M).solve(b), which PyAMG calls accel='cg', or "
        "wl.solvers.Multigrid(A, M).solve(b) for cycles alone; one cycle is M @ b"
    ),
    "operator_complexity": "M.report().operator_complexity",
    "grid_complexity": "M.report().grid_complexity",
    "cycle_complexity": "M.report(), which has the complexities of operators and grids",
}

#: The replacements of methods that only Krylov solvers have, by method name.
OF_SOLVERS = {
    "recorded": (
        "wl.solvers.Cg(A, M).recorded(b, out=x), or that of another Krylov method for one matrix: "
        "the host takes part in the solves of other classes"
    ),
}

#: How to get the effect of PyAMG parameters that have no single counterpart, by name.
OF_HIERARCHY_OPTIONS = {
    "max_levels": "coarse_rows= ends the coarsening: the rows of the coarsest level",
    "CF": 'kind="classical" chooses coarse rows by PMIS',
    "interpolation": "width= bounds the entries of a row of the interpolation",
    "smooth": 'kind="aggregation" smooths its interpolation always; smoother= is that of cycles',
    "aggregate": 'kind="aggregation" makes aggregates, and block_size= gives nodes their unknowns',
    "symmetry": "the levels of a Hermitian matrix are Hermitian without it",
    "improve_candidates": "near_null= takes vectors as they are",
    "keep": "M.levels has the matrices and interpolations of every level",
}


def of_function(name: str) -> str:
    """Return the sentence of a message that names the replacement of a function, or ""."""
    return f"write {OF_FUNCTIONS[name]}; " if name in OF_FUNCTIONS else ""


def of_name(name: str) -> str:
    """Return the sentence of a message that names the replacement of a name, or ""."""
    return f"; write {OF_NAMES[name]}" if name in OF_NAMES else ""


def of_attribute(name: str) -> str:
    """Return the sentence of a message that names the replacement of an attribute, or ""."""
    return f"; write {OF_ATTRIBUTES[name]}" if name in OF_ATTRIBUTES else ""
