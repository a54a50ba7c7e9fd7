"""``ragworth chunk``, as somebody at a terminal meets it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ragworth
from ragworth.cli.chunk import command
from ragworth.core.errors import FormatError, InputError, JobStopped
from ragworth.formats import texts

ROWS = [
    {"_id": "a", "title": "Mills", "text": "Ann built the mill. It burnt down.\u2028It was built again. Twice."},
    {"_id": "b", "text": "Brot wird nachts gebacken."},
    {"_id": "c", "text": " "},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)
    (tmp_path / "documents.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq1 0 b 0\n")
    return tmp_path


def call(folder: Path, *arguments: str) -> Result:
    given = [
        str(folder / each) if each.endswith((".jsonl", ".txt", ".parquet", ".csv")) else each for each in arguments
    ]
    return CliRunner().invoke(command, given, catch_exceptions=False)


def read(path: Path) -> dict[str, str]:
    """The passages as an evaluation reads them."""
    return dict(texts.read(path, "passages").passages.iter_rows())


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".csv"])
def test_what_is_written_is_what_python_gives(folder: Path, ending: str) -> None:
    given = ["--by", "sentences", "--size", "2", "--overlap", "1"]
    result = call(folder, "documents.jsonl", "-o", f"passages{ending}", *given)
    assert result.exit_code == 0
    assert result.stdout.startswith("4 passages of 2 documents, 5 to 9 words and marks, 8 on average: ")
    assert "note: 1 document without a text left out ('c')" in result.stderr
    made = ragworth.chunk(folder / "documents.jsonl", "sentences", 2, 1)
    assert read(folder / f"passages{ending}") == dict(made.frame.select("passage", "text").iter_rows())


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_two_chunkings_in_one_file(folder: Path, ending: str) -> None:
    both = [f"passages{ending}", "-q", "qrels.txt", "--labels", "labels.txt", "--by", "sentences"]
    for size, name in (("1", "small"), ("9", "large"), ("2", "small")):
        assert call(folder, "documents.jsonl", "-o", *both, "--size", size, "--name", name, "--add").exit_code == 0
    made = read(folder / f"passages{ending}")
    assert [key.partition("@")[2] for key in made] == ["large", "large", "small", "small", "small"]
    labels = ragworth.read_judgments(folder / "labels.txt").frame
    assert set(labels["passage"]) == set(made)
    assert labels.filter(passage="a:0-61@large")["value"].to_list() == [1.0]
    call(folder, "documents.jsonl", "-o", f"passages{ending}", "--name", "alone", "--quiet")
    assert {key.partition("@")[2] for key in read(folder / f"passages{ending}")} == {"alone"}


def test_sizes_are_told_in_the_tokens_that_were_counted(folder: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    # Each sign is a token, and blanks are none.
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    signs = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"\S"), "isolated")
    model.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([tokenizers.pre_tokenizers.WhitespaceSplit(), signs])
    model.save(str(folder / "tokenizer.json"))
    (folder / "few.jsonl").write_text('{"_id": "a", "text": "one three"}\n')
    result = call(
        folder, "few.jsonl", "-o", "passages.jsonl", "--by", "tokens", "--size", "5", "--tokenizer", str(folder)
    )
    assert result.stdout.startswith("2 passages of 1 document, 3 to 5 tokens, 4 on average: ")


def test_nothing_but_blanks_is_told(folder: Path) -> None:
    (folder / "blank.jsonl").write_text('{"_id": "a", "text": " "}\n{"_id": "b", "text": ""}\n')
    with pytest.raises(JobStopped, match="there is not one passage: no document has a text"):
        call(folder, "blank.jsonl", "-o", "passages.jsonl", "--quiet")


def test_nothing_that_is_read_is_written_over(folder: Path) -> None:
    plain = str(shutil.copy(folder / "qrels.txt", folder / "relevance"))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "link.jsonl").symlink_to(folder / "documents.jsonl")
    relevance = ["-q", "qrels.txt", "--labels"]
    for given, words in (
        (["-o", "documents.jsonl"], "--output is the file of DOCUMENTS"),
        (["-o", "documents.jsonl", "--add"], "--output is the file of DOCUMENTS"),
        (["-o", "link.jsonl"], "--output is the file of DOCUMENTS"),
        (["-o", "passages.jsonl", *relevance, "qrels.txt"], "--labels is the file of --qrels"),
        (["-o", "passages.jsonl", "-q", f"trec:{plain}", "--labels", plain], "--labels is the file of --qrels"),
        (["-o", "passages.jsonl", *relevance, "documents.jsonl"], "--labels is the file of DOCUMENTS"),
        (["-o", "passages.jsonl", *relevance, "passages.jsonl"], "--output is the file of --labels"),
    ):
        with pytest.raises(InputError, match=words):
            call(folder, "documents.jsonl", *given)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if not path.is_symlink()} == before


def test_what_goes_wrong(folder: Path) -> None:
    with pytest.raises(InputError, match="--qrels and --labels go together"):
        call(folder, "documents.jsonl", "-o", "passages.jsonl", "-q", "qrels.txt")
    with pytest.raises(InputError, match="an overlap of 5 in passages of 5"):
        call(folder, "documents.jsonl", "-o", "passages.jsonl", "--size", "5", "--overlap", "5")
    assert not (folder / "passages.jsonl").exists()
    with pytest.raises(FormatError, match="it holds other things than passages"):
        (folder / "passages.jsonl").write_text('{"a": 1}\n')
        call(folder, "documents.jsonl", "-o", "passages.jsonl", "--add")
    result = call(folder, "documents.jsonl", "-o", str(folder / "passages.doc"))
    assert result.exit_code == 2 and "unknown file extension" in result.stderr
