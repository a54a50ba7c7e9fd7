"""``ragworth train``: the file it writes, the tables it prints, exit codes."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import ragworth
from ragworth.cli import main
from ragworth.metrics.theta import Theta
from ragworth.results import Results
from tests.fitting.samples import World, world

pytest.importorskip("sklearn")

FAST = ("--resamples", "100", "--folds", "3")


def save(given: World, folder: Path, title: str) -> None:
    """A folder of results, as an evaluation writes it."""
    queries = given.contexts.frame["query"].unique(maintain_order=True).to_list()
    texts = ragworth.Collection.of(queries={"query": queries, "text": queries})
    scores = ragworth.score(given.contexts, given.judgments, ["UDCG@5"])
    tables = given.contexts, given.judgments, None, None, given.outcomes, scores
    Results(texts, *tables, {}, {"title": title, "models": [{"name": "simulated"}]}).write(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace ``nq`` with its results, and the results of another collection."""
    folder = tmp_path_factory.mktemp("train")
    save(world(30, seed=1), folder / "nq" / "results", "Questions\x1b[31m")
    save(world(20, seed=2, prefix="t"), folder / "trivia", "Trivia")
    return folder


@pytest.fixture
def folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    return made


def run(command: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["train", command, *FAST, *arguments])


@pytest.mark.slow
def test_weights_are_learned_and_written(folder: Path, tmp_path: Path) -> None:
    output = str(tmp_path / "theta.json")
    done = run("udcg", "nq", "-o", output)
    assert done.exit_code == 0, done.output
    theta = Theta.read(output)
    assert (theta.k, theta.variant) == (5, "full")
    assert theta.learned_from["models"] == ["simulated"]
    held, gain = theta.figures["held_out"], theta.figures["gain"]
    assert f"learned weights correlate {held['value']:.3f} [{held['low']:.3f}, {held['high']:.3f}]" in done.stdout
    assert f"difference {gain['value']:+.3f}" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["1", f"{theta.alpha[0]:.4f}", f"{theta.beta[0]:.4f}"] in rows
    assert "\x1b" not in done.output


def test_the_file_is_a_metric_everywhere(folder: Path, tmp_path: Path) -> None:
    assert run("udcg", "nq", "-o", str(tmp_path / "t.json"), "-k", "3", "--variant", "relevance").exit_code == 0
    results = Results.read("trivia")
    assert results.judgments is not None
    scores = ragworth.score(results.contexts, results.judgments, ["UDCG(theta=t.json)@3"], folder=tmp_path)
    assert scores.frame.filter(pl.col("status") == "ok").height == 200
    results.judgments.of("relevance").select("query", "passage", "value").write_csv(tmp_path / "qrels.csv")
    results.judgments.of("abstention").write_csv(tmp_path / "abstention.csv")
    results.contexts.only("s01").frame.write_csv(tmp_path / "run.csv")
    arguments = ["score", "-q", "qrels.csv", "-j", "abstention.csv", "run.csv", "-f", "json", "-m"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        done = CliRunner().invoke(main, [*arguments, "UDCG(theta=t.json)@3"])
        refused = CliRunner().invoke(main, [*arguments, "UDCG(theta=t.json)@5"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    mine = scores.frame.filter(pl.col("system") == "s01")["value"].mean()
    assert row["metric"] == "UDCG(theta=t.json)@3"
    assert row["mean"] == pytest.approx(mine)
    assert refused.exit_code == 2
    assert "these weights are for the first 3 passages" in refused.stderr


def test_an_ablation(folder: Path) -> None:
    done = run("ablation", "nq", "trivia", "--loss", "svmrank")
    assert done.exit_code == 0, done.output
    assert "UDCG@5 − nDCG(ideal=retrieved)@5" in done.stdout
    found = json.loads(run("ablation", "trivia", "-f", "json", "--loss", "svmrank").stdout)
    assert [row["metric"] for row in found["correlations"]][:3] == [
        "UDCG_θ",
        "UDCG_θ, relevance only",
        "UDCG_θ, binary",
    ]
    assert found["differences"][0]["of"] == "UDCG@5 − nDCG(ideal=retrieved)@5"
    assert len(found["sentences"]) == 1


def test_a_sweep(folder: Path, tmp_path: Path) -> None:
    done = run("sweep", "UDCG(gamma=*)@5", "nq", "--from", "0", "--to", "0.5", "--steps", "3")
    assert done.exit_code == 0, done.output
    assert "UDCG(gamma=0.25)@5" in done.stdout
    assert [line for line in done.stdout.splitlines() if " default " in line and "UDCG@5" in line]
    assert "Within queries, gamma chosen by cross-validation" in done.stdout
    assert "Over all contexts, gamma chosen by cross-validation" in done.stdout
    written = run("sweep", "T(alpha=*)@5", "nq", "trivia", "--steps", "3", "-o", str(tmp_path / "grid.csv"))
    assert written.exit_code == 0, written.output
    rows = list(csv.DictReader(io.StringIO((tmp_path / "grid.csv").read_text())))
    assert [(row["case"], row["value"]) for row in rows] == [
        (case, value) for case in ("Questions\x1b[31m", "Trivia") for value in ("0.0", "0.5", "1.0")
    ]
    found = json.loads(run("sweep", "F(alpha=*)@5", "trivia", "-f", "json", "--measure", "kendall").stdout)
    assert {row["kind"] for row in found["choices"]} == {"within", "pooled"}
    assert found["measure"] == "kendall"
    assert len(found["grid"]) == 21


@pytest.mark.slow
def test_a_case_is_called_as_its_study_calls_it(folder: Path, tmp_path: Path) -> None:
    for number, name in (("01", "other model"), ("02", "bio")):
        save(world(20, seed=int(number)), place := tmp_path / "alignment" / "cases" / number, "Bio")
        results = Results.read(place)
        about = {"case": name, "design": [], "left_out": {}}
        replace(results, manifest={**results.manifest, "study": about}).write(place)
    save(world(20, seed=5), tmp_path / "bio" / "results", "")
    cases = [str(tmp_path / "alignment" / "cases" / number) for number in ("01", "02")]
    done = run("sweep", "UDCG(gamma=*)@5", *cases, str(tmp_path / "bio"), "nq", "--steps", "2")
    assert done.exit_code == 0, done.output
    for said in ("other model: Within", "bio (1): Within", "bio (2): Within", "Questions\\x1b[31m: Within"):
        assert said in done.stdout
    assert "\x1b" not in done.output


def test_what_was_left_out_is_told(folder: Path, tmp_path: Path) -> None:
    given = world(20, seed=3)
    constant = given.outcomes.frame.with_columns(
        pl.when(pl.col("query") == "q0000").then(1.0).otherwise(pl.col("value")).alias("value")
    ).filter(~((pl.col("query") == "q0001") & (pl.col("system") == "s03")))
    save(given._replace(outcomes=ragworth.Outcomes(constant)), tmp_path / "x", "X")
    done = run("udcg", str(tmp_path / "x"), "-o", str(tmp_path / "t.json"))
    assert "note: no outcome: 1 contexts left out" in done.stderr
    assert "of 20 queries have no two contexts whose outcomes differ" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("udcg", "nowhere", "also-not", "-o", "t.json"), "2 problems"),
        (("udcg", "nq", "-o", "t.json", "--outcome", "score"), "Questions\\x1b[31m: there are no outcomes of 'score'"),
        (("udcg", "nq", "trivia", "nq/results", "-o", "t.json"), "nq/results: the same results as nq; name them once"),
        (("sweep", "UDCG(gamma=*)@5", "trivia", "nq/../trivia"), "the same results as trivia"),
        (("udcg", "nq", "-o", "no/t.json"), "there is no folder"),
        (("udcg", "nq"), "Missing option '-o'"),
        (("udcg", "nq", "-o", 'say "t".json'), "is invalid"),
        (("udcg", "-o", "t.json"), "Missing argument"),
        (("udcg", "nq", "-o", "t.json", "--level", "2"), "the confidence level is 2.0"),
        (("udcg", "nq", "-o", "t.json", "--folds", "16"), "at least 32, for 16 parts"),
        (("sweep", "UDCG@5", "nq"), "does not name one parameter"),
        (("sweep", "UDCG(gamma=*)@5", "nq", "--from", "1", "--to", "0"), "is no grid"),
        (("sweep", "Cov(eta=*)@5", "nq", "--from", "1", "--to", "5"), "needs ratings of sub-questions"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(
    folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (folder / "t.json").exists()
