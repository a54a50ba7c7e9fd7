"""The file of a workspace: every key, every kind of mistake with its line, all of them told together; and its page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from ragworth.cli.init import judging_kinds
from ragworth.core.errors import FormatError, InputError
from ragworth.judging import ANNOTATORS, GRADERS
from ragworth.workspace import config
from ragworth.workspace.config import AnswerConfig, BudgetConfig, CollectionConfig, ModelSpec, TaskConfig
from ragworth.workspace.init import template_text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "workspace.md").read_text(encoding="utf-8")
TABLES = ("", "collection", "systems.any", "metrics", "budget", "paths")

EVERYTHING = """
title = "Isles"
seed = 7
k = 3
limit = 20
model = {use = "hf:NAME", device = "cuda"}

[collection]
from = "beir:whole"
queries = "queries.jsonl"
passages = "passages.csv"
answers = "answers.jsonl"
subquestions = "sub.jsonl"
qrels = ["a.txt", "trec:b.tsv"]
ratings = "ratings.txt"

[systems]
bm25 = 'bm25(stopwords="english") % 5'
turned = ["bm25 % 5", "reversed"]
"my dense" = {run = 'runs/a "b".run'}

[judgments]
abstention = true
relevance = false
ratings = {model = "openai:NAME@http://localhost:8000", keep-cut = true}
files = "judgments.csv"

[answers]
without = true
oracle = true
everything = true
length = 64
model = {use = "gguf:m.gguf", threads = 2}

[grades]
deterministic = {citations = false}
judge = {model = "embedded"}
files = ["outcomes.csv"]

[metrics]
use = ["UDCG@5", "nDCG@5"]
baseline = "bm25"

[budget]
calls = 10
tokens = 0
cost = 5
price = [0.15, 1]

[paths]
results = "out"
store = "s.sqlite"
cache = "c"
prompts = "p"
"""


def read(folder: Path, text: str) -> config.Workspace:
    (folder / "ragworth.toml").write_text(text, encoding="utf-8")
    return config.read(folder)


def refused(folder: Path, text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        read(folder, text)
    return caught.value


def known_keys(folder: Path) -> Iterator[tuple[str, str]]:
    """The keys of each table, as the refusal of one that nobody knows lists them."""
    for table in TABLES:
        error = refused(folder, f"[{table}]\nqqqqqqqqqqqq = 1\n" if table else "qqqqqqqqqqqq = 1\n")
        _, _, names = str(error.found).partition("known are ")
        assert names, error
        yield from ((table, name) for name in names.split(", "))
    yield from (("judgments", name) for name in ("files", *ANNOTATORS.names()))
    yield from (("grades", name) for name in ("files", *GRADERS.names()))
    yield from (("answers", field.name) for field in fields(AnswerConfig) if field.name != "task")
    yield ("answers", "model")


def test_every_key_is_read(tmp_path: Path) -> None:
    space = read(tmp_path, EVERYTHING)
    assert (space.title, space.seed, space.k, space.limit) == ("Isles", 7, 3, 20)
    assert space.model == ModelSpec("hf:NAME", {"device": "cuda"})
    assert space.collection == CollectionConfig(
        "beir:whole",
        "queries.jsonl",
        "passages.csv",
        "answers.jsonl",
        "sub.jsonl",
        ("a.txt", "trec:b.tsv"),
        "ratings.txt",
    )
    assert dict(space.systems) == {
        "bm25": 'bm25(stopwords="english") % 5',
        "turned": "bm25 % 5 >> reversed",
        "my dense": 'run("runs/a \\"b\\".run")',
    }
    asked = ModelSpec("openai:NAME@http://localhost:8000")
    assert dict(space.judgments) == {"abstention": TaskConfig(), "ratings": TaskConfig({"keep_cut": True}, asked)}
    assert space.judged == ("judgments.csv",)
    writing = AnswerConfig(TaskConfig({"length": 64}, ModelSpec("gguf:m.gguf", {"threads": 2})), True, True, True)
    assert space.answers == writing
    assert dict(space.grades) == {
        "deterministic": TaskConfig({"citations": False}),
        "judge": TaskConfig({}, ModelSpec("embedded")),
    }
    assert (space.graded, space.metrics, space.baseline) == (("outcomes.csv",), ("UDCG@5", "nDCG@5"), "bm25")
    assert space.budget == BudgetConfig(10, 0, 5.0, (0.15, 1.0))
    assert (space.results, space.store, space.cache, space.prompts) == ("out", "s.sqlite", "c", "p")


def test_what_is_not_there_has_its_default(tmp_path: Path) -> None:
    folder = tmp_path / "Marrowen"
    folder.mkdir()
    space = read(folder, "")
    assert space.title == "Marrowen"
    made = config.Workspace(folder / "ragworth.toml", title="Marrowen")
    assert space == made
    assert (made.seed, made.k, made.limit, made.model) == (0, 5, None, ModelSpec("embedded"))
    assert (made.results, made.store, made.cache, made.prompts) == ("results", "calls.sqlite", ".ragworth", None)


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("", None),
        ("answers = false", None),
        ("answers = true", AnswerConfig()),
        ("[answers]", AnswerConfig()),
        ('[answers]\nfile = "a.csv"', AnswerConfig(file="a.csv")),
    ],
)
def test_answers_are_written_read_or_neither(tmp_path: Path, text: str, answers: AnswerConfig | None) -> None:
    assert read(tmp_path, text).answers == answers


def test_paths_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    space = read(tmp_path, "")
    assert space.folder == tmp_path
    assert space.path("a/b.txt") == tmp_path / "a/b.txt"
    assert space.path("/else/where") == Path("/else/where")
    assert space.spec("queries.jsonl") == str(tmp_path / "queries.jsonl")
    assert space.spec("beir:sub/folder") == f"beir:{tmp_path}/sub/folder"
    assert space.spec("ir_datasets:vaswani") == "ir_datasets:vaswani"
    assert space.spec("./my:file.txt") == f"{tmp_path}/my:file.txt"


def test_a_file_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('title = "Other"')
    assert config.read(tmp_path / "other.toml").title == "Other"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("sed = 1", 1, "there is no 'sed'; did you mean 'seed'?"),
        ("\n[collection]\nquerys = 'a'", 3, "[collection] has no 'querys'; did you mean 'queries'?"),
        ("[systems]\na = {rum = 'x'}", 2, "[systems.a] has no 'rum'; did you mean 'run'?"),
        ("[metrics]\n\nuses = []", 3, "did you mean 'use'?"),
        ("[budget]\nzzzzzz = 1", 2, "[budget] has no 'zzzzzz'; known are calls, tokens, cost, price"),
        ("[paths]\nresult = 'r'", 2, "did you mean 'results'?"),
        ("title = 3", 1, "title is 3, not a valid string"),
        ("title = ''", 1, "title is '': string should have at least 1 character"),
        ("seed = -1", 1, "seed is -1, not greater than or equal to 0"),
        ("seed = true", 1, "seed is True, not a valid integer"),
        ("k = 0", 1, "k is 0, not greater than or equal to 1"),
        ("k = 2.5", 1, "k is 2.5, not a valid integer"),
        ("limit = 0", 1, "limit is 0, not greater than or equal to 1"),
        ("model = 3", 1, "model is 3, not the name of a model or a table"),
        ("model = ''", 1, "model is '', not the name"),
        ("[model]\nuse = 3", 2, "model.use is 3, not a valid string"),
        ("metrics = 3", 1, "metrics is 3, not a table"),
        ("paths = []", 1, "paths is [], not a table"),
        ("judgments = true", 1, "judgments is True, not a table"),
        ("'a.b' = 1", 1, "there is no 'a.b'"),
        ("whole = 'x'", 1, "there is no 'whole'"),
        ("file = 'y'", 1, "there is no 'file'"),
        ("[judgments]\nratings = {expensive = true}", 2, "is True, not a table with model and sample, or with file"),
        ("collection = 'beir:x'", 1, "collection is 'beir:x', not a table"),
        ("[collection]\nqueries = ['a']", 2, "collection.queries is ['a'], not a valid string"),
        ("[collection]\nqrels = [1]", 2, "collection.qrels is [1], not a valid string"),
        ("[collection]\nqrels = 1", 2, "collection.qrels is 1, not a text or a list of texts"),
        ("[systems]\nbm25 = 5", 2, "systems.bm25 is 5, not a text or a list of texts"),
        ("[systems]\nbm25 = ''", 2, "systems.bm25 is '': string should have at least 1 character"),
        ("[systems]\nbm25 = ['a', '']", 2, "systems.bm25 is ['a', '']: string should have at least 1 character"),
        ("[systems]\na = {run = 4}", 2, "systems.a.run is 4, not a valid string"),
        ("[judgments]\nabstention = 'yes'", 2, "judgments.abstention is 'yes', not true, false or a table"),
        ("[judgments]\nratings = {model = 4}", 2, "judgments.ratings.model is 4, not the name of a model"),
        ("[judgments.ratings]\nhow = 'auto'\nmodel = 4", 3, "judgments.ratings.model is 4"),
        ("[judgments]\nfiles = 4", 2, "judgments.files is 4, not a text or a list of texts"),
        ("answers = 'all'", 1, "answers is 'all', not true, false or a table of settings"),
        ("[answers]\nwithout = 'yes'", 2, "answers.without is 'yes', not a valid boolean"),
        ("[answers]\neverything = 1", 2, "answers.everything is 1, not a valid boolean"),
        ("[answers]\nfile = 'a.csv'\nlength = 3", 2, "answers that come from a file have no other settings"),
        ("[answers]\nfile = 'a.csv'\nmodel = 'embedded'", 2, "answers that come from a file"),
        ("[grades]\njudge = 1", 2, "grades.judge is 1, not true, false or a table"),
        ("[systems]\na = 'bm25'\n[metrics]\nbaseline = 'b'", 4, "the baseline 'b' is no system; there are a"),
        ("[metrics]\nuse = 1", 2, "metrics.use is 1, not a text or a list of texts"),
        ("[budget]\ncalls = -1", 2, "budget.calls is -1, not greater than or equal to 0"),
        ("[budget]\ncost = '5'", 2, "budget.cost is '5', not a valid number"),
        ("[budget]\nprice = 5", 2, "budget.price is 5, not a list of two numbers"),
        ("[budget]\nprice = [5]", 2, " not a list of two numbers: for a million"),
        ("[budget]\nprice = [5, true]", 2, " not a list of two numbers: for a million"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    error = refused(tmp_path, text)
    assert words in error.found
    assert (error.file, error.line, error.more) == (str(tmp_path / "ragworth.toml"), line, ())


def test_all_problems_are_told_together_in_the_order_of_the_file(tmp_path: Path) -> None:
    error = refused(
        tmp_path, "[metrics]\nbaseline = 1\n[paths]\nstore = ''\n[budget]\ntoken = 3\n[collection]\nx = 1\n"
    )
    assert (error.line, error.found) == (2, "metrics.baseline is 1, not a valid string")
    assert [each[:8] for each in error.more] == ["line 4: ", "line 6: ", "line 8: "]
    assert "did you mean 'tokens'?" in str(error)


def test_long_values_are_cut(tmp_path: Path) -> None:
    error = refused(tmp_path, f"seed = '{'x' * 500}'")
    assert len(error.found) < 100


def test_what_is_no_toml_is_said_with_its_line(tmp_path: Path) -> None:
    error = refused(tmp_path, 'title = "a"\nseed = = 3\n')
    assert isinstance(error, FormatError)
    assert "it is not valid TOML" in error.found
    assert error.line == 2
    assert "it is not valid TOML" in refused(tmp_path, "k = 1\nk = 2\n").found


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"no such file(.|\n)*ragworth init {re.escape(str(tmp_path))}"):
        config.read(tmp_path)
    (tmp_path / "ragworth.toml").write_bytes(b'title = "\xff"')
    with pytest.raises(FormatError, match="no text in UTF-8"):
        config.read(tmp_path)


def test_the_page_and_the_template_name_every_key(tmp_path: Path) -> None:
    sections = dict(re.findall(r"^## `?\[?([\w -]+?)\]?`?\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
    tables: dict[str, str] = {"": ""}
    for line in template_text(judging_kinds()).splitlines():
        if head := re.match(r"(?:# )?\[(\w+)\]$", line):
            tables[head[1]] = ""
        else:
            tables[list(tables)[-1]] += f"{line}\n"
    keys = list(known_keys(tmp_path))
    assert len(keys) > 40
    for table, key in keys:
        if key in {name for name in tables if name}:
            assert f"[{key}]" in PAGE
            continue
        place = table.partition(".")[0]
        assert f"`{key}`" in sections[place or "Top-level keys"], f"{table}.{key} is not on the page"
        assert re.search(rf"^# {key} = |{{{key} = ", tables[place], re.M), f"{table}.{key} is not in the template"


def test_the_example_of_the_page_is_a_file(tmp_path: Path) -> None:
    example, *_ = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    space = read(tmp_path, example)
    assert {"bm25", "dense"} <= set(space.systems)
    assert space.budget.price is not None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[systems]\nx = []", 2, "systems.x: this system has no steps and no file"),
        ("[systems]\nx = {}", 2, "systems.x: this system has no steps and no file"),
        ('[systems]\n"" = "bm25"', 1, "the name of a system is empty"),
        ('[systems]\na = "bm25"\nA = "bm25"', 3, "the systems 'a' and 'A' differ only in case or spaces"),
        ("[budget]\ncost = -1", 2, "budget.cost is -1, not greater than or equal to 0"),
        ("[budget]\ncost = nan", 2, "budget.cost is nan"),
        ("[budget]\nprice = [1, -2]", 2, " not a list of two numbers: for a million"),
        ('[answers]\nfile = "a.csv"\neverything = true', 2, "have no other settings"),
    ],
)
def test_what_says_nothing_or_cannot_be_is_refused(tmp_path: Path, text: str, line: int, words: str) -> None:
    error = refused(tmp_path, text)
    assert words in error.found
    assert error.line == line


def test_only_judgments_and_grades_have_files(tmp_path: Path) -> None:
    space = read(tmp_path, '[systems]\nfiles = "bm25"\n[judgments]\nx = true\nfiles = "a.csv"\n[grades]\nfiles = []')
    assert dict(space.systems) == {"files": "bm25"}
    assert (dict(space.judgments), space.judged) == ({"x": TaskConfig()}, ("a.csv",))
    assert (dict(space.grades), space.graded) == ({}, ())


def test_problems_that_only_show_together_are_reported_with_the_others(tmp_path: Path) -> None:
    error = refused(tmp_path, 'k = 0\n[answers]\nfile = "a"\nlength = 3\n[paths]\nstore = "../s"\n')
    assert "k is 0" in error.found
    assert "line 3: answers that come from a file" in error.more[0] and "paths.store" in error.more[1]


def test_a_baseline_may_be_one_of_the_systems_in_a_file(tmp_path: Path) -> None:
    assert read(tmp_path, '[systems]\n"*" = {run = "r.parquet"}\n[metrics]\nbaseline = "b"').baseline == "b"


def test_a_mark_of_byte_order_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / config.WORKSPACE_FILE).write_bytes(b'\xef\xbb\xbftitle = "x"')
    assert config.read(tmp_path).title == "x"
