"""Problems that other processes make, and kernels that they compile."""

from __future__ import annotations

import os
from contextlib import closing

import numpy as np
import pytest

import wollemi as wl
from wollemi_bench import case, ml, prefetch, solve, spmv
from wollemi_bench.cases import Case, divided
from wollemi_bench.peers import SciPy
from wollemi_bench.task import Maker, Task


def nothing_there():
    raise FileNotFoundError("no such matrix")


TASKS = [
    *spmv.tasks([case("stencil5:6")]),
    *solve.tasks([case("stencil5:6")], methods=("cg",), iterations=3),
    Task("spmv", Case("gone", nothing_there), spmv.Product),
    *ml.tasks("spmm", [case("pruned:16,24,70")], columns=(3, 4)),
]


def told(made):
    """Return the kinds of these problems, and their sizes or why there are none."""
    return [
        str(one) if isinstance(one, Exception) else (type(one).__name__, one.S.shape, one.S.nnz)
        for one in made
    ]


@pytest.fixture(scope="module")
def helpers():
    with closing(prefetch.Helpers(2)) as some:
        yield some


def test_problems_come_in_the_order_of_their_tasks_and_a_failure_in_its_place(helpers):
    made = list(prefetch.problems(TASKS, helpers))
    assert told(made) == told(Maker().problems(TASKS))
    assert told(made)[2] == "no such matrix"


def test_a_problem_from_another_process_checks_what_one_from_here_does(helpers):
    (there,), (here,) = prefetch.problems(TASKS[:1], helpers), Maker().problems(TASKS[:1])
    assert np.array_equal(there.x, here.x) and (there.S != here.S).nnz == 0
    assert there.wrong(here.S @ here.x) == "" and there.wrong(0 * here.x) != ""


def test_what_is_not_asked_for_is_not_kept(helpers, monkeypatch, tmp_path):
    monkeypatch.setattr(prefetch, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(prefetch, "ROOM", 0)
    made = prefetch.problems(TASKS, helpers)
    next(made)
    made.close()
    assert list(tmp_path.iterdir()) == []


def test_files_are_in_memory_only_where_there_is_room(monkeypatch, tmp_path):
    monkeypatch.setattr(prefetch, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(prefetch, "ROOM", 0)
    assert prefetch._home() == tmp_path
    monkeypatch.setattr(prefetch, "ROOM", 1 << 60)
    assert prefetch._home() is None


def test_a_process_that_ends_is_an_answer_too():
    with closing(prefetch.Helpers(1)) as some:
        (made,) = prefetch.problems([Task("spmv", Case("end", os.abort), spmv.Product)], some)
    assert str(made) == "its process ended with SIGABRT"


def test_a_matrix_is_made_once_for_tasks_that_follow_one_another():
    made = []

    def build():
        made.append(1)
        return case("stencil5:3").matrix()

    one = Case("counted", build)
    list(Maker().problems([*spmv.tasks([one, one]), *solve.tasks([one], iterations=3)]))
    assert len(made) == 1


def test_a_rehearsal_goes_on_after_what_it_cannot_do():
    prefetch.rehearse(TASKS, wl.ReferenceExecutor(), [SciPy()])


def test_neighbours_of_a_rehearsal_need_different_kernels():
    cases = [case("stencil5:3"), case("stencil5:4")]
    tasks = [*spmv.tasks(cases), *ml.tasks("spmm", cases, columns=(1, 2))]
    order = [(task.benchmark, task.case.name) for task in prefetch.varied(tasks)]
    assert order[:3] == [
        ("spmv", "stencil5:3"),
        ("spmm/1", "stencil5:3"),
        ("spmm/2", "stencil5:3"),
    ]
    assert sorted(order) == sorted((task.benchmark, task.case.name) for task in tasks)


def test_a_task_is_smaller_where_its_case_has_sizes(tmp_path):
    wl.write(tmp_path / "a.mtx", np.eye(3))
    assert divided(case("stencil5:40"), 1 / 16).name == "stencil5:10"
    assert divided(case("like:thermal2/8"), 1 / 16).name == "like:thermal2/128"
    (product,), (solver,) = (
        spmv.tasks([case("stencil5:40")]),
        solve.tasks([case("stencil5:40")], methods=("cg",)),
    )
    assert (product.smaller().case.name, solver.smaller().case.name) == (
        "stencil5:40",
        "stencil5:10",
    )
    file = case(str(tmp_path / "a.mtx"))
    assert divided(file, 1 / 16) is file


def test_files_of_one_name_are_two_cases(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        wl.write(tmp_path / folder / "m.mtx", np.eye(3))
    one, other = (case(str(tmp_path / folder / "m.mtx")) for folder in ("a", "b"))
    assert one.name == other.name and one != other


def test_half_of_the_cores_are_for_who_measures(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    assert prefetch.spare_cores(6) == 6 and prefetch.spare_cores(20) == 8
    assert prefetch.spare_cores(20, measuring=False) == 15
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert prefetch.spare_cores(6) == prefetch.spare_cores(6, measuring=False) == 1
