"""``wollemi info``, ``wollemi kernels`` and the common part of all commands."""

from __future__ import annotations

import builtins
import json
import platform
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

from wollemi.cli.kernels import NO, UNKNOWN, YES, markdown_page
from wollemi.core.errors import ExecutorUnavailable
from wollemi.core.operation import OPERATIONS, KernelTable
from wollemi.core.operations import vector
from wollemi.core.registry import Backend, _registered, register_backend


@pytest.fixture
def poor_backend():
    """A backend that has one kernel and no device."""
    kernel = KernelTable("poor")
    kernel(vector.fill)(lambda executor, y, value: None)

    def devices():
        raise ExecutorUnavailable("no device: buy one")

    def make(device):
        raise ExecutorUnavailable("no device: buy one")

    register_backend(Backend("poor", make, devices, lambda: kernel))
    yield
    del _registered["poor"]


def test_info_names_executors_versions_and_remedies(wollemi, poor_backend):
    ended = wollemi("info")
    assert ended.status == 0
    for words in ("reference", "omp:", "poor", "no device: buy one", "numpy", "scipy", "python"):
        assert words in ended.out


def test_info_says_how_to_get_what_is_missing(wollemi, monkeypatch):
    monkeypatch.setattr(import_module("wollemi.cli.info"), "_installed", lambda *names: None)
    assert 'missing: pip install "wollemi[torch]"' in wollemi("info").out


def test_the_command_of_the_benchmarks_is_one_for_a_checkout(wollemi, monkeypatch):
    monkeypatch.setattr(import_module("wollemi.cli.info"), "_installed", lambda *names: None)
    missing = ModuleNotFoundError("wollemi_bench", name="wollemi_bench")
    monkeypatch.setattr("builtins.__import__", refusing("wollemi_bench", missing))
    said = wollemi("bench", "spmv", "A.mtx")
    assert said.status == 2 and "pip install --no-deps ./benchmarks" in said.complaint
    assert 'pip install "./benchmarks"' in wollemi("info").out


def refusing(package, error):
    """Return an import that raises an error for a package."""
    usual = builtins.__import__

    def find(name, *rest, **more):
        if name.partition(".")[0] == package:
            raise error
        return usual(name, *rest, **more)

    return find


def test_info_prints_json_for_programs(wollemi, poor_backend):
    told = json.loads(wollemi("info", "--json").out)
    lines = {line["name"]: line for line in told["executors"]}
    assert lines["reference"]["available"]
    assert lines["poor"]["reason"] == "no device: buy one"
    assert told["versions"]["numpy"] == np.__version__
    assert told["native"] is True
    assert set(told) == {"executors", "native", "notes", "versions", "python", "platform", "cache"}


def test_kernels_counts_the_operations_of_each_group(wollemi, poor_backend):
    ended = wollemi("kernels")
    assert ended.status == 0
    of_csr = sum(operation.name.startswith("csr.") for operation in OPERATIONS)
    line = next(line.split() for line in ended.out.splitlines() if line.split()[:1] == ["csr"])
    assert line[1:4] == [str(of_csr)] * 3  # reference and omp have all
    assert "poor" in ended.out and "kernels NAME" in ended.out


def test_kernels_prints_json_for_programs(wollemi, poor_backend):
    told = {one["operation"]: one for one in json.loads(wollemi("kernels", "--json").out)}
    assert told.keys() == {operation.name for operation in OPERATIONS}
    assert told["vector.fill"]["backends"]["poor"] and not told["vector.dot"]["backends"]["poor"]
    some = json.loads(wollemi("kernels", "Vector.Fill", "--json").out)
    assert [one["operation"] for one in some] == ["vector.fill"]


def test_kernels_lists_every_operation(wollemi, poor_backend):
    ended = wollemi("kernels", "--all")
    assert ended.status == 0
    for operation in OPERATIONS:
        assert operation.name in ended.out
    assert "poor" in ended.out


def test_the_page_marks_who_has_a_kernel(poor_backend):
    kernel = KernelTable("some")
    kernel(vector.fill)(lambda executor, y, value: None)
    lines = markdown_page({"some": kernel, "lost": None}).splitlines()
    fill = next(line for line in lines if "`vector.fill`" in line)
    dot = next(line for line in lines if "`vector.dot`" in line)
    assert fill.startswith(f"| `vector.fill` | {YES} | {UNKNOWN} | {YES} |")
    assert dot.startswith(f"| `vector.dot` | {NO} | {UNKNOWN} | {YES} |")
    assert any("could not be loaded here: lost" in line for line in lines)


def test_the_page_is_printed_for_the_documentation(wollemi):
    assert wollemi("kernels", "--markdown").out.startswith("# Support matrix\n")


def test_the_version_is_printed(wollemi):
    from wollemi import __version__

    assert wollemi("--version").out == f"{__version__}\n"


def test_without_a_command_the_help_is_shown(wollemi):
    assert "solve" in wollemi().out


def test_the_package_can_be_run(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "wollemi", "solve", "nowhere.mtx"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert run.stderr == "wollemi: nowhere.mtx: there is no such file\n"


def test_a_reader_that_leaves_early_is_no_traceback():
    command = f"{sys.executable} -m wollemi kernels --markdown | head -n 1"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert run.stdout == "# Support matrix\n"
    assert "Traceback" not in run.stderr


def test_the_command_imports_no_optional_library():
    program = (
        "import sys, wollemi.cli; "
        "print([n for n in ('matplotlib', 'torch', 'cupy', 'dpctl') if n in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "[]\n"


def test_info_times_the_links_of_groups(wollemi):
    ended = wollemi("info", "--links")
    assert ended.status == 0 and "omp:1" in ended.out and "threads" in ended.out
    told = json.loads(wollemi("info", "--links", "--json").out)
    assert told["links"][0]["links"] == "threads" and told["links"][0]["one"] > 0


def test_info_times_threads_of_numpy_where_no_native_modules_are(wollemi, monkeypatch):
    monkeypatch.setattr(import_module("wollemi.cli.links"), "has_native_modules", lambda: False)
    ended = wollemi("info", "--links")
    assert ended.status == 0 and "reference, reference" in ended.out


def test_a_caveat_of_a_backend_is_told_where_the_backend_runs(wollemi, monkeypatch):
    notes = {"reference": "slow and exact", "hip": "never ran"}
    monkeypatch.setattr(import_module("wollemi.cli.info"), "backend_notes", lambda: notes)
    out = wollemi("info").out
    assert "slow and exact" in out and "never ran" not in out


def test_the_platform_has_a_line_of_its_own(wollemi):
    lines = [line.split() for line in wollemi("info").out.splitlines()]
    assert ["python", platform.python_version()] in lines
    assert any(line[:1] == ["platform"] for line in lines)


def test_info_says_why_ranks_have_no_faster_links(wollemi, monkeypatch):
    from wollemi.cli import links

    why = "no memory of other ranks: rank 1: no answer within 5 s"
    found = links.LinkTimes("torch:2 (cuda:0 on rank 0)", "nccl", 9.0, 12.0, why)
    monkeypatch.setattr(links, "link_times", lambda: [found])
    assert f"nccl, because {why}" in " ".join(wollemi("info", "--links").out.split())
    monkeypatch.setattr(links, "link_times", list)  # another rank than the first
    assert wollemi("info", "--links").out == ""
