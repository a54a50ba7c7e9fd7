"""Judgments and tokens a second: the embedded model on the CPU; a 3B model's shape on a GPU, also in vLLM.

    python benchmarks/models.py              # the embedded model
    python benchmarks/models.py --gpu float8 # random weights, compiled; likewise bfloat16, vllm and vllm-float8

Rates are medians after a run that doesn't count. Each run has new prompts, of which vLLM has nothing in its cache.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ragworth
from ragworth.llm.contract import Choose, Failure, Generate, Prompt, Score

SHAPE: dict[str, Any] = {
    "vocab_size": 128256,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 28,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "tie_word_embeddings": True,
    "max_position_embeddings": 4096,
    "bos_token_id": None,
    "eos_token_id": None,
}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "bfloat16": ("hf", {"dtype": "bfloat16", "compile": True}),
    "float8": ("hf", {"dtype": "float8", "compile": True}),
    "vllm": ("vllm", {"dtype": "bfloat16", "check": False}),
    "vllm-float8": ("vllm", {"dtype": "float8", "check": False}),
}
PREFIX = 58
WORDS = "the mill of a town stood by water and burned one day in 1820".split()  # noqa: SIM905


def report(name: str, ask: Callable[[list[Any]], list[Any]], write: Callable[[], list[Any]], times: int = 3) -> None:
    """Print prompts a second, or tokens where texts are written; a failed request is an error."""
    rates = []
    for _ in range(times + 1):
        requests = write()
        begun = time.perf_counter()
        responses = ask(requests)
        seconds = time.perf_counter() - begun
        assert not any(isinstance(response, Failure) for response in responses), responses
        tokens = sum(response.usage.new_tokens for response in responses)
        rates.append((tokens if isinstance(requests[0], Generate) else len(responses)) / seconds)
    unit = "tokens" if isinstance(requests[0], Generate) else "prompts"
    print(f"| {name} | {statistics.median(rates[1:]):,.1f} {unit}/s |", flush=True)


def on_cpu() -> None:
    """The embedded model: 64 judgments, and 64 samples of 32 tokens at a time."""
    rng, template = random.Random(0), ragworth.prompt("abstention", "plain")
    model: Any = ragworth.llm("embedded:base")

    def judgments() -> list[Choose]:
        passages = [" ".join(rng.choices(WORDS, k=rng.randint(120, 170))) for _ in range(64)]
        prompts = [template.render({"query": "Who built the mill?", "passage": passage}) for passage in passages]
        return [Choose(prompt, ("NO-RESPONSE", "Yes")) for prompt in prompts]

    report("judgments", model.choose, judgments)
    stories = [Prompt.chat(f"Write a long story about a mill, a town and {word}.") for word in WORDS[:4]]
    ways: list[dict[str, Any]] = [{}, {"top_p": 0.9}, {"stop": ("never written",)}, {"detail": "entropies"}]
    for way in ways:
        requests = [Generate(story, max_tokens=32, temperature=1.0, n=16, **way) for story in stories]
        report(f"64 samples {way or ''}", model.generate, lambda: requests, times=1)  # noqa: B023


def write_model(folder: Path) -> None:
    """Write a model with random weights, and a tokenizer whose words are the ids."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        LlamaForCausalLM(LlamaConfig(**SHAPE)).save_pretrained(folder)
    torch.set_default_dtype(torch.float32)
    torch.cuda.empty_cache()
    words = Tokenizer(models.WordLevel({str(i): i for i in range(SHAPE["vocab_size"])}, unk_token="0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder)


def on_gpu(folder: Path, way: str) -> None:
    """Judgments of 190 to 260 tokens, scores of 12 tokens, answers of 64 and of 20 to 200 tokens."""
    write_model(folder)
    backend, options = WAYS[way]
    rng, begun = random.Random(0), time.perf_counter()

    def text(number: int) -> str:
        return " ".join(str(rng.randrange(20, SHAPE["vocab_size"])) for _ in range(number))

    def prompts(number: int) -> list[Prompt]:
        prefix = text(PREFIX)
        return [Prompt.text(f"{prefix} {text(rng.randint(190, 260) - PREFIX)}") for _ in range(number)]

    def judgments() -> list[Choose]:
        return [Choose(prompt, (" 5", " 6")) for prompt in prompts(2048)]

    model: Any = ragworth.llm(f"{backend}:{folder}", **options)
    model.choose(judgments()[:1])
    print(f"\n{way}: ready after {time.perf_counter() - begun:.0f} s\n\n| work | rate |\n| --- | ---: |", flush=True)
    report("judgments", model.choose, judgments)
    report("scores", model.score, lambda: [Score(prompt, " " + text(12)) for prompt in prompts(512)])
    for low, high in ((64, 64), (20, 200)):
        lengths = [rng.randint(low, high) for _ in range(768)]
        make = lambda: [Generate(*each) for each in zip(prompts(768), lengths, strict=True)]  # noqa: B023, E731
        report(f"answers of {low} to {high} tokens", model.generate, make, times=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", choices=WAYS, help="how to run a 3B model on a GPU")
    if way := parser.parse_args().gpu:
        with tempfile.TemporaryDirectory() as folder:
            on_gpu(Path(folder), way)
    else:
        on_cpu()


if __name__ == "__main__":
    main()
