"""Run decoders of the transformers library on the CPU or a GPU.

Rows are padded at the end: a causal model can't see what follows, so no mask is needed and the padding has no effect.
Only the requested positions go through the output head, a few at a time, so no tensor of batch × length × vocabulary
ever exists. A prefix shared by all rows is read once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import DynamicCache

from ragworth.core.errors import ModelError
from ragworth.core.resources import find_shortage
from ragworth.llm.local.float8 import Float8Linear, to_float8
from ragworth.llm.local.runtime import NO_TOKEN, BatchBudget, NextTokens, RowLogprobs, SamplingDraw, TokenRow

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


class SharedPrefix(DynamicCache):
    """Keys and values of a prefix, given to every row of a batch and never extended."""

    ids: list[int]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = self.repeated(layer_idx, key_states.shape[0])
        return torch.cat([keys, key_states], dim=-2), torch.cat([values, value_states], dim=-2)

    def repeated(self, number: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of a layer, for each of so many rows."""
        layer = self.layers[number]
        return layer.keys.expand(rows, -1, -1, -1), layer.values.expand(rows, -1, -1, -1)


def build_batch_budget(model: Any, tokens: int) -> BatchBudget:
    """Set the size of batches: a share of the free memory, divided by the memory of one token's activations."""
    device = next(model.parameters()).device
    if tokens:
        return BatchBudget(tokens, tokens)
    if device.type != "cuda":
        return BatchBudget(4096, 64)
    free, _ = torch.cuda.mem_get_info(device)
    config = model.config.get_text_config()
    # Keys and values of all layers, and a few copies of the widest activation.
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    cached = 4 * config.num_hidden_layers * heads * width
    passing = 16 * (getattr(config, "intermediate_size", None) or 4 * config.hidden_size)
    return BatchBudget(max(1024, min(65536, int(0.6 * free / (cached + passing)))), 1024)


class TorchRuntime:
    """A loaded causal language model.

    ``float8``: it multiplies in 8 bits. ``compiled`` lets PyTorch fuse the small steps of each layer: slower to start,
    faster on a GPU.
    """

    def __init__(self, model: Any, name: str, *, float8: bool = False, compiled: bool = False) -> None:
        self.name = name
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
        if compiled and not float8:
            _compile(self._body)
        self._check()
        if float8:
            to_float8(self._body)
            if compiled:
                _compile(self._body)
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
            parts = []
            for places, tokens in zip(index.split(self.chunk), padded.split(self.chunk), strict=True):
                logits = self.logits(hidden[places[:, 0], places[:, 1]])
                total = logits.logsumexp(-1, keepdim=True)
                parts.append((logits.gather(1, tokens) - total, row_entropies(logits, total)))
            logs, entropies = (iter(torch.cat(values).tolist()) for values in zip(*parts, strict=True))
        return [
            RowLogprobs([next(logs)[: len(tokens)] for tokens in row.wanted], [next(entropies) for _ in row.wanted])
            for row in rows
        ]

    def decode(self, rows: Sequence[list[int]], prefix: SharedPrefix | None = None) -> TorchDecoding:
        """Read the rows and keep their keys and values for extension."""
        decoding: TorchDecoding = TorchDecoding(self, rows, prefix, padded_in_front=_has_windows(self._model))
        return decoding

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
        worst = max(float((own - fast).abs().max()) for own, fast in pairs)
        if not all(bool(((own - fast).abs() <= near - slope * own).all()) for own, fast in pairs):
            raise ModelError(
                f"this kind of model ({type(self._model).__name__}) is not supported "
                f"(log-probabilities differ by {worst:.3g} from its own)",
                remedy="serve it with vLLM or llama.cpp and use openai:MODEL@URL",
            )

    @torch.inference_mode()
    def _check_rounding(self) -> None:
        """Compare the distributions in 8 bits with those before: rounding changes them a little, an error entirely."""
        with torch_errors():
            rounded = self.logits(self.hidden(self._few)[0]).log_softmax(-1)
        distance = float((rounded.exp() - self._plain.exp()).abs().sum(-1).mean() / 2)
        if not distance < MAX_DISTANCE:
            raise ModelError(
                f"in float8, this model's distributions differ from its own by {distance:.2f} (total variation)",
                expected=f"less than {MAX_DISTANCE}",
                remedy="dtype=bfloat16",
            )


def _compile(body: Any) -> None:
    """Compile the parts that move much memory for little arithmetic; attention and caches stay as they are."""
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, RECOMPILE_LIMIT)
    for module in body.modules():
        if isinstance(module, Float8Linear) or type(module).__name__.endswith(("Norm", "MLP")):
            module.compile()
        if type(module).__name__.endswith("Attention"):
            _compile_rotation(sys.modules[type(module).__module__])


def _compile_rotation(family: Any) -> None:
    """Compile a family's rotation of queries and keys, for its models on a GPU.

    PyTorch makes variables of the sizes that it sees change, as the number of heads and their width do if a process
    uses two models of a family. With all sizes as variables, the rotation takes ten times as long. Some families rotate
    one at a time, and have no keys.
    """
    plain = getattr(family, ROTATION, None)
    if plain is None or hasattr(plain, "compiled"):
        return
    compiled = torch.compile(plain)

    def rotate(*args: Any, **kwargs: Any) -> Any:
        states = [each for each in args[:2] if isinstance(each, torch.Tensor) and each.ndim == 4]
        if not (states and states[0].is_cuda):
            return plain(*args, **kwargs)
        if len(states) == 2:
            for each in states:
                torch._dynamo.mark_static(each, [1, 3])
        return compiled(*args, **kwargs)

    rotate.compiled = compiled  # type: ignore[attr-defined]
    setattr(family, ROTATION, rotate)


def _has_windows(model: Any) -> bool:
    """True if some tokens see only a window of the preceding ones."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or ()
    named = any(getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size"))
    return any(kind != "full_attention" for kind in kinds) if kinds else named


def _attends_to_all(model: Any) -> bool:
    """True if every token sees all before it, by plain attention: no window, no capped scores, no slopes."""
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


class TorchDecoding:
    """Rows being extended.

    Prompts are padded at the end, and the padding is masked from then on. A model with a sliding window would lose part
    of it to the padding, so its prompts are padded in front, including the prefix.
    """

    @torch.inference_mode()
    def __init__(
        self,
        runtime: TorchRuntime,
        rows: Sequence[list[int]],
        prefix: SharedPrefix | None,
        *,
        padded_in_front: bool = False,
    ) -> None:
        self._runtime = runtime
        self._cache = DynamicCache(config=runtime.config)
        with torch_errors():
            if padded_in_front:
                self._read_padded_in_front([[*(prefix.ids if prefix else []), *row] for row in rows])
            else:
                self._read_padded_at_the_end(rows, prefix)

    def _read_padded_at_the_end(self, rows: Sequence[list[int]], prefix: SharedPrefix | None) -> None:
        device = self._runtime.device
        before = 0
        if prefix is not None:
            before = int(prefix.get_seq_length())
            for number in range(len(prefix.layers)):
                self._cache.update(*prefix.repeated(number, len(rows)), number)
        ids = self._runtime.pad(rows)
        hidden = self._runtime.hidden(ids, self._cache)
        lengths = torch.tensor([len(row) for row in rows], device=device)
        self.hidden = hidden[torch.arange(len(rows), device=device), lengths - 1]
        self._positions = lengths + before
        seen = torch.arange(ids.shape[1], device=device)[None] < lengths[:, None]
        self._mask = torch.cat([seen.new_ones(len(rows), before), seen], dim=1)

    def _read_padded_in_front(self, rows: Sequence[list[int]]) -> None:
        device, longest = self._runtime.device, max(len(row) for row in rows)
        ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows], device=device)
        self._positions = torch.tensor([len(row) for row in rows], device=device)
        self._mask = torch.arange(longest, device=device)[None] >= longest - self._positions[:, None]
        places = (self._mask.long().cumsum(-1) - 1).clamp(min=0)
        hidden = self._runtime.hidden(ids, self._cache, attention_mask=self._mask.long(), position_ids=places)
        self.hidden = hidden[:, -1]

    @torch.inference_mode()
    def pick(self, draws: Sequence[SamplingDraw]) -> NextTokens:
        """Pick a token for every row; entropies are computed if any row asks for them."""
        parts, chunk = [], self._runtime.chunk
        with torch_errors():
            for number, hidden in enumerate(self.hidden.split(chunk)):
                logits = self._runtime.logits(hidden)
                total = logits.logsumexp(-1, keepdim=True)
                ids = _pick(logits, draws[number * chunk :][:chunk])
                wanted = any(draw.detail == "entropies" for draw in draws)
                entropies = row_entropies(logits, total) if wanted else torch.full_like(total[:, 0], torch.nan)
                logprobs = (logits.gather(1, ids[:, None].clamp(min=0)) - total)[:, 0]
                parts.append((ids, logprobs, entropies))
        return NextTokens(*(torch.cat(values).tolist() for values in zip(*parts, strict=True)))

    @torch.inference_mode()
    def step(self, ids: Sequence[int], keep: Sequence[int]) -> None:
        """Extend the rows that continue, and drop the others."""
        with torch_errors():
            if len(keep) < len(self._mask):
                index = torch.tensor(keep, device=self._mask.device)
                self._cache.batch_select_indices(index)
                self._mask, self._positions = self._mask[index], self._positions[index]
            self._mask = torch.cat([self._mask, self._mask.new_ones(len(keep), 1)], dim=1)
            new = torch.tensor(ids, device=self._mask.device)[:, None]
            self.hidden = self._runtime.hidden(
                new, self._cache, attention_mask=self._mask.long(), position_ids=self._positions[:, None]
            )[:, 0]
            self._positions = self._positions + 1


def row_entropies(logits: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """Entropy in nats of each row of logits; a token of probability 0 adds nothing."""
    logs = logits - total
    return -torch.where(logs > -1e4, logs.exp() * logs, 0.0).sum(-1)


def _pick(logits: torch.Tensor, draws: Sequence[SamplingDraw]) -> torch.Tensor:
    """For each row: greedy, or where the uniform number falls among the tokens in descending order of probability."""
    greedy = logits.argmax(-1)
    if all(draw.temperature <= 0 for draw in draws):
        return torch.where(logits.amax(-1).isfinite(), greedy, NO_TOKEN)
    heat, nucleus, uniform = torch.tensor([draw[:3] for draw in draws], device=logits.device, dtype=logits.dtype).T[
        ..., None
    ]
    is_sampled = heat > 0
    probabilities, order = (logits / torch.where(is_sampled, heat, 1.0)).softmax(-1).sort(descending=True, stable=True)
    reached = probabilities.cumsum(-1)
    # The smallest set with probability top_p: all tokens whose predecessors sum to less.
    last = ((reached - probabilities < nucleus).sum(-1, keepdim=True) - 1).clamp(min=0)
    place = torch.searchsorted(reached, uniform * reached.gather(1, last), right=True)
    picked = torch.where(is_sampled[:, 0], order.gather(1, torch.minimum(place, last))[:, 0], greedy)
    return torch.where(probabilities[:, 0].isfinite(), picked, NO_TOKEN)


@contextmanager
def torch_errors() -> Iterator[None]:
    """Turn PyTorch's out-of-memory errors into MemoryError."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        torch.cuda.empty_cache()
        raise MemoryError(str(error)) from error
    except RuntimeError as error:
        if "not enough memory" in str(error) or find_shortage(error) == "memory":
            raise MemoryError(str(error)) from error
        raise
