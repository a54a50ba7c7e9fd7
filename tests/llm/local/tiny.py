"""Tiny random models of the transformers library, saved like real ones, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> Any:
    """Bytes as tokens, a few merges, a BOS in front of every text, and a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("N", "O"), ("Ġ", "a"), ("e", "r"), ("i", "n")]
    vocabulary = {sign: i for i, sign in enumerate(letters)}
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<s>", "</s>", "<|im_start|>", "<|im_end|>"])
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", made.token_to_id("<s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<s>",
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>", "</s>"],
        chat_template=TEMPLATE,
    )


def llama(layers: int = 2, **more: Any) -> Any:
    """A Llama with random weights that are large enough for its distributions to be far from even."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer()),
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "initializer_range": 0.3,
        "max_position_embeddings": 512,
        "bos_token_id": tokenizer().bos_token_id,
        "eos_token_id": tokenizer().eos_token_id,
    }
    return LlamaForCausalLM(LlamaConfig(**(shape | more))).eval()


def saved(folder: Path) -> Path:
    """A tiny Llama with its tokenizer, as a folder."""
    llama().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder
