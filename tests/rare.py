"""The tests that only ``make test-all`` runs: slow ones that find nothing in most changes.

- Tests that are marked ``rare``.
- Of a test that is marked ``pairs``, the combinations of parameters that show no new pair: every
  two values of two parameters still meet in a test that stays.
- Where each operation and dtype is a program that takes a second to compile, the dtypes and widths
  of indices that other programs of the same text stand for.
- On such an executor, of tests that have a program for each group of operations, or for each of
  them, the tests of all operations of a group but one; each is compared with the reference there.
- On such an executor, of a test that is marked ``one_where_compiled``, all combinations of its
  parameters but one: each of them needs programs of its own.
- On such an executor, most tests that do not depend on backends (solvers, formats, files): a file
  has one test there. Their results are tested on the other executors, solvers are driven there in
  tests/backends, and each operation that they call is compared with the reference.
"""

from __future__ import annotations

import heapq
import zlib
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest

from wollemi.core.operation import Operation

#: Where a program is compiled for each operation and dtype, which takes a second or more.
COMPILED_BY_PROGRAM = ("dpcpp", "lockstep")

#: The fixtures that are executors.
EXECUTORS = ("executor", "on")

#: The folder of tests of backends.
OF_BACKENDS = "tests/backends/"

#: The file with tests of all operations, everywhere.
OF_ALL = "tests/backends/test_equals_reference.py"

#: The same of values that are stored in a lower precision than the computed one.
PAIRS_OF_STORED = (("float64", "float32"), ("float32", "bfloat16"))

INDEX_DTYPES = ("int32", "int64")


def dtype_compiled(operation: Operation) -> str:
    """Return the dtype in which an operation is compiled: others have the same text by one rule.

    A group is one program, and a fourth of them have complex numbers; the others have the dtype
    that solvers are tested in. ``omp`` runs every operation in each dtype.
    """
    return "complex64" if _number(operation) % 4 == 0 else "float64"


def index_compiled(operation: Operation) -> str:
    """Return the dtype of indices in which an operation is compiled: half the groups have each."""
    return INDEX_DTYPES[_number(operation) % 2]


def _number(operation: Operation) -> int:
    return zlib.crc32(operation.group.encode())


def rare_among(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return the tests to be left."""
    left, paired, met = set(), defaultdict(list), set()
    for item in items:
        of_many = of_which_one_is_enough(item)
        if is_rare(item) or of_many in met:
            left.add(item)
        elif of_many is not None:
            met.add(of_many)
        elif item.get_closest_marker("pairs") is not None:
            paired[item.nodeid.partition("[")[0]].append(item)
    for group in paired.values():
        left.update(without_new_pairs(group))
    return left


def is_rare(item: pytest.Item) -> bool:
    """Return whether a test is marked rare, or needs a program that others stand for."""
    if item.get_closest_marker("rare") is not None:
        return True
    if not any(name in item.nodeid for name in COMPILED_BY_PROGRAM):
        return False
    given = _given(item)
    if _runs_programs(item) and not item.nodeid.startswith(OF_BACKENDS):
        return bool(given.get("dtype", "float64") != "float64")  # solvers skip others there
    if given.get("pair", PAIRS_OF_STORED[0]) not in PAIRS_OF_STORED:
        return True
    operation = given.get("operation")
    if not isinstance(operation, Operation) or not operation.is_map:
        return False
    dtype, index = dtype_compiled(operation), index_compiled(operation)
    return given.get("dtype", dtype) != dtype or given.get("index", index) != index


def of_which_one_is_enough(item: pytest.Item) -> tuple[str, ...] | None:
    """Return the group of tests of which one runs where programs are compiled; or None."""
    if not _runs_programs(item):
        return None
    file = item.nodeid.partition("::")[0]
    if not file.startswith(OF_BACKENDS):
        return (file,)
    operation = _given(item).get("operation")
    if item.get_closest_marker("one_where_compiled") is not None:
        return (item.nodeid.partition("[")[0],)
    if file == OF_ALL or not isinstance(operation, Operation) or not operation.is_map:
        return None
    return item.nodeid.partition("[")[0], operation.group


def _runs_programs(item: pytest.Item) -> bool:
    given = _given(item)
    names = (str(given[fixture]) for fixture in EXECUTORS if fixture in given)
    return any(name.partition(":")[0] in COMPILED_BY_PROGRAM for name in names)


def _given(item: pytest.Item) -> dict[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})


def without_new_pairs(items: list[Any]) -> list[Any]:
    """Return the tests of one function that can go: each two values meet in another one.

    The test with most new pairs is taken, again and again, until there is none.
    """
    pairs = {item: _pairs_of(item.callspec.params) for item in items}
    waiting = [(-len(pairs[item]), i) for i, item in enumerate(items)]
    heapq.heapify(waiting)
    seen: set[Any] = set()
    left = []
    while waiting:
        count, i = heapq.heappop(waiting)
        new = len(pairs[items[i]] - seen)
        if new == 0:
            left.append(items[i])
        elif waiting and -new > waiting[0][0]:  # others have more: it waits for its turn
            heapq.heappush(waiting, (-new, i))
        else:
            assert new <= -count
            seen |= pairs[items[i]]
    return left


def _pairs_of(chosen: dict[str, Any]) -> set[Any]:
    """Return the values of parameters, alone and by twos."""
    values = [(name, repr(chosen[name])) for name in sorted(chosen)]
    return {*values, *combinations(values, 2)}
