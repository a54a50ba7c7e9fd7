"""Workspaces of every kind: what may be there, what may be missing, and what comes of it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth import Results, evaluate, score
from ragworth.core.errors import InputError, PromptError
from ragworth.evaluation.inputs import load_inputs
from ragworth.evaluation.model_pool import resolve_model_path
from ragworth.evaluation.plan import plan_evaluation
from ragworth.llm.contract import Choose, Request
from ragworth.llm.prompts import load_prompt
from ragworth.workspace import config
from ragworth.workspace.problems import Problems
from tests.evaluation.samples import (
    PASSAGES,
    QUERIES,
    TOML,
    Models,
    change,
    lines,
    run,
    said,
    statuses,
    tables,
    workspace,
)
from tests.tiers import slow


def results(folder: Path) -> Results:
    found = evaluate(folder)
    assert found.results is not None
    assert found.folder is not None
    read = Results.read(found.folder)
    assert read.scores.frame.equals(found.results.scores.frame)
    return read


def metrics(found: Results) -> list[str]:
    return found.scores.frame["metric"].unique(maintain_order=True).to_list()


def test_everything_is_written(tmp_path: Path, models: Models, undrawn: list[dict[str, Any]]) -> None:
    folder = workspace(tmp_path / "w")
    found = results(folder)
    assert found.contexts.systems == ["first", "second"]
    assert found.contexts.frame["rank"].max() == 2  # as deep as the model reads, or a metric looks
    assert found.judgments is not None
    assert set(found.judgments.frame["aspect"]) == {"relevance", "abstention"}
    assert found.answers is not None
    assert found.answers.frame.height == 6
    assert found.outcomes is not None
    assert found.outcomes.frame["aspect"].unique(maintain_order=True).to_list() == ["grade", "judge-grade"]
    assert set(found.said) == {"abstention", "answers", "grade", "judge"}
    assert set(found.collection.passages["passage"]) == set(found.contexts.frame["passage"])
    written = tables(folder / "results")
    assert {"summary.parquet", "comparison.parquet"} <= written.keys()
    summarised = written["summary.parquet"]["metric"].unique(maintain_order=True).to_list()
    assert summarised[-2:] == ["UDCG@2", "nDCG@2"]
    assert {"correct", "wrong", "abstained", "judge-correct"} <= set(summarised[:-2])
    assert undrawn == [{"metrics": ["UDCG@2", "nDCG@2"], "seed": 0, "level": 1.0}]


def test_the_manifest_says_how_to_make_it_again(tmp_path: Path, models: Models, undrawn: list[object]) -> None:
    folder = workspace(tmp_path / "w", f"seed = 3\nlimit = 2{TOML}")
    evaluate(folder)
    manifest = json.loads((folder / "results" / "manifest.json").read_text(encoding="utf-8"))
    again = evaluate(folder)
    assert manifest["title"] == "The mill"
    assert {"ragworth", "python", "polars", "altair"} <= manifest["versions"].keys()
    assert manifest["files"].keys() == {
        *("queries.jsonl", "passages.jsonl", "answers.jsonl", "qrels.txt", "first.run", "second.run")
    }
    assert manifest["systems"] == {"first": 'run("first.run")', "second": 'run("second.run")'}
    assert (manifest["seed"], manifest["queries"], manifest["settings"]["k"]) == (3, 2, 2)
    assert [(card["backend"], card["name"]) for card in manifest["models"]] == [("scripted", "embedded")]
    assert manifest["prompts"].keys() == {"abstention", "answer", "grade"}
    assert all(prompt["version"] and prompt["messages"] for prompt in manifest["prompts"].values())
    stages = ("retrieve", "annotate.abstention", "answer", "grade.deterministic", "grade.judge", "score")
    assert statuses(manifest["stages"]) == dict.fromkeys(("load", *stages), "done")
    assert {name: statuses(again.stages)[name] for name in stages} == dict.fromkeys(stages, "kept")
    judged = manifest["stages"][2]
    assert judged["calls"] > 0
    later = json.loads((folder / "results" / "manifest.json").read_text(encoding="utf-8"))
    assert later["stages"][2]["calls"] == judged["calls"], "what the results cost, also if they were made before"
    assert {"prompt_tokens", "new_tokens", "cost", "seconds", "stored", "failed"} <= judged.keys()
    assert manifest["stages"][0]["notes"] == ["the first 2 of 3 queries"]


@pytest.mark.parametrize(
    ("names", "depth"),
    [(["UDCG@2", "nDCG@3"], 3), (["UDCG@2", "AP"], 3), *slow((["UDCG@2"], 2), (["UDCG@2", "F_e@2"], 3))],
)
def test_contexts_are_kept_as_deep_as_scores_are_from(
    names: list[str], depth: int, tmp_path: Path, models: Models, undrawn: list[object]
) -> None:
    folder = workspace(tmp_path / "w", TOML.replace('"UDCG@2", "nDCG@2"', ", ".join(f'"{name}"' for name in names)))
    found = results(folder)
    assert found.contexts.frame["rank"].max() == depth
    again = score(found.contexts, found.judgments, names)
    assert again.frame.equals(found.scores.frame)


def test_what_a_metric_looks_at_but_the_model_does_not_read_is_no_part_of_the_diagnosis(
    tmp_path: Path, models: Models, undrawn: list[object]
) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("nDCG@2", "nDCG@3"))
    run(folder / "first.run", {"q1": ["p2", "p3", "p1"], "q2": ["p2"], "q3": ["p3"]})
    made = evaluate(folder).page
    assert made is not None
    found = {(s, q) for s, q, f, _ in made.diagnosis.frame.iter_rows() if f == "nothing-relevant"}
    assert ("first", "q1") in found  # p1, which is relevant, comes third, and the model reads two
    assert {each.system: each.shown for each in made.overview.standings} == {"first": 4, "second": 5}


def test_the_manifest_has_the_settings_that_were_read(tmp_path: Path, models: Models, undrawn: list[object]) -> None:
    """Also of a file with a byte order mark, of one that is changed meanwhile, and of none at all."""
    folder = workspace(tmp_path / "w", TOML)
    file = folder / "ragworth.toml"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    space = config.read(folder)
    digest = hashlib.sha256(file.read_bytes().removeprefix(b"\xef\xbb\xbf")).hexdigest()[:16]
    change(folder, "length = 8", "length = 9")
    found = evaluate(space).results
    assert found is not None
    assert found.manifest["settings"]["answers"] == {"length": 8}
    assert found.manifest["workspace"] == {"file": "ragworth.toml", "digest": digest}
    file.unlink()
    made = evaluate(dataclasses.replace(space, given={}, digest="")).results
    assert made is not None
    assert made.manifest["settings"]["metrics"] == ["UDCG@2", "nDCG@2"]
    assert made.manifest["settings"]["answers"]["task"]["settings"] == {"length": 8}
    assert "file" not in made.manifest["settings"]


RUNS_ONLY = """
[collection]
qrels = "qrels.txt"
[systems]
first = {run = "first.run"}
second = {run = "second.run"}
"""


def test_runs_and_labels_need_no_text_and_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undrawn: list[object]
) -> None:
    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", None)
    folder = workspace(tmp_path / "w", RUNS_ONLY)
    found = results(folder)
    assert metrics(found) == ["nDCG@5", "P@5", "R@5", "RR@5"]
    assert found.answers is None
    assert found.manifest["models"] == []
    assert not (folder / "calls.sqlite").exists()
    assert plan_evaluation(config.read(folder)).stages == []


def test_one_system_is_compared_with_nobody(tmp_path: Path, undrawn: list[object]) -> None:
    folder = workspace(tmp_path / "w", RUNS_ONLY)
    evaluate(folder)
    assert (folder / "results" / "comparison.parquet").exists()
    change(folder, 'second = {run = "second.run"}\n', "")
    evaluate(folder)
    assert not (folder / "results" / "comparison.parquet").exists()


def log(folder: Path) -> None:
    """What a RAG program writes: two systems, with texts."""
    rows = [
        {
            "system": system,
            "query_id": query,
            "query": text,
            "answers": ["Ann"],
            "retrieved_context": [{"doc_id": name, "text": PASSAGES[name]} for name in shown],
        }
        for system, shown in (("a b", ["p1", "p2"]), ("\x1b[31mred", []))
        for query, text in QUERIES.items()
    ]
    lines(folder / "log.jsonl", rows)


def test_all_systems_of_a_log_with_its_texts(tmp_path: Path, models: Models, undrawn: list[object]) -> None:
    folder = workspace(tmp_path / "w", 'k = 9\n[systems]\n"*" = {run = "log.jsonl"}\n[judgments]\nrelevance = true\n')
    log(folder)
    found = results(folder)
    assert found.contexts.systems == ["a b", "\x1b[31mred"]
    assert len(found.contexts.empty) == 3  # nothing was retrieved, and that counts
    assert found.judgments is not None
    assert found.judgments.frame.height == 6
    assert found.collection.queries.height == 3
    assert found.manifest["systems"] == dict.fromkeys(found.contexts.systems, 'run("log.jsonl")')
    assert metrics(found) == ["nDCG@9", "P@9", "R@9", "RR@9"]


def test_a_file_of_several_systems_is_not_one(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", '[systems]\none = {run = "log.jsonl"}\n')
    log(folder)
    with pytest.raises(InputError, match=r"line 2: the file of 'one' holds 2 systems\n.*\"\*\" = \{run"):
        evaluate(folder)


def test_empty_contexts_are_answered_and_counted(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", '[systems]\n"*" = {run = "log.jsonl"}\n[answers]\n[grades]\ntext = true\n')
    log(folder)
    found = evaluate(folder, until="grade")
    (answer,) = [stage for stage in found.stages if stage["name"] == "answer"]
    assert answer["notes"] == ["3 answers from contexts that have no passages, asked with the same prompt"]


EXAM = [
    [
        query,
        [
            {
                "paragraph_id": name,
                "text": PASSAGES[name],
                "paragraph_data": {
                    "judgments": [{"relevance": 1}],
                    "rankings": [{"method": "m1", "rank": rank}, {"method": "m2", "rank": 3 - rank}],
                },
                "exam_grades": [{"self_ratings": [{"question_id": "s1", "self_rating": 5 * (rank - 1)}]}],
            }
            for rank, name in enumerate(("p1", "p2"), 1)
        ],
    ]
    for query in ("q1", "q2")
]


def test_a_collection_with_its_runs_needs_no_systems(tmp_path: Path, undrawn: list[dict[str, Any]]) -> None:
    folder = workspace(tmp_path / "w", 'k = 2\n[collection]\nfrom = "exam:exam.jsonl"\n')
    (folder / "exam.jsonl").write_text("".join(json.dumps(line) + "\n" for line in EXAM))
    found = results(folder)
    assert found.contexts.systems == ["m1", "m2"]
    assert metrics(found) == ["nDCG@2", "P@2", "R@2", "RR@2", "Cov@2", "alpha_nDCG@2", "Den@2"]
    assert found.ratings is not None
    assert "tokens counted by: words and punctuation marks" in found.scores.notes
    assert found.manifest["systems"] == {"m1": "exam:exam.jsonl", "m2": "exam:exam.jsonl"}
    change(folder, "k = 2", 'k = 2\nmetrics.use = ["Cov(eta=2)@2", "P(rel=2)@2"]')
    page = evaluate(folder).page
    assert undrawn[-1] == {
        "metrics": ["Cov(eta=2)@2", "P(rel=2)@2"],
        "seed": 0,
        "level": 2.0,
        "eta": 2.0,
    }
    assert page is not None
    assert page.facts.eta == 2.0
    assert page.overview.main == "Cov(eta=2)@2"


def test_a_beir_folder_with_parts_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("bm25s")
    toml = '[collection]\nfrom = "beir:data"\nqueries = "queries.jsonl"\n[systems]\nbm25 = "bm25 % 2"\n'
    folder = workspace(tmp_path / "w", toml)
    (folder / "data" / "qrels").mkdir(parents=True)
    lines(folder / "data" / "corpus.jsonl", [{"_id": name, "text": text} for name, text in PASSAGES.items()])
    lines(folder / "data" / "queries.jsonl", [{"_id": "q1", "text": "other words"}])
    (folder / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tp1\t1\nq9\tp1\t1\n")
    found = plan_evaluation(config.read(folder)).material
    assert found.collection.queries["text"].to_list() == list(QUERIES.values())  # its own replace those of the folder
    assert found.files.keys() == {"beir:data", "queries.jsonl"}
    before = found.files["beir:data"]
    (folder / "data" / "notes.txt").write_text("not a part of the collection")
    assert plan_evaluation(config.read(folder)).material.files["beir:data"] == before
    assert statuses(evaluate(folder, until="score").stages)["score"] == "done"


def test_answers_out_of_a_file(tmp_path: Path, models: Models, undrawn: list[object]) -> None:
    folder = workspace(tmp_path / "w", f"limit = 2{TOML}".replace("length = 8", 'file = "said.csv"'))
    rows = [(system, query, "Ann") for system in ("first", "second", "third") for query in QUERIES]
    pl.DataFrame(rows, schema=["system", "query", "text"], orient="row").write_csv(folder / "said.csv")
    found = results(folder)
    assert statuses(found.manifest["stages"])["answer"] == "given"
    assert found.answers is not None
    assert found.answers.frame.select("system", "query").rows() == [
        (system, query) for system in ("first", "second") for query in ("q1", "q2")
    ]
    assert "answers of 1 system are left out, not being evaluated ('third')" in found.manifest["stages"][0]["notes"]
    graded = [request for _, request in models.taken() if "Ann" in request.prompt.messages[-1].content]
    assert graded


def test_outcomes_out_of_a_file_go_before_those_of_graders(
    tmp_path: Path, models: Models, undrawn: list[object]
) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("judge = true", 'files = "outcomes.csv"'))
    rows = [(system, query, 1.0, 0.5) for system in ("first", "second") for query in QUERIES]
    pl.DataFrame(rows, schema=["system", "query", "grade", "higher_likes"], orient="row").write_csv(
        folder / "outcomes.csv"
    )
    found = results(folder)
    assert found.outcomes is not None
    names = found.outcomes.frame["aspect"].unique(maintain_order=True).to_list()
    assert names == ["grade", "higher_likes", "deterministic-grade"]
    assert found.outcomes.frame.filter(pl.col("aspect") == "grade")["value"].to_list() == [1.0] * 6
    assert found.said["deterministic"]["aspect"].unique().to_list() == ["deterministic-grade"]


@pytest.mark.parametrize("table", ["answers", "outcomes"])
def test_tables_of_none_of_the_systems_are_refused(tmp_path: Path, models: Models, table: str) -> None:
    named = {"answers": ("length = 8", 'file = "x.csv"'), "outcomes": ("judge = true", 'files = "x.csv"')}
    folder = workspace(tmp_path / "w", TOML.replace(*named[table]))
    frame = pl.DataFrame({"system": ["First"], "query": ["q1"], "text": ["Ann"], "value": [1.0], "aspect": ["a"]})
    frame.write_csv(folder / "x.csv")
    with pytest.raises(InputError, match=f"no {table} are of a system .*\n.*there 'First', here 'first', 'second'"):
        evaluate(folder)
    assert models.taken() == []


def test_relevance_is_asked_only_where_no_label_says_it(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("abstention = true", "relevance = true"))
    change(folder, '"UDCG@2", ', "")
    evaluate(folder, until="score")
    asked = [request for _, request in models.taken() if isinstance(request, Choose) and "YES" in request.labels]
    shown = {("q1", "p1"), ("q1", "p2"), ("q1", "p4"), ("q1", "p7"), ("q2", "p2"), ("q2", "p5"), ("q2", "p8")}
    labelled = {("q1", "p1"), ("q1", "p2"), ("q1", "p4"), ("q2", "p2")}
    assert len(asked) == len(shown - labelled) + 1  # p6 of q3
    (folder / "qrels.txt").write_text("".join(f"{q} 0 p{n} 1\n" for q in QUERIES for n in range(1, 13)))
    found = statuses(evaluate(folder, until="score").stages)
    assert found["annotate.relevance"] == "skipped"


def test_judgments_out_of_files_are_not_asked_again(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("abstention = true", 'abstention = true\nfiles = "said.csv"'))
    rows = [("q1", f"p{n}", "abstention", 0.5) for n in range(1, 13)]
    pl.DataFrame(rows, schema=["query", "passage", "aspect", "value"], orient="row").write_csv(folder / "said.csv")
    found = {stage["name"]: stage for stage in evaluate(folder, until="score").stages}
    assert found["annotate.abstention"]["calls"] == 22 - 4


def test_a_judgment_from_two_places_is_refused_before_anything_is_asked(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("abstention = true", 'abstention = true\nfiles = "said.csv"'))
    (folder / "said.csv").write_text("query,passage,aspect,value\nq1,p1,relevance,1\n")
    with pytest.raises(InputError, match=r"line 17: 1 judgment twice.*'p1'.*'q1': in qrels.txt and in said.csv\n"):
        evaluate(folder)
    assert models.taken() == []


def test_ratings_come_from_one_place(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("abstention = true", "abstention = true\nratings = true"))
    change(folder, "[systems]", 'subquestions = "sub.jsonl"\nratings = "ratings.csv"\n[systems]')
    lines(folder / "sub.jsonl", [{"query_id": query, "subquestions": ["Who?", "When?"]} for query in QUERIES])
    (folder / "ratings.csv").write_text("query,passage,subquestion,rating\nq1,p1,1,5\n")
    with pytest.raises(InputError, match=r"judgments\.ratings would rate what \[collection\] has ratings of"):
        evaluate(folder)
    change(folder, '\nratings = "ratings.csv"', "")
    found = statuses(evaluate(folder, until="score").stages)
    assert found["annotate.ratings"] == "done"
    assert len([1 for _, request in models.taken() if "5" in getattr(request, "labels", ())]) > 0


def test_tasks_may_ask_models_of_their_own(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("judge = true", 'judge = {model = "hf:judge"}'))
    change(folder, "length = 8", 'length = 8\nmodel = {use = "gguf:writer.gguf"}')
    evaluate(folder, until="score")
    asked = [spec for spec, _ in models.taken()]
    assert {spec: asked.count(spec) for spec in dict.fromkeys(asked)} == {
        "embedded": 22,
        f"gguf:{folder / 'writer.gguf'}": 6,
        "hf:judge": 4,
    }


def test_models_in_the_folder_are_found_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    assert resolve_model_path("scripted:a.json", tmp_path) == f"scripted:{tmp_path / 'a.json'}"
    assert resolve_model_path("sampled:gguf:m.gguf", tmp_path) == f"sampled:gguf:{tmp_path / 'm.gguf'}"
    assert resolve_model_path("hf:here", tmp_path) == f"hf:{tmp_path / 'here'}"
    for same in ("hf:Qwen/Qwen3", "embedded", "embedded:base", "openai:n@http://localhost:1", "gguf:/m.gguf"):
        assert resolve_model_path(same, tmp_path) == same


def test_own_prompts(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML + '\n[paths]\nprompts = "mine"\n')
    change(folder, "length = 8", 'length = 8\nprompt = "short.txt"')
    (folder / "short.txt").write_text("[user]\n{{#passages}}{{text*}}{{/passages}} SHORT {{query}}")
    with pytest.raises(PromptError, match="no such folder"):
        evaluate(folder, until="score")
    (folder / "mine").mkdir()
    (folder / "mine" / "grade.txt").write_text("[user]\n{{query}} {{#answers}}{{.}}{{/answers}} MINE {{answer}}")
    assert models.taken() == []
    evaluate(folder, until="score")
    asked = [request.prompt.messages[-1].content for _, request in models.taken()]
    assert (sum("SHORT" in text for text in asked), sum("MINE" in text for text in asked)) == (6, 5)
    (folder / "mine" / "grade.txt").write_text("[user]\n{{query}} {{#answers}}{{.}}{{/answers}} OTHER {{answer}}")
    found = statuses(evaluate(folder, until="score").stages)
    assert [name for name, status in found.items() if status == "done"] == ["load", "grade.judge"]


def test_the_papers_prompts_for_a_workspace_or_a_task(
    tmp_path: Path, models: Models, undrawn: list[dict[str, Any]]
) -> None:
    models.script = lambda request: '{"reason": "x", "grade": "A"}' if "JSON" in user_turn(request) else said(request)
    folder = workspace(tmp_path / "w", TOML.replace("judge = true", 'judge = {prompt = "papers/grade"}'))
    evaluate(folder, until="score")
    asked = [user_turn(request) for _, request in models.taken()]
    assert any("JSON" in text for text in asked) and not any("Documents:" in text for text in asked)
    change(folder, "[metrics]", '[paths]\nprompts = "papers"\n\n[metrics]')
    found = evaluate(folder)
    asked = [user_turn(request) for _, request in models.taken()]
    assert any("Documents:" in text for text in asked), "now for abstention and answers too"
    assert found.results is not None
    grade = found.results.manifest["prompts"]["grade"]
    assert grade["version"] == load_prompt("papers/grade").version
    assert grade["reply"]["field"] == "grade"


def user_turn(request: Request) -> str:
    return request.prompt.messages[-1].content


def test_a_run_of_other_queries_is_refused_and_so_is_one_of_other_passages(tmp_path: Path, models: Models) -> None:
    folder = workspace(
        tmp_path / "w", TOML.replace("first.run", "other.run").replace('"second.run"}', '"strange.run"}')
    )
    (folder / "other.run").write_text("z1 Q0 p1 1 2.0 first\n")
    (folder / "strange.run").write_text("q1 Q0 x1 1 2.0 second\n")
    with pytest.raises(InputError) as error:
        plan_evaluation(config.read(folder))
    assert "first has none of the queries that are evaluated ('q1', 'q2', 'q3')" in str(error.value)
    assert "none of the passages that second shows has a text, such as 'x1'" in str(error.value)
    assert str(error.value).count("check that ids are written") == 2
    assert ", line 12: first has" in str(error.value)


def test_passages_without_a_text_are_noted(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w")
    (folder / "first.run").write_text("q1 Q0 p1 1 2.0 first\nq1 Q0 x1 2 1.0 first\n")
    (stage,) = [each for each in evaluate(folder, until="retrieve").stages if each["name"] == "retrieve"]
    assert "first: 1 passage not in the collection ('x1')" in stage["notes"]


def test_the_embedded_reader_is_not_trusted_with_other_languages(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    question = {
        "id": "q1",
        "text": "Wie hoch ist die Selbstbeteiligung in der Hausratversicherung?",
        "answers": ["150"],
    }
    passage = {"id": "p1", "text": "Die Selbstbeteiligung ist 150 Euro."}
    (folder / "queries.jsonl").write_text(json.dumps(question), encoding="utf-8")
    (folder / "passages.jsonl").write_text(json.dumps(passage), encoding="utf-8")
    parts = 'queries = "queries.jsonl"\npassages = "passages.jsonl"\nanswers = "queries.jsonl"\n'
    toml = f"[collection]\n{parts}[systems]\nbm25 = 'bm25 % 1'\n[answers]\n"
    (folder / "ragworth.toml").write_text(toml, encoding="utf-8")
    found = load_inputs(config.read(folder), Problems())
    assert found is not None and any("made for English" in note and "1 of 1 in German" in note for note in found.notes)
    (folder / "ragworth.toml").write_text(f'model = "hf:another"\n{toml}', encoding="utf-8")
    found = load_inputs(config.read(folder), Problems())
    assert found is not None and not any("English" in note for note in found.notes)
