"""Notes of results: sentences for readers, with a topic for code."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto


class Topic(Enum):
    """Topics of notes that code depends on."""

    FIRST_CHOICE = auto()  #: why the first method was chosen
    SHORTEST = auto()  #: that x is the shortest solution, or least squares solution
    LONGER = auto()  #: that x is one of many solutions and perhaps not the shortest
    ERROR = auto()  #: that x may have a large error
    ASYMMETRY = auto()  #: that A differs a little from its conjugate transpose
    REMEDY = auto()  #: that a faster way leads to the same result


class Note(str):
    """A note with a topic; it is equal to its text.

    Parameters
    ----------
    text : str
        The sentence.
    topic : Topic, optional
        Its topic.

    Examples
    --------
    >>> note = Note("x is the shortest solution", Topic.SHORTEST)
    >>> note == "x is the shortest solution", is_about(note, Topic.SHORTEST)
    (True, True)
    >>> without([note, "lsmr: as asked"], Topic.SHORTEST)
    ['lsmr: as asked']
    """

    topic: Topic | None

    def __new__(cls, text: str, topic: Topic | None = None) -> Note:
        """Return the text with its topic."""
        result = super().__new__(cls, text)
        result.topic = topic
        return result


def is_about(note: str, *topics: Topic) -> bool:
    """Return whether the topic of a note is one of these."""
    return isinstance(note, Note) and note.topic in topics


def without(notes: Iterable[str], topic: Topic) -> list[str]:
    """Return the notes without the notes of one topic."""
    return [note for note in notes if not is_about(note, topic)]
