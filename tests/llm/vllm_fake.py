"""vLLM in miniature: its Python interface as documented, computed by the transformers library.

Tests put a module of this name on the path (`install`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def install(folder: Path) -> Path:
    """Write the module ``vllm`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vllm.py").write_text("from tests.llm.vllm_fake import LLM, SamplingParams\n")
    return folder


class Decoder:
    """A model, and how it continues a row."""

    def __init__(self, folder: str, dtype: str, longest: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
        self.longest = longest

    def logprobs(self, ids: list[int]) -> Any:
        import torch

        with torch.inference_mode():
            return self.model(input_ids=torch.tensor([ids])).logits[0].float().log_softmax(-1)

    def extend(self, ids: list[int], most: int, temperature: float, stop: list[str], ends: list[int], seed: int) -> Any:
        """Tokens with the distribution each was drawn from, and why they end; the token that ends a turn is among
        them."""
        import torch

        if len(ids) + most > self.longest:
            raise ValueError(f"{len(ids)} tokens and {most} to come are more than {self.longest}")
        draw = torch.Generator().manual_seed(seed)
        made: list[int] = []
        rows = []
        while len(made) < most:
            logs = self.logprobs([*ids, *made])[-1]
            scaled = (logs / temperature).softmax(-1) if temperature else None
            token = int(logs.argmax() if scaled is None else torch.multinomial(scaled, 1, generator=draw))
            made.append(token)
            rows.append(logs)
            if token in ends or token == self.tokenizer.eos_token_id:
                return made, rows, "stop"
            if any(text in self.tokenizer.decode(made) for text in stop):
                return made, rows, "stop"
        return made, rows, "length"


@dataclass
class SamplingParams:
    max_tokens: int = 16
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    stop: list[str] | None = None
    stop_token_ids: list[int] | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    flat_logprobs: bool = False
    detokenize: bool = True


class LLM:
    """vLLM's class for use without a server."""

    shift = 0
    """Places by which prompts' log-probabilities are wrong, in a faulty version."""

    def __init__(
        self,
        model: str,
        dtype: str,
        max_model_len: int,
        tensor_parallel_size: int,
        gpu_memory_utilization: float,
        load_format: str,
        trust_remote_code: bool,
        max_logprobs: int,
        quantization: str | None,
    ) -> None:
        assert load_format == "safetensors"
        assert not trust_remote_code
        assert quantization in (None, "fp8")
        assert os.environ["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"
        self._most = max_logprobs
        self._decoder = Decoder(model, dtype, max_model_len)

    def generate(self, prompts: list[dict[str, list[int]]], params: Any, use_tqdm: bool = True) -> list[Any]:
        each = params if isinstance(params, list) else [params] * len(prompts)
        return [self._one(one["prompt_token_ids"], how) for one, how in zip(prompts, each, strict=True)]

    def _one(self, ids: list[int], how: SamplingParams) -> Any:
        made, rows, finish = self._decoder.extend(
            ids, how.max_tokens, how.temperature, how.stop or [], how.stop_token_ids or [], how.seed or 0
        )
        assert how.detokenize or not how.stop
        sampled: Any = None
        if how.logprob_token_ids:
            assert len(set(how.logprob_token_ids)) == len(how.logprob_token_ids) <= self._most
            sampled = [_entries(row, [token, *how.logprob_token_ids]) for row, token in zip(rows, made, strict=True)]
        elif how.logprobs is not None:
            sampled = [_top(r, t, how.logprobs) for r, t in zip(rows, made, strict=True)]
        before: Any = None
        if how.prompt_logprobs is not None:
            logs = self._decoder.logprobs(ids)
            places = [max(place - 1 - self.shift, 0) for place in range(1, len(ids))]
            before = [
                None,
                *(_top(logs[p], token, how.prompt_logprobs) for p, token in zip(places, ids[1:], strict=True)),
            ]
        if how.flat_logprobs:
            sampled, before = _flat(sampled), _flat(before)
        output = SimpleNamespace(token_ids=made, logprobs=sampled, finish_reason=finish, text="")
        return SimpleNamespace(outputs=[output], prompt_logprobs=before)


def _top(logs: Any, own: int, number: int) -> dict[int, Any]:
    return _entries(logs, [*logs.topk(number).indices.tolist(), own] if number else [own])


def _entries(logs: Any, tokens: list[int]) -> dict[int, Any]:
    return {token: SimpleNamespace(logprob=float(logs[token])) for token in tokens}


def _flat(positions: list[dict[int, Any] | None] | None) -> Any:
    """vLLM's FlatLogprobs: the entries of all positions one after another. The first token of a prompt has none."""
    if positions is None:
        return None
    entries = [entry for position in positions if position for entry in position.items()]
    return SimpleNamespace(token_ids=[token for token, _ in entries], logprobs=[value.logprob for _, value in entries])
