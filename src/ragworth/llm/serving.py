"""Open models with the engines of inference servers, without a server: what ``vllm:`` and ``sglang:`` share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ragworth.errors import ModelError
from ragworth.llm.contract import Card, Prompt
from ragworth.llm.fingerprint import fingerprint
from ragworth.llm.hf import (
    DTYPES,
    ONLY_HERE,
    build_prompt_encoder,
    find_context_length,
    find_model_folder,
    load_folder,
    load_tokenizer,
    read_json,
)
from ragworth.llm.local.batches import BatchBudget
from ragworth.llm.local.engine import LOCAL_ABILITIES, Engine
from ragworth.llm.local.loaded import LoadedModel
from ragworth.llm.local.prompt_encoding import PromptEncoder
from ragworth.llm.local.serving_runtime import Reference, ServingEngine, ServingRuntime, compare_with_reference
from ragworth.llm.local.torch_device import require_transformers, resolve_device, silence_libraries
from ragworth.llm.truncation import parse_on_long

REQUESTS_TOGETHER = 1024
"""Requests that an engine gets at once; it chooses itself how many to compute together."""

LIKELIEST = 10
"""Next tokens of a prompt that are compared."""

CHECK_PROMPTS = (
    "Which river flows through Vienna?",
    "Add 17 and 25, then name the month that follows June.",
    "Translate into French: The library opens at nine, except on Sundays and public holidays.",
    "List three differences between a lake and a pond, in one sentence each, and say which is usually deeper.",
)
"""What an engine and the transformers library are compared on."""


@dataclass(frozen=True)
class EngineSettings:
    """What an engine is started with."""

    folder: Path
    dtype: str
    context_length: int
    gpus: int
    memory: float
    ends: tuple[int, ...]


def open_served(
    engine: str,
    start: Callable[[EngineSettings], ServingEngine],
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
    """Open a model by its name in the local cache, or by its folder. The first request starts the engine.

    Parameters
    ----------
    dtype: float32, bfloat16 or float16; ``auto`` is bfloat16 on a GPU and float32 elsewhere.
    context_length: maximum tokens to read; 0 uses the model's configuration.
    on_long: what to do if a prompt is too long: ``error``, or ``cut`` its passages.
    revision: commit, branch or tag of a model on the hub.
    download: download a model that is not in the local cache from the Hugging Face hub.
    gpus: how many GPUs share the model.
    memory: share of a GPU's memory that it may use.
    check: compare it with the transformers library on a few prompts first, which loads the model twice.
    """
    if find_spec(engine) is None:
        raise ModelError(
            f"the package {engine} is not installed",
            remedy=f"pip install {engine}, in an environment of its own if it needs another PyTorch; or use hf:{rest}",
        )
    require_transformers()
    if dtype not in DTYPES:
        raise ModelError(f"dtype is {dtype!r}", expected=", ".join(DTYPES))
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
        backend=engine,
        name=rest if not Path(rest).exists() else Path(rest).resolve().name,
        revision=fingerprint(folder),
        quantisation=dtype,
        abilities=LOCAL_ABILITIES - {"entropies"},
        context_length=limit - 1,  # engines write a token after whatever they read
        cuts=parse_on_long(on_long),
    )

    def load() -> LoadedModel:
        silence_libraries()
        encoder, tokens = _load_encoder(folder), _vocabulary_size(folder)
        expected = _ask_transformers(folder, dtype, device, _check_rows(encoder, limit - 1)) if check else []
        running = start(EngineSettings(folder, dtype, limit, gpus, memory, tuple(sorted(encoder.ends))))
        if check:
            try:
                compare_with_reference(running, engine, expected)
            except BaseException:
                running.close()  # its processes hold the memory of a GPU
                raise
        return LoadedModel(ServingRuntime(engine, running, tokens), encoder, BatchBudget(1 << 40, REQUESTS_TOGETHER))

    return Engine(card, load, batch=REQUESTS_TOGETHER, share=False)


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
