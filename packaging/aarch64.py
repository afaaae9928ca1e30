"""Cross-compile a wheel for aarch64 and try it in an emulated process.

Needs Debian with root, for packages of arm64: ``apt-get install g++-aarch64-linux-gnu
qemu-user-static``. Everything else comes from the package indexes: Debian's Python and C library
for arm64, which are unpacked and not installed, and the wheels of NumPy and SciPy for aarch64.
``make release-check`` runs it where these tools are.

    python packaging/aarch64.py            # build/aarch64: some ten minutes on two cores
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "aarch64"
#: Debian's Python in the release that this runs on must be this one: its headers are compiled with.
VERSION = "3.11"
TOOLS = ("aarch64-linux-gnu-g++", "qemu-aarch64-static", "dpkg", "apt-get")
PACKAGES = (
    f"python{VERSION}-minimal",
    *(f"libpython{VERSION}-{part}" for part in ("minimal", "stdlib", "dev")),
    *("libc6", "libssl3", "zlib1g", "libexpat1", "libffi8", "libgcc-s1", "libstdc++6"),
    *("libcrypt1", "libbz2-1.0", "liblzma5", "libsqlite3-0", "libuuid1"),
)
PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")

SMOKE = """
import platform
import numpy as np, scipy.sparse as sp
import wollemi as wl

assert platform.machine() == "aarch64", platform.machine()
S = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(300, 300)).tocsr()
x = np.linspace(-1, 1, 300)
for dtype in ("float32", "float64", "complex64", "complex128"):
    A, v = wl.Csr(S.astype(dtype), executor="omp"), x.astype(dtype)
    for kernel in A.executor.algorithms.names("spmv"):
        try:
            B = A.with_kernel(kernel)
        except wl.errors.InvalidArgument:
            continue
        np.testing.assert_allclose(B @ v, S @ x, rtol=1e-4, atol=1e-5)
A = wl.Csr(S, executor="omp")
for method, M in (("cg", "ilu"), ("minres", "jacobi"), ("gmres", "ilu"), ("cg", "amg")):
    result = wl.solve(A, S @ x, method=method, M=M, rtol=1e-10, maxiter=1000)
    assert result.converged, result
    np.testing.assert_allclose(result.x, x, atol=1e-4)
print(f"wollemi {wl.__version__} on {platform.machine()}: {result.reason}")
"""


def missing() -> list[str]:
    """Return the tools that are not here."""
    return [name for name in TOOLS if shutil.which(name) is None]


def unpack_python(root: Path) -> None:
    """Put Debian's Python for arm64, and the libraries it loads, into a folder."""
    if (root / f"usr/bin/python{VERSION}").exists():
        return
    root.mkdir(parents=True, exist_ok=True)
    known = subprocess.run(
        ["dpkg", "--print-foreign-architectures"], capture_output=True, text=True, check=True
    ).stdout.split()
    if "arm64" not in known:
        subprocess.run(["dpkg", "--add-architecture", "arm64"], check=True)
        subprocess.run(["apt-get", "update", "-qq"], check=True)
    names = [f"{name}:arm64" for name in PACKAGES]
    debs = root.parent / "debs"
    debs.mkdir(exist_ok=True)
    subprocess.run(["apt-get", "download", "-qq", *names], check=True, cwd=debs)
    for file in debs.glob("*.deb"):
        subprocess.run(["dpkg", "-x", file, root], check=True)


def build(root: Path, dist: Path) -> Path:
    """Return the wheel, cross-compiled with the environment that this runs in."""
    environment = {
        **os.environ,
        "WOLLEMI_AARCH64_ROOT": str(root),
        "CMAKE_TOOLCHAIN_FILE": str(ROOT / "packaging/aarch64.cmake"),
        # The build's questions to Python about the target platform.
        "_PYTHON_HOST_PLATFORM": "linux-aarch64",
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{VERSION.replace('.', '')}-aarch64-linux-gnu.so",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"),
            *("--wheel-dir", dist, f"--config-settings=build-dir={root.parent / 'cmake'}", ROOT),
        ],
        check=True,
        env=environment,
    )
    (wheel,) = dist.glob("wollemi-*aarch64.whl")
    return wheel


def install(wheel: Path, site: Path) -> None:
    """Unpack the wheel and the wheels of its requirements."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wheels = site.parent / "wheels"
    platforms = [part for name in PLATFORMS for part in ("--platform", name)]
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:"),
            *platforms,
            *("--python-version", VERSION, "--implementation", "cp", "--dest", wheels),
            *project["dependencies"],
        ],
        check=True,
    )
    shutil.rmtree(site, ignore_errors=True)
    for file in (*wheels.glob("*.whl"), wheel):
        zipfile.ZipFile(file).extractall(site)


def run(root: Path, site: Path, program: str) -> None:
    """Run a program by the emulated Python."""
    qemu = ["qemu-aarch64-static", "-L", str(root), "-E", f"PYTHONPATH={site}"]
    python = str(root / f"usr/bin/python{VERSION}")
    subprocess.run([*qemu, python, "-P", "-c", program], check=True, cwd=site.parent)


def main() -> None:
    """Build, install and run; the first failure ends the program."""
    if absent := missing():
        sys.exit(f"aarch64: not here: {', '.join(absent)}; see the first lines of {__file__}")
    root, site, dist = FOLDER / "root", FOLDER / "site", FOLDER / "dist"
    unpack_python(root)
    shutil.rmtree(dist, ignore_errors=True)
    wheel = build(root, dist)
    install(wheel, site)
    run(root, site, SMOKE)


if __name__ == "__main__":
    main()
