"""Run decoders of the transformers library on the CPU or a GPU.

Rows are padded at the end: a causal model can't see what follows, so no mask is needed and the padding has no effect.
Only the requested positions go through the output head, a few at a time, so no tensor of batch × length × vocabulary
ever exists. A prefix shared by all rows is read once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache

from ragworth.core.errors import ModelError
from ragworth.llm.local.float8 import Float8Linear, to_float8
from ragworth.llm.local.runtime import RowLogprobs, TokenRow
from ragworth.llm.local.torch_decoding import (
    SharedPrefix,
    TorchDecoding,
    row_entropies,
    torch_errors,
)

MAX_LOGITS = 1 << 26
"""Maximum logits in memory while computing probabilities and entropies."""

ATTENTION = "ragworth-causal"
"""The name of our attention in the transformers library."""

RECOMPILE_LIMIT = 64
"""Number of shapes, at least, for which PyTorch may compile a function; beyond that, it runs uncompiled."""

MAX_DISTANCE = 0.5
"""Mean total variation distance of next-token distributions in 8 bits from which they are wrong."""

ROTATION = "apply_rotary_pos_emb"
"""Function that rotates queries and keys by their position, in the transformers library's module of a family."""


class TorchRuntime:
    """A loaded causal language model.

    ``float8``: it multiplies in 8 bits. ``compiled`` lets PyTorch fuse the small steps of each layer: slower to start,
    faster on a GPU.
    """

    def __init__(self, model: Any, name: str, *, float8: bool = False, compiled: bool = False) -> None:
        self.name = name
        self.context: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._model = model.eval()
        self.config = model.config
        self._body = model.get_decoder() if hasattr(model, "get_decoder") else model.base_model
        self._head = model.get_output_embeddings()
        self.tokens = min(int(self._head.weight.shape[0]), int(model.get_input_embeddings().weight.shape[0]))
        self.device = next(model.parameters()).device
        self._plain = self._sample(model)
        self._own_attention = self.device.type == "cuda" and _attends_to_all(model)
        if self._own_attention:
            _register_attention()
            model.set_attn_implementation(ATTENTION)
        self._rotation = _compile(self._body) if compiled and not float8 else None
        self._check()
        if float8:
            to_float8(self._body)
            self._rotation = _compile(self._body) if compiled else None
            self._check_rounding()

    @torch.inference_mode()
    def prefix(self, ids: Sequence[int]) -> SharedPrefix:
        """Compute keys and values of the prefix."""
        cache = DynamicCache(config=self.config)
        with torch_errors():
            self._body(input_ids=self.pad([list(ids)]), past_key_values=cache, use_cache=True)
        shared = SharedPrefix(config=self.config)
        shared.layers, shared.ids = cache.layers, list(ids)
        return shared

    @torch.inference_mode()
    def read(self, rows: Sequence[TokenRow], prefix: SharedPrefix | None = None) -> list[RowLogprobs]:
        """Read the padded batch in one pass, then the wanted positions through the head."""
        with torch_errors():
            hidden = self.hidden(self.pad([row.ids for row in rows]), prefix)
            at = [(i, row.first + j) for i, row in enumerate(rows) for j in range(len(row.wanted))]
            wanted = [tokens for row in rows for tokens in row.wanted]
            width = max(len(tokens) for tokens in wanted)
            padded = torch.tensor([tokens + [0] * (width - len(tokens)) for tokens in wanted], device=self.device)
            index = torch.tensor(at, device=self.device)
            logs, entropies = [], []
            for part, tokens in zip(*(t.split(self.chunk) for t in (index, padded)), strict=True):
                logits = self.logits(hidden[part[:, 0], part[:, 1]])
                total = logits.logsumexp(-1, keepdim=True)
                logs.append(logits.gather(1, tokens) - total)
                entropies.append(row_entropies(logits, total))
            found = torch.cat(logs).tolist()
            chaos = torch.cat(entropies).tolist()
        reads, start = [], 0
        for row in rows:
            end = start + len(row.wanted)
            values = [line[: len(w)] for line, w in zip(found[start:end], row.wanted, strict=True)]
            reads.append(RowLogprobs(values, chaos[start:end]))
            start = end
        return reads

    def decode(self, rows: Sequence[list[int]], prefix: SharedPrefix | None = None) -> TorchDecoding:
        """Read the rows and keep their keys and values for extension."""
        state: TorchDecoding = TorchDecoding(self, rows, prefix, padded_in_front=_has_windows(self._model))
        return state

    @property
    def chunk(self) -> int:
        """Rows that go through the output head at a time."""
        return max(1, MAX_LOGITS // int(self._head.weight.shape[0]))

    def pad(self, rows: Sequence[list[int]]) -> torch.Tensor:
        """The ids of the rows, padded at the end."""
        longest = max(len(row) for row in rows)
        return torch.tensor([row + [0] * (longest - len(row)) for row in rows], device=self.device)

    def hidden(self, ids: torch.Tensor, cache: Any = None, **kwargs: Any) -> torch.Tensor:
        """Hidden states of the last layer."""
        with self._rotation.used() if self._rotation is not None else nullcontext():
            out = self._body(input_ids=ids, past_key_values=cache, use_cache=cache is not None, **kwargs)
        hidden: torch.Tensor = out.last_hidden_state
        return hidden

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The output head in float32, with the transformations that some families apply to their logits."""
        weight, bias = self._head.weight, getattr(self._head, "bias", None)
        if hidden.is_cuda and weight.dtype != torch.float32 and bias is None:
            logits = torch.mm(hidden, weight.t(), out_dtype=torch.float32)  # logits are not rounded to 8 bits
        else:
            logits = self._head(hidden).float()
        config = self.config
        if (scale := getattr(config, "logits_scaling", None)) is not None:
            logits = logits / scale
        if (scale := getattr(config, "logit_scale", None)) is not None:
            logits = logits * scale
        if (cap := getattr(config, "final_logit_softcapping", None)) is not None:
            logits = torch.tanh(logits / cap) * cap
        return logits

    @torch.inference_mode()
    def _sample(self, model: Any) -> torch.Tensor:
        """Output of the model's own forward pass for a few tokens."""
        with torch_errors():
            logs: torch.Tensor = model(input_ids=self._few).logits[0].float().log_softmax(-1)
        return logs

    @property
    def _few(self) -> torch.Tensor:
        size = min(int(self._head.weight.shape[0]), 1000)
        return (torch.arange(24, device=self.device)[None] * 37 + 11) % size

    @torch.inference_mode()
    def _check(self) -> None:
        """Compare the fast path (own attention, shared prefix, partial head) with the model's own forward pass."""
        plain, ids = self._plain, self._few
        with torch_errors():
            ours = self.logits(self.hidden(ids)[0]).log_softmax(-1)
            after = self.logits(self.hidden(ids[:, 8:], self.prefix(ids[0, :8].tolist()))[0]).log_softmax(-1)
        # Rounding to 16 bits moves improbable tokens more: their logits are further from the largest.
        near, slope = (1e-3, 0.0) if self._head.weight.dtype == torch.float32 else (0.5, 0.03)
        pairs = ((plain, ours), (plain[8:], after))
        worst = max(float((own - found).abs().max()) for own, found in pairs)
        if not all(bool(((own - found).abs() <= near - slope * own).all()) for own, found in pairs):
            raise ModelError(
                f"this kind of model ({type(self._model).__name__}) is not supported "
                f"(log-probabilities differ by {worst:.3g} from its own)",
                remedy="serve it with vLLM or llama.cpp and use openai:MODEL@URL",
            )

    @torch.inference_mode()
    def _check_rounding(self) -> None:
        """Compare the distributions in 8 bits with those before: rounding changes them a little, an error entirely."""
        with torch_errors():
            found = self.logits(self.hidden(self._few)[0]).log_softmax(-1)
        distance = float((found.exp() - self._plain.exp()).abs().sum(-1).mean() / 2)
        if not distance < MAX_DISTANCE:
            raise ModelError(
                f"in float8, this model's distributions differ from its own by {distance:.2f} (total variation)",
                expected=f"less than {MAX_DISTANCE}",
                remedy="dtype=bfloat16",
            )


def _compile(body: Any) -> Rotation | None:
    """Compile the parts that move much memory for little arithmetic; attention and caches stay as they are.

    Returns the family's rotation of queries and keys, compiled.
    """
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, RECOMPILE_LIMIT)
    families = set()
    for module in body.modules():
        if isinstance(module, Float8Linear) or type(module).__name__.endswith(("Norm", "MLP")):
            module.compile()
        if type(module).__name__.endswith("Attention"):
            families.add(type(module).__module__)
    family = sys.modules[families.pop()] if len(families) == 1 else None
    plain = getattr(family, ROTATION, None)
    return None if plain is None else Rotation(family, plain, _compile_rotation(plain))


def _compile_rotation(plain: Any) -> Any:
    """Compile a rotation for the heads and their width as they are.

    PyTorch makes variables of the sizes that it sees change, as these do if a process uses two models of a family. With
    all sizes as variables, the rotation takes ten times as long. Some families rotate one at a time, and have no keys.
    """
    compiled = torch.compile(plain)

    def rotate(*args: Any, **kwargs: Any) -> Any:
        states = [each for each in args[:2] if isinstance(each, torch.Tensor) and each.ndim == 4]
        if len(states) == 2:
            for each in states:
                torch._dynamo.mark_static(each, [1, 3])
        return compiled(*args, **kwargs)

    return rotate


class Rotation(NamedTuple):
    """A function of the transformers library, and the compiled one that stands in its place while a model is read."""

    family: Any
    plain: Any
    compiled: Any

    @contextmanager
    def used(self) -> Iterator[None]:
        """Replace the library's function for a while: other models of the family don't get the compiled one."""
        setattr(self.family, ROTATION, self.compiled)
        try:
            yield
        finally:
            setattr(self.family, ROTATION, self.plain)


def _has_windows(model: Any) -> bool:
    """Whether some tokens see only a window of the preceding ones."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or ()
    named = any(getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size"))
    return any(kind != "full_attention" for kind in kinds) if kinds else named


def _attends_to_all(model: Any) -> bool:
    """Whether every token sees all before it, by plain attention: no window, no capped scores, no slopes."""
    config = model.config.get_text_config()
    odd = any(getattr(config, name, None) for name in ("attn_logit_softcapping", "alibi"))
    return config._attn_implementation in ("sdpa", ATTENTION) and not _has_windows(model) and not odd


def _register_attention() -> None:
    """Register our attention with the transformers library.

    Without a mask (nothing is padded in front), a fast kernel also serves for rows that follow a prefix. A single query
    with a mask (decoding) is turned into one for each head of keys, with the heads that share it as its rows.
    """
    from torch.nn.attention.bias import causal_lower_right
    from torch.nn.functional import scaled_dot_product_attention
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    def attend(
        module: Any, q: Any, k: Any, v: Any, attention_mask: Any, scaling: float | None = None, **kwargs: Any
    ) -> tuple[Any, None]:
        rows, heads, queries, width = q.shape
        mask = attention_mask
        if mask is not None and queries == 1:
            q = q.reshape(rows, k.shape[1], heads // k.shape[1], width)
            out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scaling)
            return out.reshape(rows, 1, heads, -1), None  # values may be less wide than keys
        if mask is None and queries != k.shape[2]:
            mask = causal_lower_right(queries, k.shape[2])
        out = scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, scale=scaling, enable_gqa=True
        )
        return out.transpose(1, 2).contiguous(), None

    def mask_of(*args: Any, attention_mask: Any = None, **kwargs: Any) -> Any:
        return None if attention_mask is None else sdpa_mask(*args, attention_mask=attention_mask, **kwargs)

    AttentionInterface.register(ATTENTION, attend)
    AttentionMaskInterface.register(ATTENTION, mask_of)
