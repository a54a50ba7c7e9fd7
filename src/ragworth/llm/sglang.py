"""``sglang:NAME_OR_FOLDER``: a model of the transformers library, run by SGLang without a server.

It samples without a seed.
"""

from __future__ import annotations

import atexit
import multiprocessing
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any

from ragworth.errors import ModelError
from ragworth.llm.contract import Generate
from ragworth.llm.local.runtime import Continuation
from ragworth.llm.local.serving_runtime import check_finish
from ragworth.llm.serving import EngineSettings, open_served

READING = {"max_new_tokens": 1, "temperature": 0.0}


class SglangEngine:
    """SGLang as `ServingEngine`."""

    def __init__(self, settings: EngineSettings) -> None:
        import sglang

        self._ends = list(settings.ends)
        others = set(multiprocessing.active_children())
        self._engine: Any = sglang.Engine(
            model_path=str(settings.folder),
            dtype=settings.dtype,
            context_length=settings.context_length,
            tp_size=settings.gpus,
            mem_fraction_static=settings.memory,
            load_format="safetensors",
            trust_remote_code=False,
            log_level="error",
        )
        self._children = [child for child in multiprocessing.active_children() if child not in others]
        # SGLang stops all processes that this one has started, at its end too.
        if self._children:
            atexit.unregister(self._engine.shutdown)
            atexit.register(self.close)

    def score_next(self, prompts: Sequence[list[int]], wanted: Sequence[list[int]]) -> list[list[float]]:
        outputs = self._ask(
            prompts, READING, logprob_start_len=-1, token_ids_logprob=[list(tokens) for tokens in wanted]
        )
        logprobs = [{entry[1]: float(entry[0]) for entry in one["output_token_ids_logprobs"][0]} for one in outputs]
        return [[values[token] for token in tokens] for tokens, values in zip(wanted, logprobs, strict=True)]

    def score_rows(self, rows: Sequence[list[int]], firsts: Sequence[int]) -> list[list[float]]:
        """The first token that is shown has no log-probability, so it is the one before."""
        outputs = self._ask(rows, READING, logprob_start_len=[first - 1 for first in firsts])
        return [
            _own_logprobs(one["input_token_logprobs"], row[first:])
            for row, first, one in zip(rows, firsts, outputs, strict=True)
        ]

    def generate(self, asked: Sequence[tuple[Generate, list[int], int]]) -> list[Continuation]:
        """Log-probabilities are those before temperature and top_p, for which sampled texts are read again."""
        parameters = [
            {
                "max_new_tokens": request.max_tokens,
                "temperature": request.temperature,
                "top_p": request.top_p if request.temperature > 0 else 1.0,
                "stop": list(request.stop) or None,
                "stop_token_ids": self._ends,
            }
            for request, _, _ in asked
        ]
        texts = [
            Continuation(
                [entry[1] for entry in one["output_token_logprobs"]],
                [float(entry[0]) for entry in one["output_token_logprobs"]],
                check_finish(one["finish_reason"]["type"], "SGLang"),
            )
            for one in self._ask([ids for _, ids, _ in asked], parameters, logprob_start_len=-1)
        ]
        rescored = [
            n
            for n, (request, _, _) in enumerate(asked)
            if request.detail != "text" and _is_changed(request) and texts[n].ids
        ]
        rows = [[*asked[n][1], *texts[n].ids] for n in rescored]
        values = self.score_rows(rows, [len(asked[n][1]) for n in rescored]) if rows else []
        for n, logprobs in zip(rescored, values, strict=True):
            texts[n] = texts[n]._replace(logprobs=logprobs)
        return texts

    def close(self) -> None:
        """Stop the processes that were started with the engine; if none is known, all that this one has started."""
        if not self._children:
            self._engine.shutdown()
            return
        atexit.unregister(self.close)
        watchdog = getattr(getattr(self._engine, "tokenizer_manager", None), "_subprocess_watchdog", None)
        if watchdog is not None:
            watchdog.stop()  # or it would end this program, too, when it finds them dead
        for child in self._children:
            _kill_tree(child)

    def _ask(self, rows: Sequence[list[int]], parameters: Any, **more: Any) -> list[dict[str, Any]]:
        outputs = self._engine.generate(input_ids=list(rows), sampling_params=parameters, return_logprob=True, **more)
        return [one["meta_info"] for one in outputs]


def _kill_tree(child: BaseProcess) -> None:
    """Kill a process and those that it has started."""
    import psutil  # which SGLang needs

    started: list[Any] = []
    if child.is_alive():  # the number of a dead one may be another process's by now
        with suppress(psutil.NoSuchProcess):
            started = psutil.Process(child.pid).children(recursive=True)
    child.kill()
    child.join()
    for each in started:
        with suppress(psutil.NoSuchProcess):
            each.kill()


def _is_changed(request: Generate) -> bool:
    """Whether a text is drawn from another distribution than the model's own."""
    return request.temperature > 0 and (request.temperature != 1 or request.top_p < 1)


def _own_logprobs(entries: Sequence[Sequence[Any]], tokens: Sequence[int]) -> list[float]:
    """Log-probabilities of the last tokens of a row."""
    last = list(entries)[-len(tokens) :]
    if [entry[1] for entry in last] != list(tokens) or any(entry[0] is None for entry in last):
        raise ModelError("SGLang shows other tokens than the prompt's", remedy="another version of sglang, or use hf:")
    return [float(entry[0]) for entry in last]


open_model = partial(open_served, "sglang", SglangEngine)
