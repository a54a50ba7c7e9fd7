"""The command line, as somebody at a terminal meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from math import log2
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import ragworth
from ragworth.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "scoring"
QRELS = str(EXAMPLE / "qrels.txt")
RUNS = [str(EXAMPLE / "runs" / f"{name}.run") for name in ("bm25", "dense", "rerank")]
ABSTENTION = str(EXAMPLE / "abstention.csv")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_scores_on_the_terminal_equal_the_library() -> None:
    result = call("score", "-q", QRELS, "-m", "nDCG@5", *RUNS)
    assert result.exit_code == 0, result.stderr
    scores = ragworth.score(ragworth.read_contexts(RUNS[1]), ragworth.read_judgments(QRELS), "nDCG@5")
    mean = ragworth.summarise(scores)["mean"][0]
    line = next(line for line in result.stdout.splitlines() if "dense" in line)
    assert line.split()[:3] == ["nDCG@5", "dense", f"{mean:.4f}"]
    assert line.endswith("40 of 40")


def test_a_second_file_for_an_option_that_takes_one_is_an_error() -> None:
    result = call("annotate", "abstention", RUNS[0], "-p", "a.jsonl", "--passages=b.jsonl")
    assert result.exit_code == 2 and "-p is given 2 times, but takes one value" in result.stderr
    assert call("score", "-q", QRELS, "-q", QRELS.replace(".txt", ".none"), RUNS[0]).stderr.startswith("ragworth:")


def test_ray_that_is_not_installed_is_an_error_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    result = call("--executor", "ray", "calls", "show", str(tmp_path / "calls.sqlite"))
    assert result.exit_code == 2 and 'pip install "ragworth[ray]"' in result.stderr


@pytest.mark.parametrize("look", ["csv", "json", "markdown", "latex", "text"])
def test_every_look_holds_the_same_numbers(look: str) -> None:
    result = call("score", "-q", QRELS, "-m", "P@5", RUNS[0], "-f", look)
    assert result.exit_code == 0
    exact = ragworth.summarise(ragworth.score(ragworth.read_contexts(RUNS[0]), ragworth.read_judgments(QRELS), "P@5"))
    mean = float(exact["mean"][0])
    if look == "json":
        assert json.loads(result.stdout)[0]["mean"] == mean
    elif look == "csv":
        assert pl.read_csv(result.stdout.encode())["mean"][0] == pytest.approx(mean, abs=1e-15)
    else:
        assert f"{mean:.4f}" in result.stdout


def test_per_query_to_parquet_reads_back_as_scores(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    result = call("score", "-q", QRELS, "-m", "AP", "-m", "RR", "--per-query", *RUNS, "-o", str(path))
    assert result.exit_code == 0
    table = ragworth.Scores.read(path)
    assert len(table) == 3 * 2 * 40
    assert table == ragworth.score(
        ragworth.Contexts.concat([ragworth.read_contexts(run) for run in RUNS]),
        ragworth.read_judgments(QRELS),
        ["AP", "RR"],
    )


def test_utility_coverage_and_density_from_files() -> None:
    result = call(
        "score", RUNS[0], "-q", QRELS, "-j", ABSTENTION, "-r", str(EXAMPLE / "ratings.txt"), "-p",
        str(EXAMPLE / "passages.csv"), "-m", "UDCG@5", "-m", "Cov@5", "-m", "Den@5",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "tokens counted by: column 'tokens'" in result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()[2:]] == ["UDCG@5", "Cov@5", "Den@5"]


def test_a_significant_drop_gives_exit_code_3() -> None:
    down = call("compare", "-q", QRELS, RUNS[2], RUNS[0], "--fail-if-worse", "nDCG@5")
    assert down.exit_code == 3
    assert "worse: bm25 is" in down.stderr
    up = call("compare", "-q", QRELS, RUNS[0], RUNS[2], "--fail-if-worse", "nDCG@5")
    assert up.exit_code == 0


def test_lower_is_better_is_respected_by_the_gate() -> None:
    arguments = ("-q", QRELS, "-j", ABSTENTION, "--fail-if-worse", "Distraction@5")
    assert call("compare", RUNS[0], RUNS[1], *arguments).exit_code == 3  # dense misleads more than bm25
    assert call("compare", RUNS[1], RUNS[0], *arguments).exit_code == 0


def test_correlation_of_metrics() -> None:
    result = call("score", "-q", QRELS, "-m", "AP", "-m", "nDCG@5", *RUNS, "--correlate", "systems", "-f", "json")
    assert result.exit_code == 0
    row = json.loads(result.stdout)["correlations"][0]
    assert (row["first"], row["second"], row["n"]) == ("AP", "nDCG@5", 3)
    assert row["spearman"] == pytest.approx(1.0)


def test_required_passages(tmp_path: Path) -> None:
    ratings = tmp_path / "r.txt"
    ratings.write_text("q 1 a 5\nq 2 a 0\nq 1 b 3\nq 2 b 4\nq 1 c 1\nq 2 c 0\n")
    result = call("required", str(ratings), "-f", "csv")
    assert result.exit_code == 0
    # b answers both sub-questions; a answers the first better than b does.
    assert result.stdout.splitlines()[1:] == [
        "q,a,partially-redundant,,0",
        "q,b,required,1,2",
        "q,c,answers-nothing,,0",
    ]


def test_metrics_are_listed_and_explained() -> None:
    assert "UDCG" in call("metrics").stdout
    explained = call("metrics", "UDCG").stdout
    assert "σ(Σu⁺/K + γ·Σu⁻/K)" in explained
    assert "gamma" in explained
    unknown = call("metrics", "UDGC")
    assert unknown.exit_code == 2
    assert "did you mean UDCG" in unknown.stderr


BAD: dict[str, tuple[str, list[str]]] = {
    "q1 Q0 d1 1\n": ("line 1", ["4 fields where 6 belong"]),
    "q1 Q0 d1 1 high t\n": ("line 1", ["the score is not a number ('high')"]),
    "q1 Q0 d1 1 nan t\n": ("line 1", ["the score is not a number ('nan')"]),
    "q1 Q0 d1 1 2.0 t\nq1 Q0 d1 2 1.0 t\n": ("line 2", ["passage 'd1' again for query 'q1'"]),
    "": ("no rows", ["the file is empty"]),
    "zz Q0 d1 1 2.0 t\n": ("none of its 1 query is judged", ["'zz'", "'q01'"]),
}


@pytest.mark.parametrize("text", BAD)
def test_bad_runs_give_one_screen_and_exit_code_2(text: str, tmp_path: Path) -> None:
    run = tmp_path / "bad.run"
    run.write_text(text)
    result = call("score", "-q", QRELS, str(run))
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) <= 12
    where, words = BAD[text]
    assert where in result.stderr
    for word in words:
        assert word in result.stderr


def test_bad_lines_can_be_skipped_and_are_counted(tmp_path: Path) -> None:
    run = tmp_path / "some.run"
    run.write_text("q01 Q0 d1 1 2.0 t\nnonsense\nq01 Q0 d1 2 1.5 t\nq01 Q0 d2 3 1.0 t\n")
    result = call("score", "-q", QRELS, str(run), "--skip-bad-lines")
    assert result.exit_code == 0
    assert "2 bad lines skipped (line 2: 1 field" in result.stderr


def test_missing_queries_count_as_empty_or_are_left_out(tmp_path: Path) -> None:
    run = tmp_path / "one.run"
    first = Path(RUNS[0]).read_text().splitlines()[:10]  # the ten passages of one query
    run.write_text("\n".join(first))
    complete = call("score", "-q", QRELS, "-m", "P@5", str(run))
    assert "39 of 40 judged queries are not in the run and count as empty contexts" in complete.stderr
    assert complete.stdout.strip().endswith("40 of 40")
    left_out = call("score", "-q", QRELS, "-m", "P@5", str(run), "--incomplete")
    assert "are left out" in left_out.stderr
    assert left_out.stdout.splitlines()[-1].split()[-5:] == ["1", "of", "40", "39", "left-out"]


def test_everything_wrong_is_reported_at_once() -> None:
    files = call("score", "-q", "no-qrels", "no-run", "other-run")
    assert files.exit_code == 2
    assert "3 problems" in files.stderr
    needs = call("score", "-q", QRELS, RUNS[0], "-m", "UDCG@5", "-m", "Cov@5")
    assert needs.exit_code == 2
    assert "UDCG@5 needs abstention" in needs.stderr
    assert "Cov@5 needs ratings" in needs.stderr
    names = call("score", "-q", QRELS, RUNS[0], "-m", "nDGC@5", "-m", "P(rel=x)@5")
    assert names.exit_code == 2
    assert "2 metrics can't be parsed" in names.stderr


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    assert "Parquet is not for terminals" in call("score", "-q", QRELS, RUNS[0], "-f", "parquet").stderr
    assert "unknown file extension" in call("score", "-q", QRELS, RUNS[0], "-o", str(tmp_path / "x.doc")).stderr
    assert "cannot be written" in call("score", "-q", QRELS, RUNS[0], "-o", str(tmp_path / "no" / "x.csv")).stderr
    assert "no run was given" in call("score", "-q", QRELS).stderr


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    script = f"{sys.executable} -m ragworth score --per-query -q {QRELS} {RUNS[0]} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
    assert "Traceback" not in done.stderr


def test_compare_as_json_holds_everything() -> None:
    result = call("compare", "-q", QRELS, "-m", "P@5", *RUNS, "-f", "json", "--test", "t")
    data = json.loads(result.stdout)
    assert (data["test"], data["level"], data["seed"]) == ("t", 0.95, 0)
    assert [len(data[key]) for key in ("summary", "differences", "changes")] == [3, 2, 10]


def test_a_gate_without_values_is_an_error_and_not_a_pass(tmp_path: Path) -> None:
    new = tmp_path / "new.run"
    new.write_text(Path(RUNS[0]).read_text().replace("-p", "-x"))  # passages that nobody has a probability for
    result = call("compare", "-q", QRELS, "-j", ABSTENTION, RUNS[0], str(new), "--fail-if-worse", "UDCG@5")
    assert result.exit_code == 2
    assert "0 of 40 queries have a value for both" in result.stderr


def test_a_gate_on_few_queries_says_so(tmp_path: Path) -> None:
    new = tmp_path / "new.run"
    new.write_text("\n".join(Path(RUNS[2]).read_text().splitlines()[:100]))
    result = call("compare", "-q", QRELS, RUNS[0], str(new), "--fail-if-worse", "P@5", "--incomplete")
    assert result.exit_code == 0
    assert "new was compared with bm25 by P@5 on 10 of 40 queries only" in result.stderr


def test_a_name_goes_before_the_one_in_the_file(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("system,query,passage,score\nrun,q01,q01-p01,1\n")
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    assert "two runs are called 'run'" in call("score", "-q", QRELS, *files).stderr
    named = call("score", "-q", QRELS, f"one={files[0]}", f"two={files[1]}", "-f", "csv")
    assert pl.read_csv(named.stdout.encode())["system"].to_list() == ["one", "two"]
    (tmp_path / "a.csv").write_text("system,query,passage,score\nx,q01,q01-p01,1\ny,q01,q01-p01,1\n")
    several = call("score", "-q", QRELS, f"one={files[0]}")
    assert several.exit_code == 2
    assert "2 systems cannot all be called 'one'" in several.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "--per-query", "--correlate", "systems"),
        ("compare", "--all-pairs", "--baseline", "bm25"),
        ("score", "--seed", "-1"),
        ("score", "--resamples", "5"),
        ("score", "--level", "95"),
    ],
)
def test_options_that_contradict_each_other_are_refused(arguments: tuple[str, ...]) -> None:
    result = call(*arguments, "-q", QRELS, *RUNS)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr


def test_ratings_that_reach_no_threshold_are_explained(tmp_path: Path) -> None:
    ratings = tmp_path / "r.txt"
    ratings.write_text("q01 1 q01-p01 1\nq01 2 q01-p02 1\n")
    result = call("score", RUNS[0], "-r", str(ratings), "-m", "Cov@5")
    assert "no rating reaches eta=3, the highest is 1; use Cov(eta=1)" in result.stderr
    table = tmp_path / "r.csv"
    table.write_text("query,passage,subquestion,rating\nq01,q01-p01,s,10\n")
    refused = call("score", RUNS[0], "-r", str(table), "-m", "Cov@5")
    assert refused.exit_code == 2
    assert "r.csv, line 2: the rating is 10" in refused.stderr


def test_control_characters_in_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    run = tmp_path / "a.jsonl"
    run.write_text('{"system": "ev\\u001b[31mil", "query_id": "q01", "retrieved_context": [{"doc_id": "d"}]}\n')
    result = call("score", "-q", QRELS, str(run))
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert r"ev\x1b[31mil" in result.stderr


def test_a_system_that_retrieves_nothing_is_scored(tmp_path: Path) -> None:
    run = tmp_path / "none.jsonl"
    run.write_text('{"query_id": "q01", "retrieved_context": []}\n')
    result = call("score", "-q", QRELS, "-m", "P@5", RUNS[0], str(run))
    assert result.exit_code == 0
    assert [line.split()[1:3] for line in result.stdout.splitlines()[2:]][1] == ["none", "0.0000"]


@pytest.mark.parametrize(
    ("words", "advised"),
    [
        (("chunk", "bad.jsonl", "-o", "out.jsonl"), False),
        (("utility", "bad.jsonl"), False),
        (("annotate", "relevance", "bad.jsonl"), True),
        (("score", "--qrels", "bad.jsonl", "bad.jsonl"), True),
    ],
)
def test_only_options_that_a_command_has_are_advised(
    words: tuple[str, ...], advised: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text("x\n")
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "fix the file" in result.stderr
    assert ("--skip-bad-lines" in result.stderr) is advised


@pytest.mark.parametrize("command", ["score", "compare"])
def test_swapped_files_are_told_so(command: str) -> None:
    result = call(command, "-q", RUNS[0], "-m", "AP", QRELS)
    assert result.exit_code == 2
    assert f"{RUNS[0]}, line 1: 6 fields where 4 belong: this looks like a TREC run" in result.stderr
    assert f"{QRELS}, line 1: 4 fields where 6 belong: this looks like a TREC qrels file" in result.stderr
    assert "to do: the run and the qrels look swapped" in result.stderr


def test_judged_only_max_rank_and_gains(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 b 2\n")
    (tmp_path / "run").write_text("q Q0 u 1 4 t\nq Q0 a 2 3 t\nq Q0 v 3 2 t\nq Q0 b 4 1 t\n")
    shared = ["-q", str(tmp_path / "qrels"), "-m", "P@2", "-m", 'nDCG(gains="1=3,2=9")@2', "-f", "csv"]

    def means(*options: str) -> dict[str, float]:
        result = call("score", *shared, *options, str(tmp_path / "run"))
        assert result.exit_code == 0, result.stderr
        return dict(pl.read_csv(result.stdout.encode()).select("metric", "mean").rows())

    ideal = 9 + 3 / log2(3)
    gains = 'nDCG(gains="1=3,2=9")@2'
    assert means() == pytest.approx({"P@2": 0.5, gains: 3 / log2(3) / ideal})
    assert means("-J") == pytest.approx({"P@2": 1.0, gains: (3 + 9 / log2(3)) / ideal})
    assert means("-M", "1") == {"P@2": 0.0, gains: 0.0}
    assert means("--judged-only", "--max-rank", "3") == pytest.approx({"P@2": 0.5, gains: 3 / ideal})
    (tmp_path / "other").write_text("q Q0 b 1 4 t\n")
    result = call("compare", *shared, "-J", str(tmp_path / "run"), str(tmp_path / "other"))
    assert result.exit_code == 0, result.stderr
    differences = dict(pl.read_csv(result.stdout.encode()).select("metric", "difference").rows())
    assert differences == pytest.approx({"P@2": -0.5, gains: (9 - 3 - 9 / log2(3)) / ideal})
    assert call("score", *shared, "-M", "0", str(tmp_path / "run")).exit_code == 2


def test_the_gate_says_where_the_interval_includes_0(tmp_path: Path) -> None:
    """Of 40 queries six get worse: the test rejects, but the interval allows for gains that nobody saw."""
    queries = [f"q{i}" for i in range(40)]
    lists = {"old": dict.fromkeys(queries, "yx"), "new": {q: "xy" if i < 6 else "yx" for i, q in enumerate(queries)}}
    for name, order in lists.items():
        rows = [f"{q} Q0 {p} {n} {9 - n} {name}\n" for q, passages in order.items() for n, p in enumerate(passages, 1)]
        (tmp_path / f"{name}.run").write_text("".join(rows))
    (tmp_path / "qrels.txt").write_text("".join(f"{query} 0 y 1\n" for query in queries))
    files = [str(tmp_path / name) for name in ("qrels.txt", "old.run", "new.run")]
    result = call("compare", "-q", *files, "--fail-if-worse", "nDCG@2")
    assert result.exit_code == 3
    assert "its interval includes 0, because few queries differ" in result.stderr
    assert call("compare", "-q", *files, "--fail-if-worse", "nDCG@2", "--test", "bounded").exit_code == 0


def test_a_gate_that_cannot_fail_says_so(tmp_path: Path) -> None:
    for name, passage in (("old", "x"), ("new", "y")):
        (tmp_path / f"{name}.run").write_text(f"q1 Q0 {passage} 1 9 {name}\nq2 Q0 {passage} 1 9 {name}\n")
    files = [str(tmp_path / name) for name in ("qrels.txt", "old.run", "new.run")]
    (tmp_path / "qrels.txt").write_text("q1 0 x 0\nq2 0 y 0\n")
    result = call("compare", "-q", *files, "--fail-if-worse", "nDCG@2")
    assert result.exit_code == 2 and "nDCG@2 can't decide" in result.stderr
    (tmp_path / "qrels.txt").write_text("q1 0 x 1\nq2 0 x 1\n")
    result = call("compare", "-q", *files, "--fail-if-worse", "nDCG@2")
    assert result.exit_code == 0 and "no difference on 2 queries can be significant" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("evalute",), "Did you mean 'evaluate'?"),
        (("build", "qestions"), "Did you mean 'questions'?"),
        (("log.jsonl",), "run: ragworth evaluate log.jsonl"),
        (("xyz",), "No such command 'xyz'.\n"),
        (("build", "log.jsonl"), "No such command 'log.jsonl'.\n"),
    ],
)
def test_a_misspelt_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], suggestion: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.jsonl").touch()
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 2 and suggestion in result.stderr
    assert result.stderr.count("Did you mean") <= 1
