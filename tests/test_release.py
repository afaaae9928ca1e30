"""The parts of a release: its files and licences. `make release-check` tries the wheel."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

import wollemi as wl
from wollemi.precompile.target import TARGETS, Target

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_licence_of_what_is_compiled_in_goes_into_the_wheel():
    assert "licenses/*" in PROJECT["project"]["license-files"]
    page = (ROOT / "licenses/README.md").read_text()
    included = set(re.findall(r"find_package\((\w+)", (ROOT / "CMakeLists.txt").read_text()))
    assert included == {"Python", "pybind11", "Threads"}, "add its licence to licenses/"
    assert "licenses/pybind11.txt" in page
    assert "licenses/xla.txt" in page
    assert {file.name for file in (ROOT / "third_party").iterdir()} == {"xla"}
    assert "Apache License" in (ROOT / "licenses/xla.txt").read_text()
    try:
        ours = distribution("pybind11").read_text("licenses/LICENSE")
    except ModuleNotFoundError:
        pytest.skip("pybind11 is not installed; make test installs it")
    assert (ROOT / "licenses/pybind11.txt").read_text() == ours


def test_tools_of_the_build_and_records_stay_out_of_what_users_get():
    excluded = PROJECT["tool"]["scikit-build"]
    assert "wollemi/backends/omp/generate*.py" in excluded["wheel"]["exclude"]
    assert "benchmarks/results" in excluded["sdist"]["exclude"]
    imported = re.compile(r"^\s*(from|import) .*\bgenerate\b", re.MULTILINE)
    for folder in ("core", "backends", "solvers", "src/wollemi"):
        for file in (ROOT / folder).rglob("*.py"):
            if not file.name.startswith("generate"):
                assert not imported.search(file.read_text()), file


def test_the_release_check_knows_the_headers_of_a_wheel(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "packaging")
    release_check = importlib.import_module("release_check")
    kept = [line for line in PROJECT["tool"]["scikit-build"]["wheel"]["exclude"] if line[0] == "!"]
    names = [
        *(line.removeprefix("!") for line in kept),
        "wollemi-0.2.0.dist-info/licenses/pybind11.txt",
        *(f"wollemi/backends/omp/_native_{level}.so" for level in ("v2", "v3", "v4")),
        *(f"wollemi/backends/cuda/kernels/{name}.zip" for name in release_check.KERNELS),
    ]
    with tarfile.open(tmp_path / "wollemi.tar.gz", "w:gz"):
        pass

    def check(names):
        wheel = tmp_path / "wollemi-cp311-cp311-linux_x86_64.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in names:
                archive.writestr(name, "")
        release_check.check_contents(wheel, tmp_path / "wollemi.tar.gz")

    check(names)
    for wrong in (names[1:], [*names, "wollemi/backends/omp/csr.cpp"]):
        with pytest.raises(AssertionError, match="lacks or should not have"):
            check(wrong)


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    recipe = (ROOT / "packaging/conda/recipe.yaml").read_text()
    assert f'version: "{PROJECT["project"]["version"]}"' in recipe
    for requirement in [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]:
        assert f"- {requirement.replace('>=', ' >=')}\n" in recipe, requirement


def test_wheels_are_built_for_every_python_that_is_supported():
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=3.")
    built = PROJECT["tool"]["cibuildwheel"]["build"]
    assert built[0] == f"cp3{oldest}-*"
    assert built == [f"cp3{minor}-*" for minor in range(int(oldest), int(oldest) + len(built))]


def test_wheels_are_built_for_macos_and_windows_by_a_compiler_with_vector_extensions():
    built = PROJECT["tool"]["cibuildwheel"]
    assert built["macos"]["archs"] == ["arm64"]
    assert built["windows"]["archs"] == ["AMD64"]
    assert built["windows"]["environment"]["CXX"] == "clang++"
    recipe = (ROOT / ".github/workflows/release.yml").read_text()
    assert "macos-15, windows-2025" in recipe
    assert "wollemi-*-py3-none-any.whl" in recipe


def test_the_native_module_needs_no_openmp_runtime():
    wl.executor("omp")
    # Tests of the instruction levels may have loaded more than one.
    natives = [m.__file__ for name, m in sys.modules.items() if ".omp._native_" in name]
    assert natives
    for native in natives:
        assert native is not None
        text = subprocess.run(["ldd", native], capture_output=True, text=True, check=True).stdout
        assert "libstdc++" in text
        assert not re.search("libgomp|libomp|libiomp", text)


def refused_by_cmake(folder: Path, *options: str) -> str:
    """Return CMake's message in an environment without a compiler."""
    tools = Path(sys.executable).parent  # make test puts them there
    cmake, ninja = shutil.which("cmake", path=tools), shutil.which("ninja", path=tools)
    if cmake is None or ninja is None:
        pytest.skip("CMake or Ninja is not in this environment; make test installs them")
    named = [f"-DCMAKE_MAKE_PROGRAM={ninja}", *options]
    done = subprocess.run(
        [cmake, "-S", ROOT, "-B", folder, "-G", "Ninja", *named],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
    )
    said = " ".join(done.stderr.split())
    assert done.returncode != 0
    assert said.count("CMake Error") == 1
    return said


def test_a_missing_compiler_is_one_sentence_that_says_what_to_do(tmp_path):
    said = refused_by_cmake(tmp_path)
    assert "wollemi needs a C++17 compiler to be built: install one (apt install g++" in said


def test_free_threaded_python_is_refused_in_one_sentence(tmp_path):
    said = refused_by_cmake(tmp_path, "-DSKBUILD_SOABI=cpython-314t-x86_64-linux-gnu")
    assert "wollemi does not support free-threaded Python yet" in said
    assert "free-threaded" not in refused_by_cmake(
        tmp_path / "usual", "-DSKBUILD_SOABI=cpython-314-x86_64-linux-gnu"
    )


def test_a_wheel_has_every_instruction_set_whatever_the_processor_here():
    makefile = (ROOT / "Makefile").read_text()
    recipe = makefile.partition("\nwheel: ")[2].partition("\n\n")[0]
    assert "WOLLEMI_NATIVE_LEVELS=$(WHEEL_LEVELS)" in recipe
    assert re.search(r"^WHEEL_LEVELS \?= all$", makefile, re.MULTILINE)
    built = PROJECT["tool"]["cibuildwheel"]["config-settings"]
    assert built == {"cmake.define.WOLLEMI_NATIVE_LEVELS": "all"}


def test_a_release_carries_kernels_for_the_gpus_that_can_be_described():
    """The recipe here, that of cibuildwheel, the check and the build itself name the same."""
    recipe = (ROOT / "Makefile").read_text()
    (named,) = re.findall(r"^WHEEL_KERNELS \?= (.*)$", recipe, re.MULTILINE)
    assert named.split(";") == list(TARGETS)
    built = PROJECT["tool"]["cibuildwheel"]["linux"]["environment"]
    assert built == {"WOLLEMI_CUDA_KERNELS": named}
    check = (ROOT / "packaging/release_check.py").read_text()
    archives = {Target(name).architecture: name for name in TARGETS}
    assert f"KERNELS = {archives}".replace("'", '"') in check


def test_kernels_are_compiled_by_the_nvrtc_that_users_have():
    settings = PROJECT["tool"]["scikit-build"]["overrides"]
    (asked,) = [one["build"]["requires"] for one in settings if "build" in one]
    extra = PROJECT["project"]["optional-dependencies"]["cuda13"]
    assert set(asked) <= {*extra, *PROJECT["project"]["dependencies"]}
    assert {line for line in asked if "cuda" in line} == {x for x in extra if "cupy" not in x}
