"""The kernels for tensor cores compile, with no GPU in sight."""

from __future__ import annotations

import pytest

from wollemi.backends.cuda.products import tensor_kernels as kernels
from wollemi.backends.cuda.products.launches import source
from wollemi.core.errors import KernelCompileError
from wollemi_bench.published.tca import tca_spmm

from ...needs import nvrtc, swept

compiler = nvrtc()

CODES = {"float32": "f4", "float16": "f2", "bfloat16": "b2"}
SHAPES = [(dtype, shape) for dtype, shapes in kernels.SHAPES.items() for shape in shapes]


@pytest.mark.parametrize(("dtype", "shape"), SHAPES)
def test_the_product_compiles_for_hopper(dtype: str, shape: kernels.TensorShape) -> None:
    constants = {"N": shape.columns, "W": shape.groups}
    text = source(kernels.product(shape.groups), CODES[dtype], **constants)
    assert compiler.compile_source(text, "sm_90a")


def test_the_product_is_for_hopper_alone() -> None:
    text = source(kernels.product(2), "f4", N=128, W=2)
    for architecture in ("sm_80", "sm_100"):
        with pytest.raises(KernelCompileError):
            compiler.compile_source(text, architecture)


@pytest.mark.parametrize(("dtype", "shape"), SHAPES)
def test_what_goes_before_and_after_compiles(dtype: str, shape: kernels.TensorShape) -> None:
    columns, code = shape.columns, CODES[dtype]
    texts = [
        source(kernels.pack_dense(columns), code, N=columns),
        source(kernels.join, code, "i8", N=columns, W=shape.groups),
        source(kernels.pack_values, code, "i4"),
        source(kernels.pack_values, code, "i8"),
        source(kernels.scale_rows, "f4", "i8"),
    ]
    for text in texts:
        assert compiler.compile_source(text, "sm_90a")


@pytest.mark.parametrize("architecture", swept(("sm_80", "sm_90a", "sm_100"), ["sm_90a"]))
@pytest.mark.parametrize(("value", "index"), [("f2", "i4"), ("b2", "i8"), ("f4", "i4")])
def test_tca_spmm_compiles(architecture: str, value: str, index: str) -> None:
    most = 4 if value == "f4" else 8
    for tiles, each, whole in ((1, 1, 0), (2, 4, 1), (most, 16 // int(value[1]), 1)):
        text = source(tca_spmm, value, index, J=tiles, E=each, WHOLE=whole)
        assert compiler.compile_source(text, architecture)
