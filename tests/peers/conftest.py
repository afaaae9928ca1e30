"""Tests of other libraries; tests of solvers that we do not have are left out."""

from fnmatch import fnmatchcase

import pytest

import wollemi as wl

from .differences import DIFFERENCES, TESTS_OF_ONE_SOLVER
from .loading import NotOurs, solver_of


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fail_slow(seconds): SciPy's limit on the time of a test")
    config.addinivalue_line("markers", "slow: a test that SciPy runs only when it is asked to")
    config.addinivalue_line("markers", "thread_unsafe(reason): not run by several threads")
    config.addinivalue_line("markers", "xslow: the same, of tests that are slower still")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if "tests/peers" in item.nodeid and not _is_ours(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    for item in items:
        if "tests/peers" not in item.nodeid:
            continue
        for mark in list(item.iter_markers("xfail")):  # of the library: ours may do better
            item.add_marker(pytest.mark.xfail(**{**mark.kwargs, "strict": False}), append=False)
        module = item.nodeid.partition("::")[0].rpartition("/")[2].removesuffix(".py")
        test = item.nodeid.partition("::")[2]
        known = DIFFERENCES.get(module, {})
        reason = known.get(test.partition("[")[0])
        strict = reason is not None
        for name, why in known.items():
            if fnmatchcase(test, name.replace("[", "[[]")):
                reason = why
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=strict))


def _is_ours(item: pytest.Item) -> bool:
    if any(item.get_closest_marker(name) is not None for name in ("slow", "xslow")):
        return False
    for part, solver in TESTS_OF_ONE_SOLVER.items():
        if part in item.nodeid and not hasattr(wl.linalg, solver):
            return False
    return not isinstance(solver_of(item), NotOurs)
