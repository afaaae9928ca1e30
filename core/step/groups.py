"""The groups of the steps of wollemi's solvers, which other packages may not declare steps in.

Solvers are imported when they are first asked for: a step of another package would take its name
before that, and the solver could not be imported any more.
"""

#: A test compares these with the steps that there are.
OF_SOLVERS = frozenset(
    {
        "bicg",
        "bicgstab",
        "bicgstab_left",
        "bidiagonal",
        "blockcg",
        "cg",
        "cgs",
        "chebyshev",
        "estimating",
        "fcg",
        "gcrot",
        "gmres_end",
        "gmres_left",
        "idr",
        "ir",
        "kcycle",
        "least",
        "lsmr",
        "lsqr",
        "minres",
        "multigrid",
        "pipecg",
        "qmr",
        "ritz",
        "smooth",
        "status",
        "tfqmr",
    }
)
