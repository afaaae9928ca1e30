"""The groups of the steps in wollemi's solvers, in which other packages may not declare steps.

Solvers are imported at their first use. If another package had declared a step of the same name
before, the import of the solver would fail.
"""

#: A test compares this list with the existing steps.
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
    """Return whether a group belongs to wollemi's solvers; some end with a number (``idr4``)."""
    return group.rstrip("0123456789") in OF_SOLVERS
