"""Tokens: words by default, or those of any tokenizer, with the unit in the result."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import ragworth
from ragworth.cli import main
from ragworth.core.errors import InputError
from ragworth.data.collection import Collection
from ragworth.data.tokens import WORD_UNIT, token_counter
from ragworth.results import Results

tokenizers = pytest.importorskip("tokenizers")

PASSAGES = {"passage": ["a", "b"], "text": ["one two three, four", "five"]}
TEXTS = Collection.of(passages=PASSAGES)
RATINGS = "query,passage,subquestion,value\nq,a,s,5\nq,b,s,5\n"


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    """A tokenizer whose tokens are single characters."""
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0}, unk_token="?"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("."), behavior="isolated")
    (tmp_path / "letters").mkdir()
    inner.save(str(tmp_path / "letters" / "tokenizer.json"))
    return tmp_path / "letters" / "tokenizer.json"


def test_words() -> None:
    assert token_counter().count("one two three, four") == 5
    assert token_counter("words").name == WORD_UNIT


def test_a_tokenizer(letters: Path) -> None:
    for place in (letters, letters.parent):
        counter = token_counter(f"hf:{place}")
        assert (counter.name, counter.count("one two")) == ("tokens of letters/tokenizer.json", 7)
    counted = ragworth.Tokens.of(TEXTS.counting(f"hf:{letters}").tokens())
    assert counted.frame["tokens"].to_list() == [19, 4]
    assert counted.counter == "tokens of letters/tokenizer.json"
    assert ragworth.Tokens.of(TEXTS.tokens()).counter == WORD_UNIT


@pytest.mark.parametrize("text", ["characters", "hf:", "tiktoken:", "hf:nowhere/tokenizer.json"])
def test_unknown(text: str) -> None:
    with pytest.raises(InputError, match=r"counts no tokens|can't be read") as error:
        token_counter(text)
    assert error.value.expected == "words, hf:PATH/tokenizer.json or tiktoken:NAME"


def test_density(letters: Path) -> None:
    # a is required; b answers as much with 4 of its 19 characters, or with 1 of its 5 words.
    contexts = pl.DataFrame({"query": ["q"], "passage": ["b"], "rank": [1]})
    ratings = pl.DataFrame({"query": ["q", "q"], "passage": ["a", "b"], "subquestion": ["s", "s"], "value": [5, 5]})
    for tokens, ratio, unit in ((f"hf:{letters}", 19 / 4, "letters/tokenizer.json"), ("words", 5, WORD_UNIT)):
        scores = ragworth.score(contexts, None, "Den(w=1)", ratings=ratings, tokens=TEXTS.counting(tokens).tokens())
        assert scores.frame["value"].to_list() == pytest.approx([ratio])
        assert any(note.startswith("tokens counted by:") and note.endswith(unit) for note in scores.notes)


def test_the_command_line(letters: Path, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q Q0 b 1 1.0 x\n")
    (tmp_path / "ratings.csv").write_text(RATINGS)
    pl.DataFrame(PASSAGES).write_csv(tmp_path / "passages.csv")
    files = [str(tmp_path / "run"), "-r", str(tmp_path / "ratings.csv"), "-p", str(tmp_path / "passages.csv")]
    found = CliRunner().invoke(main, ["score", *files, "-m", "Den(w=1)", "--tokens", f"hf:{letters}", "-f", "csv"])
    assert found.exit_code == 0, found.output
    assert re.search(r"\b4\.75\b", found.stdout)
    assert "tokens counted by: tokens of letters/tokenizer.json" in found.stderr


@pytest.mark.usefixtures("whole_report")
def test_a_workspace_counts_passages_once_and_keeps_the_lengths(letters: Path, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q Q0 b 1 1.0 x\n")
    (tmp_path / "ratings.csv").write_text(RATINGS)
    pl.DataFrame(PASSAGES).write_csv(tmp_path / "passages.csv")
    (tmp_path / "ragworth.toml").write_text(
        '[collection]\npassages = "passages.csv"\nratings = "ratings.csv"\ntokens = "hf:letters/tokenizer.json"\n'
        '[systems]\nx = {run = "run"}\n[metrics]\nuse = ["Den(w=1)"]\n'
    )
    made = ragworth.evaluate(tmp_path)
    assert made.results is not None
    assert made.results.scores.frame["value"].to_list() == pytest.approx([19 / 4])
    back = Results.read(tmp_path / "results")
    assert back.collection.tokens()["counter"].unique().to_list() == ["tokens of letters/tokenizer.json"]
    report = (tmp_path / "results" / "report.md").read_text(encoding="utf-8")
    assert "tokens of letters/tokenizer.json" in report


def test_a_wrong_tokenizer_is_a_problem_of_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q Q0 b 1 1.0 x\n")
    pl.DataFrame(PASSAGES).write_csv(tmp_path / "passages.csv")
    (tmp_path / "ragworth.toml").write_text(
        '[collection]\npassages = "passages.csv"\ntokens = "hf:no.json"\n[systems]\nx = {run = "run"}\n'
    )
    with pytest.raises(InputError, match=r"tokenizer can't be read"):
        ragworth.evaluate(tmp_path)


def test_more_passages_are_counted_too(letters: Path) -> None:
    known = TEXTS.counting(f"hf:{letters}")
    more = known.with_passages(pl.DataFrame({"passage": ["c"], "text": ["six"]}))
    assert more.tokens()["tokens"].to_list() == [19, 4, 3]
    assert more.counting("words").tokens()["tokens"].to_list() == [5, 1, 1]
