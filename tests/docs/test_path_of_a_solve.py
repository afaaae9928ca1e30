"""The page on solvers names each file that a solve may run through."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["auto", "driver"])
def test_the_page_names_each_file_of_the_choice_and_of_the_driver(folder: str) -> None:
    page = (ROOT / "docs/design-solvers.md").read_text()
    files = {f"`{folder}/{path.name}`" for path in (ROOT / "solvers" / folder).glob("[!_]*.py")}
    assert files
    assert not {name for name in files if name not in page}
