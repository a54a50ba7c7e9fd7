"""``vllm:NAME_OR_FOLDER``: a model of the transformers library, run by vLLM without a server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from ragworth.llm.contract import Generate
from ragworth.llm.local.runtime import Continuation
from ragworth.llm.local.serving_runtime import check_finish
from ragworth.llm.serving import EngineSettings, open_served

VISIBLE = 20
"""Likeliest next tokens that vLLM shows at most, unless it is started with another limit."""


class VllmEngine:
    """vLLM as `ServingEngine`."""

    def __init__(self, settings: EngineSettings) -> None:
        for name in ("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"):  # it reports its use otherwise
            os.environ[name] = "1"
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ["VLLM_LOGGING_STREAM"] = "ext://sys.stderr"  # standard output is for results
        import vllm

        self._parameters = vllm.SamplingParams
        self._ends = list(settings.ends)
        self._llm: Any = vllm.LLM(
            model=str(settings.folder),
            dtype=settings.dtype,
            max_model_len=settings.context_length,
            tensor_parallel_size=settings.gpus,
            gpu_memory_utilization=settings.memory,
            load_format="safetensors",
            trust_remote_code=False,
        )

    def score_next(self, prompts: Sequence[list[int]], wanted: Sequence[list[int]]) -> list[list[float]]:
        """The likeliest tokens are shown; others are put after the prompt and scored there."""
        reading = self._parameters(max_tokens=1, temperature=0.0, logprobs=VISIBLE, detokenize=False)
        visible = [one.outputs[0].logprobs[0] for one in self._ask(prompts, reading)]
        hidden = [
            [*prompt, token]
            for prompt, tokens, logprobs in zip(prompts, wanted, visible, strict=True)
            for token in tokens
            if token not in logprobs
        ]
        others = iter(self.score_rows(hidden, [len(row) - 1 for row in hidden]) if hidden else [])
        return [
            [float(logprobs[token].logprob) if token in logprobs else next(others)[0] for token in tokens]
            for tokens, logprobs in zip(wanted, visible, strict=True)
        ]

    def score_rows(self, rows: Sequence[list[int]], firsts: Sequence[int]) -> list[list[float]]:
        reading = self._parameters(max_tokens=1, temperature=0.0, prompt_logprobs=1, detokenize=False)
        return [
            [float(one.prompt_logprobs[place][row[place]].logprob) for place in range(first, len(row))]
            for row, first, one in zip(rows, firsts, self._ask(rows, reading), strict=True)
        ]

    def generate(self, asked: Sequence[tuple[Generate, list[int], int]]) -> list[Continuation]:
        parameters = [
            self._parameters(
                max_tokens=request.max_tokens,
                temperature=request.temperature,
                top_p=request.top_p if request.temperature > 0 else 1.0,
                seed=seed if request.temperature > 0 else None,
                stop=list(request.stop) or None,
                stop_token_ids=self._ends,
                logprobs=0,
            )
            for request, _, seed in asked
        ]
        texts = [one.outputs[0] for one in self._ask([ids for _, ids, _ in asked], parameters)]
        return [
            Continuation(
                list(one.token_ids),
                [float(logprobs[token].logprob) for token, logprobs in zip(one.token_ids, one.logprobs, strict=True)],
                check_finish(one.finish_reason, "vLLM"),
            )
            for one in texts
        ]

    def close(self) -> None:
        """Let go of the engine, which ends its processes."""
        self._llm = None

    def _ask(self, rows: Sequence[list[int]], parameters: Any) -> list[Any]:
        return list(self._llm.generate([{"prompt_token_ids": row} for row in rows], parameters, use_tqdm=False))


open_model = partial(open_served, "vllm", VllmEngine)
