"""Every kernel that a GPU could be asked for compiles, with no GPU in sight."""

import pytest

from wollemi.backends.cuda.loop import loop
from wollemi.backends.cuda.spmv import cached_columns
from wollemi.backends.unified import wrappers
from wollemi.core.errors import KernelCompileError

from ... import simt_programs as simt
from ...needs import CUDA_TARGETS, nvrtc, swept

compiler = nvrtc()

VALUES = tuple(wrappers.VALUE_TYPES)


GROUPS = list(wrappers.map_groups())
IN_ALL_DTYPES = [(group, value) for group in GROUPS for value in VALUES]
IN_ONE_BY_TURNS = [(group, VALUES[at % len(VALUES)]) for at, group in enumerate(GROUPS)]


def assert_maps_compile(group, value, architecture):
    source = wrappers.map_program("CUDA", wrappers.maps_of(group), value)
    assert compiler.compile_source(source, architecture, f"{group}__{value}")


@pytest.mark.parametrize(("group", "value"), swept(IN_ALL_DTYPES, IN_ONE_BY_TURNS))
def test_map_operations_compile(group, value):
    assert_maps_compile(group, value, "sm_90")


@pytest.mark.rare
@pytest.mark.parametrize("architecture", CUDA_TARGETS)
@pytest.mark.parametrize("group", GROUPS)
def test_map_operations_compile_for_each_architecture(group, architecture):
    assert_maps_compile(group, "f8", architecture)


@pytest.mark.parametrize("group", ["vector", "rows"])
def test_map_operations_compile_with_wide_indices(group):
    assert compiler.compile_source(
        wrappers.map_program("CUDA", wrappers.maps_of(group), "f8", "i8"), "sm_90"
    )


def test_a_compile_error_names_the_source_and_keeps_the_log():
    with pytest.raises(KernelCompileError, match=r'(?s)broken does not compile.*"b.hpp"|b.hpp'):
        compiler.compile_source('#line 7 "b.hpp"\nnonsense;', "sm_90", "broken")


def test_compiled_kernels_are_found_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path))
    source = 'extern "C" __global__ void k() {}'
    first = compiler.cached_cubin(source, "sm_90")
    monkeypatch.setattr(compiler, "compile_source", lambda *a: pytest.fail("compiled again"))
    assert compiler.cached_cubin(source, "sm_90") == first


def test_a_damaged_entry_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path))
    source = 'extern "C" __global__ void k() {}'
    first = compiler.cached_cubin(source, "sm_90")
    (entry,) = (tmp_path / "cuda").iterdir()
    entry.write_bytes(entry.read_bytes()[:100])
    assert compiler.cached_cubin(source, "sm_90") == first


@pytest.mark.filterwarnings("ignore:compiled code is not kept:RuntimeWarning")
def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(blocker))
    assert compiler.cached_cubin('extern "C" __global__ void k() {}', "sm_90")


SUMMED = [o for o in wrappers.OPERATIONS if o.adds_up and wrappers.has_functor(o)]
ONE_OF_EACH_GROUP = list({o.group: o for o in SUMMED}.values())


@pytest.mark.parametrize("operation", swept(SUMMED, ONE_OF_EACH_GROUP), ids=lambda o: o.name)
def test_the_halves_of_an_operation_compile(operation):
    source = wrappers.halves_program("CUDA", operation, "c16")
    assert compiler.compile_source(source, "sm_90")


def test_every_sum_fits_the_scratch_that_launchers_reserve():
    checks = "".join(
        f"static_assert(sizeof({wrappers.functor(operation, 'c16')}::sum) <= "
        f"{wrappers.sum_bytes(operation)});\n"
        for operation in wrappers.OPERATIONS
        if wrappers.has_functor(operation)
    )
    headers, functors = wrappers.functors_of(filter(wrappers.has_functor, wrappers.OPERATIONS))
    source = wrappers.program("CUDA", ["unified/map_simt.hpp", *headers], [functors, checks])
    assert compiler.compile_source(source, "sm_90")


@pytest.mark.parametrize("group", simt.simt_groups(), ids=lambda group: f"{group[0]}-{group[1]}")
@pytest.mark.parametrize("architecture", CUDA_TARGETS)
def test_warp_kernels_compile(group, architecture):
    source = simt.simt_program("CUDA", group, "f8", "i4")
    assert compiler.compile_source(source, architecture, f"{group}__f8_i4")


@pytest.mark.rare
@pytest.mark.parametrize("group", simt.simt_groups(), ids=lambda group: f"{group[0]}-{group[1]}")
def test_warp_kernels_of_complex_numbers_compile(group):
    source = simt.simt_program("CUDA", group, "c16", "i8")
    assert compiler.compile_source(source, "sm_90", f"{group}__c16_i8")


@pytest.mark.parametrize("value", swept(wrappers.STORED_TYPES, wrappers.STORED_TYPES[::2]))
def test_kernels_that_convert_what_is_stored_compile(value):
    converting = [group for group in simt.simt_groups() if simt.converts(group)]
    assert len(converting) == 7
    for group in converting:
        source = simt.simt_program("CUDA", group, value, "i4")
        assert compiler.compile_source(source, "sm_90", f"{group}__{value}")


@pytest.mark.parametrize("value", ["f4", "f8"])
def test_the_product_with_cached_columns_compiles(value):
    assert compiler.compile_source(cached_columns.cached_program(value), "sm_90")


def test_the_loop_compiles_with_its_condition():
    assert b"cudaGraphSetConditional" in compiler.compile_source(loop._LOOP_SOURCE, "sm_90")
