"""A GGUF file of the Llama family as a model of the transformers library, with the prompts of the embedded model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ragworth.core.errors import ModelError
from ragworth.llm.local import bpe, gguf_file
from ragworth.llm.local.bpe import CONTROL, BpeTokenizer
from ragworth.llm.local.chat_templates import load_chat_template
from ragworth.llm.local.onnx_weights import merge_deltas
from ragworth.llm.local.prompt_encoding import PromptEncoder


class TorchLlama(NamedTuple):
    """The model, how prompts are encoded for it, and its tokenizer in the form that trainers expect."""

    model: Any
    encoder: PromptEncoder
    tokenizer: Any


def load_gguf_llama(path: Path, deltas: dict[str, Any] | None = None) -> TorchLlama:
    """Unpack the weights in single precision, with ``deltas`` added to those that they name."""
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    found = gguf_file.read_gguf(path)
    sizes = found.sizes
    arrays = merge_deltas(found.weights, deltas) if deltas else found.weights
    weights = {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}
    config = LlamaConfig(
        vocab_size=len(found.vocabulary.tokens),
        hidden_size=sizes.hidden,
        intermediate_size=sizes.inner,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads,
        head_dim=sizes.head,
        max_position_embeddings=sizes.context,
        rms_norm_eps=sizes.epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": sizes.theta},
        tie_word_embeddings="lm_head.weight" not in weights,
    )
    model = LlamaForCausalLM(config)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    lacking = [name for name in missing if name != "lm_head.weight"]
    if lacking or unexpected:
        raise ModelError(
            f"its weights don't fit a Llama: missing {lacking[:3]}, unexpected {unexpected[:3]}", file=str(path)
        )
    model.tie_weights()
    vocabulary = found.vocabulary
    marked = zip(vocabulary.tokens, vocabulary.types, strict=True)
    control = tuple(token for token, kind in marked if kind == CONTROL)
    words = bpe.build_tokenizer(vocabulary)
    render = load_chat_template(found.chat_template, {"bos_token": found.bos, "eos_token": found.eos})
    encoder = PromptEncoder(BpeTokenizer(words), render, control, frozenset(found.ends))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token=found.eos, pad_token=found.eos)
    return TorchLlama(model, encoder, tokenizer)
