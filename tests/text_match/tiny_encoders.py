"""Tiny random encoders of the transformers library, saved like real ones, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "far", "away", "river", "moon", "under", "old"]
WORDS += ["##s", ".", ","]
LIMIT = 16


def bert(folder: Path, layers: int = 3, limit: int = LIMIT, **more: Any) -> Path:
    """A BERT over a few words, which reads ``limit`` tokens."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    BertTokenizer(vocab={word: i for i, word in enumerate(words)}, model_max_length=limit).save_pretrained(folder)
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "vocab_size": len(words),
        "hidden_size": 32,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": limit,
        "initializer_range": 0.2,
    }
    _save(BertModel(BertConfig(**(shape | more))), folder)
    return folder


def roberta(folder: Path, **more: Any) -> Path:
    """A RoBERTa over bytes and a few merges, which reads 24 tokens; its tokenizer does not say so, unless told."""
    import torch
    from tokenizers import pre_tokenizers
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizer

    merges = [("Ġ", "c"), ("Ġc", "a"), ("Ġca", "t"), ("c", "a"), ("ca", "t"), ("Ġ", "t"), ("h", "e"), ("Ġt", "he")]
    signs = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocabulary = {sign: i for i, sign in enumerate([*signs, *("".join(pair) for pair in merges)])}
    RobertaTokenizer(vocab=vocabulary, merges=merges, **more).save_pretrained(folder)
    torch.manual_seed(1)
    config = RobertaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=26,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        initializer_range=0.2,
    )
    _save(RobertaModel(config), folder)
    return folder


def albert(folder: Path) -> Path:
    """An ALBERT, whose layers are one and the same, with the tokenizer of :func:`bert`."""
    import torch
    from transformers import AlbertConfig, AlbertModel

    bert(folder)
    torch.manual_seed(2)
    config = AlbertConfig(
        vocab_size=5 + len(WORDS),
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=LIMIT,
        initializer_range=0.2,
    )
    _save(AlbertModel(config), folder)
    return folder


def _save(model: Any, folder: Path) -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()
    model.save_pretrained(folder)
