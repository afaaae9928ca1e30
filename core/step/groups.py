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


def is_of_solvers(group: str) -> bool:
    """Return whether a group is one of wollemi's solvers; some have a number, such as ``idr4``."""
    return group.rstrip("0123456789") in OF_SOLVERS
