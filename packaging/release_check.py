"""Try what a release gives to users: ``make release-check`` (minutes; needs a package index).

1. sdist and wheel are small enough, and hold no records and no tools of the build.
2. The wheel links to libraries alone that every manylinux system has, so there is nothing to graft.
3. In a fresh environment, with no compiler to be found, it installs and solves a first system.
4. A part of the tests passes against the installed wheel with the oldest and the newest NumPy and
   SciPy.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

#: A wheel has three instruction levels; PyPI's limit is 100 MB, ours is that of a quick download.
MEGABYTES = 20

#: What auditwheel leaves to the system, of all that a module of C++ needs.
SYSTEM_LIBRARIES = {"libstdc++", "libm", "libgcc_s", "libc", "libpthread", "ld-linux"}

FIRST_SOLVE = """
import time
begin = time.perf_counter()
import wollemi as wl
took = time.perf_counter() - begin
import numpy as np, scipy.sparse as sp
S = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100)).tocsr()
result = wl.solve(wl.Csr(S, executor="omp"), np.ones(100), rtol=1e-8)
assert result.converged, result
print(f"wollemi {wl.__version__}: {result.reason}; the import took {took:.2f} s")
"""

#: Quick tests that touch NumPy and SciPy most: formats, files, everyday operators, solvers.
SAMPLE = (
    "tests/core/formats",
    "tests/core/test_io.py",
    "tests/core/test_lazy.py",
    "tests/cli/test_solve.py",
    "tests/solvers/test_functions.py",
    "tests/solvers/test_direct.py",
)

#: They need PyTorch, or compare with signatures that SciPy changes from version to version.
LEFT_OUT = (
    "--ignore=tests/core/formats/test_arguments.py",
    "--ignore=tests/core/formats/test_ownership.py",
    "--deselect=tests/solvers/test_functions.py::test_signatures_and_defaults_are_scipys",
)


def say(text: str) -> None:
    """Print at once."""
    print(f"release-check: {text}", flush=True)


def only(pattern: str) -> Path:
    """Return the one file in ``dist`` of a pattern."""
    found = sorted((ROOT / "dist").glob(pattern))
    if len(found) != 1:
        sys.exit(f"release-check: expected one dist/{pattern}, found {len(found)}: run make wheel")
    return found[0]


def check_contents(wheel: Path, sdist: Path) -> None:
    """Compare sizes and names with what a release may hold."""
    for file in (wheel, sdist):
        megabytes = file.stat().st_size / 1e6
        say(f"{file.name}: {megabytes:.1f} MB")
        assert megabytes < MEGABYTES, f"{file.name} is larger than {MEGABYTES} MB"
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if re.search(r"omp/.*\.[ch]pp$|generate|benchmarks", name)]
    assert any(name.endswith("licenses/pybind11.txt") for name in names)
    levels = {found for name in names for found in re.findall(r"_native_(\w+)\.", name)}
    wanted = {"v2", "v3", "v4"} if "x86_64" in wheel.name else {"generic"}
    assert levels == wanted, f"the wheel has {levels} and needs {wanted}: make wheel"
    with tarfile.open(sdist) as archive:
        assert not [name for name in archive.getnames() if "benchmarks/results" in name]


def check_libraries(wheel: Path) -> None:
    """Find what the native modules link to."""
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        for module in Path(folder).rglob("*.so"):
            text = subprocess.run(["ldd", module], capture_output=True, text=True, check=True)
            names = set(re.findall(r"^\s*(?:/\S*/)?([\w+-]+)\.so", text.stdout, re.MULTILINE))
            others = {
                name
                for name in names - {"linux-vdso"}
                if not any(name.startswith(known) for known in SYSTEM_LIBRARIES)
            }
            assert not others, f"{module.name} links to {others}: auditwheel would copy them"
    say("links to libraries of the system alone; no OpenMP runtime")


def environment(folder: Path, *requirements: str) -> Path:
    """Make a virtual environment and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin/python"
    hidden = {**os.environ, "PATH": str(folder / "bin")}  # no compiler, no make
    command = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *requirements]
    subprocess.run(command, check=True, env=hidden)
    return python


def check_first_solve(wheel: Path, folder: Path) -> None:
    """Install without a compiler and solve a system."""
    begin = time.perf_counter()
    python = environment(folder / "first", str(wheel))
    hidden = {**os.environ, "PATH": str(folder / "first/bin")}
    subprocess.run([python, "-P", "-c", FIRST_SOLVE], check=True, cwd=folder, env=hidden)
    say(f"installed without a compiler, and solved: {time.perf_counter() - begin:.0f} s")


def oldest() -> list[str]:
    """Return the oldest NumPy and SciPy that pyproject.toml allows, as requirements."""
    found = [re.fullmatch(r"(numpy|scipy)>=([\d.]+)", line) for line in PROJECT["dependencies"]]
    return [f"{match[1]}=={match[2]}.*" for match in found if match]


def check_versions(wheel: Path, folder: Path) -> None:
    """Run a part of the tests with the ends of the range of NumPy and SciPy."""
    for name, pins in (("oldest", oldest()), ("newest", ["numpy", "scipy"])):
        python = environment(
            folder / name, str(wheel), *pins, "pytest", "hypothesis", "ml_dtypes", "matplotlib"
        )
        say(f"the tests with the {name}: {' '.join(pins)}")
        command = [python, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *LEFT_OUT, *SAMPLE]
        subprocess.run(command, check=True, cwd=ROOT)


def main() -> None:
    """Make all checks; the first that fails ends the program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the ranges of versions")
    quick = parser.parse_args().quick
    wheel, sdist = only("wollemi-*.whl"), only("wollemi-*.tar.gz")
    check_contents(wheel, sdist)
    check_libraries(wheel)
    with tempfile.TemporaryDirectory() as folder:
        check_first_solve(wheel, Path(folder))
        if not quick:
            check_versions(wheel, Path(folder))
    say("all is well")


if __name__ == "__main__":
    main()
