"""What is done again, and what is not: by hashes of what each stage was made from, and by the store of calls."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest

import ragworth.evaluation.stage_cache
from ragworth import evaluate
from ragworth.core.errors import InputError, JobStopped
from ragworth.data import Contexts
from ragworth.evaluation.stage_cache import StageCache, StageResult, frame_digest
from ragworth.judging.annotators.abstention import AbstentionAnnotator
from ragworth.judging.graders.text import DeterministicGrader
from tests.evaluation.samples import TOML, Models, change, run, statuses, tables, workspace

ALL = ("retrieve", "annotate.abstention", "answer", "grade.deterministic", "grade.judge", "score")


def fresh(folder: Path, **given: object) -> set[str]:
    """Names of the stages that were made anew."""
    found = statuses(evaluate(folder, until="score", **given).stages)  # type: ignore[arg-type]
    return {name for name, status in found.items() if status != "kept" and name != "load"}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that was evaluated once. Tests take copies of it."""
    folder, models = workspace(tmp_path_factory.mktemp("evaluated") / "w"), Models()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragworth.evaluation.model_pool.llm", models)
        assert fresh(folder) == set(ALL)
    assert len(models.taken()) == 32
    return folder


@pytest.fixture
def done(tmp_path: Path, evaluated: Path, models: Models) -> Path:
    """A workspace that was evaluated once."""
    return Path(shutil.copytree(evaluated, tmp_path / "w"))


def test_a_second_time_nothing_is_done(done: Path, models: Models) -> None:
    assert fresh(done) == set()
    assert models.taken() == []


@pytest.mark.slow
def test_a_limit_that_leaves_out_nothing_changes_nothing(done: Path, models: Models) -> None:
    assert fresh(done, limit=3) == set()
    assert fresh(done, limit=2) == set(ALL)
    assert fresh(done, every=True) == set(ALL)
    assert models.taken() == []
    with pytest.raises(InputError, match="limit is 0"):
        evaluate(done, limit=0)
    with pytest.raises(InputError, match="a limit or a sample is given"):
        evaluate(done, limit=1, every=True)


def test_another_metric_is_scored_and_nothing_else(done: Path, models: Models) -> None:
    change(done, '"nDCG@2"', '"nDCG@2", "P@1"')
    assert fresh(done) == {"score"}
    change(done, 'title = "The mill"', 'title = "The wind mill"')
    assert fresh(done) == set()
    assert models.taken() == []


def test_another_run_asks_only_what_was_never_asked(done: Path, models: Models) -> None:
    run(done / "second.run", {"q1": ["p4", "p11"], "q2": ["p8", "p2"], "q3": ["p12"]})
    assert fresh(done) == {"retrieve", "annotate.abstention", "answer", "grade.deterministic", "grade.judge", "score"}
    asked = [request.prompt.messages[-1].content for _, request in models.taken()]
    # One passage to judge, one context to answer from, and at most one answer to grade that nobody gave before.
    assert 2 <= len(asked) <= 3
    assert all("Passage 11" in text for text in asked[:2])


def test_another_run_behind_a_pipeline(tmp_path: Path, models: Models) -> None:
    piped = """first = 'run("first.run") % 2 >> reversed'"""
    folder = workspace(tmp_path / "w", TOML.replace('first = {run = "first.run"}', piped))
    fresh(folder)
    assert fresh(folder) == set()
    run(folder / "first.run", {"q1": ["p1", "p3"], "q2": ["p2", "p5"], "q3": ["p3", "p6", "p9"]})
    assert {"retrieve", "annotate.abstention", "answer", "score"} <= fresh(folder)


def test_the_same_passages_in_another_order_need_no_judgment(done: Path, models: Models) -> None:
    run(done / "second.run", {"q1": ["p7", "p4"], "q2": ["p8", "p2"], "q3": ["p12"]})
    made = fresh(done)
    assert {"retrieve", "answer", "score"} <= made
    assert all("NO-RESPONSE" not in request.prompt.messages[-1].content for _, request in models.taken())


def test_labels_change_grades_and_scores(done: Path, models: Models) -> None:
    (done / "qrels.txt").write_text("q1 0 p1 1\nq1 0 p7 1\nq2 0 p2 1\nq3 0 p3 1\n")
    assert fresh(done) == {"grade.deterministic", "grade.judge", "score"}
    assert models.taken() == []


def test_labels_change_what_an_oracle_shows(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML.replace('first = {run = "first.run"}', 'first = "oracle % 2"'))
    assert "retrieve" in fresh(folder)
    assert fresh(folder) == set()
    (folder / "qrels.txt").write_text("q1 0 p1 1\nq1 0 p7 1\nq2 0 p2 1\nq3 0 p3 1\n")
    assert "retrieve" in fresh(folder)


def test_another_setting_of_a_grader_grades_again(done: Path, models: Models) -> None:
    change(done, "deterministic = true", "deterministic = {citations = false}")
    assert fresh(done) == {"grade.deterministic"}


def test_another_version_of_a_grader_grades_again(done: Path, models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeterministicGrader, "version", DeterministicGrader.version + 1)
    assert "grade.deterministic" in fresh(done) and models.taken() == []


def test_another_version_of_an_annotator_judges_again(
    done: Path, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AbstentionAnnotator, "version", 2)
    assert "annotate.abstention" in fresh(done) and models.taken() == []


def test_without_the_cache_everything_comes_from_the_store(done: Path, models: Models) -> None:
    shutil.rmtree(done / ".ragworth")
    assert fresh(done) == set(ALL)
    assert models.taken() == []


def test_damaged_stages_are_made_again(done: Path, models: Models) -> None:
    (scores,) = (done / ".ragworth" / "stages").glob("score-*/scores.parquet")
    data = bytearray(scores.read_bytes())
    data[len(data) // 2] ^= 1
    scores.write_bytes(data)
    assert fresh(done) == {"score"}
    (facts,) = (done / ".ragworth" / "stages").glob("answer-*/facts.json")
    facts.write_text("{")
    assert fresh(done) == {"answer"}
    (said,) = (done / ".ragworth" / "stages").glob("annotate.abstention-*/said.parquet")
    said.unlink()
    assert fresh(done) == {"annotate.abstention"}
    assert models.taken() == []


def test_contexts_that_cannot_be_read_are_made_again(done: Path, models: Models) -> None:
    """The runs are already dropped when the damage shows, so the command has to be run once more."""
    (file,) = (done / ".ragworth" / "stages").glob("retrieve-*/contexts.parquet")
    damaged = file.read_bytes()[:-8] + b"\xff\xff\xff\x7fPAR1"
    file.write_bytes(damaged)
    digests = json.loads((file.parent / "files.json").read_text())
    digests[file.name] = [len(damaged), sha256(damaged).hexdigest()]
    (file.parent / "files.json").write_text(json.dumps(digests))
    with pytest.raises(InputError, match=r"contexts in the cache can't be read[\s\S]*run the command again"):
        evaluate(done)
    assert fresh(done) == {"retrieve"}
    assert models.taken() == []


def test_another_version_of_the_program_makes_it_again(
    done: Path, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ragworth.evaluation.stage_cache, "__version__", "9.9")
    assert fresh(done) == set(ALL)
    assert models.taken() == []


def test_results_that_were_removed_are_written_again(done: Path, models: Models, undrawn: list[object]) -> None:
    evaluate(done)
    before = tables(done / "results")
    shutil.rmtree(done / "results")
    evaluate(done)
    after = tables(done / "results")
    assert before.keys() == after.keys()
    assert all(before[name].equals(after[name]) for name in before)


def test_until_ends_there(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w")
    found = evaluate(folder, until="annotate")
    assert list(statuses(found.stages)) == ["load", "retrieve", "annotate.abstention"]
    assert found.results is None
    assert repr(found) == "Evaluation(load: done, retrieve: done, annotate.abstention: done)"
    assert not (folder / "results").exists()
    with pytest.raises(InputError, match="there is no stage 'compare'"):
        evaluate(folder, until="compare")


def test_a_budget_ends_it_and_the_same_again_goes_on(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML + "\n[budget]\ncalls = 24\n")
    with pytest.raises(
        JobStopped, match=r"answer: the budget is spent \(left for it: 2 calls\); 4 calls to go"
    ) as caught:
        evaluate(folder, until="score")
    assert caught.value.exit_code == 4
    first = models.taken()
    assert len(first) == 24
    assert "score" in fresh(folder)
    assert len(models.taken()) == 8
    assert fresh(folder) == set()


def test_a_cost_needs_a_price_before_anything_is_asked(tmp_path: Path) -> None:
    folder = workspace(tmp_path / "w", TOML + "\n[budget]\ncost = 1.0\n")
    change(folder, "k = 2", 'k = 2\nmodel = "openai:toy@http://localhost:9"')
    with pytest.raises(InputError, match=r"price = \[READ, WRITTEN\]"):
        evaluate(folder, until="score")


def test_failures_that_may_pass_are_tried_again(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w")
    models.failing = lambda request: "Passage 12" in request.prompt.messages[-1].content
    found = {stage["name"]: stage for stage in evaluate(folder, until="score").stages}
    assert found["annotate.abstention"]["status"] == "incomplete"
    assert found["annotate.abstention"]["reasons"] == {"server-error": 1}
    assert found["grade.deterministic"]["status"] == "done"
    models.taken()
    models.failing = lambda request: False
    made = fresh(folder)
    assert {"annotate.abstention", "answer", "score"} <= made
    assert all("Passage 12" in request.prompt.messages[-1].content for _, request in models.taken()[:2])
    assert fresh(folder) == set()


def test_failures_in_vain_are_kept(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w")
    models.reason = "too-long"
    models.failing = lambda request: "Passage 12" in request.prompt.messages[-1].content
    found = statuses(evaluate(folder, until="score").stages)
    assert found["annotate.abstention"] == "done"
    models.taken()
    assert fresh(folder) == set()
    assert models.taken() == []


def test_failures_alone_end_it(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w")
    models.failing = lambda request: True
    with pytest.raises(JobStopped, match=r"annotate\.abstention: all 22 calls failed: server-error 22") as caught:
        evaluate(folder)
    assert caught.value.exit_code == 4
    models.failing = lambda request: False
    assert fresh(folder) == set(ALL) - {"retrieve"}


def test_digests_tell_values_and_not_pieces() -> None:
    whole = pl.DataFrame({"a": ["x", None, "a long text that is not held inline"], "b": [[1.5], None, []]})
    pieces = pl.concat([whole[:1], whole[1:]], rechunk=False)
    many = pl.concat([whole, whole]).filter(pl.int_range(pl.len()) < 3)
    assert frame_digest(whole) == frame_digest(pieces) == frame_digest(many)
    others = [
        whole.rename({"a": "c"}),
        whole.with_columns(a=pl.col("a").fill_null("")),
        whole.with_columns(b=pl.col("b").fill_null([])),
        whole.reverse(),
        pl.DataFrame({"a": ["xa", None, " long text that is not held inline"], "b": [[1.5], None, []]}),
    ]
    assert len({frame_digest(each) for each in (whole, *others)}) == 6
    assert frame_digest(pl.DataFrame({"a": [1]})) != frame_digest(pl.DataFrame({"a": [1.0]}))


def test_a_table_has_the_digest_of_its_frame(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = [("ab"[i >= 50], f"q{i % 50 // 5}", i % 5 + 1, f"p{i}", None if i % 7 else i / 3) for i in range(100)]
    frame = pl.DataFrame(rows, schema=Contexts.schema, orient="row")
    table = Contexts.trusted(frame)
    for size in (1, 7, 50, 64, 100, 1000):  # slices end within the table, at its end, and beyond it
        monkeypatch.setattr("ragworth.evaluation.stage_cache.CHUNK_ROWS", size)
        assert frame_digest(table) == frame_digest(frame)
    assert frame_digest(Contexts.trusted(frame.reverse())) != frame_digest(table)
    kept = StageCache(tmp_path / "stages")
    assert not kept.has("retrieve", {})
    assert kept.of("retrieve", {}, lambda: StageResult({}, tables={"contexts": table})).tables["contexts"] is table
    assert kept.has("retrieve", {}) and not kept.has("retrieve", {"seed": 1})
    assert kept.of("retrieve", {}, lambda: pytest.fail("it is kept")).frames["contexts"].equals(frame)


def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = StageCache(tmp_path / "file" / "stages")
    frame = pl.DataFrame({"a": [1]})
    assert kept.of("score", {}, lambda: StageResult({"scores": frame})).frames["scores"].equals(frame)
    assert kept.of("score", {}, lambda: StageResult({"scores": frame})).fresh


def test_only_the_last_of_a_stage_is_kept(done: Path, models: Models) -> None:
    change(done, '"nDCG@2"', '"P@1"')
    fresh(done)
    names = [path.name for path in (done / ".ragworth" / "stages").iterdir()]
    assert sorted(name.rpartition("-")[0] for name in names) == sorted(ALL)
    facts = json.loads(next((done / ".ragworth" / "stages").glob("score-*/facts.json")).read_text())
    assert facts["seconds"] >= 0


def test_digests_of_nested_columns_are_of_their_values() -> None:
    def table(text: str | None) -> pl.DataFrame:
        said = pl.Series("said", [[{"role": "user", "text": text}], None])
        kind = pl.Series("kind", ["a", None], pl.Enum(["a", "b"]))
        return pl.DataFrame([said, kind, pl.Series("none", [None, None])])

    texts = [*map(str, range(50)), None]
    assert len({frame_digest(table(text)) for text in texts}) == len(texts)
    assert [frame_digest(table(text)) for text in texts] == [frame_digest(table(text)) for text in texts]
