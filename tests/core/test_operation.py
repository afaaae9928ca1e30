import numpy as np
import pytest

import wollemi as wl
from wollemi.core import operations
from wollemi.core.errors import InvalidArgument
from wollemi.core.operation import (
    OPERATIONS,
    Cost,
    KernelTable,
    OperationTable,
    Parameter,
    parse_signature,
)


def one(text):
    (parameter,) = parse_signature(text)
    return parameter


def test_an_array_has_an_intent_and_dimensions():
    assert one("x: inout T[n,k]") == Parameter("x", "T", "inout", ("n", "k"))


def test_a_scalar_has_neither():
    parameter = one("alpha: T")
    assert parameter == Parameter("alpha", "T", "value", ())
    assert parameter.is_scalar


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x: in T[n]", "is_array"),
        ("step: out i64[1]", "is_array"),
        ("alpha: T", "is_scalar"),
        ("k: int", "is_scalar"),
        ("status: inout Status[k]", "is_status"),
        ("A: in Csr[m,n]", "is_matrix"),
    ],
)
def test_a_parameter_is_one_kind_of_thing(text, what):
    parameter = one(text)
    kinds = ("is_array", "is_scalar", "is_status", "is_matrix")
    assert [kind for kind in kinds if getattr(parameter, kind)] == [what]


def test_parameters_come_in_order_over_line_breaks():
    parameters = parse_signature("A: in Csr[m,n], x: in T[n,k],\n   y: inout T[m,k], beta: T")
    assert [p.name for p in parameters] == ["A", "x", "y", "beta"]


def test_a_dimension_may_be_a_sum():
    assert one("h: in T[s+1,k]").dims == ("s+1", "k")


@pytest.mark.parametrize(
    "text", ["x: T[n]", "alpha: in T", "x in T[n]", "x: into T[n]", "x: in T[n", "", "x: in T[]"]
)
def test_what_is_no_signature_is_refused(text):
    with pytest.raises(InvalidArgument):
        parse_signature(text)


@pytest.mark.parametrize("operation", list(OPERATIONS), ids=lambda o: o.name)
def test_every_declaration_is_complete(operation):
    group, _, verb = operation.name.partition(".")
    assert operation.group == group
    assert operation.symbol == f"{group}_{verb}"
    assert operation.summary
    assert not operation.summary.endswith(".")
    dims = {d for p in operation.parameters for d in p.dims}
    if operation.is_map:
        assert {d for d in operation.over if not d.isdigit()} <= dims


DECLARED = [operation for operation in OPERATIONS if operation.step is None]


@pytest.mark.parametrize("operation", DECLARED, ids=lambda o: o.name)
def test_every_operation_is_an_attribute_of_some_group(operation):
    modules = (getattr(operations, name) for name in operations.__all__)
    assert any(operation in vars(module).values() for module in modules)


def test_what_writes_a_value_a_column_says_what_it_adds_up():
    with pytest.raises(ValueError, match=r"a\.b writes one value a column"):
        OperationTable().declare("a.b", "x: in T[n,k], y: out R[k]", "", over=("n", "k"))


def test_an_operation_is_declared_once():
    table = OperationTable()
    table.declare("a.b", "x: in T[n]", "one")
    with pytest.raises(ValueError, match=r"a\.b is declared twice"):
        table.declare("a.b", "x: in T[n]", "two")


def test_an_equal_declaration_again_is_the_operation_that_is_there():
    table = OperationTable()
    made = [table.declare("a.b", "x: in T[n], t: T", "one", flops=lambda n: 2) for _ in range(2)]
    assert made[0] is made[1] and len(table) == 1


@pytest.mark.parametrize(
    "signature", ["x in T[n]", "x: T[n]", "t: in T", "x: in f32[n]", "t: number"]
)
def test_a_signature_that_is_none_is_refused_by_an_error_of_ours(signature):
    table = OperationTable()
    with pytest.raises(InvalidArgument):
        table.declare("a.b", signature, "one")
    assert len(table) == 0


def test_the_table_keeps_the_order_of_declaration():
    table = OperationTable()
    declared = [table.declare(name, "x: in T[n]", "") for name in ("z.z", "a.a")]
    assert list(table) == declared
    assert len(table) == 2
    assert table["a.a"] is declared[1]


def test_extents_are_read_from_the_arguments():
    table = OperationTable()
    operation = table.declare("a.b", "x: in T[n,k], h: out T[s+1,k], alpha: T", "")
    extents = operation.extents((np.zeros((5, 2)), np.zeros((4, 2)), 1.0))
    assert extents == {"n": 5, "k": 2}


def test_entries_of_all_matrices_count():
    A = wl.Csr(np.eye(3))
    operation = OPERATIONS["csr.matmul"]
    assert operation.extents((A, A)) == {"m": 3, "p": 3, "n": 3, "nnz": 6}


def test_inputs_and_outputs_move_once_and_what_is_both_twice():
    x, y, out = np.zeros((10, 1)), np.zeros((10, 1)), np.zeros((10, 1))
    table = OperationTable()
    operation = table.declare(
        "a.b", "x: in T[n,k], y: inout T[n,k], z: out T[n,k]", "", flops=lambda e: 3 * e["n"]
    )
    assert operation.cost(x, y, out) == Cost(bytes=80 + 160 + 80, flops=30)


@pytest.mark.parametrize(("beta", "of_y", "flops"), [(0.0, 1, 1), (1.0, 2, 3)])
def test_a_product_reads_its_result_only_for_beta(beta, of_y, flops):
    A, x, y = wl.Csr(np.eye(4)), np.zeros((4, 2)), np.zeros((4, 2))
    cost = OPERATIONS["csr.spmv"].cost(A, x, y, 1.0, beta)
    assert cost == Cost(A.nbytes + x.nbytes + of_y * y.nbytes, 2 * 4 * 2 + flops * 8)


def test_a_kernel_is_found_by_its_operation():
    table, operation = KernelTable("here"), OPERATIONS["vector.fill"]
    assert table.find(operation) is None

    @table(operation)
    def fill():
        pass

    assert table.find(operation) is fill


def test_a_kernel_table_asks_its_parent_last():
    parent = KernelTable("parent")
    child = KernelTable("child", parent)
    fill, dot = OPERATIONS["vector.fill"], OPERATIONS["vector.dot"]
    parent(fill)("parent's fill")
    parent(dot)("parent's dot")
    child(fill)("child's fill")
    assert (child.find(fill), child.find(dot)) == ("child's fill", "parent's dot")
    assert parent.find(fill) == "parent's fill"


def test_the_declarations_need_the_standard_library_alone(run_python):
    """The build reads them before NumPy is there."""
    run_python(
        "import sys; sys.modules['numpy'] = None; "
        "sys.path.insert(0, {root!r}); "
        "from core import operations; from core.operation import OPERATIONS; "
        "assert len(OPERATIONS) > 0"
    )
