"""Archives of kernels: their content is found, and nothing stale or damaged is."""

from __future__ import annotations

from pathlib import Path

import pytest

from wollemi.backends.cuda.runtime import archive, compiler

KERNEL = 'extern "C" __global__ void k() {}'
OPTIONS = ("-std=c++17",)


def key(
    text: str = KERNEL, architecture: str = "sm_90a", options: tuple[str, ...] = OPTIONS
) -> str:
    return archive.key_of(text, architecture, options)


def many(count: int = 300, size: int = 10_000) -> dict[str, bytes]:
    """Return cubins for three members, all unlike."""
    return {key(f"{KERNEL}{at}"): at.to_bytes(2, "big") * (size // 2) for at in range(count)}


def shipped_with(folder: Path, cubins: dict[str, bytes], cuda: int = 13) -> None:
    archive.write(folder / "sm_90a.zip", cubins, cuda)


def test_each_cubin_is_found_by_its_key(tmp_path):
    cubins = many()
    archive.write(tmp_path / "all.zip", cubins, 13)
    made = archive.Archive(tmp_path / "all.zip")
    assert len(made) == len(cubins) == 300
    assert made.cuda == 13
    for name, cubin in reversed(cubins.items()):
        assert made.load(name) == cubin
    assert made.load(key("another")) is None


def test_an_archive_depends_on_what_is_in_it_alone(tmp_path):
    for name in ("first", "second"):
        archive.write(tmp_path / name, many(20), 13)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_what_depends_on_something_else_has_another_key():
    others = [
        key(KERNEL + ";"),
        key(architecture="sm_90"),
        key(options=("-std=c++20",)),
        key(options=(*OPTIONS, "--use_fast_math")),
    ]
    assert len({key(), *others}) == 5
    assert key() == key()


def test_a_damaged_member_is_not_found(tmp_path):
    path = tmp_path / "all.zip"
    cubins = many(20)
    archive.write(path, cubins, 13)
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)
    assert archive.Archive(path).load(next(iter(cubins))) is None


@pytest.mark.parametrize("content", [b"", b"not an archive", None])
def test_no_archive_is_as_good_as_none(tmp_path, monkeypatch, content):
    monkeypatch.setattr(archive, "FOLDER", tmp_path)
    if content is not None:
        (tmp_path / "sm_90a.zip").write_bytes(content)
    assert archive.shipped(KERNEL, "sm_90a", OPTIONS) is None


def test_what_the_wheel_has_needs_no_compiler(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "FOLDER", tmp_path)
    monkeypatch.setattr(compiler, "_nvrtc", lambda: pytest.fail("NVRTC was asked"))
    shipped_with(tmp_path, {key(options=compiler.OPTIONS): b"a cubin"})
    assert compiler.cached_cubin(KERNEL, "sm_90a", "k") == b"a cubin"


@pytest.mark.parametrize(
    ("text", "architecture"), [(KERNEL + ";", "sm_90a"), (KERNEL, "sm_90"), (KERNEL, "sm_120")]
)
def test_what_the_wheel_does_not_have_is_compiled(tmp_path, monkeypatch, text, architecture):
    """So a text that was changed since never gets the cubin of the old one."""
    monkeypatch.setattr(archive, "FOLDER", tmp_path)
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "version", lambda: (13, 0))
    monkeypatch.setattr(compiler, "compile_source", lambda *given: b"compiled")
    shipped_with(tmp_path, {key(options=compiler.OPTIONS): b"stale"})
    assert compiler.cached_cubin(text, architecture, "k") == b"compiled"


@pytest.mark.parametrize(
    ("driver", "taken"), [(12080, False), (13000, True), (14010, True), (None, True)]
)
def test_a_driver_has_to_know_the_cuda_of_an_archive(tmp_path, monkeypatch, driver, taken):
    monkeypatch.setattr(archive, "FOLDER", tmp_path)
    monkeypatch.setattr(archive, "driver_version", lambda: driver)
    shipped_with(tmp_path, {key(): b"a cubin"})
    assert (archive.shipped(KERNEL, "sm_90a", OPTIONS) == (key(), b"a cubin")) == taken
