"""``wollemi tune`` as a command."""

from __future__ import annotations

from typing import Any

import pytest

from wollemi.core import devices
from wollemi.tune import fit


def test_the_command_measures_goes_on_and_forgets(
    wollemi: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path / "cache"))
    devices.constants_of.cache_clear()
    monkeypatch.setattr(fit, "ROWS_OF_PROCESSOR", 2_000)
    first = wollemi("tune", "omp", "--seconds", "0.0001")
    assert first.status == 0 and "left for the next call" in first.out
    second = wollemi("tune")
    assert second.status == 0 and "known" in second.out and "row_end" in second.out
    assert "constants:" in second.out
    gone = wollemi("tune", "--forget")
    assert gone.status == 0 and "is removed" in gone.out
    assert "does not exist" in wollemi("tune", "--forget").out
    refused = wollemi("tune", "reference")
    assert refused.status == 2 and "expected omp" in refused.err
    devices.constants_of.cache_clear()
