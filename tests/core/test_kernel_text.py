"""Keys of compiled programs depend on the tokens of a program and on nothing else in its text."""

from __future__ import annotations

import re

import pytest

from wollemi.backends.cuda.runtime import archive
from wollemi.backends.unified import functors, program_text
from wollemi.core import kernel_text
from wollemi.core.kernel_text import without_comments
from wollemi.core.operation import OPERATIONS

TEXT = """#line 1 "a.hpp"
// Rows of x.
constexpr int kRows = 1'000;  // at most

/* The sum,
   in order. */
int sum(const char* name) { return name[0] == '"' ? kRows : 0; }
const char* path = "https://example.org";
"""


def key(text: str) -> str:
    return archive.key_of(text, "sm_90", ["-std=c++17"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// Rows of x.\n", "// The number of rows.\n// It is a constant.\n"),
        ("  // at most", ""),
        ("in order.", "in the order of rows."),
        ('#line 1 "a.hpp"', '#line 9 "b.hpp"'),
        ("\n\n", "\n"),
    ],
)
def test_a_comment_or_a_line_directive_does_not_change_the_key(old, new):
    assert old in TEXT
    assert key(TEXT.replace(old, new)) == key(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1'000", "1'001"),
        ("kRows : 0", "kRows : 1"),
        ("example.org", "example.com"),
        ("""'"'""", "'/'"),
        ("int sum", "long sum"),
    ],
)
def test_a_token_changes_the_key(old, new):
    assert old in TEXT
    assert key(TEXT.replace(old, new)) != key(TEXT)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a = 1'000; // it's x", "a = 1'000;"),
        ("a = b / c; /* d */ e", "a = b / c;   e"),
        ("a/**/b", "a b"),
        ('s = "/* no */"; // yes', 's = "/* no */";'),
        ("c = '\\''; // yes", "c = '\\'';"),
        ('R"(// no)"; // yes', 'R"(// no)";'),
        ("x = 1e-3f; // yes", "x = 1e-3f;"),
        ("a // one \\\n two\nb", "a\nb"),
        ('a\n#line 3 "b"\nc', "a\nc"),
        ('a /* one\n#line 3 "b"\n*/ c', "a   c"),
        ("a // one \\\n#line 3\nb", "a\nb"),
        ('R"(\n#line 4\n)"; // yes', 'R"(\n#line 4\n)";'),
    ],
)
def test_literals_are_no_comments(text, tokens):
    assert without_comments(text) == tokens


@pytest.mark.parametrize(
    "text",
    [
        "int a; // one\n\n  int b;  \n",
        '#line 3 "a.hpp"\nint a; // one',
        "int a = 1'000; // not a row's\nint b;",
        "char c = '/'; int d; // '/'",
        "// it's\nint a; // 5\" wide\n",
        "int a; /* one // two\n */ int b;",
        "// one \\\ntwo\nint a;",
        *(path.read_text() for path in sorted((program_text.ROOT / "simt").glob("*.hpp"))[:20]),
    ],
)
def test_text_without_literals_is_read_like_any_other(text):
    for part in (text, re.sub(r"#include.*", "", text), re.sub(r"[\"']", "", text)):
        assert kernel_text._tokens(part) == kernel_text._tokens_of_any(part)


def test_a_program_has_the_tokens_of_its_files_each_of_which_is_read_once():
    headers = ["simt/spmv.hpp", "simt/structure.hpp", "unified/map_simt.hpp"]
    files = [program_text.flatten(header) for header in headers]
    kernel_text._tokens.cache_clear()
    for file in files:
        without_comments(file)
    read = kernel_text._tokens.cache_info().misses
    assert without_comments("".join(files)) == "\n".join(map(without_comments, files))
    assert kernel_text._tokens.cache_info().misses == read


def test_rewording_every_header_changes_no_key(monkeypatch):
    read = program_text._read
    root = program_text.ROOT
    headers = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.hpp"))
    before = key(program_text.flatten(*headers))
    monkeypatch.setattr(program_text, "_read", lambda *given: "// Reworded.\n" + read(*given))
    assert key(program_text.flatten(*headers)) == before


def test_the_summary_of_a_step_is_not_part_of_its_digest(monkeypatch):
    operation = next(one for one in OPERATIONS if one.step is not None)
    text = functors.functor_text(operation)
    before = functors.text_digest(operation)
    assert text.startswith("// ")
    monkeypatch.setattr(functors, "functor_text", lambda _: f"// Reworded.\n{text}")
    assert functors.text_digest(operation) == before
    monkeypatch.setattr(functors, "functor_text", lambda _: f"{text}int changed;\n")
    assert functors.text_digest(operation) != before
