"""The page of whole solves is that of the records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from website import how_fast, products
from website.places import ROOT


def test_the_page_and_its_picture_are_made_of_the_records() -> None:
    remedy = "run: python -m website.how_fast"
    assert how_fast.PAGE.read_text(encoding="utf-8") == how_fast.page(), remedy
    assert how_fast.PICTURE.read_text(encoding="utf-8") == how_fast.picture(), remedy


def test_the_sentence_of_the_readme_is_that_of_the_records() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert how_fast.sentence() in " ".join(readme.split())
    assert how_fast.slower() in " ".join(readme.split())


def test_a_product_at_the_bound_reads_every_byte_once() -> None:
    one = products.Product("rows", 1_000_000, wollemi=20.0, cusparse=30.0, share=0.5)
    assert (one.ratio, one.largest_ratio) == (1.5, 3.0)
    assert one.sectors(20.0) == 2.2  # 44 MB in 20 microseconds


def line(run: str, benchmark: str, contender: str, seconds: float | None) -> dict[str, Any]:
    """Return a line of a file of records."""
    return {
        "kind": "result", "run": run, "case": "plane", "rows": 9, "benchmark": benchmark,
        "contender": contender, "seconds": seconds, "ours": contender == "wollemi",
    }  # fmt: skip


def test_times_of_a_contest_come_from_one_run(tmp_path: Path) -> None:
    file = tmp_path / "races.jsonl"
    lines = [
        line("a", "race/cg-jacobi", "wollemi", 2.0),
        line("a", "race/cg-jacobi", "scipy", 6.0),
        line("a", "race/solve", "wollemi", 2.0),
        line("b", "race/cg-jacobi", "wollemi", 1.0),
        line("b", "race/cg-jacobi", "scipy", None),
        line("b", "race/solve", "wollemi", 1.5),
    ]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (race,) = how_fast.races(file)
    assert race.chosen is not None and race.chosen.milliseconds == 1500.0  # of the later run
    assert race.same_method is not None
    mine, theirs = race.same_method
    assert (mine.milliseconds, theirs.milliseconds) == (2000.0, 6000.0)
    assert race.ratio == 4.0 and race.fastest.library == "scipy"


def test_a_file_has_the_runs_of_one_device(tmp_path: Path) -> None:
    file = tmp_path / "races.jsonl"

    def lines(run: str, name: str) -> list[dict[str, Any]]:
        device = {"name": name, "threads": 2}
        about = {"kind": "environment", "run": run, "cores": 2, "device": device}
        return [about, line(run, f"race/{run}", "wollemi", 1.0) | {"other_cores": 0.5}]

    mine = lines("a", "Intel(R) Xeon(R) Processor")
    file.write_text("\n".join(map(json.dumps, mine)), encoding="utf-8")
    assert how_fast.device(file) == "two cores of an Intel Xeon"
    assert "0.5 of 2 cores (median; 0.5 to 0.5)" in how_fast.load(file)
    earlier = {"kind": "environment", "run": "no times", "cores": 64, "device": {"name": "other"}}
    file.write_text("\n".join(map(json.dumps, [earlier, *mine])), encoding="utf-8")
    assert "0.5 of 2 cores" in how_fast.load(file)
    both = mine + lines("b", "AMD EPYC")
    file.write_text("\n".join(map(json.dumps, both)), encoding="utf-8")
    with pytest.raises(ValueError, match=r"AMD EPYC.*Intel Xeon"):
        how_fast.device(file)
