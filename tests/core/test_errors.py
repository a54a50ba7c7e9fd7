"""Errors: hints worded for where people read them, and copies with other facts."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from ragworth.core.errors import SURFACE, FormatError, Hint, InputError, MissingInputError, UnknownNameError, give_input
from ragworth.data.tables import Note
from ragworth.metrics import METRICS


@pytest.fixture
def on_command_line() -> Iterator[None]:
    token = SURFACE.set("command")
    yield
    SURFACE.reset(token)


def test_python_is_told_of_arguments() -> None:
    error = InputError("no labels", remedy=give_input("qrels", "ratings"))
    assert str(error) == ("no labels\n  to do: give the collection relevance or ratings: Collection.of(relevance=…)")


@pytest.mark.usefixtures("on_command_line")
def test_the_command_line_is_told_of_options() -> None:
    error = InputError("no labels", remedy=give_input("qrels", "ratings"))
    assert error.remedy == "give --qrels FILE or --ratings FILE, or a run or collection that has them"
    assert error.hint.workspace == "name qrels or ratings under [collection]"


def test_a_plain_remedy_is_the_same_everywhere() -> None:
    assert InputError("x", remedy="do this").hint == Hint("do this", "do this", "do this")


def test_a_copy_keeps_its_type_and_facts() -> None:
    error = MissingInputError("judge", "accepted answers", "there are none", give_input("answers"))
    placed = error.copy(file="ragworth.toml", line=3, remedy=error.hint.workspace)
    assert isinstance(placed, MissingInputError)
    assert (placed.who, placed.what) == ("judge", "accepted answers")
    assert str(placed) == (
        "ragworth.toml, line 3: judge needs accepted answers, and there are none\n"
        "  to do: name answers under [collection]"
    )
    assert error.file == ""


def test_an_unknown_name_is_kept() -> None:
    with pytest.raises(UnknownNameError) as caught:
        METRICS.get("nDGC")
    assert caught.value.name == "nDGC"
    assert "nDCG" in caught.value.remedy


def test_errors_survive_pickling() -> None:
    error = FormatError("bad", file="a.txt", line=2, expected="good", remedy="mend it", more=("b",))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 (our own bytes)


def test_a_note_is_a_text_that_knows_whom_it_concerns() -> None:
    note = Note("bm25: nothing", system="bm25")
    assert (note, note.system, note.step) == ("bm25: nothing", "bm25", "")
