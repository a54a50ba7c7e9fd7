"""What is wrong is found before anything is asked, all of it together, with file and line."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from ragworth import evaluate
from ragworth.core.errors import InputError, MissingExtraError, RagworthError
from ragworth.evaluation import checks
from ragworth.evaluation.output import workspace_lock
from ragworth.evaluation.plan import plan_evaluation
from ragworth.workspace import config
from tests.evaluation.samples import TOML, Models, change, lines, statuses, workspace


def problems(folder: Path) -> str:
    with pytest.raises(RagworthError) as caught:
        plan_evaluation(config.read(folder))
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_all_that_is_wrong_is_told_together(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("abstention = true", "abstention = {lenght = 3}\nsureness = true"))
    change(folder, "length = 8", "lenght = 8\ntemperature = 2")
    change(folder, "judge = true", "ideal = true\nutility = {whithout = 1}")
    change(folder, '"UDCG@2"', '"UDCG@2", "eRAG@2", "Den@2"')
    change(folder, 'second = {run = "second.run"}', 'second = "bm25(k1=-1) % 2"\nthird = "revresed"')
    found = problems(folder)
    text = (folder / "ragworth.toml").read_text().splitlines()
    for words, key in (
        ("abstention has no setting lenght", "abstention = "),
        ("unknown kind of judgment 'sureness'", "sureness = "),
        ("answers has no setting lenght", "[answers]"),
        ("can't parse the pipeline at character 1: unknown kind of step 'revresed'", "third = "),
        ("utility has no setting whithout", "utility = "),
    ):
        number = next(n for n, line in enumerate(text, 1) if line.startswith(key))
        assert f"ragworth.toml, line {number}: {words}" in found, found
    assert "k1 is -1" in found
    assert found.startswith("6 problems")
    assert models.taken() == []


def test_what_files_cannot_give_is_told_too(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("abstention = true", "downstream = true"))
    change(folder, 'answers = "answers.jsonl"\n', "")
    change(folder, "judge = true", "ideal = true")
    change(folder, '"UDCG@2"', '"UDCG@2", "Cov@2"')
    found = problems(folder)
    assert "judgments.downstream needs answers" in found
    assert "deterministic needs accepted answers" in found
    assert "there are no answers of the system '(oracle)'" in found
    assert "UDCG@2 needs abstention" in found
    assert "Cov@2 needs ratings" in found


def test_every_file_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("judge = true", 'judge = {lenght = 1}\nfiles = "none.csv"'))
    (folder / "qrels.txt").write_text("q1 0 p1 1\nq1 0 p4\n")
    (folder / "first.run").write_text("q1 Q0 p1 1 high x\n")
    (folder / "second.run").unlink()
    (folder / "passages.jsonl").write_text('{"_id": "p1"}\n')
    found = problems(folder)
    assert found.startswith("6 problems\n")
    for file in ("qrels.txt, line 2", "first.run, line 1", "second.run", "passages.jsonl, line 1", "none.csv"):
        assert f"{folder / file.partition(',')[0]}{file.partition(',')[1]}{file.partition(',')[2]}: " in found, found
    assert "judge has no setting lenght" in found


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('first = {run = "first.run"}\nsecond = {run = "second.run"}\n', "", "there are no systems"),
        ('second = {run = "second.run"}', """"*" = ["run('first.run')", "reversed"]""", "more than a file of runs"),
        ('second = {run = "second.run"}', 'second = "reversed"', "can't be first"),
        ("[answers]", "[answers]\noracle = true\noracle_by = 'ratings'", "ratings"),
        ("[answers]", "[answers]\nprompt = 'nonsense'", "unknown prompt 'nonsense'"),
        ("[answers]\nlength = 8", "", "grades.judge grades answers, and there are none"),
        ("[metrics]", "[metrics]\nbaseline = 'third'", "the baseline 'third' is no system"),
    ],
)
def test_mistakes_of_every_kind(tmp_path: Path, models: Models, old: str, new: str, words: str) -> None:
    folder = workspace(tmp_path / "w", TOML.replace(old, new))
    assert words in problems(folder)
    assert models.taken() == []


@pytest.mark.parametrize(("module", "package"), [("altair", "altair"), ("vl_convert", "vl-convert-python")])
def test_what_draws_the_report_is_missed_before_models_are_asked(
    tmp_path: Path, models: Models, monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None if name == module else find_spec(name))
    folder = workspace(tmp_path / "w")
    with pytest.raises(MissingExtraError, match=rf"'{package}'.*\n.*pip install \"ragworth\[report\]\""):
        evaluate(folder)
    assert models.taken() == []
    assert statuses(evaluate(folder, until="score").stages)["score"] == "done"  # tables need nothing to draw with


def test_what_retrieves_is_missed_before_models_are_asked(
    tmp_path: Path, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden: Callable[[str], object] = lambda name: None if name == "bm25s" else find_spec(name)  # noqa: E731
    monkeypatch.setattr("ragworth.retrieval.steps.bm25.find_spec", hidden)
    folder = workspace(tmp_path / "w", TOML.replace('{run = "first.run"}', '"bm25 % 2"'))
    with pytest.raises(MissingExtraError, match=r"pip install \"ragworth\[retrieval\]\""):
        evaluate(folder)
    assert models.taken() == []


def test_two_evaluations_at_once(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w")
    plan_evaluation(config.read(folder))  # marks the cache, as every evaluation does before it takes the lock
    with workspace_lock(config.read(folder)):
        with pytest.raises(InputError, match=r"another process is evaluating this workspace\n.*--wait"):
            evaluate(folder)
        with pytest.raises(InputError, match="another process"):
            evaluate(folder, wait=0.2)
        assert models.taken() == []
        assert plan_evaluation(config.read(folder)).stages  # looking is always possible
    assert statuses(evaluate(folder, until="score").stages)["score"] == "done"


def test_a_plan_asks_nothing_and_writes_only_the_cache(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w")
    before = {path.name for path in folder.iterdir()}
    found = plan_evaluation(config.read(folder))
    assert {stage.name: stage.words.partition(";")[0] for stage in found.stages} == {
        "annotate.abstention": "22 requests, 22 distinct, 0 answered already",
        "answer": "6 requests, 6 distinct, 0 answered already",
        "grade.deterministic": "no model is asked",
        "grade.judge": "6 answers to grade, with one call for each",
    }
    assert models.taken() == []
    assert {path.name for path in folder.iterdir()} - before == {".ragworth"}
    evaluate(folder, until="answer")
    assert "22 answered already; 0 calls to make" in plan_evaluation(config.read(folder)).stages[0].words


NO_METRICS = TOML.replace('qrels = "qrels.txt"\n', "").partition("[metrics]")[0]


@pytest.mark.parametrize(
    ("judgments", "words"),
    [
        ("", "there are no relevance labels, judgments or ratings\n  to do: add relevance = true under [judgments]"),
        ("abstention = true", "abstention is judged, and relevance is not known\n  to do: UDCG needs both: add relev"),
    ],
)
def test_that_no_metric_can_be_computed_is_known_before_anything_is_asked(
    tmp_path: Path, models: Models, judgments: str, words: str
) -> None:
    folder = workspace(tmp_path / "w", NO_METRICS.replace("abstention = true", judgments))
    change(folder, 'second = {run = "second.run"}', """second = 'run("second.run") >> useful'""")
    assert words in problems(folder)
    with pytest.raises(InputError, match="no metric can be computed"):
        evaluate(folder, until="score")
    assert models.taken() == []
    assert plan_evaluation(config.read(folder), scores=False).stages
    assert statuses(evaluate(folder, until="answer").stages)["answer"] == "done"  # which needs none


def test_a_system_that_cannot_run_is_pointed_at(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w")
    change(folder, 'first = {run = "first.run"}', """first = 'within(bm25, chunks="small")'""")
    change(folder, 'second = {run = "second.run"}', """second = 'bm25 >> best_by("downstraem")'""")
    found, text = problems(folder), (folder / "ragworth.toml").read_text().splitlines()
    for name, words in (("first", "within: no passage"), ("second", "best_by('downstraem') needs")):
        number = next(n for n, line in enumerate(text, 1) if line.startswith(f"{name} = "))
        assert f"ragworth.toml, line {number}: {name}: {words}" in found, found
    assert "ragworth annotate downstraem" not in found
    assert "ragworth annotate makes abstention, relevance" in found


def test_a_system_in_the_pipeline_of_another(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w")
    change(folder, 'second = {run = "second.run"}', "second = 'fused(first, bm25)'")
    found = problems(folder)
    assert "unknown kind of step 'first'" in found
    assert "to do: names in a pipeline are kinds of steps, never systems" in found
    change(folder, "fused(first, bm25)", "fused(dens, bm25)")
    assert "did you mean dense" in problems(folder)


def test_no_accepted_answers_among_the_first_queries(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("judge = true\n", ""))
    lines(folder / "answers.jsonl", [{"query_id": "q3", "answers": ["rye"]}])
    with pytest.raises(InputError) as caught:
        plan_evaluation(config.read(folder), limit=2)
    assert (
        "deterministic needs accepted answers, and none of the 2 queries that were taken (limit or sample) has any"
        in str(caught.value)
    )
    assert str(caught.value).endswith("to do: take more queries: a larger --limit, or --all")
    assert plan_evaluation(config.read(folder)).stages
    change(folder, 'answers = "answers.jsonl"\n', "")
    found = problems(folder)
    assert "no query of these answers has any\n  to do: name answers under [collection]" in found


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no place here that only looks as if it could be written")
@pytest.mark.parametrize("name", ["results", "cache", "store"])
def test_a_place_that_only_looks_as_if_it_could_be_written(tmp_path: Path, models: Models, name: str) -> None:
    with pytest.raises(InputError, match="/proc/nope/x: it cannot be written to"):
        plan_evaluation(config.read(workspace(tmp_path / "w"), config.OutputPaths(**{name: "/proc/nope/x"})))
