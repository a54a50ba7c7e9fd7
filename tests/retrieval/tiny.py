"""Encoders of a few kilobytes, made here: a BERT with random weights over a handful of words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ragworth.retrieval.encoders import ENCODERS
from ragworth.retrieval.encoders.bert import BertEncoder

WORDS = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "who", "built", "the", "mill", "ann", "lee", "was", "sold", "twice",
    "bread", "is", "baked", "at", "night", "a", "grinds", "corn", "old", "query", "passage", ":", ";", ".", "?", "猫",
    "が",
]  # fmt: skip
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
CONFIG: dict[str, Any] = {
    **SIZES,
    "model_type": "bert",
    "architectures": ["BertModel"],
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "vocab_size": len(WORDS),
    "pad_token_id": 0,
}


def weights(seed: int = 0) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Random weights under the names that BERT has for them."""
    chance = np.random.default_rng(seed)
    width, inner = SIZES["hidden_size"], SIZES["intermediate_size"]
    made: dict[str, np.ndarray[Any, np.dtype[Any]]] = {}

    def dense(name: str, rows: int, columns: int) -> None:
        made[f"{name}.weight"] = chance.normal(size=(rows, columns)).astype("<f4") * 0.3
        made[f"{name}.bias"] = chance.normal(size=rows).astype("<f4") * 0.1

    def norm(name: str) -> None:
        made[f"{name}.weight"] = 1 + chance.normal(size=width).astype("<f4") * 0.1
        made[f"{name}.bias"] = chance.normal(size=width).astype("<f4") * 0.1

    for name, count in (("word", len(WORDS)), ("position", 32), ("token_type", 2)):
        made[f"embeddings.{name}_embeddings.weight"] = chance.normal(size=(count, width)).astype("<f4")
    norm("embeddings.LayerNorm")
    for number in range(SIZES["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        for part in ("query", "key", "value"):
            dense(f"{layer}.attention.self.{part}", width, width)
        dense(f"{layer}.attention.output.dense", width, width)
        norm(f"{layer}.attention.output.LayerNorm")
        dense(f"{layer}.intermediate.dense", inner, width)
        dense(f"{layer}.output.dense", width, inner)
        norm(f"{layer}.output.LayerNorm")
    made["embeddings.position_ids"] = np.arange(32, dtype="<i8")[None]
    return made


def write_safetensors(path: Path, arrays: dict[str, np.ndarray[Any, np.dtype[Any]]]) -> None:
    """Arrays in a file, as the format has them."""
    kinds = {"<f4": "F32", "<f2": "F16", "<i8": "I64"}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, array in arrays.items():
        content = np.ascontiguousarray(array).tobytes()
        at = [len(body), len(body) + len(content)]
        header[name] = {"dtype": kinds[array.dtype.str], "shape": list(array.shape), "data_offsets": at}
        body += content
    said = json.dumps(header).encode()
    path.write_bytes(len(said).to_bytes(8, "little") + said + body)


def write_encoder(
    folder: Path,
    *,
    seed: int = 0,
    longest: int = 16,
    said: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
) -> Path:
    """The folder of an encoder, in the form of sentence-transformers; `said` of it besides, `config` for another."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    words = Tokenizer(models.WordPiece({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.normalizer = normalizers.BertNormalizer(lowercase=True)
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    words.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    words.save(str(folder / "tokenizer.json"))
    names = ["Transformer", "Pooling", "Normalize"]
    types = [f"sentence_transformers.models.{name}" for name in names]
    parts = [
        {"idx": n, "name": str(n), "path": f"{n}_{x}" if n else "", "type": t}
        for n, (x, t) in enumerate(zip(names, types, strict=True))
    ]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    special = {
        f"{name}_token": f"[{short}]"
        for name, short in (("unk", "UNK"), ("sep", "SEP"), ("pad", "PAD"), ("cls", "CLS"), ("mask", "MASK"))
    }
    for name, content in {
        "config.json": CONFIG if config is None else config,
        "modules.json": parts,
        "sentence_bert_config.json": {"max_seq_length": longest, "do_lower_case": False},
        "config_sentence_transformers.json": said or {},
        "1_Pooling/config.json": {"word_embedding_dimension": SIZES["hidden_size"], "pooling_mode_mean_tokens": True},
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizerFast", "model_max_length": longest, **special},
        "special_tokens_map.json": special,
    }.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    write_safetensors(folder / "model.safetensors", weights(seed))
    return folder


def open_tiny(rest: str, folder: Path | None = None) -> BertEncoder:
    """Open what `write_encoder` made."""
    return BertEncoder((folder or Path()) / rest, "tiny", 32)


ENCODERS.add("tiny", open_tiny)
