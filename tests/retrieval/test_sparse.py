"""Learned sparse retrieval, on a tiny model made here: scores, the edges, and what is kept."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ragworth.core.errors import InputError, ModelError
from ragworth.retrieval import retrieve
from ragworth.retrieval.encoders.sentence_transformer import SparseTextEncoder, TermWeights
from tests.retrieval.samples import PASSAGES, passages, world
from tests.retrieval.tiny import CONFIG, write_encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A SPLADE of a few kilobytes with random weights."""
    import sentence_transformers
    import torch
    import transformers

    made = tmp_path_factory.mktemp("sparse")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAGWORTH_CACHE", str(made / "user"))
        write_encoder(made / "base")
        torch.manual_seed(0)
        transformers.BertForMaskedLM(transformers.BertConfig(**CONFIG)).save_pretrained(made / "base")
        from sentence_transformers.base.modules import Transformer
        from sentence_transformers.sparse_encoder.modules import SpladePooling

        masked = Transformer(str(made / "base"), transformer_task="fill-mask")
        model = sentence_transformers.SparseEncoder(modules=[masked, SpladePooling("max")])
        model.save_pretrained(str(made / "splade"))
        yield made / "splade"


def dense_scores(folder: Path, texts: dict[str, str], query: str) -> dict[str, float]:
    """Inner products of whole vectors, as the library gives them."""
    model = SparseTextEncoder(str(folder)).model
    asked = model.encode_query([query], convert_to_sparse_tensor=False, show_progress_bar=False)[0].numpy()
    found = model.encode_document(list(texts.values()), convert_to_sparse_tensor=False, show_progress_bar=False).numpy()
    products = np.maximum(found, 0).astype(np.float64) @ np.maximum(asked, 0).astype(np.float64)
    return dict(zip(texts, products.tolist(), strict=True))


@pytest.mark.torch
def test_scores_are_those_of_the_library(folder: Path) -> None:
    made = retrieve({"s": f'sparse("{folder}")'}, world())
    for query, text in (("q1", "Who built the mill?"), ("q2", "bread at night")):
        texts = {name: text for name, text in PASSAGES.items() if text}
        expected = {name: score for name, score in dense_scores(folder, texts, text).items() if score > 0}
        got = dict(made.frame.filter(query=query).select("passage", "score").iter_rows())
        assert got == pytest.approx(expected, rel=1e-5)
        assert list(got) == sorted(got, key=lambda name: (got[name], name), reverse=True)


@pytest.mark.torch
def test_the_edges(folder: Path) -> None:
    texts = {**PASSAGES, "blank": " \u2003", "猫": "猫 が", "a": "old corn", "b": "old corn"}
    queries = {"none": "", "blank": "\t", "strange": "zeppelin", "ja": "猫 が", "tie": "old corn"}
    made = retrieve({"s": f'sparse("{folder}") % 1000'}, world(texts, queries, None))
    found = passages(made, "s")
    assert found["none"] == found["blank"] == []
    for query in ("strange", "ja", "tie"):  # the model gives every text some words, known or not
        assert set(found[query]) <= set(texts) - {"p5", "blank"}
        assert found[query]
    assert found["tie"].index("b") + 1 == found["tie"].index("a")
    empty = retrieve({"s": f'sparse("{folder}")'}, world({"p": " "}, {"q": "mill"}, None))
    assert empty.empty == {("s", "q")}


@pytest.mark.torch
def test_nothing_in_common_is_not_retrieved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Word 0 is in passages 0 and 2, word 1 in none, word 2 in passage 1; queries may have later words."""
    texts = {"p0": {0: 1.0}, "p1": {2: 4.0}, "p2": {0: 1.0}, "p3": {}}
    queries = {"a": {0: 2.0}, "none": {1: 2.0}, "no words": {}, "later": {7: 1.0}, "two": {0: 0.5, 2: 0.25}}

    def encode(self: SparseTextEncoder, names: list[str], role: str) -> TermWeights:
        rows = [(queries if role == "query" else texts)[name] for name in names]
        words = np.array([word for row in rows for word in row], np.int32)
        return TermWeights(
            np.array([len(row) for row in rows]),
            words,
            np.array([value for row in rows for value in row.values()], np.float32),
        )

    monkeypatch.setattr(SparseTextEncoder, "encode", encode)
    names = {name: name for name in texts}
    contexts = retrieve({"s": f'sparse("{folder}")'}, world(names, {name: name for name in queries}, None))
    expected = {"a": ["p2", "p0"], "none": [], "no words": [], "later": [], "two": ["p1", "p2", "p0"]}
    assert passages(contexts, "s") == expected
    assert contexts.frame["score"].to_list() == [2, 2, 1, 0.5, 0.5]


@pytest.mark.torch
def test_models_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="sparse lacks a model"):
        retrieve({"s": "sparse"}, world())
    with pytest.raises(InputError, match=r"s: .*: it contains no model"):
        retrieve({"s": f'sparse("{tmp_path}")'}, world())
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="neither a folder nor a model in the local cache"):
        retrieve({"s": 'sparse("nobody/nothing")'}, world())
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertForMaskedLM"]}')
    with pytest.raises(ModelError, match="cannot load it"):
        SparseTextEncoder(str(tmp_path)).encode(["x"], "query")


@pytest.mark.torch
def test_what_is_no_sparse_encoder_is_not_made_one(tmp_path: Path) -> None:
    """The library would put a layer of random numbers on top."""
    dense = write_encoder(tmp_path / "dense")
    with pytest.raises(InputError, match=r"s: .*it is a SentenceTransformer"):
        retrieve({"s": f'sparse("{dense}")'}, world())
    (dense / "modules.json").unlink()
    with pytest.raises(ModelError, match=r"it is a BertModel[^$]*…ForMaskedLM"):
        SparseTextEncoder(str(dense))


@pytest.mark.torch
def test_a_model_that_cannot_read_is_told(folder: Path, tmp_path: Path) -> None:
    """Its tokenizer has words that the weights lack."""
    mine = shutil.copytree(folder, tmp_path / "mine")
    place = next(mine.rglob("tokenizer.json"))
    place.write_text(place.read_text(encoding="utf-8").replace('"mill": 8,', '"mill": 800,'), encoding="utf-8")
    assert '"mill": 800' in place.read_text(encoding="utf-8")
    with pytest.raises(ModelError, match=r"mine: the model cannot weigh words: [^$]*to do: use a model"):
        SparseTextEncoder(str(mine)).encode(["mill"], "query")
