"""The embedded reader and the model without its adapter: who they say they are. No weights are loaded for that."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

import ragworth
from ragworth.calls.job import Job
from ragworth.calls.serialization import model_digest
from ragworth.core.errors import ModelError
from ragworth.data.conversations import turns_of
from ragworth.judging.contract import run_task
from ragworth.judging.rewriter import QueryRewriter
from ragworth.llm import embedded
from ragworth.llm.model_files import sha256
from ragworth.llm.prompts import load_prompt

pytestmark = pytest.mark.model


def test_the_reader_and_the_base_are_two_models() -> None:
    reader, base = ragworth.llm().card, ragworth.llm("embedded:base").card
    assert reader == ragworth.llm("embedded").card
    assert (reader.name, base.name) == ("ragworth-reader-135M", "SmolLM2-135M-Instruct")
    assert reader.identity != base.identity
    assert reader.revision == f"{base.revision}+{embedded.READER_ADAPTER.digest}"
    assert base.declining is None
    assert reader.declining == float(embedded.READER_ADAPTER.about["temperature"])


def test_the_rewriter_rewrites_and_only_the_reader_needs_it() -> None:
    reader, rewriter = ragworth.llm().card, ragworth.llm("embedded:rewriter").card
    assert rewriter.name == "ragworth-rewriter-135M" and rewriter.identity != reader.identity
    assert reader.prompts == rewriter.prompts == "fenced"
    assert embedded.find_rewriter(reader) == "embedded:rewriter"
    assert embedded.find_rewriter(rewriter) == embedded.find_rewriter(ragworth.llm("embedded:base").card) == ""
    about = embedded.REWRITER_ADAPTER.about
    assert about["prompt"] == load_prompt("rewrite", None, rewriter.prompts).version, "train it again with this prompt"
    assert embedded.ADAPTER_FILE.stat().st_size <= 10_000_000
    turns = turns_of(ragworth.load("conversations:examples/conversations/conversations.jsonl").collection)
    asked = [turn for turn in turns if turn.history]
    with Job(ragworth.llm("embedded:rewriter"), None) as job:
        made = run_task(QueryRewriter(job.card), asked, job).frame
    names = {"ferry": "Aldermere", "tower": "Harrow Point"}
    named = [
        names[turn.conversation] in text
        for turn, text in zip(asked, made["text"], strict=True)
        if turn.conversation in names
    ]
    assert sum(named) >= len(named) / 2, made["text"].to_list()


def test_the_rewriter_is_no_reader() -> None:
    """It would answer every question with a question, and never decline."""
    collection = ragworth.load("conversations:examples/conversations/conversations.jsonl").collection
    contexts = ragworth.Contexts({"system": ["s"], "query": ["q"], "passage": ["p"], "rank": [1]})
    for ask in (
        lambda: ragworth.annotate("abstention", contexts, collection, "embedded:rewriter"),
        lambda: ragworth.answer(contexts, collection, "embedded:rewriter"),
    ):
        with pytest.raises(ModelError, match="'ragworth-rewriter-135M' only writes rewrites; it can't be used for"):
            ask()


def test_the_files_are_the_ones_that_were_measured() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cards = [ragworth.llm("embedded").card, ragworth.llm("embedded:base").card]
    assert all(card.notes == () for card in cards)


@pytest.mark.parametrize("spec", ["embedded", "embedded:base"])
def test_other_weights_are_unknown(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One changed byte gives another name, and other keys in the store."""
    right = ragworth.llm(spec).card
    other = tmp_path / embedded.FILE
    content = bytearray(embedded.weights_file().read_bytes())
    content[-1] ^= 1
    other.write_bytes(content)
    monkeypatch.setattr(embedded, "weights_file", lambda: other)
    with pytest.warns(UserWarning, match="the weights of the embedded model are not the expected ones"):
        card = ragworth.llm(spec).card
    assert card.name == "unknown" and str(other) in card.notes[0]
    assert model_digest(card) != model_digest(right)


def test_a_large_file_that_was_replaced_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it has the size and the date of the old one."""
    monkeypatch.setenv("RAGWORTH_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "weights"
    file.write_bytes(bytes(1 << 20))
    first, facts = sha256(file), file.stat()
    assert sha256(file) == first
    new = tmp_path / "new"
    new.write_bytes(bytes((1 << 20) - 1) + b"x")
    new.replace(file)
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert sha256(file) != first
