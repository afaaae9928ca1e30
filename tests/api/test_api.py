"""Programs written for the last release go on working: names and signatures are compared."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import wollemi as wl
from wollemi.core.deprecation import DEPRECATIONS

from .comparison import breaks, parameters
from .record import MODULES, OF_LINEAX, OF_TORCH, RECORD, Entry, entries, parsed, recorded, version

ROOT = Path(__file__).parents[2]

ADVICE = f"""
A program that was written for the last release would fail. Either
- keep the old name or parameter for two minor versions, by wollemi.core.deprecation, or
- if it never worked, or a new version number is due (docs/api-stability.md): say it in
  CHANGELOG.md and run `make api`, which writes {RECORD.relative_to(ROOT)} anew."""


def test_the_names_and_signatures_of_the_last_release_are_there():
    try:
        import jax  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        pytest.skip(f"{error}: wollemi.nn and wollemi.interop need it; make test installs it")
    absent = () if find_spec("lineax") else (OF_LINEAX,)
    present = entries(tuple(module for module in MODULES if module not in absent))
    excused = (*still_working(), *(f"{name}: is not there any more" for name in still_named()))
    broken = [line for line in breaks(recorded()[1], present) if line not in excused]
    assert not broken, "\n".join(broken) + ADVICE


def still_working() -> Iterator[str]:
    """Yield the changes of options that ``OldOptions`` and ``named_options`` make good."""
    for name in wl.preconditioners.__all__:
        kind, of = getattr(wl.preconditioners, name), f"wollemi.preconditioners.{name}"
        old = getattr(kind, "old_options", None)
        if old is not None:
            for position in old.positions:
                yield f"{of}: {position} has another place among the arguments"
            for parameter in old.renamed:
                yield f"{of}: takes no {parameter} any more"

    for name in (name for name, entry in recorded()[1].items() if entry.kind == "function"):
        module, _, attribute = name.rpartition(".")
        function = getattr(sys.modules.get(module), attribute, None)
        for position in getattr(function, "old_positions", ()):
            yield f"{name}: {position} has another place among the arguments"


def still_named() -> list[str]:
    """Return the recorded names that still work and warn, with those of their members."""
    names = tuple(entry.name for entry in DEPRECATIONS if entry.name.startswith("wollemi."))
    return [name for name in recorded()[1] if name.startswith(names)]


def test_the_record_is_of_the_version_that_is_released():
    assert recorded()[0] == version(), "run `make api` when the version changes"


def test_every_public_module_is_recorded():
    folder = ROOT / "src/wollemi"
    files = {
        "wollemi." + str(file.relative_to(folder).with_suffix("")).replace("/", ".")
        for file in [*folder.glob("*.py"), *folder.glob("interop/*")]
        if not file.name.startswith("_") and file.name != "executors.py"  # they are wl.OmpExecutor
    }
    assert files <= set(MODULES), "add the module to MODULES in tests/api/record.py"
    assert set(OF_TORCH) <= set(MODULES)


def entry(signature: str) -> dict[str, Entry]:
    return {"f": Entry("f", "function", signature)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(A, b)", "(A, b, *, rtol=1e-05)"),
        ("(A, b)", "(A, b, x0=None)"),
        ("(A, b, *, rtol)", "(A, b, *, rtol=1e-05)"),
        ("(A, b, *, rtol=1e-05)", "(A, b, rtol=1e-05)"),
        ("(A, /)", "(given, /)"),
        ("(A, *, rtol=1e-05)", "(A, **options)"),
    ],
)
def test_what_breaks_no_program_passes(old, new):
    assert breaks(entry(old), entry(new)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(A, b)", "(A)", "takes no b any more"),
        ("(A, b)", "(A, rhs)", "takes no b any more"),
        ("(A, b)", "(b, A)", "A has another place among the arguments"),
        ("(A, b=None)", "(A, b)", "b has no default any more"),
        ("(A, tol=1e-05)", "(A, tol=1e-08)", "the default of tol was 1e-05 and is 1e-08"),
        ("(A)", "(A, b)", "needs b, which it did not"),
        ("(A)", "(A, *, b)", "needs b, which it did not"),
        ("(A, b=None)", "(A, *, b=None)", "b has another place among the arguments"),
        ("(A, **options)", "(A)", "takes no **options any more"),
    ],
)
def test_what_breaks_programs_is_said(old, new, said):
    assert f"f: {said}" in breaks(entry(old), entry(new))


def test_a_name_that_went_and_one_that_became_something_else_are_said():
    old = entry("()")
    assert breaks(old, {}) == ["f: is not there any more"]
    assert breaks(old, {"f": Entry("f", "class", "()")}) == ["f: was a function and is a class"]
    read = {"f": Entry("f", "attribute")}
    assert breaks(read, {"f": Entry("f", "property")}) == []


def test_a_line_of_the_record_reads_back():
    for _, found in zip(range(200), recorded()[1].values(), strict=False):
        assert parsed(str(found)) == found


def test_every_recorded_signature_can_be_compared():
    for found in recorded()[1].values():
        if found.signature and "..." not in found.signature and not found.name.startswith("$"):
            parameters(found.signature)


def test_one_version_is_said_everywhere():
    texts = {
        name: (ROOT / name).read_text()
        for name in ("pyproject.toml", "benchmarks/pyproject.toml", "CITATION.cff", "CHANGELOG.md")
    }
    now = re.escape(version())
    assert re.search(f'^bench = .*wollemi-bench=={now}"', texts["pyproject.toml"], re.MULTILINE)
    assert re.search(f'^version = "{now}"', texts["benchmarks/pyproject.toml"], re.MULTILINE)
    assert f'"wollemi=={version()}"' in texts["benchmarks/pyproject.toml"]
    assert re.search(f"^version: {now}$", texts["CITATION.cff"], re.MULTILINE)
    assert re.search(f"^## \\[{now}\\]", texts["CHANGELOG.md"], re.MULTILINE)
