"""Drafts keep everything, and say what became of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragworth.build.card import CollectionCard, funnel_facts
from ragworth.build.drafts import Draft, Drafts, FunnelStep
from ragworth.core.errors import FormatError, TableError


def some() -> Drafts:
    return Drafts(Draft(f"d{n}", "question", "numeric", {"question": f"How many {n}?"}) for n in range(4))


def test_a_dropped_draft_stays_and_keeps_its_first_reason() -> None:
    drafts = some()
    drafts.drop("d1", "not-verbatim", "the span isn't in the passage")
    drafts.drop("d1", "near-duplicate", "of d0")
    assert len(drafts) == 4
    assert [draft.id for draft in drafts.kept] == ["d0", "d2", "d3"]
    assert (drafts["d1"].status, drafts["d1"].reason) == ("not-verbatim", "the span isn't in the passage")


def test_the_funnel_adds_up() -> None:
    drafts = some()
    for id, status in (("d0", "b"), ("d1", "a"), ("d2", "b")):
        drafts.drop(id, status)
    assert drafts.funnel(["a", "never"]) == [FunnelStep("a", 1, 3), FunnelStep("b", 2, 1)]
    facts = funnel_facts(drafts)
    assert facts["drafts"] - sum(step["drafts"] for step in facts["funnel"]) == facts["kept"] == 1


def test_drafts_survive_a_file(tmp_path: Path) -> None:
    drafts = some()
    drafts.drop("d3", "unparsable", "line 1: no JSON\nin “…”")
    drafts.write(tmp_path / "drafts.jsonl")
    assert list(Drafts.read(tmp_path / "drafts.jsonl")) == list(drafts)


def test_an_id_occurs_once(tmp_path: Path) -> None:
    drafts = some()
    with pytest.raises(TableError, match="'d1' occurs twice"):
        drafts.add(Draft("d1", "question"))
    drafts.write(tmp_path / "one.jsonl")
    text = (tmp_path / "one.jsonl").read_text()
    (tmp_path / "two.jsonl").write_text(text + text)
    with pytest.raises(FormatError, match="line 5"):
        Drafts.read(tmp_path / "two.jsonl")


def test_a_line_that_is_no_draft_is_an_error_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "drafts.jsonl").write_text('{"id": "a", "kind": "question", "fields": 3, "status": "kept"}\n')
    with pytest.raises(FormatError, match="line 1: no object 'fields'"):
        Drafts.read(tmp_path / "drafts.jsonl")


def test_a_card_survives_a_file(tmp_path: Path) -> None:
    card = CollectionCard("<b>Mine</b>", "build questions", {"documents": 2, "sha256": "ab"}, **funnel_facts(some()))
    card.write(tmp_path)
    again = CollectionCard.read(tmp_path)
    assert (again.title, again.kept, again.corpus) == (card.title, 4, card.corpus)
