"""The embedded reader and the model without its adapter: who they say they are. No weights are loaded for that."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

import ragworth
from ragworth.calls.serialization import model_digest
from ragworth.errors import ModelError
from ragworth.llm import embedded
from ragworth.llm.fingerprint import sha256
from ragworth.llm.local.adapter import Adapter

pytestmark = pytest.mark.model


def test_the_reader_and_the_base_are_two_models() -> None:
    reader, base = ragworth.llm().card, ragworth.llm("embedded:base").card
    assert reader == ragworth.llm("embedded").card
    assert (reader.name, base.name) == ("ragworth-reader-135M", "SmolLM2-135M-Instruct")
    assert reader.identity != base.identity
    assert reader.revision == f"{base.revision}+{Adapter(embedded.READER_ADAPTER).digest}"
    assert base.declining is None
    assert reader.declining == float(Adapter(embedded.READER_ADAPTER).about["temperature"])


def test_there_is_no_other() -> None:
    with pytest.raises(ModelError, match="unknown embedded model 'large'") as error:
        ragworth.llm("embedded:large")
    assert error.value.expected == "embedded, embedded:base, or embedded: and an adapter's folder"


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


def test_another_adapter_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = ragworth.llm().card
    other = tmp_path / embedded.READER_ADAPTER.name
    content = bytearray(embedded.READER_ADAPTER.read_bytes())
    content[-1] ^= 1
    other.write_bytes(content)
    monkeypatch.setattr(embedded, "READER_ADAPTER", other)
    with pytest.warns(UserWarning, match="not the expected ones"):
        card = ragworth.llm().card
    assert card.name == "unknown" and model_digest(card) != model_digest(right)
    assert ragworth.llm("embedded:base").card.name == "SmolLM2-135M-Instruct"


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
