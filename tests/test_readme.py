"""What README, tutorial and how-tos show is true: commands and Python run, settings are read, numbers and links hold.

Models are stood in for, so that everything runs without weights; what the embedded model itself is asked is at the end.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from ragworth.cli import main
from ragworth.judging import ANNOTATORS, GRADERS
from ragworth.llm import MODELS
from ragworth.llm.contract import Choose, Generate, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.retrieval import Pipeline
from ragworth.workspace import config

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PAGES = [
    "README.md",
    *(f"docs/{name}.md" for name in ("README", "tutorial", "why")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "howto").glob("*.md")),
]


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}-{self.number}"


def blocks(language: str) -> list[Block]:
    """All blocks of one language on all pages."""
    found = []
    for page in PAGES:
        parts = re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
        found += [Block(page, number, text) for number, text in enumerate(parts)]
    return found


TUTORIAL = [block for block in blocks("(?:sh|toml)") if block.page == "docs/tutorial.md"]
SHELL = [block for block in blocks("sh") if block.page != "docs/tutorial.md"]
LONG_COMMANDS = re.compile(r"ragworth (evaluate|study|train|compare main=|estimate results)")
(JUDGING,) = [block for block in SHELL if "annotate confidence" in block.text]


# Models that answer without weights.


def said(request: Request) -> ScriptedReply:
    """Some probability or text, the same for the same request."""
    share = hashlib.sha256(repr(request.prompt).encode()).digest()[0] / 256
    if isinstance(request, Choose):
        first, *rest = request.labels
        return {first: 0.1 + 0.7 * share} | {label: 0.1 / len(rest) for label in rest}
    return ("NO-RESPONSE" if share < 0.5 else "18:40") if isinstance(request, Generate) else -0.5


def steady(rest: str, **options: object) -> Scripted:
    """Says the same of every context, so that no system is worse than another by what it says."""

    def same(request: Request) -> ScriptedReply:
        if isinstance(request, Choose):
            first, *rest = request.labels
            return {first: 0.4} | {label: 0.5 / len(rest) for label in rest}
        return "18:40" if isinstance(request, Generate) else -0.5

    return Scripted(same, name="stand-in")


def reader(rest: str, **options: object) -> Scripted:
    """Stands in for every kind of model, whatever its name and options."""
    return Scripted(said, name="stand-in")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("embedded", "gguf", "hf", "openai"):
        monkeypatch.setitem(MODELS._loaded, kind, reader)


# Files that the pages name.


def scoring(folder: Path) -> None:
    """Runs, labels and judgments, with the same runs as ``old`` and ``new``."""
    example = EXAMPLES / "scoring"
    for name in ("bm25", "dense", "rerank"):
        shutil.copy(example / "runs" / f"{name}.run", folder)
    shutil.copy(folder / "bm25.run", folder / "old.run")
    shutil.copy(folder / "rerank.run", folder / "new.run")
    for name in ("qrels.txt", "abstention.csv", "ratings.txt"):
        shutil.copy(example / name, folder)
    passages = [line.split(",")[0] for line in (example / "passages.csv").read_text().splitlines()[1:]]
    (folder / "corpus.jsonl").write_text("".join(f'{{"_id": "{p}", "text": "a few words"}}\n' for p in passages))
    pairs = '{"query": "Who built the mill?", "passage": "Ann built the mill in 1820."}\n'
    (folder / "pairs.jsonl").write_text(pairs)


def judging(folder: Path) -> None:
    """Texts, and what two systems show."""
    for name in ("contexts.jsonl", "qrels.txt", "ratings.txt", "report.jsonl", "subquestions.jsonl"):
        shutil.copy(EXAMPLES / "judging" / name, folder)


def help_desk(folder: Path, number: int = 4) -> None:
    """A few questions over the passages of the demo, without settings."""
    folder.mkdir()
    for name in ("passages.jsonl", "qrels.txt"):
        shutil.copy(EXAMPLES / "demo" / name, folder)
    lines = (EXAMPLES / "demo" / "queries.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    questions = [line for line in lines if json.loads(line)["_id"].startswith("q")]
    (folder / "queries.jsonl").write_text("".join(questions[:number]), encoding="utf-8")


TEXTS = '[collection]\nqueries = "queries.jsonl"\npassages = "passages.jsonl"\nanswers = "queries.jsonl"\n'
LABELS = "query,passage,relevance\nq1,p1a,2\nq1,p1b,0\nq2,p2a,1\nq3,p3a,1\nq4,p4a,1\nq5,p5a,1\nq6,p6a,1\n"
ANSWERS = "system,query,text\nplain,q1,Edda Thornquist\nplain,q2,1938\ncareful,q1,Edda Thornquist\ncareful,q2,1964\n"
GRADES = "system,query,aspect,value\nplain,q1,help,4\nplain,q2,help,2\ncareful,q1,help,5\ncareful,q2,help,4\n"


def workspaces(folder: Path, block: Block) -> None:
    """The workspaces that a block names, with the settings of its page where it has some."""
    settings = [other.text for other in blocks("toml") if other.page == block.page != "README.md"]
    if "help-desk" in block.text:
        help_desk(folder / "help-desk", 30 if "train" in block.text else 4)
        if "init help-desk" not in block.text:
            own = settings[0] if settings else ""
            systems = 'qrels = "qrels.txt"\n[systems]\nbm25 = "bm25 % 5"\nrandom = "random % 5"\n'
            top, head, rest = own.partition("\n[")
            (folder / "help-desk" / "ragworth.toml").write_text(top + "\n" + TEXTS + systems + head + rest)
    if " log.jsonl" in block.text:
        shutil.copy(EXAMPLES / "judging" / "contexts.jsonl", folder / "log.jsonl")
    if " labelled" in block.text:
        (folder / "labelled").mkdir()
        shutil.copy(EXAMPLES / "judging" / "contexts.jsonl", folder / "labelled")
        files = {"labels.csv": LABELS, "answers.csv": ANSWERS, "grades.csv": GRADES, "ragworth.toml": settings[0]}
        for name, text in files.items():
            (folder / "labelled" / name).write_text(text)
    if " gate" in block.text:
        gate(folder / "gate")
    if "old/results" in block.text:
        for name in ("old", "new"):
            gate(folder / name)
            run(f"ragworth evaluate {name}")
    if "estimate results" in block.text:
        gate(folder / "w")
        run("ragworth evaluate w")
        shutil.move(folder / "w" / "results", folder / "results")
        labels = "".join(f"{system},q0{n},{n % 2}\n" for system in ("old", "new") for n in (1, 2, 3))
        (folder / "human.csv").write_text(f"system,query,human\n{labels}")


def gate(folder: Path) -> None:
    """A workspace with the system that is deployed, and a new one."""
    help_desk(folder)
    systems = 'qrels = "qrels.txt"\n[systems]\nold = "bm25 % 5"\nnew = \'bm25(stemmer="english") % 5\'\n'
    rest = "[judgments]\nabstention = true\n[answers]\n[grades]\ndeterministic = true\n"
    (folder / "ragworth.toml").write_text(TEXTS + systems + rest)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str) -> str:
    """Run one line of a shell block; what it prints."""
    words = shlex.split(line, comments=True)
    if not words or words[0] in ("make", "pip", "pytest", "git"):
        return ""
    if words[0] != "ragworth":
        subprocess.run(line, shell=True, check=True, timeout=60)
        return ""
    if "evaluate" in words or "check" in words:
        for package in ("bm25s", "Stemmer", "altair", "vl_convert"):
            pytest.importorskip(package)
    words, target = (words[:-2], words[-1]) if ">" in words else (words, None)
    result = CliRunner().invoke(main, words[1:])
    assert result.exit_code == 0, f"{line}: {result.stderr}"
    if target is not None:
        Path(target).write_text(result.stdout, encoding="utf-8")
    return result.stdout


def timed(block: Block) -> Any:
    """A block as a parameter; one that evaluates or studies takes seconds."""
    return pytest.param(block, id=str(block), marks=[pytest.mark.slow] if LONG_COMMANDS.search(block.text) else [])


@pytest.mark.parametrize("block", [timed(block) for block in SHELL])
def test_commands_run(block: Block, folder: Path, stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other: each may read what those before it wrote."""
    if "ragworth evaluate gate" in block.text:  # whose last command fails if the new system is worse
        monkeypatch.setitem(MODELS._loaded, "embedded", steady)
    scoring(folder)
    if "contexts.jsonl" in block.text:
        judging(folder)
    workspaces(folder, block)
    for line in block.text.splitlines():
        run(line)


@pytest.mark.parametrize("block", [block for block in blocks("python") if block.page != "docs/why.md"], ids=str)
def test_python_runs(block: Block, folder: Path, stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    scoring(folder)
    shutil.copy(EXAMPLES / "judging" / "contexts.jsonl", folder)
    (folder / "examples").symlink_to(EXAMPLES)
    workspaces(folder, block)
    if "evaluation.json" in block.text:
        gate(folder / "gate")
        monkeypatch.setitem(MODELS._loaded, "embedded", steady)
        run("ragworth evaluate gate --json > evaluation.json")
    if "evaluate(" in block.text:
        for package in ("bm25s", "altair", "vl_convert"):
            pytest.importorskip(package)
    names: dict[str, object] = {"print": lambda *_: None}
    exec(block.text, names)
    assert {"scores", "answer", "found", "test_answers"} & set(names)


@pytest.mark.parametrize("block", [block for block in blocks("toml") if block.page != "docs/tutorial.md"], ids=str)
def test_settings_are_read(block: Block, folder: Path) -> None:
    (folder / "ragworth.toml").write_text(block.text, encoding="utf-8")
    space = config.read(folder)
    assert all(Pipeline.of(each).complete() for each in space.systems.values())
    assert all(kind in ANNOTATORS for kind in space.judgments)
    assert all(kind in GRADERS for kind in space.grades)
    assert space.model.use.partition(":")[0] in MODELS


# Numbers on the pages that no model has a part in.


def rows(text: str, columns: tuple[int, ...], pattern: str) -> dict[str, tuple[str, ...]]:
    """Of each row of a table on a page: the system, and the first number of some columns."""
    found = {}
    for line in text.splitlines():
        cells = [cell for cell in re.split(pattern, line.strip()) if cell]
        if len(cells) > max(columns) and re.match(r"[\d.]+", cells[columns[0]]):
            found[cells[0].strip("| ")] = tuple(re.findall(r"[\d.]+", cells[column])[0] for column in columns)
    return found


@pytest.mark.slow
def test_the_tutorial_from_its_first_command_to_its_last(folder: Path, stand_in: None) -> None:
    (folder / "examples").symlink_to(EXAMPLES)
    shown: dict[str, tuple[str, ...]] = {}
    for block in TUTORIAL:
        if block.text.startswith("[systems]"):
            file = folder / "help-desk" / "ragworth.toml"
            settings = file.read_text(encoding="utf-8")
            assert settings.count("\n[systems]\n") == 1
            file.write_text(settings.replace("[systems]\n", block.text, 1), encoding="utf-8")
            continue
        for line in block.text.splitlines():
            output = run(line)
            if "--limit 20" in line:
                shown |= rows(output, (4, 5), r"\s{2,}")
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    told = rows(page, (4, 5), r"\s{2,}")
    assert set(told) == {"oracle", "stemmed", "bm25", "reversed", "few", "random", "adversary"}
    assert told == shown


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with ``examples/demo`` in it, evaluated by the model that stands in."""
    folder = tmp_path_factory.mktemp("demo")
    made = shutil.ignore_patterns("results", ".*", "calls*")
    shutil.copytree(EXAMPLES / "demo", folder / "examples" / "demo", ignore=made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MODELS._loaded, "embedded", reader)
        patch.chdir(folder)
        run("ragworth evaluate examples/demo --quiet --json > evaluation.json")
    yield folder


@pytest.mark.parametrize(("page", "column"), [("README.md", 2), ("docs/why.md", 2)])
def test_the_demos_table_is_that_of_its_retrieval(page: str, column: int, demo: Path) -> None:
    """nDCG needs no model, so a change of the demo's texts, labels or systems shows here."""
    found = json.loads((demo / "evaluation.json").read_text(encoding="utf-8"))
    expected = {each["system"]: (f"{each['metrics']['nDCG@5']['mean']:.3f}",) for each in found["systems"]}
    text, _, _ = (ROOT / page).read_text(encoding="utf-8").partition("## Where the numbers come from")
    told = rows(text, (column,), r"\s*\|\s*")
    assert {system: numbers for system, numbers in told.items() if system in expected} == expected


def test_readme_and_explanation_tell_the_same_of_the_demo() -> None:
    readme = rows((ROOT / "README.md").read_text(encoding="utf-8"), (2, 3, 4, 5), r"\s*\|\s*")
    why = rows((ROOT / "docs" / "why.md").read_text(encoding="utf-8"), (2, 3, 4, 6), r"\s*\|\s*")
    assert {"oracle", "bm25", "reordered", "random", "adversary"} <= set(readme)
    assert all(why[system] == numbers for system, numbers in readme.items())


def test_the_explanations_python_runs(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which passages are shown, and so judged, no model decides; what it makes of them is not looked at."""
    monkeypatch.chdir(demo)
    (block,) = [block for block in blocks("python") if block.page == "docs/why.md"]
    printed: list[Any] = []
    exec(block.text, {"print": printed.append})
    kinds, changed = printed
    page = (ROOT / block.page).read_text(encoding="utf-8")
    told = re.findall(r"^\| ([a-z ]+): .*?\| [01] \| (\d+) \|", page, re.MULTILINE)
    assert {kind.replace(" ", "-"): int(n) for kind, n in told} == dict(zip(kinds["kind"], kinds["len"], strict=True))
    assert changed["count"].sum() == 34


def test_the_table_of_differences_is_printed(folder: Path) -> None:
    scoring(folder)
    page = (ROOT / "docs" / "howto" / "ci.md").read_text(encoding="utf-8")
    (line,) = re.findall("^ragworth .*bm25.run dense.run rerank.run$", page, re.MULTILINE)
    (table,) = re.findall(r"```\n(metric .*?)```", page, re.DOTALL)
    assert table in run(line)


# What the embedded model is asked.


@pytest.mark.model
def test_judging_and_grading_with_the_embedded_model(folder: Path) -> None:
    judging(folder)
    contexts = folder / "contexts.jsonl"
    lines = contexts.read_text(encoding="utf-8").splitlines(keepends=True)
    some = [line for line in lines if json.loads(line)["query_id"] == "q1"]
    contexts.write_text("".join(some), encoding="utf-8")
    for line in JUDGING.text.splitlines():
        run(line)
    assert (folder / "grades.parquet").exists()
