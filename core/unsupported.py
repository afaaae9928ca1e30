"""The operations that a backend lacks on purpose, with reasons. It must have all others.

The support matrix and error messages show the reasons.
"""

from __future__ import annotations

_BY_ROWS = (
    "goes from row to row, which is work for one thread: devices make factors by parilu.sweep and "
    "parilut.sweep, and levels, colors and matchings are found on the host, once for a pattern"
)
_ON_HOSTS = {
    **dict.fromkeys(
        (
            "triangular.factorize",
            "triangular.levels",
            "triangular.threshold",
            "ordering.matching",
            "ordering.colors",
            "ordering.fill",
            "ordering.search",
            "ordering.substitution",
        ),
        _BY_ROWS,
    ),
    "inverse.selected": "factors without row exchanges are on the host, and so are its equations",
    "summary.square": "it follows a place in each row; devices have facts.mirrored and its like",
    "triangular.lanes": "its blocks of rows are work for threads of a host: devices compute levels",
}
_BY_COLUMNS = {
    "csr.spmv_transposed": "devices make the rows of a transpose in the time of a few products"
}
_BY_PARTS = {"hybrid.spmv": "its two parts are multiplied one after the other: caches keep y"}
_TENSORS_ARE_ELSEWHERE = (
    "it serves tensors of PyTorch, none of which live on the devices of this backend"
)

#: Reasons by the names of backend and operation.
REASONS: dict[str, dict[str, str]] = {
    "reference": {},
    "omp": _BY_PARTS,
    "cuda": {**_ON_HOSTS, **_BY_COLUMNS},
    "hip": {**_ON_HOSTS, **_BY_COLUMNS},
    "dpcpp": {
        **_ON_HOSTS,
        **_BY_COLUMNS,
        **_BY_PARTS,
        **dict.fromkeys(
            (
                "csr.softmax",
                "csr.softmax_backward",
                "csr.edge_function",
                "csr.spmm_max",
                "csr.spmm_where_equal",
                "csr.additive_attention",
                "csr.additive_attention_backward",
                "mask.fusedmm_backward",
                "csr.fusedmm_softmax_backward",
                "mask.fusedmm_softmax_backward",
            ),
            _TENSORS_ARE_ELSEWHERE,
        ),
        "csr.fusedmm_backward": "csr.sddmm and csr.spmm make its gradients there",
    },
}


def reason_of(backend: str, operation: str) -> str:
    """Return the reason why a backend does not have an operation, or ""."""
    return REASONS.get(backend, {}).get(operation, "")
