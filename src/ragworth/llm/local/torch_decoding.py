"""Extend rows token by token with decoders of the transformers library."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from transformers import DynamicCache

from ragworth.core.resources import find_shortage
from ragworth.llm.local.runtime import NextTokens, SamplingDraw

BFLOAT16_WARNING = r"(?is).*\b(bf16|bfloat16)"
"""PyTorch's warnings about CPUs without bfloat16 instructions."""


class Decoder(Protocol):
    """A model that reads tokens, and the device that it is on."""

    config: Any
    device: torch.device

    @property
    def chunk(self) -> int:
        """Rows that go through the output head at a time."""

    def pad(self, rows: Sequence[list[int]]) -> torch.Tensor:
        """The ids of the rows, padded at the end."""

    def hidden(self, ids: torch.Tensor, cache: Any = None, **kwargs: Any) -> torch.Tensor:
        """Hidden states of the last layer."""

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The logits of hidden states, in float32."""


class SharedPrefix(DynamicCache):
    """Keys and values of a prefix, given to every row of a batch and never extended."""

    ids: list[int]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        layer, rows = self.layers[layer_idx], key_states.shape[0]
        keys, values = (kept.expand(rows, -1, -1, -1) for kept in (layer.keys, layer.values))
        return torch.cat([keys, key_states], dim=-2), torch.cat([values, value_states], dim=-2)


class TorchDecoding:
    """Rows being extended.

    Prompts are padded at the end, and the padding is masked from then on. A model with a sliding window would lose part
    of it to the padding, so its prompts are padded in front, including the prefix.
    """

    @torch.inference_mode()
    def __init__(
        self,
        runtime: Decoder,
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
            for number, layer in enumerate(prefix.layers):
                keys, values = (kept.expand(len(rows), -1, -1, -1) for kept in (layer.keys, layer.values))
                self._cache.update(keys, values, number)
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
        """Pick a token for every row; log-probability and entropy are those of the unmodified distribution."""
        ids, logs, chaos = [], [], []
        start = 0
        with torch_errors():
            for hidden in self.hidden.split(self._runtime.chunk):
                logits = self._runtime.logits(hidden)
                total = logits.logsumexp(-1, keepdim=True)
                picked = _pick(logits, draws[start : start + len(hidden)])
                ids.append(picked)
                logs.append((logits.gather(1, picked[:, None]) - total)[:, 0])
                chaos.append(row_entropies(logits, total))
                start += len(hidden)
        return NextTokens(torch.cat(ids).tolist(), torch.cat(logs).tolist(), torch.cat(chaos).tolist())

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
def torch_errors() -> Iterator[None]:
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
        if "not enough memory" in str(error) or find_shortage(error) == "memory":
            raise MemoryError(str(error)) from error
        raise
