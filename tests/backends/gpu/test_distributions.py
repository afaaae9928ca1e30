"""Which distributions of CuPy are installed, from their folders."""

import numpy as np
import pytest

from wollemi.backends.gpu.distributions import cupy_distributions
from wollemi.backends.gpu.reductions import every, some


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a function that installs a distribution by name, with its content."""

    def install(name, top_level=None, files=()):
        folder = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))
        if top_level is not None:
            (folder / "top_level.txt").write_text("\n".join(top_level))

    monkeypatch.setattr("sys.path", [str(tmp_path), str(tmp_path / "nowhere"), str(tmp_path)])
    cupy_distributions.cache_clear()
    yield install
    cupy_distributions.cache_clear()


def test_none_is_installed(installed):
    installed("numpy", ["numpy"])
    assert cupy_distributions() == ()


def test_those_that_bring_the_package_are_named(installed):
    installed("cupy-cuda13x", ["cupy", "cupyx", "cupy_backends"])
    installed("amd-cupy", files=["cupy/__init__.py", "amd_cupy-1.0.dist-info/METADATA"])
    installed("cupy-xarray", ["cupy_xarray"])
    installed("xcupy-tools", files=["xcupy/__init__.py"])
    assert cupy_distributions() == ("amd-cupy", "cupy-cuda13x")


def test_some_and_every_are_numpys_any_and_all():
    for mask in ([], [True], [False], [True, False], [True, True]):
        given = np.array(mask, bool)
        assert some(given) is bool(given.any()) and every(given) is bool(given.all())
