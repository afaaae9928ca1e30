"""Calls of products are immutable records that have the operands of their operations by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.call_kernels import RECORDS, binder, run_call
from wollemi.core.calls import FusedmmCall, GradientCall, SddmmCall, SpmmCall, SpmvCall
from wollemi.core.operations import masks, matrix, products

RECORD_TYPES = [SpmvCall, SpmmCall, SddmmCall, FusedmmCall, GradientCall]


@pytest.mark.parametrize("operation", RECORDS, ids=lambda operation: operation.name)
def test_a_record_has_a_field_for_every_parameter_of_its_operations(operation: Any) -> None:
    declared = [parameter.name for parameter in operation.parameters]
    fields = RECORDS[operation]._fields
    assert [field for field in fields if field in declared] == declared


@pytest.mark.parametrize("operation", RECORDS, ids=lambda operation: operation.name)
def test_arguments_are_bound_to_the_fields_of_their_names(operation: Any) -> None:
    names = [parameter.name for parameter in operation.parameters]
    call = binder(operation)(tuple(names))
    assert {name: getattr(call, name) for name in names} == {name: name for name in names}
    others = set(call._fields) - set(names)
    absent = {"edge": "softmax", "kernel": "auto"}
    assert {name: getattr(call, name) for name in others} == {
        name: absent.get(name) for name in others
    }


@pytest.mark.parametrize("record", RECORD_TYPES)
def test_records_are_immutable_and_have_slots(record: Any) -> None:
    call = record(*record._fields)
    assert not hasattr(call, "__dict__")
    with pytest.raises(AttributeError):
        call.alpha = 2.0


def test_records_name_their_outputs() -> None:
    spmm, sddmm = SpmmCall(*SpmmCall._fields), SddmmCall(*SddmmCall._fields)
    fusedmm, gradients = FusedmmCall(*FusedmmCall._fields), GradientCall(*GradientCall._fields)
    assert spmm.outputs == ("C",)
    assert sddmm.outputs == ("S",)
    assert fusedmm.outputs == ("E", "log_totals")
    assert fusedmm._replace(log_totals=None).outputs == ("E",)
    assert gradients.outputs == ("of_values", "of_C", "of_B", "of_D")


def test_outputs_are_the_parameters_that_an_operation_writes() -> None:
    for operation, record in RECORDS.items():
        if operation is matrix.csr_spmv:
            continue
        written = {p.name for p in operation.parameters if p.intent in ("out", "inout")}
        outputs = set(binder(operation)(tuple(p.name for p in operation.parameters)).outputs)
        assert outputs - {None} == written, record


@pytest.mark.parametrize("name", ["reference", "omp"])
def test_a_call_of_a_mask_and_of_its_matrix_give_the_same(name: str) -> None:
    mask = wl.masks.causal(5, dtype="float64", executor=name)
    rng = np.random.default_rng(0)
    C, B, D = (rng.standard_normal((1, 5, 3)) for _ in range(3))
    E = [np.empty((1, 5, 3)) for _ in range(2)]
    for A, operation, out in (
        (mask, masks.fusedmm, E[0]),
        (mask.tocsr(), products.csr_fusedmm, E[1]),
    ):
        run_call(operation, FusedmmCall(A, None, C, B, D, out, None, 0.5, "softmax"))
    np.testing.assert_allclose(E[0], E[1], rtol=1e-13)
