"""Cubins by the digests of their programs: no text, no key and no compiler in a second process."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from wollemi.backends.cuda.runtime import archive, compiler, executor, known
from wollemi.backends.cuda.runtime.device import CudaDevice
from wollemi.backends.gpu.compile_threads import CompileThreads
from wollemi.backends.unified import program_text
from wollemi.backends.unified.program_text import ProgramParts, ProgramText

NVRTC = ["/lib/libnvrtc.so.13", 7, 9]


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Return the names of compiled programs."""
    names = []
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(archive, "FOLDER", tmp_path / "none")
    monkeypatch.setattr(compiler, "version", lambda: (13, 0))
    monkeypatch.setattr(compiler, "compile_source", lambda s, a, n: names.append(n) or n.encode())
    monkeypatch.setattr(known, "_compiler", lambda: NVRTC)
    monkeypatch.setattr(known, "_facts", lambda path: NVRTC if path == NVRTC[0] else None)
    return names


def program(text="int a;", header="simt/lanes.hpp"):
    return ProgramText(lambda: ProgramParts({"WL_CUDA": 1}, (header,), (text,)))


def without_text(text="int a;"):
    made = program(text)
    made.digest  # noqa: B018  computed from the parts
    made._parts = lambda: pytest.fail("its text was made")
    return made


def noted(*names):
    cubins = known.KnownCubins("sm_90a")
    for name in names:
        cubins.get(program(f"int {name};"), name)
    cubins.save()


def test_a_later_process_needs_no_text_and_no_compiler(compiled, monkeypatch):
    noted("a", "b")
    assert compiled == ["a", "b"]
    monkeypatch.setattr(compiler, "version", lambda: pytest.fail("NVRTC was loaded"))
    monkeypatch.setattr(known, "_compiler", lambda: None)
    cubins = known.KnownCubins("sm_90a")
    assert cubins.has(without_text("int a;"))
    assert not cubins.has(program("int c;"))
    assert cubins.get(without_text("int b;"), "b") == b"b"
    assert not known.KnownCubins("sm_80").has(program("int a;"))


def test_processes_add_to_the_notes_of_others(compiled):
    first, second = known.KnownCubins("sm_90a"), known.KnownCubins("sm_90a")
    first.get(program("int a;"), "a")
    second.get(program("int b;"), "b")
    first.save()
    second.save()
    cubins = known.KnownCubins("sm_90a")
    assert cubins.has(program("int a;"))
    assert cubins.has(program("int b;"))


def test_programs_of_another_nvrtc_are_compiled_again(compiled, monkeypatch):
    noted("a")
    newer = [NVRTC[0], 8, 10]
    monkeypatch.setattr(known, "_facts", lambda path: newer)
    monkeypatch.setattr(known, "_compiler", lambda: newer)
    monkeypatch.setattr(compiler, "version", lambda: (13, 1))
    noted("a")
    assert compiled == ["a", "a"]
    noted("a")
    assert compiled == ["a", "a"]


def test_a_cubin_that_is_damaged_or_gone_is_compiled_again(compiled, tmp_path):
    noted("a", "b")
    one, other = sorted((tmp_path / "cache" / "cuda").iterdir())
    one.write_bytes(one.read_bytes()[:-45] + b"?" * 45)
    other.unlink()
    noted("a", "b")
    assert compiled == ["a", "b", "a", "b"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"compiler": 1}', b'{"places": {"a": [1, 2]}}'])
def test_notes_that_cannot_be_read_are_none(compiled, content):
    known.NOTES.save(known.KnownCubins("sm_90a")._key, content)
    noted("a")
    assert compiled == ["a"]
    assert known.KnownCubins("sm_90a").has(program("int a;"))


def test_cubins_of_the_wheel_are_noted_by_their_keys(compiled, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "FOLDER", tmp_path)
    text = program("int a;")()
    key = archive.key_of(text, "sm_90a", compiler.OPTIONS)
    archive.write(tmp_path / "sm_90a.zip", {key: b"a cubin"}, 13)
    monkeypatch.setattr(archive, "driver_version", lambda: 13000)
    monkeypatch.setattr(known, "_compiler", lambda: None)
    archive._of.cache_clear()
    noted("a")
    assert known.KnownCubins("sm_90a").get(without_text("int a;"), "a") == b"a cubin"
    assert compiled == []
    archive._of.cache_clear()


def test_the_digest_changes_with_everything_that_the_text_depends_on(tmp_path):
    (tmp_path / "one.hpp").write_text('#include "two.hpp"\n')
    (tmp_path / "two.hpp").write_text("int b;\n")

    def digest(wrapper="int a;", warp=32):
        for function in (program_text._read, program_text._digest_of, program_text._pieces):
            function.cache_clear()
        return ProgramParts({"WL_WARP": warp}, ("one.hpp",), (wrapper,), (tmp_path,)).digest()

    first = digest()
    assert digest() == first
    assert digest("int c;") != first
    assert digest(warp=64) != first
    (tmp_path / "two.hpp").write_text("int d;\n")
    assert digest() != first


class Device(CudaDevice):
    """A device without CuPy; modules are their code."""

    architecture = "sm_90a"

    def __init__(self):
        import threading

        self.handle, self.warp = nullcontext(), 32
        self._functions, self._variants, self._modules, self._texts = {}, {}, {}, {}
        self._at_hand, self._lock, self._threads = set(), threading.Lock(), CompileThreads(1)

    def load(self, code):
        return SimpleNamespace(get_function=lambda symbol: SimpleNamespace(code=code, ptr=1))


def test_programs_at_hand_are_left_to_their_launch(compiled, monkeypatch):
    noted("a")
    device = Device()
    monkeypatch.setattr(device._threads, "begin", lambda name, make: begun.append(name))
    begun = []
    device.compile_ahead([("a", program("int a;")), ("c", program("int c;"))])
    assert begun == ["c"]
    assert device.has_compiled("those", lambda: [("a", program("int a;"))])
    assert not device.has_compiled("others", lambda: [("c", program("int c;"))])
    device.function("a", without_text("int a;"))
    device.function("text", lambda: "int e;")
    assert compiled == ["a", "text"]
    device._threads.end()


def test_kernels_of_a_device_have_the_digest_of_their_text(compiled):
    from wollemi.backends.simt import kernels as simt
    from wollemi.core.operations import vector

    device = Device()
    symbol, text = device.simt_program(simt.csr_diagonal, "f8", "i4")
    assert symbol in text()
    assert text.digest != device.simt_program(simt.csr_diagonal, "f4", "i4")[1].digest
    operation = next(one for one in vars(vector).values() if getattr(one, "is_map", False))
    symbol, text = device.map_program(operation, "f8", "i4")
    assert symbol in text()
    assert text.digest == device.map_program(operation, "f8", "i4")[1].digest


def test_the_device_makes_its_context_before_work_looks_for_captures(monkeypatch):
    calls = []
    monkeypatch.setattr(
        executor, "device", lambda ordinal: calls.append("device") or SimpleNamespace(ordinal=0)
    )
    monkeypatch.setattr(executor, "CapturedStream", lambda cuda, ordinal: calls.append("captures"))
    on = executor.CudaExecutor.__new__(executor.CudaExecutor)
    on.ordinal = 0
    on.__dict__["xp"] = SimpleNamespace(cuda=None)
    assert on._captured is None
    assert calls == ["device", "captures"]
