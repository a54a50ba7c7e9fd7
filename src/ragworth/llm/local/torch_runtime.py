"""Run decoders of the transformers library on the CPU or a GPU.

Rows are padded at the end: a causal model can't see what follows, so no mask is needed and the padding has no effect.
Only the requested positions go through the output head, a few at a time, so no tensor of batch × length × vocabulary
ever exists. A prefix shared by all rows is read once.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, NamedTuple

import torch
from transformers import DynamicCache

from ragworth.errors import ModelError
from ragworth.llm.local.float8 import Float8Linear, to_float8
from ragworth.llm.local.int8_torch import to_int8
from ragworth.llm.local.runtime import NextTokens, RowLogprobs, SamplingDraw, TokenRow

MAX_LOGITS = 1 << 26
"""Maximum logits in memory while computing probabilities and entropies."""

BFLOAT16_WARNING = r"(?is).*\b(bf16|bfloat16)"
"""PyTorch's warnings about CPUs without bfloat16 instructions."""

ATTENTION = "ragworth-causal"
"""The name of our attention in the transformers library."""


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
        layer, rows = self.layers[layer_idx], key_states.shape[0]
        keys, values = (kept.expand(rows, -1, -1, -1) for kept in (layer.keys, layer.values))
        return torch.cat([keys, key_states], dim=-2), torch.cat([values, value_states], dim=-2)


class TorchRuntime:
    """A loaded causal language model.

    ``rounding`` is how it multiplies in 8 bits: ``float8``, or ``int8`` as the embedded models do. ``compiled`` lets
    PyTorch fuse the small steps of each layer: slower to start, faster on a GPU.
    """

    def __init__(
        self, model: Any, name: str, *, rounding: Literal["", "float8", "int8"] = "", compiled: bool = False
    ) -> None:
        self.name = name
        self.context: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._model = model.eval()
        self._body = model.get_decoder() if hasattr(model, "get_decoder") else model.base_model
        self._head = model.get_output_embeddings()
        self.tokens = min(int(self._head.weight.shape[0]), int(model.get_input_embeddings().weight.shape[0]))
        self._device = next(model.parameters()).device
        self._plain = self._sample(model)
        if self._device.type == "cuda" and _attends_to_all(model):
            _register_attention()
            model.set_attn_implementation(ATTENTION)
        self._rotation = _compile(self._body) if compiled and not rounding else None
        self._check()
        if rounding:
            self._round(rounding)
            self._rotation = _compile(self._body) if compiled else None
            self._check_rounding(rounding)

    def _round(self, rounding: str) -> None:
        if rounding == "float8":
            to_float8(self._body)
        else:
            to_int8(self._model)
            self._model.to(self._device)
            self._head = self._model.get_output_embeddings()

    @torch.inference_mode()
    def prefix(self, ids: Sequence[int]) -> SharedPrefix:
        """Compute keys and values of the prefix."""
        cache = DynamicCache(config=self._model.config)
        with _torch_errors():
            self._body(input_ids=self._ids([list(ids)]), past_key_values=cache, use_cache=True)
        shared = SharedPrefix(config=self._model.config)
        shared.layers, shared.ids = cache.layers, list(ids)
        return shared

    @torch.inference_mode()
    def read(self, rows: Sequence[TokenRow], prefix: SharedPrefix | None = None) -> list[RowLogprobs]:
        """Read the padded batch in one pass, then the wanted positions through the head."""
        with _torch_errors():
            hidden = self._hidden(self._ids([row.ids for row in rows]), prefix)
            at = [(i, row.first + j) for i, row in enumerate(rows) for j in range(len(row.wanted))]
            wanted = [tokens for row in rows for tokens in row.wanted]
            width = max(len(tokens) for tokens in wanted)
            padded = torch.tensor([tokens + [0] * (width - len(tokens)) for tokens in wanted], device=self._device)
            index = torch.tensor(at, device=self._device)
            logs, entropies = [], []
            for part, tokens in zip(*(t.split(self._chunk) for t in (index, padded)), strict=True):
                logits = self._logits(hidden[part[:, 0], part[:, 1]])
                total = logits.logsumexp(-1, keepdim=True)
                logs.append(logits.gather(1, tokens) - total)
                entropies.append(_entropy(logits, total))
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
        state: TorchDecoding = TorchDecoding(self, rows, prefix)
        return state

    @property
    def _chunk(self) -> int:
        return max(1, MAX_LOGITS // int(self._head.weight.shape[0]))

    def _ids(self, rows: Sequence[list[int]]) -> torch.Tensor:
        longest = max(len(row) for row in rows)
        return torch.tensor([row + [0] * (longest - len(row)) for row in rows], device=self._device)

    def _hidden(self, ids: torch.Tensor, cache: Any = None, **kwargs: Any) -> torch.Tensor:
        """Hidden states of the last layer."""
        with self._rotation.used() if self._rotation is not None else nullcontext():
            out = self._body(input_ids=ids, past_key_values=cache, use_cache=cache is not None, **kwargs)
        hidden: torch.Tensor = out.last_hidden_state
        return hidden

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The output head in float32, with the transformations that some families apply to their logits."""
        weight, bias = self._head.weight, getattr(self._head, "bias", None)
        if hidden.is_cuda and weight.dtype != torch.float32 and bias is None:
            logits = torch.mm(hidden, weight.t(), out_dtype=torch.float32)  # logits are not rounded to 8 bits
        else:
            logits = self._head(hidden).float()
        config = self._model.config
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
        with _torch_errors():
            logs: torch.Tensor = model(input_ids=self._few).logits[0].float().log_softmax(-1)
        return logs

    @property
    def _few(self) -> torch.Tensor:
        size = min(int(self._head.weight.shape[0]), 1000)
        return (torch.arange(24, device=self._device)[None] * 37 + 11) % size

    @torch.inference_mode()
    def _check(self) -> None:
        """Compare the fast path (own attention, shared prefix, partial head) with the model's own forward pass."""
        plain, ids = self._plain, self._few
        with _torch_errors():
            ours = self._logits(self._hidden(ids)[0]).log_softmax(-1)
            after = self._logits(self._hidden(ids[:, 8:], self.prefix(ids[0, :8].tolist()))[0]).log_softmax(-1)
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
    def _check_rounding(self, rounding: str) -> None:
        """Compare the distributions in 8 bits with those before: rounding changes them a little, an error entirely."""
        with _torch_errors():
            found = self._logits(self._hidden(self._few)[0]).log_softmax(-1)
        distance = float((found.exp() - self._plain.exp()).abs().sum(-1).mean() / 2)
        if not distance < MAX_DISTANCE:
            raise ModelError(
                f"in {rounding}, this model's distributions differ from its own by {distance:.2f} (total variation)",
                expected=f"less than {MAX_DISTANCE}",
                remedy="dtype=bfloat16",
            )


class TorchDecoding:
    """Rows being extended.

    Prompts are padded at the end, and the padding is masked from then on. A model with a sliding window would lose part
    of it to the padding, so its prompts are padded in front, including the prefix.
    """

    @torch.inference_mode()
    def __init__(self, runtime: TorchRuntime, rows: Sequence[list[int]], prefix: SharedPrefix | None) -> None:
        self._runtime = runtime
        self._cache = DynamicCache(config=runtime._model.config)
        with _torch_errors():
            if _has_windows(runtime._model):
                self._read_padded_in_front([[*(prefix.ids if prefix else []), *row] for row in rows])
            else:
                self._read_padded_at_the_end(rows, prefix)

    def _read_padded_at_the_end(self, rows: Sequence[list[int]], prefix: SharedPrefix | None) -> None:
        device = self._runtime._device
        before = 0
        if prefix is not None:
            before = int(prefix.get_seq_length())
            for number, layer in enumerate(prefix.layers):
                keys, values = (kept.expand(len(rows), -1, -1, -1) for kept in (layer.keys, layer.values))
                self._cache.update(keys, values, number)
        ids = self._runtime._ids(rows)
        hidden = self._runtime._hidden(ids, self._cache)
        lengths = torch.tensor([len(row) for row in rows], device=device)
        self._hidden = hidden[torch.arange(len(rows), device=device), lengths - 1]
        self._positions = lengths + before
        seen = torch.arange(ids.shape[1], device=device)[None] < lengths[:, None]
        self._mask = torch.cat([seen.new_ones(len(rows), before), seen], dim=1)

    def _read_padded_in_front(self, rows: Sequence[list[int]]) -> None:
        device, longest = self._runtime._device, max(len(row) for row in rows)
        ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows], device=device)
        self._positions = torch.tensor([len(row) for row in rows], device=device)
        self._mask = torch.arange(longest, device=device)[None] >= longest - self._positions[:, None]
        places = (self._mask.long().cumsum(-1) - 1).clamp(min=0)
        hidden = self._runtime._hidden(ids, self._cache, attention_mask=self._mask.long(), position_ids=places)
        self._hidden = hidden[:, -1]

    @torch.inference_mode()
    def pick(self, draws: Sequence[SamplingDraw]) -> NextTokens:
        """Pick a token for every row; log-probability and entropy are those of the unmodified distribution."""
        ids, logs, chaos = [], [], []
        start = 0
        with _torch_errors():
            for hidden in self._hidden.split(self._runtime._chunk):
                logits = self._runtime._logits(hidden)
                total = logits.logsumexp(-1, keepdim=True)
                picked = _pick(logits, draws[start : start + len(hidden)])
                ids.append(picked)
                logs.append((logits.gather(1, picked[:, None]) - total)[:, 0])
                chaos.append(_entropy(logits, total))
                start += len(hidden)
        return NextTokens(torch.cat(ids).tolist(), torch.cat(logs).tolist(), torch.cat(chaos).tolist())

    @torch.inference_mode()
    def step(self, ids: Sequence[int], keep: Sequence[int]) -> None:
        """Extend the rows that continue, and drop the others."""
        with _torch_errors():
            if len(keep) < len(self._mask):
                index = torch.tensor(keep, device=self._mask.device)
                self._cache.batch_select_indices(index)
                self._mask, self._positions = self._mask[index], self._positions[index]
            self._mask = torch.cat([self._mask, self._mask.new_ones(len(keep), 1)], dim=1)
            new = torch.tensor(ids, device=self._mask.device)[:, None]
            self._hidden = self._runtime._hidden(
                new, self._cache, attention_mask=self._mask.long(), position_ids=self._positions[:, None]
            )[:, 0]
            self._positions = self._positions + 1


def _compile(body: Any) -> Rotation | None:
    """Compile the parts that move much memory for little arithmetic; attention and caches stay as they are.

    Returns the family's rotation of queries and keys, compiled.
    """
    families = set()
    for module in body.modules():
        if isinstance(module, Float8Linear) or type(module).__name__.endswith(("Norm", "MLP")):
            module.compile(dynamic=True)
        if type(module).__name__.endswith("Attention"):
            families.add(type(module).__module__)
    family = sys.modules[families.pop()] if len(families) == 1 else None
    plain = getattr(family, ROTATION, None)
    return None if plain is None else Rotation(family, plain, torch.compile(plain, dynamic=True))


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
    return config._attn_implementation == "sdpa" and not _has_windows(model) and not odd


def _register_attention() -> None:
    """Register our attention with the transformers library.

    Without a mask (nothing is padded in front), a fast kernel also serves for rows that follow a prefix; with one
    (decoding), it is the library's own.
    """
    from torch.nn.attention.bias import causal_lower_right
    from torch.nn.functional import scaled_dot_product_attention
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    def attend(
        module: Any, q: Any, k: Any, v: Any, attention_mask: Any, scaling: float | None = None, **kwargs: Any
    ) -> tuple[Any, None]:
        whole = q.shape[2] == k.shape[2]
        mask = attention_mask
        if mask is None and not whole:
            mask = causal_lower_right(q.shape[2], k.shape[2])
        out = scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, scale=scaling, enable_gqa=True
        )
        return out.transpose(1, 2).contiguous(), None

    def mask_of(*args: Any, attention_mask: Any = None, **kwargs: Any) -> Any:
        return None if attention_mask is None else sdpa_mask(*args, attention_mask=attention_mask, **kwargs)

    AttentionInterface.register(ATTENTION, attend)
    AttentionMaskInterface.register(ATTENTION, mask_of)


def _entropy(logits: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """Entropy in nats of each row of logits; a token of probability 0 adds nothing."""
    logs = logits - total
    return -torch.where(logs > -1e4, logs.exp() * logs, 0.0).sum(-1)


def _pick(logits: torch.Tensor, draws: Sequence[SamplingDraw]) -> torch.Tensor:
    """For each row: greedy, or where the uniform number falls among the tokens in descending order of probability."""
    greedy = logits.argmax(-1)
    if all(draw.temperature <= 0 for draw in draws):
        return greedy
    heat, nucleus, uniform = torch.tensor(draws, device=logits.device, dtype=logits.dtype).T[..., None]
    drawn = heat > 0
    probabilities, order = (logits / torch.where(drawn, heat, 1.0)).softmax(-1).sort(descending=True, stable=True)
    reached = probabilities.cumsum(-1)
    # The smallest set with probability top_p: all tokens whose predecessors sum to less.
    last = (reached - probabilities < nucleus).sum(-1, keepdim=True) - 1
    place = torch.searchsorted(reached, uniform * reached.gather(1, last), right=True)
    return torch.where(drawn[:, 0], order.gather(1, torch.minimum(place, last))[:, 0], greedy)


@contextmanager
def _torch_errors() -> Iterator[None]:
    """Run PyTorch quietly, and turn its out-of-memory errors into MemoryError.

    On a CPU without bfloat16 instructions, PyTorch warns that it falls back to slower kernels. The results are right,
    and users who chose bfloat16 can do nothing about it.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=BFLOAT16_WARNING, category=UserWarning)
            yield
    except torch.OutOfMemoryError as error:
        torch.cuda.empty_cache()
        raise MemoryError(str(error)) from error
    except RuntimeError as error:
        if "not enough memory" in str(error) or "can't allocate memory" in str(error):
            raise MemoryError(str(error)) from error
        raise
