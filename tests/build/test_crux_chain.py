"""The CRUX chain with a scripted model: what is kept, what is dropped and why, and runs that were cut short."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from ragworth import formats
from ragworth.build.card import CollectionCard
from ragworth.build.crux.chain import CruxBuild, CruxChain, CruxOptions
from ragworth.build.crux.output import check_folder, write_collection
from ragworth.build.crux.topics import read_topics
from ragworth.build.crux.writing import Sampling, tagged_texts
from ragworth.build.drafts import Draft, Drafts
from ragworth.calls.budget import JobLimits
from ragworth.calls.job import Job
from ragworth.core.errors import InputError, JobStopped, ModelError
from ragworth.llm.contract import Choose, Failure, Generate, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from tests.build.crux_samples import STORM, TOPICS, job, reply, tags, texts

ONCE = CruxOptions(questions=3, sampling=Sampling(attempts=1))


def chain(script: object = reply, options: CruxOptions = ONCE) -> CruxChain:
    one = job(script)
    return CruxChain(TOPICS, one, one, options)


def statuses(build: CruxBuild | Drafts, kind: str) -> dict[str, str]:
    drafts = build if isinstance(build, Drafts) else build.drafts
    return {draft.id: draft.status for draft in drafts if draft.kind == kind}


@pytest.fixture(scope="module")
def build() -> CruxBuild:
    return chain().run()


def test_sub_questions_that_no_passage_answers_are_dropped(build: CruxBuild) -> None:
    assert statuses(build, "subquestion") == {"a?1": "kept", "a?2": "kept", "a?3": "unanswerable", "b?1": "kept"}
    assert statuses(build, "passage") == {"a:0#0": "kept", "a:1#1": "kept", "b:0#0": "kept"}
    assert set(statuses(build, "request").values()) == {"kept"}


def test_texts_are_sampled_and_ratings_are_not() -> None:
    seen: list[Request] = []

    def script(request: Request) -> ScriptedReply:
        seen.append(request)
        return reply(request)

    chain(script, ONCE._replace(sampling=Sampling(0.7, 7, 1))).run()
    written = [each for each in seen if isinstance(each, Generate)]
    assert {(each.temperature, each.top_p, each.seed) for each in written} == {(0.7, 0.95, 7)}
    assert {type(each) for each in seen} == {Generate, Choose}


def test_the_collection_is_evaluated_at_once(build: CruxBuild, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from ragworth.cli import main

    statistics = write_collection(chain(), build, tmp_path / "c")
    assert statistics["answerable sub-questions"] == 3
    assert statistics["required passages"] == 3
    qrels = formats.read_judgments(f"trec:{tmp_path / 'c' / 'qrels.txt'}").frame
    assert qrels["value"].to_list() == [3.0, 3.0, 3.0]
    subtopics = (tmp_path / "c" / "subtopic-qrels.txt").read_text().splitlines()
    assert subtopics == ["a 1 a:0#0 1", "a 2 a:1#1 1", "b 1 b:0#0 1"]
    documents = formats.read_judgments(f"trec:{tmp_path / 'c' / 'document-qrels.txt'}").frame
    assert set(documents["passage"]) == {"a:0", "a:1", "b:0"}
    done = CliRunner().invoke(main, ["evaluate", str(tmp_path / "c"), "--quiet"])
    assert done.exit_code == 0, done.output
    scores = pl.read_parquet(tmp_path / "c" / "results" / "scores.parquet")
    oracle = scores.filter((pl.col("system") == "oracle") & (pl.col("metric") == "Cov@10"))
    assert oracle["value"].to_list() == [1.0, 1.0]


FAULTS = {
    "unparsable": "Here are some questions: who, when?",
    "refused": "I'm sorry, I can't help with that.",
    "no-question": tags("question", "Tell me everything."),
}


@pytest.mark.parametrize("status", FAULTS)
def test_output_without_questions_is_a_status_and_ends_the_topic(status: str) -> None:
    def script(request: Request) -> ScriptedReply:
        broken = "</question>" in texts(request) and "Forty boats" in texts(request)
        return FAULTS[status] if broken else reply(request)

    build = chain(script).run()
    assert statuses(build, "subquestion")["b?1"] == status
    assert statuses(build, "passage")["b:0#0"] == "topic-dropped"
    assert set(build.ratings.frame["query"]) == {"a"}


def test_an_unusable_text_is_written_again_with_the_next_seed() -> None:
    def script(request: Request) -> ScriptedReply:
        return "no tags" if isinstance(request, Generate) and request.seed == 0 else reply(request)

    build = chain(script, ONCE._replace(sampling=Sampling(attempts=2))).run()
    assert {draft.fields["attempts"] for draft in build.drafts} == {2}
    assert {draft.fields["seed"] for draft in build.drafts} == {1}


def test_copies_surplus_and_invented_passages_are_dropped() -> None:
    def script(request: Request) -> ScriptedReply:
        if "</passage>" in texts(request) and STORM in texts(request):
            return tags("passage", STORM, f"{STORM[:-1]} .", "Quantum elephants dance on purple mountains tonight")
        if "</question>" in texts(request) and "county" in texts(request):
            some = ("When did the storm come?", "when did the storm come??", "Who paid for the pier?", "Where?", "Why?")
            return tags("question", *some)
        return reply(request)

    build = chain(script).run()
    assert statuses(build, "passage") == {
        "a:0#0": "kept",
        "a:0#1": "duplicate",
        "a:0#2": "not-from-document",
        "a:1#3": "kept",
        "b:0#0": "kept",
    }
    assert list(statuses(build, "subquestion").values()) == [
        "kept",
        "duplicate",
        "kept",
        "unanswerable",
        "surplus",
        "kept",
    ]


def test_a_failed_rating_leaves_its_sub_question_out_and_is_never_0() -> None:
    def script(request: Request) -> ScriptedReply:
        wanted = (
            isinstance(request, Choose) and "When did the storm" in texts(request) and "nine million" in texts(request)
        )
        return Failure("refused", "scripted", retry=False) if wanted else reply(request)

    build = chain(script).run()
    assert statuses(build, "subquestion")["a?1"] == "unrated"
    failed = build.ratings.frame.filter(pl.col("status") != "ok")
    assert failed.select("passage", "value").rows() == [("a:1#1", None)]
    zero = chain(script, ONCE._replace(failed="zero")).run()
    assert statuses(zero, "subquestion")["a?1"] == "kept"


def test_a_writer_without_tags_stops_the_chain_with_its_reasons() -> None:
    with pytest.raises(JobStopped, match="unparsable"):
        chain(lambda request: "no tags at all").run()


def test_the_plan_is_what_runs(tmp_path: Path) -> None:
    store = tmp_path / "calls.sqlite"
    with Job(Scripted(reply), store) as one:
        before = CruxChain(TOPICS, one, one, ONCE).plan()
        assert [str(each).partition(":")[0] for each in before] == ["passages", "sub-questions", "requests", "ratings"]
        assert [each.forecast.plan.missing for each in before if each.forecast] == [3, 2, 2]
        assert before[-1].expected >= 11
        CruxChain(TOPICS, one, one, ONCE).written_drafts()
        after = CruxChain(TOPICS, one, one, ONCE).plan()
        assert [each.forecast.plan.missing for each in after if each.forecast] == [0, 0, 0, 11]
        CruxChain(TOPICS, one, one, ONCE).run()
        assert one.tally.calls == 3 + 2 + 2 + 11


@pytest.mark.parametrize("calls", [1, 4, 6, 9, 15])
def test_a_chain_killed_in_any_stage_continues(calls: int, tmp_path: Path) -> None:
    """3 passages, 2 sets of questions, 2 requests, 11 ratings: each number of calls ends in another stage."""
    store, done = tmp_path / "calls.sqlite", [0]

    def dying(request: Request) -> ScriptedReply:
        if done[0] == calls:
            raise KeyboardInterrupt
        done[0] += 1
        return reply(request)

    with pytest.raises(ModelError, match="KeyboardInterrupt"), Job(Scripted(dying, batch=1), store) as one:
        CruxChain(TOPICS, one, one, ONCE).run()
    with Job(Scripted(reply, batch=1), store) as one:
        build = CruxChain(TOPICS, one, one, ONCE).run()
        assert one.tally.calls + calls == 18
    whole = chain().run()
    assert [(draft.id, draft.status) for draft in build.drafts] == [(draft.id, draft.status) for draft in whole.drafts]
    assert build.ratings == whole.ratings


@pytest.mark.parametrize("calls", [2, 6, 12])
def test_nothing_is_concluded_from_half_a_stage(calls: int, tmp_path: Path) -> None:
    limited = Job(Scripted(reply), tmp_path / "s.sqlite", limits=JobLimits(calls=calls))
    with limited as one, pytest.raises(JobStopped, match=f"budget of {calls} calls"):
        CruxChain(TOPICS, one, one, ONCE).run()


def test_a_collection_of_questions_is_not_overwritten(tmp_path: Path) -> None:
    drafts = Drafts([Draft("q1", "question")])
    drafts.write(tmp_path / "drafts.jsonl")
    with pytest.raises(InputError, match="other files"):
        check_folder(tmp_path)
    CollectionCard("Mine", "build questions", {}).write(tmp_path)
    with pytest.raises(InputError, match="other files"):
        check_folder(tmp_path)
    CollectionCard("Mine", "build crux", {}).write(tmp_path)
    check_folder(tmp_path)


def test_ids_with_slashes_and_blanks_keep_documents_apart(tmp_path: Path) -> None:
    """Two topics below the same prefix: each document has its own label, and every file can be written."""
    path = tmp_path / "topics.jsonl"
    rows = [{"id": f"news/{each.id} x", "documents": each.documents, "summary": each.summary} for each in TOPICS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    topics = read_topics(path).topics
    assert [topic.id for topic in topics] == ["news/a%20x", "news/b%20x"]
    one = job()
    made = CruxChain(topics, one, one, ONCE)
    write_collection(made, made.run(), tmp_path / "out")
    labels = [line.split()[2] for line in (tmp_path / "out" / "document-qrels.txt").read_text().splitlines()]
    assert labels == ["news/a%20x:0", "news/a%20x:1", "news/b%20x:0"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<q>one</q> and <Q>two\n words</Q>", ("one", "two words")),
        ("<q>lost <q>kept</q>", ("kept",)),
        ("<q></q><q> </q>", ()),
        ("<q>never closed", ()),
        ("1. one\n2. two", ()),
    ],
)
def test_texts_between_tags(text: str, found: tuple[str, ...]) -> None:
    assert tagged_texts(text, "q") == found
