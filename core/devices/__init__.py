"""Constants of devices, which selection rules and cost models use.

Each device has one JSON file in this folder. A constant is a value with the id of the benchmark
record to which it was fitted (a heading of ``benchmarks/results/constants.md``). A file names its
base, which provides the constants that were not fitted on the device. The files ``unknown-*`` serve
devices without a file.

A rule declares its constants as a named tuple, such as ``SpmvConstants``, and reads the section
``spmv`` of the file of the executor's device::

    constants = executor.constants.of(SpmvConstants)

``wollemi tune`` measures the constants of the present device and stores them in a file in the
user's cache folder (:func:`tuned_file`). Such a file takes precedence over the files here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from ..cache import root
from ..caller import warn_caller
from .processor import processor

FOLDER = Path(__file__).parent

#: The kinds of devices, each with the file for devices that no other file matches.
KINDS = {"cpu": "unknown-cpu", "nvidia": "unknown-nvidia", "amd": "unknown-amd"}

T = TypeVar("T")


class Constant(NamedTuple):
    """A constant of a device.

    Attributes
    ----------
    value : number, list or dict
        The value in the file.
    record : str
        The id of the benchmark record to which it was fitted.
    device : str
        Name of the file that contains it.
    """

    value: Any
    record: str
    device: str


class DeviceConstants:
    """The constants of a device by section, including the constants of its base files.

    Parameters
    ----------
    name : str
        Name of the file without its suffix.
    title : str
        Name of the device for display.
    sections : mapping
        The constants by section and name.
    base : str, optional
        Name of the file with the constants that were not fitted on this device.

    Examples
    --------
    >>> from wollemi.core.devices import named
    >>> h200 = named("h200")
    >>> h200.title, h200.sections["spmv"]["most_padding"].value
    ('NVIDIA H200', 1.15)
    """

    def __init__(
        self,
        name: str,
        title: str,
        sections: Mapping[str, Mapping[str, Constant]],
        base: str | None = None,
    ) -> None:
        self.name, self.title, self.sections, self.base = name, title, sections, base
        self._constants: dict[type, Any] = {}

    def of(self, kind: type[T]) -> T:
        """Return the constants of a rule; ``kind`` is a named tuple such as ``SpmvConstants``.

        Raises
        ------
        KeyError
            If neither the file of the device nor its bases contain a constant.
        """
        made = self._constants.get(kind)
        if made is None:
            section = self.sections[section_of(kind)]
            fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
            made = kind(**{name: _plain(section[name].value) for name in fields})
            self._constants[kind] = made
        return cast(T, made)

    @property
    def fitted(self) -> bool:
        """Whether a constant was fitted on this device; if not, all are the base's."""
        return any(
            constant.device == self.name
            for section in self.sections.values()
            for constant in section.values()
        )

    def __repr__(self) -> str:
        unfitted = "" if self.fitted else f", not fitted: all are of {self.base}.json"
        return f"<constants of {self.title}: {self.name}.json{unfitted}>"


def section_of(kind: type) -> str:
    """Return the section of a rule's constants: ``spmv`` for ``SpmvConstants``.

    Examples
    --------
    >>> class RowProductConstants: ...
    >>> section_of(RowProductConstants)
    'row_product'
    """
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__.removesuffix("Constants"))
    return words.lower()


def _plain(value: Any) -> Any:
    """Return a value as rules use it: lists become tuples, keys of digits become integers."""
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dict):
        return {int(key) if key.isdigit() else key: _plain(item) for key, item in value.items()}
    return value


def read(file: Path) -> DeviceConstants:
    """Return the constants of a file, completed by the constants of its base.

    Parameters
    ----------
    file : Path
        A file in this folder, or a result of :func:`tuned_file`.
    """
    content = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or ("base" not in content and file.parent != FOLDER):
        raise ValueError("it names no base")
    base = content.get("base")
    sections: dict[str, dict[str, Constant]] = {}
    if base is not None:
        sections = {key: dict(section) for key, section in named(base).sections.items()}
    for key, section in content.get("constants", {}).items():
        mine = sections.setdefault(key, {})
        for name, constant in section.items():
            mine[name] = Constant(constant["value"], constant["record"], file.stem)
    return DeviceConstants(file.stem, content["title"], sections, base)


@cache
def named(name: str) -> DeviceConstants:
    """Return the constants of a file in this folder, by its name, such as ``"h200"``."""
    return read(FOLDER / f"{name}.json")


def names() -> list[str]:
    """Return the names of the files in this folder."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


@cache
def _patterns(kind: str) -> dict[str, str]:
    """Return the regular expressions that devices of a kind must match, by file name."""
    result = {}
    for name in names():
        content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        if content["kind"] == kind and content.get("matches"):
            result[name] = content["matches"]
    return result


def shipped(kind: str, device: str) -> str:
    """Return the name of the file in this folder that serves a device.

    Examples
    --------
    >>> shipped("nvidia", "NVIDIA H100 80GB HBM3"), shipped("nvidia", "NVIDIA GeForce RTX 4090")
    ('h100', 'unknown-nvidia')
    """
    found = (name for name, pattern in _patterns(kind).items() if re.search(pattern, device))
    return next(found, KINDS[kind])


def tuned_file(kind: str, device: str) -> Path:
    """Return the file in which ``wollemi tune`` stores the constants of a device."""
    stem = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") or kind
    return root() / "devices" / f"{stem}.json"


@cache
def constants_of(kind: str, device: str) -> DeviceConstants:
    """Return the constants of a device: the tuned ones, otherwise the shipped ones.

    Parameters
    ----------
    kind : {"cpu", "nvidia", "amd"}
        The kind of the device.
    device : str
        Name of the device according to its driver or operating system.
    """
    tuned = tuned_file(kind, device)
    if device and tuned.is_file():
        try:
            return read(tuned)
        except (OSError, ValueError, KeyError, TypeError) as error:
            warn_caller(
                f"{tuned} cannot be read ({error!r}), so its constants are not used; "
                "`wollemi tune` writes it again, and `wollemi tune --forget` removes it",
                RuntimeWarning,
            )
    return named(shipped(kind, device))


def of_host() -> DeviceConstants:
    """Return the constants of the processor that runs this process."""
    return constants_of("cpu", processor())
