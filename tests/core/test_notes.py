"""Notes with topics are sentences like others."""

from __future__ import annotations

import copy
import json
import pickle

from wollemi.core.notes import Note, Topic, is_about, without


def test_a_note_is_its_text_and_keeps_its_topic() -> None:
    note = Note("x is the shortest solution", Topic.SHORTEST)
    for same in (note, pickle.loads(pickle.dumps(note)), copy.deepcopy(note)):
        assert same == "x is the shortest solution"
        assert is_about(same, Topic.SHORTEST) and not is_about(same, Topic.LONGER)
    assert json.dumps([note]) == '["x is the shortest solution"]'


def test_notes_without_a_topic_stay() -> None:
    plain, unclear = "lsmr: as asked", Note("cg: as asked")
    error = Note("x may be off", Topic.ERROR)
    assert without([plain, error, unclear], Topic.ERROR) == [plain, unclear]
    assert not is_about(plain, Topic.ERROR) and not is_about(unclear, Topic.ERROR)
