"""vLLM and SGLang in miniature: their Python interfaces as documented, computed by the transformers library.

Tests put modules of these names on the path (`install`), also for the actors of a Ray cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

VISIBLE = 20


def install(folder: Path) -> Path:
    """Write the modules ``vllm`` and ``sglang`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, contents in (("vllm", "LLM, SamplingParams"), ("sglang", "Engine")):
        (folder / f"{name}.py").write_text(f"from tests.llm.engine_fakes import {contents}\n")
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
    ) -> None:
        assert load_format == "safetensors"
        assert not trust_remote_code
        self._decoder = Decoder(model, dtype, max_model_len)

    def generate(self, prompts: list[dict[str, list[int]]], params: Any, use_tqdm: bool = True) -> list[Any]:
        each = params if isinstance(params, list) else [params] * len(prompts)
        return [self._one(one["prompt_token_ids"], how) for one, how in zip(prompts, each, strict=True)]

    def _one(self, ids: list[int], how: SamplingParams) -> Any:
        made, rows, finish = self._decoder.extend(
            ids, how.max_tokens, how.temperature, how.stop or [], how.stop_token_ids or [], how.seed or 0
        )
        assert how.logprobs is None or how.logprobs <= VISIBLE
        shown = None if how.logprobs is None else [_top(r, t, how.logprobs) for r, t in zip(rows, made, strict=True)]
        before = None
        if how.prompt_logprobs is not None:
            logs = self._decoder.logprobs(ids)
            places = [max(place - 1 - self.shift, 0) for place in range(1, len(ids))]
            before = [
                None,
                *(_top(logs[p], token, how.prompt_logprobs) for p, token in zip(places, ids[1:], strict=True)),
            ]
        output = SimpleNamespace(token_ids=made, logprobs=shown, finish_reason=finish, text="")
        return SimpleNamespace(outputs=[output], prompt_logprobs=before)


def _top(logs: Any, own: int, number: int) -> dict[int, Any]:
    tokens = [*logs.topk(number).indices.tolist(), own] if number else [own]
    return {token: SimpleNamespace(logprob=float(logs[token])) for token in tokens}


class Engine:
    """SGLang's class for use without a server."""

    closed = False

    def __init__(
        self,
        model_path: str,
        dtype: str,
        context_length: int,
        tp_size: int,
        mem_fraction_static: float,
        load_format: str,
        trust_remote_code: bool,
        log_level: str,
    ) -> None:
        assert load_format == "safetensors"
        assert not trust_remote_code
        self._decoder = Decoder(model_path, dtype, context_length)

    def generate(
        self,
        input_ids: list[list[int]],
        sampling_params: Any,
        return_logprob: bool = False,
        logprob_start_len: Any = -1,
        token_ids_logprob: list[list[int]] | None = None,
    ) -> list[dict[str, Any]]:
        assert return_logprob
        size = len(input_ids)
        how = sampling_params if isinstance(sampling_params, list) else [sampling_params] * size
        starts = logprob_start_len if isinstance(logprob_start_len, list) else [logprob_start_len] * size
        wanted = token_ids_logprob or [[] for _ in input_ids]
        return [{"meta_info": self._one(*each)} for each in zip(input_ids, how, starts, wanted, strict=True)]

    def _one(self, ids: list[int], how: dict[str, Any], start: int, wanted: list[int]) -> dict[str, Any]:
        temperature = how["temperature"]
        made, rows, finish = self._decoder.extend(
            ids, how["max_new_tokens"], temperature, how.get("stop") or [], how.get("stop_token_ids") or [], 0
        )
        scaled = [(row / (temperature or 1.0)).log_softmax(-1) for row in rows]
        found: dict[str, Any] = {
            "output_token_logprobs": [(float(row[t]), t, None) for row, t in zip(scaled, made, strict=True)],
            "output_token_ids_logprobs": [[(float(row[t]), t, None) for t in wanted] for row in scaled],
            "finish_reason": {"type": finish},
        }
        if start >= 0:
            logs = self._decoder.logprobs(ids)
            shown = [(float(logs[place - 1, ids[place]]), ids[place], None) for place in range(start + 1, len(ids))]
            found["input_token_logprobs"] = [(None, ids[start], None), *shown]
        return found

    def shutdown(self) -> None:
        type(self).closed = True
