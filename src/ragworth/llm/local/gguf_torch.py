"""A GGUF file of the Llama family as a model of the transformers library, with the prompts of the embedded model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ragworth.core.errors import ModelError
from ragworth.llm.local.adapter import merge_deltas
from ragworth.llm.local.gguf_file import build_encoder, read_gguf
from ragworth.llm.local.prompt_encoding import PromptEncoder


class TorchLlama(NamedTuple):
    """The model, how prompts are encoded for it, and its tokenizer in the form that trainers expect."""

    model: Any
    encoder: PromptEncoder
    tokenizer: Any


def load_gguf_llama(path: Path, deltas: dict[str, Any] | None = None) -> TorchLlama:
    """Unpack the weights in single precision, with ``deltas`` added to those that they name."""
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    shape, arrays, words, text = read_gguf(path)
    arrays = merge_deltas(arrays, deltas or {})
    tied = "lm_head.weight" not in arrays
    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head,
        max_position_embeddings=shape.context,
        rms_norm_eps=shape.epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": shape.theta},
        tie_word_embeddings=tied,
    )
    model = LlamaForCausalLM(config)
    weights = {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}
    try:
        model.load_state_dict({**weights, **({"lm_head.weight": weights["model.embed_tokens.weight"]} if tied else {})})
    except RuntimeError as error:
        raise ModelError(f"its weights don't fit a Llama: {error}", file=str(path)) from error
    eos = text.special["eos_token"]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token=eos, pad_token=eos)
    return TorchLlama(model, build_encoder(words, text), tokenizer)
