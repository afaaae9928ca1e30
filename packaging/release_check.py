"""Test the files of a release: ``make release-check`` (minutes; needs a package index).

1. sdist and wheel are small enough, and hold no records and no tools of the build.
2. The wheel links to libraries alone that every manylinux system has, so there is nothing to graft.
   It carries the kernels of GPUs that CMakeLists.txt names, made of the text that it carries too.
3. In a fresh environment, with no compiler to be found, it installs and solves a first system.
4. A part of the tests passes against the installed wheel with the oldest and the newest NumPy and
   SciPy.
5. Each extra is resolved on a bare machine (``pip install --dry-run``).
6. Other Pythons (``--python python3.13``, several times): a wheel is built from the sdist for one
   instruction level, and a part of the tests passes against it. Free-threaded ones refuse native
   modules; there the pure wheel works, also on eight threads (``threads_program.py``).
7. The pure wheel works in a fresh environment without the calls of Linux (``pure_program.py``).
8. The C++ of the omp backend compiles for macOS and Windows (``zig_check.py``).
9. Every kernel of single operations compiles with the NVRTC of CUDA 12 (``test_nvrtc12.py``).
10. Where a cross compiler and an emulator are: the wheel for aarch64 solves (``aarch64.py``).
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

import aarch64
import zig_check

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
BUILD_REQUIREMENTS = (*SETTINGS["build-system"]["requires"], "cmake>=3.24", "ninja")

#: Extras for who works on wollemi; the others are for users. The harness is published separately.
OF_DEVELOPERS = ("bench", "browser", "dev", "docs", "lint", "test")

#: A wheel has three instruction levels, of 5.6 MB at most, and kernels for three GPUs in 12;
#: PyPI's limit is 100, ours is that of a quick download.
MEGABYTES = 35

#: The targets of kernels in a wheel: the names of the archives, and of the GPUs.
KERNELS = {"sm_80": "sm_80", "sm_90a": "sm_90", "sm_100": "sm_100"}

FIND_KERNELS = """
import sys
from wollemi.precompile.build import missing
for name in sys.argv[1:]:
    assert not missing(name), (name, missing(name))
print("the archives have the kernels of", *sys.argv[1:])
"""

#: The headers of the omp backend that a wheel has, for functors of other packages.
HEADERS = {
    line.removeprefix("!")
    for line in SETTINGS["tool"]["scikit-build"]["wheel"]["exclude"]
    if line.startswith("!")
}

#: The libraries that auditwheel leaves to the system.
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
    """Compare sizes and names with the limits of a release."""
    for file in (wheel, sdist):
        megabytes = file.stat().st_size / 1e6
        say(f"{file.name}: {megabytes:.1f} MB")
        assert megabytes < MEGABYTES, f"{file.name} is larger than {MEGABYTES} MB"
    names = zipfile.ZipFile(wheel).namelist()
    inputs = {name for name in names if re.search(r"omp/.*\.[ch]pp$|generate|benchmarks", name)}
    assert inputs == HEADERS, f"the wheel lacks or should not have {sorted(inputs ^ HEADERS)}"
    assert any(name.endswith("licenses/pybind11.txt") for name in names)
    levels = {found for name in names for found in re.findall(r"_native_(\w+)\.", name)}
    wanted = {"v2", "v3", "v4"} if "x86_64" in wheel.name else {"generic"}
    assert levels == wanted, f"the wheel has {levels} and needs {wanted}: make wheel"
    kernels = {found for name in names for found in re.findall(r"cuda/kernels/(\w+)\.zip", name)}
    assert kernels == set(KERNELS), f"the wheel has kernels for {kernels or 'no GPU'}: make wheel"
    with tarfile.open(sdist) as archive:
        assert not [name for name in archive.getnames() if "benchmarks/results" in name]


def check_libraries(wheel: Path) -> None:
    """Check the libraries that the native modules link to."""
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


def environment(folder: Path, *requirements: str, base: str = sys.executable) -> Path:
    """Make a virtual environment and return its Python."""
    subprocess.run([base, "-m", "venv", folder], check=True)
    python = folder / "bin/python"
    if not requirements:
        return python
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
    command = [python, "-P", "-c", FIND_KERNELS, *KERNELS.values()]
    subprocess.run(command, check=True, cwd=folder, env=hidden)
    say(f"installed without a compiler, and solved: {time.perf_counter() - begin:.0f} s")


def oldest() -> list[str]:
    """Return the oldest NumPy and SciPy that pyproject.toml allows, as requirements."""
    found = [re.fullmatch(r"(numpy|scipy)>=([\d.]+)", line) for line in PROJECT["dependencies"]]
    return [f"{match[1]}=={match[2]}.*" for match in found if match]


def run_tests(wheel: Path, folder: Path, pins: list[str], base: str = sys.executable) -> None:
    """Run a part of the tests against an installed wheel."""
    tools = ("pytest", "hypothesis", "ml_dtypes", "matplotlib")
    python = environment(folder, str(wheel), *pins, *tools, base=base)
    command = [python, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *LEFT_OUT, *SAMPLE]
    subprocess.run(command, check=True, cwd=ROOT)


def check_versions(wheel: Path, folder: Path) -> None:
    """Run a part of the tests with the ends of the range of NumPy and SciPy."""
    for name, pins in (("oldest", oldest()), ("newest", ["numpy", "scipy"])):
        say(f"the tests with the {name}: {' '.join(pins)}")
        run_tests(wheel, folder / name, pins)


def check_extras(wheel: Path, folder: Path) -> None:
    """Resolve the requirements of each extra, with downloads of metadata only."""
    python = environment(folder / "extras")
    failed = []
    for extra in PROJECT["optional-dependencies"]:
        if extra in OF_DEVELOPERS:
            continue
        command = [python, "-m", "pip", "install", "--quiet", "--dry-run", f"{wheel}[{extra}]"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        failed += [extra] * (done.returncode != 0)
        say(f"extra {extra}: {'resolved' if done.returncode == 0 else done.stderr.strip()}")
    assert not failed, f"extras that cannot be installed: {failed}"


def check_pure(wheel: Path, folder: Path, base: str = sys.executable) -> None:
    """Use the wheel without native modules in an environment that has nothing else."""
    python = environment(folder / "pure", str(wheel), base=base)
    hidden = {"PATH": str(folder), "HOME": str(folder)}
    for name in ("pure_program.py", "threads_program.py"):
        program = ROOT / "packaging" / name
        subprocess.run([python, "-P", program], check=True, cwd=folder, env=hidden)


def check_other_systems(folder: Path) -> None:
    """Compile the C++ for macOS and Windows."""
    python = environment(folder / "zig", zig_check.REQUIREMENT, BUILD_REQUIREMENTS[1])
    subprocess.run([python, ROOT / "packaging/zig_check.py"], check=True)


def check_nvrtc12(folder: Path) -> None:
    """Compile the kernels with the NVRTC of CUDA 12; the tests elsewhere have that of CUDA 13."""
    (requirement,) = (r for r in PROJECT["optional-dependencies"]["cuda12"] if "nvrtc" in r)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--target", folder / "nvrtc12", requirement], check=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "rare"]
    done = subprocess.run(
        [*command, "tests/backends/cuda/runtime/test_nvrtc12.py"],
        capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder / "nvrtc12")},
    )  # fmt: skip
    last = done.stdout.strip().splitlines()[-1] if done.stdout else done.stderr
    assert done.returncode == 0 and "skipped" not in last, done.stdout[-4000:]
    say(f"{requirement}: {last}")


def check_python(python: str, sdist: Path, pure: Path, folder: Path) -> None:
    """Build a wheel for another Python, install it, and run a part of the tests against it.

    A free-threaded one has to refuse it, and to work with the ``pure`` wheel.
    """
    code = "import sysconfig as s; print(s.get_config_var('SOABI'))"
    abi = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    abi = abi.strip()
    home = folder / abi
    subprocess.run([python, "-m", "venv", home], check=True)
    pip = [home / "bin/python", "-m", "pip"]
    subprocess.run([*pip, "install", "--quiet", *BUILD_REQUIREMENTS], check=True)
    command = [*pip, "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--wheel-dir", home]
    level = "v2" if "x86_64" in abi else "generic"
    command += [f"--config-settings=cmake.define.WOLLEMI_NATIVE_LEVELS={level}", sdist]
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    if re.match(r"cpython-3\d+t", abi):
        said = " ".join((done.stdout + done.stderr).split())
        assert "wollemi does not support free-threaded Python yet" in said, said
        check_pure(pure, home, python)
        say(f"{abi}: native modules refused in a sentence; the pure wheel works on threads")
        return
    assert done.returncode == 0, done.stderr
    (wheel,) = home.glob("wollemi-*.whl")
    run_tests(wheel, folder / f"{abi}-tests", [], python)
    say(f"{abi}: built, installed and tested")


def main() -> None:
    """Make all checks; the first that fails ends the program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="skip the checks that take minutes")
    parser.add_argument("--python", action="append", default=[], help="another Python to build for")
    given = parser.parse_args()
    wheel, sdist = only("wollemi-*-cp3*.whl"), only("wollemi-*.tar.gz")
    pure = only("wollemi-*-py3-none-any.whl")
    check_contents(wheel, sdist)
    check_libraries(wheel)
    with tempfile.TemporaryDirectory() as folder:
        check_first_solve(wheel, Path(folder))
        check_pure(pure, Path(folder))
        if not given.quick:
            check_other_systems(Path(folder))
            check_versions(wheel, Path(folder))
            check_extras(wheel, Path(folder))
            check_nvrtc12(Path(folder))
        for python in given.python:
            check_python(python, sdist, pure, Path(folder))
    if not given.quick:
        if absent := aarch64.missing():
            say(f"nothing is built for aarch64: not here: {', '.join(absent)}")
        else:
            aarch64.main()
    say("all is well")


if __name__ == "__main__":
    main()
