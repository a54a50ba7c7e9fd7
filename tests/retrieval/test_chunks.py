"""Documents cut into passages: nothing lost, nothing cut in two, and ids that lead back."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import ragworth
from ragworth.core.errors import FormatError, InputError, TableError
from ragworth.data.tokens import WORD_PATTERN
from ragworth.retrieval.chunks import BLANK_LINE, chunk
from ragworth.retrieval.origins import Origin, in_chunking, origin
from ragworth.text_match.sentences import sentence_starts

TEXTS = st.text(st.sampled_from("aB. !?\n,漢字。กำé́👍🏽👨\u200d👩🇩🇪\u2028'\"1"), max_size=60)
UNITS = st.sampled_from(["words", "tokens", "sentences"])


def texts(document: str, **settings: Any) -> list[str]:
    return chunk({"document": ["d"], "text": [document]}, **settings).frame["text"].to_list()


@given(TEXTS, UNITS, st.integers(1, 6), st.data(), st.booleans())
def test_what_always_holds(text: str, by: Any, size: int, data: st.DataObject, paragraphs: bool) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    made = chunk({"id": ["a:1-2", "b"], "text": [text, "x"]}, by, size, overlap, paragraphs=paragraphs)
    mine = made.frame.filter(pl.col("document") == "a:1-2")
    covered = set()
    for row in mine.iter_rows(named=True):
        found = origin(row["passage"])
        assert found == Origin("a:1-2", row["start"], row["end"])
        assert row["text"] == found.of(text) == text[row["start"] : row["end"]] == row["text"].strip()
        assert row["text"]
        begins = not text[: row["start"]].strip() or (paragraphs and BLANK_LINE.search(text[: row["start"]] + "\0"))
        assert unicodedata.category(row["text"][0])[0] != "M" or begins
        covered |= set(range(row["start"], row["end"]))
    # Nothing but blanks is lost, and every passage has something that those before it lack.
    assert all(sign.isspace() for at, sign in enumerate(text) if at not in covered)
    assert mine["start"].is_sorted() and mine["end"].is_sorted()
    assert mine["end"].is_unique().all() and mine["start"].is_unique().all()
    if overlap == 0:
        assert all(end <= start for end, start in zip(mine["end"], mine["start"][1:], strict=False))
    if by == "tokens" and overlap == 0:
        # Outside of ASCII several tokens may be one sign, which stays whole.
        assert not text.isascii() or (mine["text"].str.count_matches(WORD_PATTERN) <= size).all()
    if paragraphs:
        assert not mine["text"].str.contains(r"\n[^\S\n]*\n").any()


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("a \n\x1c\x85\u0301\u200d")), UNITS, st.booleans())
@example("One two.\n\n\u0301Three four.", "sentences", True)
@example("One two.\n\n\x1cThree four.", "words", True)
def test_nothing_but_blanks_is_lost(text: str, by: Any, paragraphs: bool) -> None:
    assert signs("".join(texts(text, by=by, size=2, paragraphs=paragraphs))) == signs(text)


def signs(text: str) -> str:
    """A text without its blanks."""
    return "".join(text.split())


def test_by_words() -> None:
    assert texts("one two  three\nfour five", size=2) == ["one two", "three\nfour", "five"]
    assert texts("one two three four five", size=3, overlap=1) == ["one two three", "three four five"]
    assert texts("one two three four", size=3, overlap=2) == ["one two three", "two three four"]
    assert texts("one two", size=9) == ["one two"]
    assert texts("x" * 5000, size=1) == ["x" * 5000]
    assert texts("漢字 かな", size=2) == ["漢字", "かな"]


def test_what_is_repeated_leaves_room_for_something_new() -> None:
    # The last sign, of two tokens, does not fit behind the one that would be repeated.
    assert texts("1?!\u0301", by="tokens", size=2, overlap=1) == ["1?", "!\u0301"]


def test_by_the_tokens_of_a_model(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    pieces = {"[UNK]": 0, "mill": 1, "s": 2, "the": 3, "##s": 4}
    model = tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    model.enable_truncation(2)
    model.save(str(tmp_path / "tokenizer.json"))
    # the | mill ##s | the | mill
    expected = ["the mill", "s the", "mill"]
    for where in (tmp_path, tmp_path / "tokenizer.json"):
        assert texts("the mills the mill", by="tokens", size=2, tokenizer=str(where)) == expected
    with pytest.raises(InputError, match="no such tokenizer"):
        texts("x", by="tokens", tokenizer=str(tmp_path / "none.json"))
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(InputError, match=r"bad\.json: it cannot be read"):
        texts("x", by="tokens", tokenizer=str(tmp_path / "bad.json"))


def test_signs_that_a_tokenizer_drops_are_kept() -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    model.normalizer = tokenizers.normalizers.Replace("#", "")
    assert texts(" ##one # two#", by="tokens", size=1, tokenizer=model) == ["##one #", "two#"]
    assert texts(" ## #", by="tokens", size=1, tokenizer=model) == ["## #"]


@pytest.mark.parametrize(
    "parts",
    [
        ["It ends.", "Another one!", "Really?", "Yes…", "No."],
        ["Dr. Ann Lee met J. K. Rowling, e.g. in the U.S. last year.", "Then Fig. 3 was drawn."],
        ['"Stop!" he said.', "(She did.)", "“Well.”", "It cost 3.50 then."],
        ["1. First item.", "2. Second item."],
        ["第一句。", "第二句！", "「第三句。」", "おわり"],
        ["यह पहला है।", "यह दूसरा है।"],
        ["هل هذا سؤال؟", "نعم."],
        ["A title without an end\n\n", "And a text.", "It is. here no end"],
        ["The year was 1847.", "Then came 1848."],
    ],
)
def test_sentences(parts: list[str]) -> None:
    text = "".join(part if part.endswith(("\n", "。", "！", "」")) else f"{part} " for part in parts)
    starts = sentence_starts(text)
    assert [text[low:high].strip() for low, high in zip(starts, [*starts[1:], None], strict=True)] == [
        part.strip() for part in parts
    ]


def test_paragraphs() -> None:
    text = "One two.\n\nThree. Four.\r\n \r\nFive."
    assert texts(text, by="sentences", size=3) == ["One two.\n\nThree. Four.", "Five."]
    assert texts(text, by="sentences", size=3, paragraphs=True) == ["One two.", "Three. Four.", "Five."]


def test_titles_and_names() -> None:
    documents = {"_id": ["d", "e"], "title": ["On mills", None], "text": ["Ann built it.", "None."]}
    apart = chunk(documents)
    assert apart.frame["text"].to_list() == ["Ann built it.", "None."]
    assert apart.frame["document_title"].to_list() == ["On mills", ""]
    front = chunk(documents, titles="front", name="small")
    assert front.frame["passage"].to_list() == ["d:0-13+title@small", "e:0-5@small"]
    assert front.frame["text"].to_list() == ["On mills\nAnn built it.", "None."]
    found = origin("d:0-13+title@small")
    assert found == Origin("d", 0, 13, True, "small")
    assert found.of("Ann built it.", "On mills") == "On mills\nAnn built it."
    assert [origin("d"), origin("d:1"), origin(":1-2"), origin("d:1-2@")] == [None] * 4
    assert str(origin("https://x.org/a:b@c:3-4")) == "https://x.org/a:b@c:3-4"


def test_documents_without_a_text() -> None:
    made = chunk({"document": ["a", "b", "c"], "text": ["", " \n", "x"]})
    assert made.frame["document"].to_list() == ["c"]
    assert made.notes == ("2 documents without a text left out ('a', 'b')",)
    nothing = chunk({"document": ["a"], "text": [""]})
    assert nothing.frame.height == 0 and nothing.frame["start"].dtype == pl.Int64


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"by": "letters"}, "by is 'letters'; expected words, tokens, sentences"),
        ({"size": 0}, "size is 0 and overlap 0"),
        ({"size": -1}, "expected whole numbers, size from 1, overlap from 0"),
        ({"size": 2.5}, "size is 2.5"),
        ({"overlap": -1}, "overlap -1"),
        ({"size": 3, "overlap": 3}, "an overlap of 3 in passages of 3 never ends; expected 2 or less"),
        ({"overlap": 200}, "an overlap of 200 in passages of 200"),
        ({"titles": "back"}, "titles is 'back'"),
        ({"tokenizer": "embedded"}, "use it with tokens"),
        ({"name": "a b"}, "the name is 'a b'"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        texts("x", **settings)
    assert words in str(caught.value)


def test_documents_that_cannot_be() -> None:
    for data, words in (
        ({"document": ["a", "a"], "text": ["x", "y"]}, "row 2: the document 'a' occurs twice"),
        ({"document": ["a"], "text": [None]}, "row 1: column 'text' has no text"),
        ({"text": ["x"]}, "documents need an id and a text"),
        ({"document": ["a"], "text": [5]}, "the column 'text' has Int64 values"),
        ({"document": [""], "text": ["x"]}, "id is empty"),
    ):
        with pytest.raises(TableError, match=words):
            chunk(data)


def test_files(tmp_path: Path) -> None:
    rows = [{"_id": "d", "title": "T", "text": "one two"}, {"id": 7, "text": "three"}]
    lines = tmp_path / "documents.jsonl"
    lines.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    pl.DataFrame({"docno": ["d", "7"], "title": ["T", None], "text": ["one two", "three"]}).write_parquet(
        tmp_path / "documents.parquet"
    )
    both = [ragworth.chunk(path).frame for path in (lines, str(tmp_path / "documents.parquet"))]
    assert both[0].equals(both[1])
    assert both[0]["passage"].to_list() == ["d:0-7", "7:0-5"]
    lines.write_text('{"_id": "d"}\n')
    with pytest.raises(FormatError, match="line 1: no text; the line has _id"):
        chunk(lines)
    (tmp_path / "documents.doc").touch()
    for name, words in (("documents.doc", "unknown file extension"), ("documents.pdf", "no such file or folder")):
        with pytest.raises(FormatError, match=words):
            chunk(tmp_path / name)


def test_labels_of_documents() -> None:
    made = chunk({"document": ["a", "b"], "text": ["one two three", "four"]}, size=2)
    labels = made.labels({"q1": {"a": 2, "b": 0, "gone": 1}, "q2": {"b": 1}})
    assert labels.frame.select("query", "passage", "value").rows() == [
        ("q1", "a:0-7", 2.0),
        ("q1", "a:8-13", 2.0),
        ("q1", "b:0-4", 0.0),
        ("q2", "b:0-4", 1.0),
    ]
    assert labels.notes == ("1 labelled document without a passage ('gone')",)


IDS = st.from_regex(r"(d|:|@|\n|\+title|[0-9]|-|x²|s|@s|:1-2){1,8}", fullmatch=True)


@given(st.lists(IDS), st.sampled_from(["s", "x²"]))
@example(["d:0-4@s", "d:0-4+title@s", "mail@s", ":0-4@s", "d:0-4@ss", "d:0-4@s\n", "d:٠-٤@s", "a\n:0-4@s"], "s")
def test_ids_of_a_chunking(ids: list[str], name: str) -> None:
    found = in_chunking(pl.Series(ids, dtype=pl.String), name).to_list()
    assert found == [(place := origin(each)) is not None and place.name == name for each in ids]


def test_a_folder_of_documents(tmp_path: Path) -> None:
    (tmp_path / "sub dir").mkdir()
    (tmp_path / "sub dir" / "mill.md").write_text("# Mills\n\nAnn built **it**.", encoding="utf-8")
    (tmp_path / "bread.html").write_text("<title>Bread</title><p>Baked at night.</p>", encoding="utf-8")
    (tmp_path / "blank.txt").write_text(" \n", encoding="utf-8")
    (tmp_path / "table.xlsx").write_bytes(b"")
    made = chunk(tmp_path)
    assert made.frame.select("passage", "text", "document_title").rows() == [
        ("bread.html:0-15", "Baked at night.", "Bread"),
        ("sub dir/mill.md:0-20", "Mills\n\nAnn built it.", "Mills"),
    ]
    assert "1 file of other kinds left out (.xlsx 1)" in made.notes[0]
    assert made.notes[1] == "1 document without a text left out ('blank.txt')"
    assert chunk(tmp_path / "bread.html").frame["passage"].to_list() == ["bread.html:0-15"]


def test_a_missing_text_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text('{"_id": "a", "text": null}\n{"_id": "b", "text": "x"}\n', encoding="utf-8")
    for documents in (path, {"document": ["a", "b"], "text": [None, "x"]}):
        made = chunk(documents)
        assert made.frame["passage"].to_list() == ["b:0-1"]
        assert made.notes == ("1 document without a text left out ('a')",)
    with pytest.raises(TableError, match="column 'text' has no text"):
        chunk({"document": ["a"], "text": [None]})
