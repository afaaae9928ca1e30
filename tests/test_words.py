"""The checker of vague words: it finds them in every kind of text, and its limits hold."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("check_words", ROOT / "packaging/check_words.py")
assert _spec is not None and _spec.loader is not None
check_words = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_words)

PYTHON = '''"""Those of a module."""
x = "what"  # what remains
raise ValueError("this is what it was given")
'''
CPP = """// Rows whose sums
int what; /* are in
those */ const char* s = "// a word for what is missing";
"""
PAGE = """Nobody knows `what`.
```
what
```
"""


@pytest.mark.parametrize(
    ("suffix", "text", "found"),
    [
        (".py", PYTHON, [(1, "those"), (2, "what"), (3, "what")]),
        (".cpp", CPP, [(1, "whose"), (3, "those"), (3, "what")]),
        (".md", PAGE, [(1, "somebody")]),
    ],
)
def test_vague_words_are_found_in_prose_and_not_in_code(suffix, text, found):
    lines = [
        (number, group)
        for number, line in check_words.READERS[suffix](text)
        for group, pattern in check_words._GROUPS.items()
        for _ in pattern.findall(line)
    ]
    assert sorted(lines) == found


def test_the_repository_is_within_the_limits():
    if not (ROOT / "Makefile").exists():
        pytest.skip("needs a checkout")
    assert check_words.check() == []


def test_an_exceeded_limit_is_reported_with_its_lines(tmp_path, monkeypatch):
    none = {part: dict.fromkeys(check_words.GROUPS, 0.0) for part in check_words.PARTS}
    file = tmp_path / "limits.json"
    file.write_text(json.dumps(none))
    monkeypatch.setattr(check_words, "LIMITS", file)
    lines = {part: {group: [] for group in check_words.GROUPS} for part in check_words.PARTS}
    lines["core"]["what"] = [("core/a.py", 7, "what it is")]
    monkeypatch.setattr(check_words, "counts", lambda: (dict.fromkeys(lines, 1000), lines))
    (message,) = check_words.check()
    assert message.startswith('core: "what" occurs 1.0 times per 1,000 words, the limit is 0.0.')
    assert "core/a.py:7: what it is" in message


def test_limits_are_lowered_and_never_raised(monkeypatch):
    allowed = {"core": {"what": 5.1, "those": 0.3}}
    monkeypatch.setattr(check_words, "limits", lambda: allowed)
    monkeypatch.setattr(check_words, "rates", lambda: {"core": {"what": 2.0, "those": 2.0}})
    assert check_words.lowered() == {"core": {"what": 2.1, "those": 0.3}}
