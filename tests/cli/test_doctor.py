"""``wollemi doctor``: its findings, and its remedies."""

from __future__ import annotations

import json
from importlib import import_module

import numpy as np
import pytest

from wollemi.core.errors import OutOfDeviceMemory
from wollemi.core.registry import Availability

module = import_module("wollemi.cli.doctor")


@pytest.fixture
def only(monkeypatch):
    """Let an executor be all that this machine has."""

    def one(name: str, available: bool = True, reason: str = "") -> None:
        line = Availability(name, available, "a device", None, reason)
        monkeypatch.setattr(module, "available_executors", lambda: [line])

    return one


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_what_works_is_said_and_ends_with_0(wollemi, only, executor):
    only(executor)
    ended = wollemi("doctor")
    assert ended.status == 0
    assert f"{executor}: product" in ended.out and f"{executor}: solve" in ended.out
    assert "the product equals SciPy's" in ended.out or "by rounding" in ended.out
    assert "converged: " in ended.out and "iterations of CG" in ended.out
    assert f"no check failed; executors that work here: {executor}" in ended.out


def test_the_findings_are_printed_as_json(wollemi, only):
    only("reference")
    ended = wollemi("doctor", "--json")
    assert ended.status == 0
    told = {one["name"]: one for one in json.loads(ended.out)}
    assert told["reference: solve"]["state"] == "ok"
    only("cuda", available=False, reason="no driver: install one")
    told = {one["name"]: one for one in json.loads(wollemi("doctor", "--json").out)}
    assert told["cuda"]["state"] == "not available"


def test_what_is_not_here_is_no_failure_and_has_its_remedy(wollemi, only):
    only("cuda", available=False, reason="no driver: install one")
    ended = wollemi("doctor")
    assert ended.status == 0
    assert "not available" in ended.out and "no driver: install one" in ended.out
    assert "executors that work here: none" in ended.out


def test_a_wrong_product_is_a_failure(wollemi, only, monkeypatch):
    only("reference")

    class Wrong:
        def __init__(self, matrix, executor):
            self.matrix = matrix

        def __matmul__(self, x):
            return 1.001 * (self.matrix @ x)

    monkeypatch.setattr(module, "Csr", Wrong)
    monkeypatch.setattr(module, "_solve", lambda executor: "solved")
    ended = wollemi("doctor")
    assert ended.status == 1 and "1 check failed" in ended.out
    assert "differs from SciPy by 1.0e-03" in ended.out and "report it" in ended.out


def test_a_product_of_nan_is_a_failure(only, monkeypatch):
    only("reference")
    monkeypatch.setattr(module, "TOLERANCE", float("nan"))
    states = {check.name: check.state for check in module.examine()}
    assert states["reference: product"] == "failed"


@pytest.mark.parametrize("error", [OutOfDeviceMemory("no room: free some"), RuntimeError("driver")])
def test_an_executor_that_raises_is_a_failure_of_its_own(only, monkeypatch, error):
    only("reference")

    def broken(executor):
        raise error

    monkeypatch.setattr(module, "_product", broken)
    checks = {check.name: check for check in module.examine()}
    assert checks["reference: product"].state == "failed"
    assert str(error) in checks["reference: product"].detail
    assert checks["reference: product"].remedy
    assert checks["reference: solve"].state == "ok"


def test_a_cache_that_others_can_write_is_a_failure(wollemi, only, monkeypatch, tmp_path):
    only("reference")
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(folder))
    ended = wollemi("doctor")
    assert ended.status == 1
    assert "chmod go-w" in ended.out and "WOLLEMI_CACHE_DIR" in ended.out


def test_the_system_is_well_conditioned():
    S, ones = module._system()
    assert np.linalg.cond(S.toarray()) < 10 and ones.shape == (S.shape[0],)


@pytest.mark.parametrize(("policy", "words"), [("passive", "they sleep"), ("", "they spin")])
def test_idle_threads_of_pytorch_are_checked(policy, words):
    check = module._threads_check(policy)
    assert check.state == (module.OK if policy else module.ADVICE) and words in check.detail
    assert bool(check.remedy) == (policy == "")
