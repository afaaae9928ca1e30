"""The parts of a report: chapters of sections of tables and pictures, for every writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes
    ----------
    caption : str
        Its content.
    head : tuple of str
        The columns.
    rows : sequence of tuple of str
        Rows of the same length.
    words : int
        How many columns from the left are words; numbers come after them.
    long : bool
        Whether it lists everything, for who looks something up.
    again : bool
        Whether another table has the gist of it.
    """

    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    words: int = 1
    long: bool = False
    again: bool = False


@dataclass(frozen=True)
class Picture:
    """A picture that is drawn on demand.

    Attributes
    ----------
    name : str
        As in the name of its file.
    caption : str
        The title.
    alt : str
        Its description, for readers who cannot see it.
    draw : callable
        Returns the figure.
    """

    name: str
    caption: str
    alt: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Section:
    """Something that a reader asks, and the answer."""

    title: str
    text: str
    parts: list[Table | Picture]


@dataclass(frozen=True)
class Answer:
    """A question in the reader's words, and few figures.

    Attributes
    ----------
    question : str
        The question.
    figures : list of (str, str)
        A figure and its subject.
    table : Table or None
        Figures that are better read side by side.
    """

    question: str
    figures: list[tuple[str, str]] = field(default_factory=list)
    table: Table | None = None


@dataclass(frozen=True)
class Chapter:
    """The measurements on one device.

    Attributes
    ----------
    title, slug : str
        Its name, and the name as part of a file's.
    where : list of str
        The date, versions and clocks.
    answers : list of Answer
        The answers to the reader's questions.
    sections : list of Section
        The evidence of the answers.
    sources : list of str
        The files.
    """

    title: str
    slug: str
    where: list[str]
    answers: list[Answer]
    sections: list[Section] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
