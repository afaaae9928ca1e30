"""The test of copies between the memories names each public operation, or a reason not to."""

from __future__ import annotations

import inspect
import re

import wollemi as wl
from wollemi.core.formats.entry_functions import ZERO_PRESERVING

from . import test_bus

#: By the reason, methods that the test of copies leaves out.
LEFT_OUT = {
    "their results are on the host": (
        "to to_dense toarray todense to_scipy get to_scipy_operator todia todok tolil plot"
    ),
    "they are functions of entries, of which sqrt and sign are tested": " ".join(ZERO_PRESERVING),
    "they are other names of a method that is tested": "conjugate apply_block",
    "they describe a matrix or its plan, and move no entries": (
        "from_arrays lean other_state plan_for plan_only stored transposed_pattern with_kernel"
    ),
    "levels of rows are found on the host, once for a pattern": "solve_triangular",
}


def test_each_public_operation_is_tested_or_has_a_reason() -> None:
    tested = set(re.findall(r"\.(\w+)\(", inspect.getsource(test_bus)))
    public = {name for name in dir(wl.Csr) if not name.startswith("_")}
    methods = {name for name in public if callable(getattr(wl.Csr, name))} | set(wl.sparse.__all__)
    reasons = {name for names in LEFT_OUT.values() for name in names.split()}
    assert methods - tested - reasons == set()
    assert reasons - public == set()
