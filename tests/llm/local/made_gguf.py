"""Small GGUF files with random weights, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from tokenizers.pre_tokenizers import ByteLevel

HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, WIDTH = 64, 128, 2, 4, 2, 16
MERGES = ["t h", "th e", "Ġ the", "i n", "e r", "a n", "an d", "Ġ a", "1 2", "12 3", "Ġ 1", "Ġ Ġ", "Ċ Ċ", "' s", "Ġ '"]
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"


def vocabulary() -> tuple[list[str], list[int]]:
    """Control tokens, all bytes, the merges, and one token that is matched as it stands; with their types."""
    plain = [*sorted(ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in MERGES)]
    return [*CONTROL, *plain, "[note]"], [3] * len(CONTROL) + [1] * len(plain) + [4]


def write(path: Path, *, tied: bool = True, packed: bool = False, seed: int = 0, **fields: Any) -> Path:
    """A file of a tiny Llama; ``fields`` are put in place of, or besides, what it says of itself."""
    tokens, types = vocabulary()
    said: dict[str, Any] = {
        "general.name": "Tiny",
        "general.license": "apache-2.0",
        "llama.context_length": 2048,
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": INNER,
        "llama.block_count": LAYERS,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10000.0,
        "llama.vocab_size": len(tokens),
        "llama.rope.dimension_count": WIDTH,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": TEMPLATE,
        **fields,
    }
    writer = GGUFWriter(path, str(said.pop("general.architecture", "llama")))
    for name, value in said.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
        add[type(value)](name, value)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(MERGES)
    random = np.random.default_rng(seed)
    layer = {
        "attn_q": (HEADS * WIDTH, HIDDEN),
        "attn_k": (KV_HEADS * WIDTH, HIDDEN),
        "attn_v": (KV_HEADS * WIDTH, HIDDEN),
        "attn_output": (HIDDEN, HEADS * WIDTH),
        "ffn_gate": (INNER, HIDDEN),
        "ffn_up": (INNER, HIDDEN),
        "ffn_down": (HIDDEN, INNER),
        "attn_norm": (HIDDEN,),
        "ffn_norm": (HIDDEN,),
    }
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (len(tokens), HIDDEN), "output_norm": (HIDDEN,)}
    if not tied:
        shapes["output"] = (len(tokens), HIDDEN)
    shapes |= {f"blk.{n}.{name}": shape for n in range(LAYERS) for name, shape in layer.items()}
    for name, shape in shapes.items():
        norm = len(shape) == 1
        value = (random.standard_normal(shape) * (0.1 if norm else 0.12) + norm).astype(np.float32)
        if packed and not norm:
            kind = GGMLQuantizationType.Q8_0
            writer.add_tensor(f"{name}.weight", quantize(value, kind), raw_dtype=kind)
        else:
            writer.add_tensor(f"{name}.weight", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
