"""``vllm:NAME_OR_FOLDER``: a model of the transformers library, run by vLLM without a server.

vLLM batches rows of all lengths as they come. It reports no entropies, which take the whole vocabulary, and what it
computes depends on the batch: the same request asked again may differ by up to 0.03 in a probability.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ragworth.core.errors import ModelError
from ragworth.llm.contract import Card, Generate, Prompt
from ragworth.llm.hf import (
    DTYPES,
    FLOAT8,
    ONLY_HERE,
    build_prompt_encoder,
    find_context_length,
    find_model_folder,
    load_folder,
    load_tokenizer,
    read_json,
    require_transformers,
    resolve_device,
    silence_libraries,
)
from ragworth.llm.local.engine import LOCAL_ABILITIES, Engine
from ragworth.llm.local.prompt_encoding import PromptEncoder
from ragworth.llm.local.runtime import BatchBudget, Continuation, LoadedModel, RowLogprobs, TokenRow
from ragworth.llm.model_files import fingerprint
from ragworth.llm.truncation import parse_on_long

GUARD = re.compile(r"^if __name__ *== *[\"']__main__[\"']", re.MULTILINE)

LABEL_TOKENS = 128
"""Tokens after a prompt whose log-probabilities vLLM gives at most."""

REQUESTS_TOGETHER = 1024
"""Requests that vLLM gets at once; it chooses itself how many to compute together."""

LIKELIEST = 10
"""Next tokens of a prompt that are compared with the transformers library's."""

MAX_DISTANCE = 0.5
"""Up to which vLLM's log-probabilities may differ from the transformers library's, on average."""

CHECK_PROMPTS = (
    "Which river flows through Vienna?",
    "Add 17 and 25, then name the month that follows June.",
    "Translate into French: The library opens at nine, except on Sundays and public holidays.",
    "List three differences between a lake and a pond, in one sentence each, and say which is usually deeper.",
)
"""What vLLM and the transformers library are compared on."""


def open_model(
    rest: str,
    *,
    dtype: str = "auto",
    context_length: int = 0,
    on_long: str = "error",
    revision: str = "main",
    download: bool = False,
    gpus: int = 1,
    memory: float = 0.85,
    check: bool = True,
) -> Engine:
    """Open a model by its name in the local cache, or by its folder. The first request starts vLLM.

    Parameters
    ----------
    dtype: float32, bfloat16 or float16; ``auto`` is bfloat16 on a GPU and float32 elsewhere. ``float8`` multiplies
        in 8 bits, on GPUs that can; the rest is bfloat16.
    context_length: maximum tokens to read; 0 uses the model's configuration.
    on_long: what to do if a prompt is too long: ``error``, or ``cut`` its passages.
    revision: commit, branch or tag of a model on the hub.
    download: download a model that is not in the local cache from the Hugging Face hub.
    gpus: how many GPUs share the model.
    memory: share of a GPU's memory that it may use.
    check: compare it with the transformers library on a few prompts first, which loads the model twice.
    """
    if find_spec("vllm") is None:
        raise ModelError(
            "the package vllm is not installed",
            remedy=f"pip install vllm, in an environment of its own if it needs another PyTorch; or use hf:{rest}",
        )
    require_transformers()
    if dtype not in (*DTYPES, FLOAT8):
        raise ModelError(f"dtype is {dtype!r}", expected=", ".join((*DTYPES, FLOAT8)))
    if gpus < 1 or not 0 < memory <= 1:
        raise ModelError(f"gpus is {gpus} and memory is {memory}", expected="at least 1 GPU, and a share of its memory")
    folder = find_model_folder(rest, revision, download)
    reads = find_context_length(read_json(folder / "config.json"))
    if context_length < 0 or (reads is not None and context_length > reads):
        raise ModelError(f"context_length is {context_length}", expected=f"at most {reads}, which the model reads")
    if not (limit := context_length or reads):
        raise ModelError("its configuration doesn't say how many tokens it reads", file=rest, remedy="context_length=N")
    device = resolve_device("auto")
    dtype = dtype if dtype != "auto" else ("float32" if device in ("cpu", "mps") else "bfloat16")
    card = Card(
        backend="vllm",
        name=rest if not Path(rest).exists() else Path(rest).resolve().name,
        revision=fingerprint(folder),
        quantisation=dtype,
        abilities=LOCAL_ABILITIES - {"entropies"},
        context_length=limit - 1,  # vLLM writes a token after whatever it reads
        cuts=parse_on_long(on_long),
    )

    def load() -> LoadedModel:
        _check_main_guard()
        silence_libraries()
        encoder = _load_encoder(folder)
        weights = "bfloat16" if dtype == FLOAT8 else dtype
        expected = _ask_transformers(folder, weights, device, _check_rows(encoder, limit - 1)) if check else []
        runtime = VllmRuntime(
            _vocabulary_size(folder),
            sorted(encoder.ends),
            model=str(folder),
            dtype=weights,
            quantization="fp8" if dtype == FLOAT8 else None,
            max_model_len=limit,
            tensor_parallel_size=gpus,
            gpu_memory_utilization=memory,
        )
        if check:
            try:
                compare_with_reference(runtime, expected)
            except BaseException:
                runtime.close()  # its processes hold the memory of a GPU
                raise
        return LoadedModel(runtime, encoder, BatchBudget(1 << 40, REQUESTS_TOGETHER))

    return Engine(card, load, batch=REQUESTS_TOGETHER, share=False)


class VllmRuntime:
    """vLLM as `GeneratingRuntime`. It keeps common beginnings of prompts by itself."""

    name = "vllm"

    def __init__(self, tokens: int, ends: Sequence[int], **settings: Any) -> None:
        for name in ("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"):  # it reports its use otherwise
            os.environ[name] = "1"
        # A forked process can't use a GPU that this one has looked at.
        os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ["VLLM_LOGGING_STREAM"] = "ext://sys.stderr"  # standard output is for results
        import vllm

        self.tokens = tokens
        self._ends = list(ends)
        self._parameters = vllm.SamplingParams
        self._llm: Any = vllm.LLM(
            **settings, max_logprobs=LABEL_TOKENS, load_format="safetensors", trust_remote_code=False
        )

    def prefix(self, ids: Sequence[int]) -> list[int]:
        return list(ids)

    def read(self, rows: Sequence[TokenRow], prefix: Any = None) -> list[RowLogprobs]:
        """Read rows that end where tokens are compared, and rows whose own tokens are scored."""
        before: list[int] = prefix or []
        ending = [row for row in rows if _ends_in_choice(row)]
        others = [row for row in rows if not _ends_in_choice(row)]
        chosen = iter(self.score_next([[*before, *row.ids] for row in ending], [row.wanted[0] for row in ending]))
        scored = iter(
            self.score_rows(
                [[*before, *row.ids, row.wanted[-1][0]] for row in others],
                [len(before) + row.first + 1 for row in others],
            )
        )
        return [
            RowLogprobs([next(chosen)], []) if _ends_in_choice(row) else RowLogprobs([[v] for v in next(scored)], [])
            for row in rows
        ]

    def score_next(self, prompts: Sequence[list[int]], wanted: Sequence[list[int]]) -> list[list[float]]:
        """Log-probabilities of the wanted tokens right after each prompt."""
        questions = [
            (place, tokens[start : start + LABEL_TOKENS])
            for place, tokens in enumerate(list(dict.fromkeys(each)) for each in wanted)
            for start in range(0, len(tokens), LABEL_TOKENS)
        ]
        parameters = [
            self._parameters(max_tokens=1, temperature=0.0, logprob_token_ids=tokens, detokenize=False)
            for _, tokens in questions
        ]
        texts = self._ask([prompts[place] for place, _ in questions], parameters)
        logprobs: list[dict[int, float]] = [{} for _ in prompts]
        for (place, tokens), text in zip(questions, texts, strict=True):
            entries = text.outputs[0].logprobs[0]
            logprobs[place].update((token, float(entries[token].logprob)) for token in tokens)
        return [[logprobs[place][token] for token in tokens] for place, tokens in enumerate(wanted)]

    def score_rows(self, rows: Sequence[list[int]], firsts: Sequence[int]) -> list[list[float]]:
        """Log-probabilities of each row's own tokens, from the position ``first`` on."""
        reading = self._parameters(
            max_tokens=1, temperature=0.0, prompt_logprobs=0, flat_logprobs=True, detokenize=False
        )
        # Every position but the first has one entry, its own token.
        return [
            [float(value) for value in text.prompt_logprobs.logprobs[first - 1 :]]
            for first, text in zip(firsts, self._ask(rows, reading), strict=True)
        ]

    def generate(self, asked: Sequence[tuple[Generate, list[int], int]]) -> list[Continuation]:
        """Continue each prompt once, as its request says, with a seed."""
        parameters = [
            self._parameters(
                max_tokens=request.max_tokens,
                temperature=request.temperature,
                top_p=request.top_p if request.temperature > 0 else 1.0,
                seed=seed if request.temperature > 0 else None,
                stop=list(request.stop) or None,
                stop_token_ids=self._ends,
                logprobs=0,
                flat_logprobs=True,
                detokenize=bool(request.stop),
            )
            for request, _, seed in asked
        ]
        texts = [text.outputs[0] for text in self._ask([ids for _, ids, _ in asked], parameters)]
        return [
            Continuation(
                list(text.token_ids),
                [float(value) for value in text.logprobs.logprobs],
                _check_finish(text.finish_reason),
            )
            for text in texts
        ]

    def close(self) -> None:
        """Let go of vLLM, which ends its processes."""
        self._llm = None

    def _ask(self, rows: Sequence[list[int]], parameters: Any) -> list[Any]:
        if not rows:
            return []
        return list(self._llm.generate([{"prompt_token_ids": row} for row in rows], parameters, use_tqdm=False))


def _check_main_guard() -> None:
    """Refuse a script that would start itself again: each process of vLLM imports it first."""
    path = getattr(sys.modules["__main__"], "__file__", None) or ""
    try:
        script = Path(path).read_text(encoding="utf-8", errors="replace") if path.endswith(".py") else ""
    except OSError:
        return
    if script and not GUARD.search(script):
        raise ModelError(
            "vLLM starts processes that import this script, and the script would run again in each of them",
            file=path,
            remedy='put what it does into a function main(), and call that below `if __name__ == "__main__":`',
        )


def _ends_in_choice(row: TokenRow) -> bool:
    return len(row.wanted) == 1 and row.first == len(row.ids) - 1


def _check_finish(reason: str | None) -> str:
    """Return why a text ended. One that vLLM gave up is not an answer."""
    if reason not in ("stop", "length"):
        raise ModelError(f"vLLM gave up a text (finish reason {reason!r})", remedy="run it again")
    return reason


class Reference(NamedTuple):
    """What the transformers library says about a prompt: the likeliest next tokens, and the prompt's own tokens."""

    ids: list[int]
    likeliest: list[int]
    next_logprobs: list[float]
    own_logprobs: list[float]
    """Of the second half of the prompt."""

    @property
    def half(self) -> int:
        return max(1, len(self.ids) // 2)


def compare_with_reference(runtime: VllmRuntime, expected: Sequence[Reference]) -> None:
    """Refuse vLLM if its probabilities are far from those of the transformers library."""
    after = runtime.score_next([one.ids for one in expected], [one.likeliest for one in expected])
    within = runtime.score_rows([one.ids for one in expected], [one.half for one in expected])
    checks = {
        "next tokens": [(one.next_logprobs, found) for one, found in zip(expected, after, strict=True)],
        "a prompt's tokens": [(one.own_logprobs, found) for one, found in zip(expected, within, strict=True)],
    }
    for what, pairs in checks.items():
        distance = np.mean([np.abs(np.subtract(wanted, found)).mean() for wanted, found in pairs])
        if not distance <= MAX_DISTANCE:
            raise ModelError(
                f"vLLM gives other probabilities of {what} than the transformers library: their logarithms differ by "
                f"{distance:.2f} on average",
                expected=f"at most {MAX_DISTANCE}",
                remedy="another version of vllm, or hf: instead",
            )


def _load_encoder(folder: Path) -> PromptEncoder:
    from transformers import GenerationConfig

    try:
        generation = GenerationConfig.from_pretrained(folder, local_files_only=True)
    except OSError:
        generation = None
    return build_prompt_encoder(load_tokenizer(folder), generation)


def _vocabulary_size(folder: Path) -> int:
    """Tokens that a model has weights for. Its file may leave that out, if it is usual for its kind."""
    from transformers import AutoConfig

    return int(AutoConfig.from_pretrained(folder, **ONLY_HERE).get_text_config().vocab_size)


def _check_rows(encoder: PromptEncoder, longest: int) -> list[list[int]]:
    return [written.ids[:longest] for written in encoder.ids([Prompt.chat(text) for text in CHECK_PROMPTS])]


def _ask_transformers(folder: Path, dtype: str, device: str, rows: list[list[int]]) -> list[Reference]:
    """Read a few prompts with the transformers library, and free its memory again."""
    import torch

    model, _ = load_folder(folder, getattr(torch, dtype))
    model = model.to(device).eval()
    found = []
    for ids in rows:
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids], device=device)).logits[0]
        logs = logits.float().log_softmax(-1).cpu()
        likeliest = logs[-1].topk(LIKELIEST)
        own = [float(logs[place - 1, ids[place]]) for place in range(max(1, len(ids) // 2), len(ids))]
        found.append(Reference(ids, likeliest.indices.tolist(), likeliest.values.tolist(), own))
    del model, logits
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return found
