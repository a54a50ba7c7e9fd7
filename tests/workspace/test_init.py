"""The first file of a workspace: what lies in a folder is understood, and what is written can be read and used."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth import formats
from ragworth.cli.init import judging_kinds
from ragworth.core.errors import FormatError, InputError
from ragworth.data import Judgments
from ragworth.data.collection import Collection, merge_collections
from ragworth.evaluation.inputs import load_inputs
from ragworth.formats import outcomes, texts
from ragworth.judging.answers import read_answers
from ragworth.retrieval import StepContext, check
from ragworth.workspace import config
from ragworth.workspace.init import TEMPLATES, fill_template, init_workspace, template_text
from ragworth.workspace.plan import WorkspacePlan
from ragworth.workspace.problems import Problems
from ragworth.workspace.toml import format_toml, toml_key

EXAMPLES = Path(__file__).parents[2] / "examples"
PASSAGES = [{"_id": f"p{n}", "text": f"The mill of the town was built by Ann in {1800 + n}."} for n in range(6)]
QUERIES = [{"_id": f"q{n}", "text": f"Who built mill {n}?", "answers": ["Ann"]} for n in range(3)]
QRELS = "".join(f"q{n} 0 p{n} 1\nq{n} 0 p5 0\n" for n in range(3))
RUN = "".join(f"q{n} Q0 p{n} 1 2.5 tag\nq{n} Q0 p5 2 1.5 tag\n" for n in range(3))
RATINGS = "".join(f"q{n} {part} p{n} 3\n" for n in range(3) for part in (1, 2))


def lines(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def log(*systems: str, queries: Sequence[str] = ("q0", "q1"), text: str = "The mill.") -> str:
    return lines(
        [
            {
                **({"system": system} if system else {}),
                "query_id": query,
                "query": f"Who built {query}?",
                "answers": ["Ann"],
                "retrieved_context": [{"doc_id": "p0", "text": text}],
            }
            for system in systems
            for query in queries
        ]
    )


Put = Callable[[Mapping[str, str | bytes]], Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes files into a folder."""

    def write(files: Mapping[str, str | bytes]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path

    return write


def used(folder: Path) -> config.Workspace:
    """Everything that the file of a folder names, read as an evaluation would."""
    space = config.read(folder)
    given, judged = space.collection, [*space.judged]
    parts = [formats.load(space.spec(given.whole)).collection] if given.whole else []
    for kind in ("queries", "passages", "answers", "subquestions"):
        if path := getattr(given, kind):
            parts.append(texts.read(space.spec(path), kind))
    labels = [formats.read_judgments(space.spec(path)) for path in [*given.qrels, *judged]]
    if labels:
        parts.append(Collection(relevance=Judgments.concat(labels)))
    if given.ratings:
        parts.append(Collection(ratings=formats.read_ratings(space.spec(given.ratings))))
    for name, pipeline in space.systems.items():
        if found := re.fullmatch(r'run\("(.*)"\)', pipeline):
            spec = space.spec(found[1].replace('\\"', '"').replace("\\\\", "\\"))
            assert (len(formats.read_contexts(spec).systems) > 1) == (name == "*")
            if formats.choose(spec, "contexts").format.name == "jsonl":
                parts.append(formats.load(spec).collection)
    collection = merge_collections(parts)
    named = {name: pipeline for name, pipeline in space.systems.items() if name != "*"}
    queries = collection.queries["query"].to_list() or ["q0"]
    if named:
        check(named, StepContext.of(collection, queries, folder=folder))
    if space.answers is not None and space.answers.file:
        read_answers(space.spec(space.answers.file))
    for path in space.graded:
        outcomes.read(space.spec(path))
    return space


def begun(folder: Path) -> tuple[config.Workspace, WorkspacePlan]:
    """Start a workspace and use it."""
    plan = init_workspace(folder).plan
    return used(folder), plan


def test_texts_alone_get_systems_to_compare(put: Put) -> None:
    space, plan = begun(put({"queries.jsonl": lines(QUERIES), "passages.jsonl": lines(PASSAGES)}))
    assert dict(space.systems) == {
        "bm25": 'bm25(stopwords="english") % 5',
        "reversed": 'bm25(stopwords="english") % 5 >> reversed',
        "random": "random % 5",
    }
    assert space.collection.answers == "queries.jsonl"
    assert (space.baseline, space.limit) == ("bm25", None)
    assert set(space.judgments) == {"abstention", "relevance"}
    assert any("contain an accepted answer count as relevant" in line for line in plan.assumed)
    assert set(space.grades) == {"deterministic"}
    assert space.answers is not None
    assert any("no run was found" in line for line in plan.assumed)


def test_labels_allow_an_oracle_and_an_adversary(put: Put) -> None:
    rows = [{"_id": each["_id"], "text": each["text"]} for each in QUERIES]
    space, _ = begun(put({"queries.jsonl": lines(rows), "corpus.jsonl": lines(PASSAGES), "qrels.txt": QRELS}))
    assert list(space.systems) == ["bm25", "reversed", "oracle", "adversary", "random"]
    assert space.systems["adversary"] == 'bm25(stopwords="english") >> adversary % 5'
    assert set(space.judgments) == {"abstention"}
    assert not space.grades
    assert space.collection.answers is None


def test_runs_are_systems_by_the_names_of_their_files(put: Put) -> None:
    folder = put(
        {
            "runs/bm25.run": RUN,
            "runs/old/bm25.run": RUN,
            "runs/dense.txt.gz": gzip.compress(RUN.encode()),
            "input.anserini-x": RUN,
            "table.csv": "query,passage,rank\nq0,p0,1\nq0,p1,2\n",
            "labels.tsv": QRELS.replace(" ", "\t"),
            "ratings.txt": RATINGS,
        }
    )
    space, plan = begun(folder)
    assert dict(space.systems) == {
        "input.anserini-x": 'run("input.anserini-x")',
        "table": 'run("table.csv")',
        "bm25": 'run("runs/bm25.run")',
        "dense": 'run("runs/dense.txt.gz")',
        "old/bm25": 'run("runs/old/bm25.run")',
    }
    assert space.collection.qrels == ("labels.tsv",)
    assert space.collection.ratings == "ratings.txt"
    assert space.answers is None
    assert not space.judgments
    assert plan.lacking == ["texts of queries and passages: nothing is asked of a model without them"]


def test_names_are_escaped(put: Put) -> None:
    odd = 'ha\'ns "und" möwe\\.run'
    space, _ = begun(put({odd: RUN, "trec:labels.txt": QRELS, "runs/日本 語.run": RUN, "runs/a.b=c#d.run": RUN}))
    assert set(space.systems) == {'ha\'ns "und" möwe\\', "日本 語", "a.b=c#d"}
    assert space.collection.qrels == ("./trec:labels.txt",)


def test_names_that_cannot_be_shown_are_left_out(put: Put) -> None:
    space, plan = begun(put({"bell\a.run": RUN, "good.run": RUN, "qrels.txt": QRELS}))
    assert set(space.systems) == {"good"}
    assert plan.unused == ["'bell\\x07.run': the name has signs that cannot be shown"]


@pytest.mark.parametrize(
    ("name", "content", "where", "doubtful"),
    [
        ("x.txt", QRELS, "qrels", False),
        ("x.txt", RATINGS, "ratings", False),
        ("x.txt", "q0 1 p0 1\nq1 1 p1 1\n", "qrels", False),
        ("x.txt", "q0 1 p0 1\nq1 4.5 p1 1\n", "qrels", True),
        ("subtopics.txt", "q0 1 p0 1\nq1 2 p1 1\n", "ratings", False),
        ("x.csv", "query,passage,relevance\nq0,p0,1\n", "qrels", False),
        ("x.csv", "query-id,corpus-id,score\nq0,p0,1\n", "qrels", False),
        ("x.csv", "query,passage,subquestion,rating\nq0,p0,1,3\n", "ratings", False),
        ("x.jsonl", '{"query": "q0", "passage": "p0", "subquestion": "1", "value": 3}\n', "ratings", False),
        ("x.jsonl", '{"query": "q0", "passage": "p0", "value": 1}\n', "qrels", False),
    ],
)
def test_labels_and_ratings_are_told_apart(put: Put, name: str, content: str, where: str, doubtful: bool) -> None:
    space, plan = begun(put({name: content, "a.run": RUN}))
    found = getattr(space.collection, where)
    assert found == (name if where == "ratings" else (name,))
    assert any(line.startswith(f"{name}: ") for line in plan.assumed) == doubtful


@pytest.mark.parametrize("place", ["", "data/nq/"])
def test_a_beir_folder_is_one_collection(put: Put, place: str) -> None:
    folder = put(
        {
            f"{place}corpus.jsonl.gz": gzip.compress(lines(PASSAGES).encode()),
            f"{place}queries.jsonl": lines(QUERIES),
            f"{place}qrels/test.tsv": "query-id\tcorpus-id\tscore\nq0\tp0\t1\n",
            f"{place}qrels/train.tsv": "query-id\tcorpus-id\tscore\nq1\tp0\t1\n",
        }
    )
    space, plan = begun(folder)
    assert space.collection == config.CollectionConfig(f"beir:{place.rstrip('/') or '.'}")
    assert "oracle" in space.systems
    assert any("splits test, train it takes test" in line for line in plan.assumed)
    assert not plan.unused
    # Nothing could grade them, so no answers are paid for.
    assert (space.answers, dict(space.grades)) == (None, {})
    assert any(line.startswith("accepted answers: no answers are asked for") for line in plan.lacking)


def test_a_log_of_one_system(put: Put) -> None:
    space, _ = begun(put({"log.jsonl": log(""), "qrels.txt": QRELS}))
    assert dict(space.systems) == {"log": 'run("log.jsonl")'}
    assert space.collection == config.CollectionConfig(qrels=("qrels.txt",))
    assert set(space.judgments) == {"abstention"}
    assert set(space.grades) == {"deterministic"}


def test_a_log_that_contradicts_another_is_left_out(put: Put) -> None:
    space, plan = begun(put({"a.jsonl": log("a"), "b.jsonl": log("b", text="Another mill.")}))
    assert set(space.systems) == {"a"}
    assert plan.unused == ["b.jsonl (a log): two texts for passage 'p0'"]


def test_what_is_about_other_queries_is_left_out(put: Put) -> None:
    folder = put({"a.jsonl": log("a"), "r.jsonl": log("r", queries=["r1"]), "ratings.txt": "r1 1 p0 3\nr1 2 p0 3\n"})
    space, plan = begun(folder)
    assert set(space.systems) == {"a"}
    assert space.collection.ratings is None
    assert len([line for line in plan.unused if "none of its queries" in line]) == 2


def test_tables_of_texts_judgments_answers_and_outcomes(put: Put, tmp_path: Path) -> None:
    pl.DataFrame({"passage": ["p0", "p5"], "text": ["The mill.", "A mill."]}).write_parquet(tmp_path / "corpus.parquet")
    folder = put(
        {
            "asked.csv": "query,text\nq0,Who?\nq1,When?\n",
            "gold.csv": "query,text\nq0,Ann\nq1,Now\n",
            "parts.csv": "query,subquestion,text\nq0,1,Who?\nq0,2,When?\n",
            "a.run": RUN,
            "qrels.txt": QRELS,
            "more.csv": "query,passage,aspect,value\nq0,p0,abstention,0.5\n",
            "answers.csv": "system,query,text\na,q0,Ann\n",
            "outcomes.csv": "system,query,aspect,value\na,q0,similarity,0.5\n",
            "strange.csv": "system,query,aspect,value\nb,q0,similarity,0.5\n",
        }
    )
    space, plan = begun(folder)
    assert space.collection == config.CollectionConfig(
        None, "asked.csv", "corpus.parquet", "gold.csv", "parts.csv", ("qrels.txt",), None
    )
    assert (space.judged, space.graded) == (("more.csv",), ("outcomes.csv",))
    assert space.answers == config.AnswerConfig(file="answers.csv")
    assert set(space.judgments) == {"ratings"}
    assert any("gold.csv" in line and "because of its name" in line for line in plan.assumed)
    assert any(line.startswith("strange.csv (outcomes of answers): it is of 'b'") for line in plan.unused)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "a.tsv",
            "query\tpassage\tkind\nq0\tp0\tgood\n",
            "columns: query, passage, kind; say what the columns are",
        ),
        ("a.csv", "passage,tokens\np0,3\n", "it has lengths of passages, and no texts"),
        ("a.jsonl", '{"id": "a", "text": "The mill."}\n', "it has ids and texts; call it queries or passages"),
        ("a.json", '{\n"a": 1\n}\n', "no known format has these columns: a"),
        ("a.jsonl", "not JSON\n", "no known format begins like this"),
        (
            "a.jsonl",
            '{"question": "Who?" "answer": "Ann"}\n',
            "line 1: this is not JSON (Expecting ',' delimiter, column 21)",
        ),
        ("a.jsonl", '{"question": "Who?", "answer":\n{"question": "When?", "answer": "1820"}\n', "line 1: this is not"),
        ("a.json", '{"a": [1,\n', "line 2: the JSON ends early"),
        ("a.jsonl", "", "it is empty"),
        ("a.jsonl", '{"query_id": "q0", "query": "Who?", "retrieved_context": []}\n', "nothing was retrieved in it"),
        ("qrels.txt", "q0 0 p0 1\n".encode("utf-16"), "this is UTF-16 text"),
        ("qrels.txt", b"q0 0 p\xe9 1\n", "it looks like relevance labels, but line 1: the passage is not UTF-8"),
        ("a.parquet", "no parquet", "can't be read as Parquet"),
        ("a.run", RUN + "q0 Q0\n", "it looks like a run, but line 7: "),
        ("a.jsonl", '{"_id": "p0", "title": "", "text": 3}\n', "it looks like texts of passages, but line 1: "),
        ("a.jsonl.gz", gzip.compress(b"{}\n" * 99, mtime=0)[:-9], "the compressed data is damaged or truncated"),
    ],
)
def test_what_is_not_understood_is_said(put: Put, name: str, content: str | bytes, reason: str) -> None:
    space, plan = begun(put({name: content}))
    assert space.systems == {}
    assert len(plan.unused) == 1
    assert plan.unused[0].startswith(f"{name}: ")
    assert reason in plan.unused[0]


def test_what_is_no_data_is_passed_over(put: Put) -> None:
    folder = put(
        {
            "README.md": "q0 0 p0 1\n",
            "NOTES": "to do\n",
            "noise.dat": b"\0\1\2",
            ".hidden/a.run": RUN,
            "results/b.run": RUN,
            "a/b/c/deep.run": RUN,
            "a/b/found.run": RUN,
        }
    )
    space, plan = begun(folder)
    assert dict(space.systems) == {"found": 'run("a/b/found.run")'}
    assert plan.unused == []


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.parquet", "run.csv", "run.parquet"])
def test_systems_may_follow_after_the_head_of_a_file(name: str, put: Put) -> None:
    keys = [(system, f"q{n}") for system in ("old", "new") for n in range(100)]
    if name.startswith("log"):
        answered = {"answer": "Ann", "answers": "Ann"}
        rows: list[dict[str, Any]] = [
            {"system": s, "query_id": q, "query": f"Who built {q}?", **answered} for s, q in keys
        ]
    else:
        rows = [{"system": s, "query": q, "passage": "p1", "score": "1"} for s, q in keys]
    frame = pl.DataFrame(rows)
    if "score" in frame.columns:
        frame = frame.cast({"score": pl.Float64})
    folder = put({"qrels.txt": "".join(f"q{n} 0 p1 1\n" for n in range(100))} if name.startswith("run") else {})
    if name.endswith("jsonl"):
        frame.write_ndjson(folder / name)
    elif name.endswith("csv"):
        frame.write_csv(folder / name)
    else:
        frame.write_parquet(folder / name)
    init_workspace(folder)
    assert list(config.read(folder).systems) == ["*"]
    checked = load_inputs(config.read(folder), problems := Problems())
    problems.done()
    assert checked is not None and set(checked.written) == {"old", "new"}


@pytest.mark.parametrize(
    ("number", "more", "limit", "judged"),
    [
        (200, {"answer": "Ann", "answers": ["Ann"]}, None, None),
        (201, {"answer": "Ann", "answers": ["Ann"]}, None, 100),
        (201, {"answer": "Ann", "correctness": 1.0}, None, 100),
        (2001, {"answer": "Ann", "answers": ["Ann"]}, 2000, 100),
        (201, {"answer": "Ann"}, 100, None),
        (201, {"answers": ["Ann"]}, 100, None),
    ],
)
def test_in_many_queries_all_given_answers_are_compared(
    put: Put, number: int, more: dict[str, Any], limit: int | None, judged: int | None
) -> None:
    shown = {"retrieved_context": [{"text": "Ann built it."}]}
    log = [{"query_id": f"q{n}", "query": f"Who built mill {n}?", **shown, **more} for n in range(number)]
    plan = init_workspace(folder := put({"log.jsonl": lines(log)})).plan
    space = config.read(folder)
    assert (space.limit, space.judged_queries) == (limit, judged)
    assert sum("there are many queries" in line for line in plan.assumed) == (number > 200)


@pytest.mark.parametrize("name", ["demo", "judging", "scoring"])
def test_the_examples(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("ragworth.toml", "results", "calls.sqlite*"))
    space, plan = begun(folder)
    names = {"demo": ["bm25", "reversed", "oracle", "adversary", "random"], "judging": ["*"]}
    assert list(space.systems) == names.get(name, ["bm25", "dense", "rerank"])
    assert space.collection.qrels == ("qrels.txt",)
    assert (space.collection.ratings is None) == (name == "judging")
    assert len(plan.unused) == {"demo": 1, "judging": 3, "scoring": 1}[name]


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_templates_are_read(name: str, tmp_path: Path) -> None:
    init_workspace(tmp_path, name)
    space = config.read(tmp_path)
    assert space.systems
    assert tomllib.loads(fill_template(TEMPLATES[name])) == tomllib.loads((tmp_path / "ragworth.toml").read_text())


def test_every_line_of_the_template_can_be_switched_on(tmp_path: Path) -> None:
    whole = re.sub(r"^# (?=\S+ = |\[)", "", template_text(judging_kinds()), flags=re.M).replace("file = ", "# file = ")
    (tmp_path / "ragworth.toml").write_text(whole, encoding="utf-8")
    space = config.read(tmp_path)
    assert len(space.systems) == 7
    assert len(space.grades) == 10
    assert len(space.judgments) == 8
    (tmp_path / "ragworth.toml").write_text(template_text(judging_kinds()), encoding="utf-8")
    assert config.read(tmp_path).answers is None


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    file = tmp_path / "ragworth.toml"
    file.write_text("# mine")
    with pytest.raises(InputError, match=r"the file already exists(.|\n)*--force"):
        init_workspace(tmp_path)
    assert file.read_text() == "# mine"
    init_workspace(tmp_path, force=True)
    assert "[collection]" in file.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["ragworth.toml"]


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "ragworth.toml").mkdir()
    with pytest.raises(FormatError, match="cannot be written"):
        init_workspace(tmp_path, force=True)
    with pytest.raises(InputError, match="no such folder"):
        init_workspace(tmp_path / "nowhere")
    with pytest.raises(InputError, match="unknown template 'x'"):
        init_workspace(tmp_path, "x", force=True)


@pytest.mark.parametrize(
    "name", ["a", "a b", 'a"b', "a'b", "a\\b", "ä", "a.b", "", "a\nb", "a\x7f", "#", "=", "\t", "🦭"]
)
def test_names_and_texts_come_back_as_they_were(name: str) -> None:
    assert tomllib.loads(f"{toml_key(name)} = {format_toml(name)}") == {name: name}
    both: dict[str, str | bool] = {"run": name, "graded": True}
    assert tomllib.loads(f"x = {format_toml(both)}\ny = {format_toml([name, name])}") == {"x": both, "y": [name, name]}
