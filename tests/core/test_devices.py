"""The files of constants are complete, name their records, and serve the devices they are for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wollemi.backends.cpu.slices import SellConstants
from wollemi.backends.cuda.products import constants as tensor
from wollemi.backends.gpu.constants import RowProductConstants, SpmvConstants
from wollemi.backends.omp.panels import PanelConstants
from wollemi.core import devices
from wollemi.solvers.auto.costs import FactorConstants, SolveConstants

ROOT = Path(__file__).parents[2]
GPU = (
    SpmvConstants,
    RowProductConstants,
    tensor.TensorCoreConstants,
    tensor.DenseProductConstants,
    tensor.TileConstants,
    tensor.RowAttentionConstants,
    tensor.SlabAttentionConstants,
    tensor.TileAttentionConstants,
    SolveConstants,
)
RULES = {
    "cpu": (SellConstants, PanelConstants, SolveConstants, FactorConstants),
    "nvidia": GPU,
    "amd": GPU,
}


@pytest.mark.parametrize("name", devices.names())
def test_a_file_has_the_constants_of_all_rules_and_no_others(name: str) -> None:
    content = json.loads((devices.FOLDER / f"{name}.json").read_text())
    found = devices.named(name)
    kinds = RULES[content["kind"]]
    for kind in kinds:
        assert found.of(kind) is found.of(kind)
        assert set(found.sections[devices.section_of(kind)]) == set(kind._fields)
    assert set(found.sections) == {devices.section_of(kind) for kind in kinds}


@pytest.mark.parametrize("name", devices.names())
def test_every_constant_names_a_record_that_exists(name: str) -> None:
    text = (ROOT / "benchmarks/results/constants.md").read_text()
    records = set(re.findall(r"^### (\S+)$", text, re.MULTILINE))
    for section in devices.named(name).sections.values():
        for constant in section.values():
            assert constant.record in records


def test_every_record_is_named_by_a_constant() -> None:
    text = (ROOT / "benchmarks/results/constants.md").read_text()
    records = set(re.findall(r"^### (\S+)$", text, re.MULTILINE))
    used = {
        constant.record
        for name in devices.names()
        for section in devices.named(name).sections.values()
        for constant in section.values()
    }
    assert records == used


@pytest.mark.parametrize(
    ("kind", "device", "name"),
    [
        ("nvidia", "NVIDIA H200", "h200"),
        ("nvidia", "NVIDIA H100 80GB HBM3", "h100"),
        ("nvidia", "NVIDIA Without a file", "unknown-nvidia"),
        ("amd", "AMD Without a file", "unknown-amd"),
        ("cpu", "AuthenticAMD family 25 model 17: AMD EPYC 9654", "zen4"),
        ("cpu", "AuthenticAMD family 25 model 97: AMD Ryzen 9 7950X", "zen4"),
        ("cpu", "AuthenticAMD family 25 model 33: AMD Ryzen 9 5950X", "unknown-cpu"),
        ("cpu", "AuthenticAMD family 26 model 2: AMD EPYC 9755", "zen5"),
        ("cpu", "GenuineIntel family 6 model 143: Intel(R) Xeon(R) Platinum 8481C", "xeon"),
        ("cpu", "GenuineIntel family 6 model 167: 11th Gen Intel(R) Core(TM)", "unknown-cpu"),
        ("cpu", "Neoverse-V2", "unknown-cpu"),
    ],
)
def test_a_device_has_the_file_of_its_kind(kind: str, device: str, name: str) -> None:
    assert devices.shipped(kind, device) == name


def test_a_constant_that_a_file_lacks_comes_from_its_base() -> None:
    h100 = devices.named("h100").sections["spmv"]
    assert h100["near_gain"].device == "h100"
    assert h100["most_padding"] == devices.named("h200").sections["spmv"]["most_padding"]


def test_a_file_without_a_constant_of_its_own_says_that_it_is_not_fitted() -> None:
    unfitted = {name for name in devices.names() if not devices.named(name).fitted}
    assert "zen5" in unfitted
    assert not unfitted & {"h100", "h200", "zen4"}
    assert "zen5.json, not fitted: all are of zen4.json" in repr(devices.named("zen5"))
    assert repr(devices.named("h200")) == "<constants of NVIDIA H200: h200.json>"
