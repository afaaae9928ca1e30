"""JAX on a GPU gives the numbers of the host: products, patterns, solves and derivatives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..backends.needs import cuda, package

PROGRAM = Path(__file__).parent / "jax_gpu_program.py"


@pytest.mark.gpu
@pytest.mark.parametrize("part", ["products", "patterns", "solves_and_derivatives", "both_orders"])
def test_numbers_of_a_gpu_are_those_of_the_host(part: str) -> None:
    package("jax")
    cuda()
    # Tests of this folder keep JAX on the host, in this process.
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    environment.pop("JAX_PLATFORMS", None)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), part],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "Unable to initialize backend 'cuda'" in done.stderr or "no supported" in done.stderr:
        pytest.skip("JAX has no GPU here: pip install jax[cuda13]")
    assert done.returncode == 0, done.stderr
