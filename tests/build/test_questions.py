"""From documents to drafts: the plan, the writer by rules, and the build with its outputs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth import formats
from ragworth.build.card import CollectionCard
from ragworth.build.checks.run import CheckSettings
from ragworth.build.drafts import Draft, Drafts
from ragworth.build.outputs import write_collection
from ragworth.build.question_set import read_question_set
from ragworth.build.questions.build import (
    SURPLUS,
    BuildJobs,
    BuildSettings,
    BuiltQuestions,
    Corpus,
    build_questions,
    prepare_corpus,
    select_planned,
)
from ragworth.build.questions.contract import QuestionSlot, SourceText
from ragworth.build.questions.facts import find_facts
from ragworth.build.questions.phrasing import ask_for
from ragworth.build.questions.plan import QuestionPlan, allocate, read_plan
from ragworth.build.questions.rules import RuleWriter
from ragworth.build.questions.types import QUESTION_TYPES
from ragworth.calls.job import Job
from ragworth.core.errors import InputError
from ragworth.evaluation.inputs import load_inputs
from ragworth.retrieval.documents import read_documents
from ragworth.workspace import config
from ragworth.workspace.problems import Problems
from tests.build.samples import TEXTS, careful_reader, write_corpus

EVERY_TYPE = QuestionPlan(questions=32, drafts=1, types=dict.fromkeys(QUESTION_TYPES, 1), styles={"question": 1})


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = write_corpus(tmp_path_factory.mktemp("corpus"))
    return prepare_corpus(read_documents([folder]), EVERY_TYPE)


@pytest.fixture(scope="module")
def built(corpus: Corpus) -> BuiltQuestions:
    with Job(careful_reader(), None) as job:
        return build_questions(corpus, settings(), BuildJobs(reader=job))


def settings() -> BuildSettings:
    return BuildSettings(EVERY_TYPE, CheckSettings(encoder="none"), "Mills & more", "CC0")


def test_facts_are_where_they_say() -> None:
    passage = "Intro line\n\nThe mill was built in 1820 by the engineer Tomasina Oake. It has 14 millstones of granite."
    facts = find_facts(passage)
    assert {(fact.kind, fact.text) for fact in facts} == {("year", "1820"), ("name", "Tomasina Oake"), ("number", "14")}
    for fact in facts:
        at = fact.sentence.start + fact.start
        assert passage[at : at + len(fact.text)] == fact.text


@pytest.mark.parametrize(
    ("sentence", "title", "questions"),
    [
        ("It has 14 millstones of granite.", "Marrow mill", {"How many millstones of granite does Marrow mill have?"}),
        (
            "The mill was built in 1820 by farmers.",
            "Marrow mill",
            {"Marrow mill: in which year was the mill built by farmers?"},
        ),
        ("A weir is a low dam across a river.", "Weir", {"What is a weir?"}),
        ("Ann left Harrow in 1820 for good.", "Ann", {"Which year is missing in “Ann left Harrow in … for good”?"}),
        (
            "The team was formed in 2015 and has six nurses.",
            "Team",
            {"Which number is missing in “The team was formed in 2015 and has … nurses”?"},
        ),
        ("See Exit codes for all of the others.", "Failing", set()),
        ("After that he moved to Dunmouth in 1820.", "Ann", set()),
        ("The War in Harrow went on and on.", "Wars", set()),
    ],
)
def test_a_sentence_becomes_a_question_or_a_gap(sentence: str, title: str, questions: set[str]) -> None:
    assert {ask_for(fact, title) for fact in find_facts(sentence)} == questions


def test_what_is_asked_of_one_river_is_unanswerable_of_another_that_says_nothing_like_it() -> None:
    texts = {
        "Annet": "The Annet is a river in Soke. It has 14 bridges of stone. It was dammed in 1951 by the state.",
        "Oule": "The Oule is a river in Harrow. Fish are rare there.",
        "Pell": "The Pell is a river in Harrow. It has nine bridges. Its mill burned in 1899.",
        "Quill": "The Quill is a museum in Harrow. Fish are rare there.",
    }
    sources = {f"p-{title}": SourceText(f"p-{title}", title, title, text) for title, text in texts.items()}
    slots = [QuestionSlot(f"q{n}", "unanswerable", "question", ("p-Annet",), str(n)) for n in range(3)]
    first, second, third = RuleWriter().write(slots, sources)
    asked = {first.fields["question"], second.fields["question"]}
    assert asked == {"How many bridges of stone does Oule have?", "In which year was Oule dammed by the state?"}
    assert first.fields["passages"] == ["p-Oule"] and not first.fields["answers"]
    assert third.status == "no-fact"


def test_allocation_adds_up_and_follows_the_shares() -> None:
    # 10 · 3/7 = 4.29, 10 · 2/7 = 2.86 twice: the rests go to the two with the larger remainder.
    assert allocate(10, {"a": 3, "b": 2, "c": 2, "d": 0}) == {"a": 4, "b": 3, "c": 3}


def test_every_slot_becomes_a_draft_with_verbatim_spans(corpus: Corpus) -> None:
    drafts = RuleWriter().write(corpus.slots, corpus.sources)
    assert [draft.id for draft in drafts] == [slot.id for slot in corpus.slots]
    written = [draft for draft in drafts if draft.kept]
    assert {draft.fields["type"] for draft in written} >= {"fact", "numeric", "time", "comparison", "multi-passage"}
    for draft in written:
        for span in draft.fields["spans"]:
            assert span["text"] in corpus.sources[span["passage"]].text
        answerable = draft.fields["type"] != "unanswerable"
        assert draft.fields["answerable"] == answerable == bool(draft.fields["answers"])
        if draft.fields["type"] in ("fact", "numeric", "time"):
            (answer,) = draft.fields["answers"]
            assert answer in draft.fields["spans"][0]["text"]
            assert answer.casefold() not in draft.fields["question"].casefold()
    assert all(draft.reason for draft in drafts if not draft.kept)


def test_the_same_seed_gives_the_same_questions(corpus: Corpus) -> None:
    assert RuleWriter().write(corpus.slots, corpus.sources) == RuleWriter().write(corpus.slots, corpus.sources)


def test_no_fact_is_asked_for_twice(corpus: Corpus) -> None:
    singles = [d for d in RuleWriter().write(corpus.slots, corpus.sources) if d.fields.get("type") in ("fact", "time")]
    asked = Counter((d.fields["answers"][0], d.fields["spans"][0]["text"]) for d in singles)
    assert max(asked.values()) == 1


def test_the_funnel_accounts_for_every_draft(built: BuiltQuestions) -> None:
    card = built.card
    assert card.drafts == len(built.corpus.slots)
    assert card.drafts - sum(step["drafts"] for step in card.funnel) == card.kept == len(built.drafts.kept)
    assert card.corpus["documents"] == 4 and card.models["writer"] == "rules"
    assert any("compared by wording only" in row or "encoder" in row for row in card.notes)


def test_the_kept_questions_follow_the_plan() -> None:
    """Twelve facts and four lists for eight questions: 6 and 2; if one list is left, its place goes to a fact."""
    drafts = Drafts([Draft(f"f{n}", "question", "fact") for n in range(12)])
    for n in range(4):
        drafts.add(Draft(f"l{n}", "question", "list"))
    plan = QuestionPlan(questions=8)
    drafts.drop("f0", "copied")
    select_planned(drafts, plan)
    assert Counter(draft.stratum for draft in drafts.kept) == {"fact": 6, "list": 2}

    drafts = Drafts([Draft(f"f{n}", "question", "fact") for n in range(12)])
    for n in range(4):
        drafts.add(Draft(f"l{n}", "question", "list"))
    for id in ("l0", "l1", "l2"):
        drafts.drop(id, "copied")
    select_planned(drafts, plan)
    assert Counter(draft.stratum for draft in drafts.kept) == {"fact": 7, "list": 1}
    assert [draft.id for draft in drafts if draft.status == SURPLUS] == ["f7", "f8", "f9", "f10", "f11"]


Labels = set[tuple[str, str]]


@pytest.fixture(scope="module")
def drafts(corpus: Corpus) -> Drafts:
    """Questions on one passage and on two, one without an answer, and one that was dropped."""
    one, two = corpus.passages["passage"].to_list()[:2]
    given: list[tuple[str, list[str], dict[str, Any]]] = [
        ("Who  built\tthe mill?", [one], {}),
        ("Which is older?", [one, two], {}),
        ("And when?", [two], {}),
        ("Who owns the moon?", [], {"answerable": False, "answers": []}),
    ]
    common = {"answers": ["Oake"], "answerable": True, "spans": [], "type": "fact", "style": "question"}
    rows = [
        Draft(f"q{number}", "question", "fact", common | {"question": text, "passages": ids} | more)
        for number, (text, ids, more) in enumerate(given)
    ]
    return Drafts([*rows, Draft("lost", "question", "fact", {}).drop("no-fact", "nothing to ask")])


@pytest.fixture(scope="module")
def written(built: BuiltQuestions, drafts: Drafts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One build."""
    folder = tmp_path_factory.mktemp("collection")
    passages = built.corpus.passages
    write_collection(folder, drafts, passages, built.checks.frame, built.card, dense=False)
    return folder


@pytest.fixture(scope="module")
def labels(drafts: Drafts) -> Labels:
    """Questions with each of their passages: one, two, one and none."""
    found = {(draft.id, passage) for draft in drafts.kept for passage in draft.fields["passages"]}
    assert len(found) == 4
    return found


def labelled(spec: str | Path) -> Labels:
    return set(formats.read_judgments(spec).frame.select("query", "passage").rows())


def texts_of(frame: pl.DataFrame) -> list[str]:
    return frame["text"].to_list()


def test_a_copy_of_a_passage_is_relevant_too(tmp_path: Path) -> None:
    """The same document twice, under different titles: which copy a system finds makes no difference."""
    for name in ("old mill.txt", "new mill.txt"):
        (tmp_path / name).write_text(TEXTS["mill.md"].partition("\n")[2])
    (tmp_path / "bridge.md").write_text(TEXTS["bridge.md"])
    made = build_questions(prepare_corpus(read_documents([tmp_path]), EVERY_TYPE), settings(), BuildJobs())
    write_collection(tmp_path / "out", made.drafts, made.corpus.passages, made.checks.frame, made.card, dense=False)
    documents: dict[str, set[str]] = {}
    for query, passage in labelled(tmp_path / "out" / "qrels.txt"):
        documents.setdefault(query, set()).add(passage.split(":")[0])
    mills = {"old%20mill.txt", "new%20mill.txt"}
    assert {tuple(sorted(each & mills)) for each in documents.values()} == {(), tuple(sorted(mills))}
    again = read_question_set([str(tmp_path / "out")]).questions
    assert {each.id: len(each.relevant) for each in again} == {query: len(each) for query, each in documents.items()}


def test_a_collection_is_a_workspace(corpus: Corpus, drafts: Drafts, written: Path, labels: Labels) -> None:
    problems = Problems()
    found = load_inputs(config.read(written), problems)
    problems.done()
    assert found is not None
    asked = [draft.fields["question"] for draft in drafts.kept]
    assert texts_of(found.collection.queries) == asked
    assert found.collection.answers.rows() == [(f"q{number}", "Oake") for number in range(3)]
    assert texts_of(found.collection.passages) == texts_of(corpus.passages)
    assert [each.text for each in read_question_set([str(written)]).questions] == asked
    assert labelled(written / "qrels.txt") == labels
    assert len(Drafts.read(written / "drafts.jsonl")) == len(drafts)
    assert CollectionCard.read(written).license == "CC0"


def test_files_of_others_are_never_replaced(built: BuiltQuestions, tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text("mine")
    with pytest.raises(InputError, match=r"queries\.jsonl"):
        write_collection(tmp_path, built.drafts, built.corpus.passages, built.checks.frame, built.card)
    assert (tmp_path / "queries.jsonl").read_text() == "mine"


def test_a_plan_file_is_checked_whole(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("questions = 0\n[types]\nfact = 1\nriddle = 2\n")
    with pytest.raises(InputError) as caught:
        read_plan(path)
    problems = str(caught.value)
    assert "line 1: questions is 0" in problems and "no riddle" in problems and "plan.toml" in problems
    path.write_text("questions = 7\n[types]\nlist = 2\n")
    assert read_plan(path, seed=3) == QuestionPlan(questions=7, seed=3, types={"list": 2})
