"""Tokenizers from the pieces in GGUF files: equal to the transformers library's, and back to the same text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tokenizers")
pytest.importorskip("gguf")

from ragworth.llm.local.bpe import BpeTokenizer, Vocabulary, build_tokenizer
from tests.llm.local import made_gguf

TEXTS = [
    "",
    " ",
    "the cat and the hat",
    "Hello, world! It's the inn's 123rd hour; they'll've gone, WE'RE NOT.",
    "1234567890 12 3 ４５６ 3.14e-10",
    "naïve café — “quotes” … ½ cup",
    "日本語のテキスト、中文，한국어",
    "emoji 😀👩‍👩‍👧‍👦 and 🇩🇪, e\u0301",
    "def f(x):\n\treturn x**2  # ok\n\n\n    y = {'a': [1, 2]}\r\n",
    "   leading and trailing   \n",
    "\u00a0\u3000\u200b odd blanks",
    "<|im_start|>user\nthe <|im_end|>\n<|endoftext|> [note] <|im_start",
    "[note][note]the[note]",
    "\x00\x01\x7f control",
]


def made(splitting: str, *, bos: int | None = None) -> BpeTokenizer:
    tokens, types = made_gguf.vocabulary()
    return BpeTokenizer(build_tokenizer(Vocabulary(tokens, types, made_gguf.MERGES, splitting, bos)))


def pieces(splitting: str, text: str) -> list[str]:
    found = made(splitting).inner.pre_tokenizer.pre_tokenize_str(text)
    return [text[start:end] for _, (start, end) in found]


@pytest.mark.parametrize("splitting", ["gpt-2", "smollm", "llama-bpe", "qwen2"])
@pytest.mark.parametrize("text", TEXTS)
def test_tokens_spell_out_their_text(splitting: str, text: str) -> None:
    built = made(splitting)
    (ids,) = built.encode([text], whole=False)
    assert built.inner.decode(ids, skip_special_tokens=False) == text
    for control in made_gguf.CONTROL:
        text = text.replace(control, "")
    assert built.decode(ids) == text


BUILT = {splitting: made(splitting) for splitting in ("gpt-2", "smollm", "llama-bpe", "qwen2")}


@given(st.text(), st.sampled_from(sorted(BUILT)))
def test_any_text_comes_back(text: str, splitting: str) -> None:
    (ids,) = BUILT[splitting].encode([text], whole=True)
    assert BUILT[splitting].inner.decode(ids, skip_special_tokens=False) == text


@pytest.mark.torch
def test_it_is_the_tokenizer_that_transformers_makes_of_the_file(tmp_path: Path) -> None:
    import transformers

    path = made_gguf.write(tmp_path / "tiny.gguf")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    ours = made("gpt-2")
    for text in TEXTS:
        if "[note]" not in text:  # which they do not know as a token of its own
            assert ours.encode([text], whole=True)[0] == theirs(text)["input_ids"], text


def test_ways_of_splitting_differ_in_digits_and_lines() -> None:
    text = " 12345's\n\n x"
    assert pieces("gpt-2", text) == [" 12345", "'s", "\n\n", " x"]
    assert pieces("smollm", text) == [" ", "1", "2", "3", "4", "5", "'s", "\n\n", " x"]
    assert pieces("llama-bpe", text) == [" ", "123", "45", "'s", "\n\n", " x"]
    assert pieces("qwen2", text) == [" ", "1", "2", "3", "4", "5", "'s", "\n\n", " x"]


def test_a_bos_goes_in_front_of_a_whole_text_only() -> None:
    built = made("gpt-2", bos=1)
    (whole,), (part,) = built.encode(["the"], whole=True), built.encode(["the"], whole=False)
    assert whole == [1, *part]
