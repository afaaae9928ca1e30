"""Imports while a device begins."""

import subprocess
import sys
import threading

import pytest

from wollemi.core import meanwhile


def test_modules_are_imported_while_a_block_runs(tmp_path, monkeypatch):
    (tmp_path / "wollemi_meanwhile_a.py").write_text("import wollemi_meanwhile_b")
    (tmp_path / "wollemi_meanwhile_b.py").write_text(
        "import threading\nby = threading.current_thread()"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(meanwhile, "MODULES", ["wollemi_meanwhile_a"])
    with meanwhile.imported_meanwhile("wollemi_meanwhile_none"):
        pass
    assert sys.modules["wollemi_meanwhile_b"].by is not threading.current_thread()


def test_a_module_that_waits_for_the_block_holds_nobody_up(tmp_path, monkeypatch):
    (tmp_path / "wollemi_meanwhile_c.py").write_text(
        "import builtins\nbuiltins.wollemi_meanwhile_hold.wait(20)"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(meanwhile, "MODULES", ["wollemi_meanwhile_c"])
    monkeypatch.setattr(meanwhile, "LIMIT", 0.01)
    hold = threading.Event()
    monkeypatch.setattr("builtins.wollemi_meanwhile_hold", hold, raising=False)
    with meanwhile.imported_meanwhile():
        pass
    hold.set()


def test_an_error_of_the_block_is_raised(monkeypatch):
    monkeypatch.setattr(meanwhile, "MODULES", [])
    with (
        pytest.raises(ValueError, match="of the block"),
        meanwhile.imported_meanwhile("antigravity_"),
    ):
        raise ValueError("of the block")


def test_nothing_is_left_to_import_at_a_first_solve():
    text = """
import sys
import wollemi as wl
from wollemi.core import meanwhile
meanwhile.LIMIT = 60
with meanwhile.imported_meanwhile():
    pass
before = set(sys.modules)
wl.solve
print(*(name for name in set(sys.modules) - before if name.startswith("wollemi")))
"""
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
