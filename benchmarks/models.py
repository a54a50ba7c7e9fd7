"""Judgments and tokens a second: the embedded model on the CPU; a 3B model's shape on a GPU, also in vLLM.

    python benchmarks/models.py                       # the embedded model
    python benchmarks/models.py --gpu bfloat16 float8 # with random weights, compiled
    python benchmarks/models.py --gpu vllm vllm-float8   # the same in vLLM

Rates are medians of three runs after one that doesn't count. On a GPU, each way runs in a process of its own.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
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
JUDGMENTS, ANSWERS = 2048, 768
WORDS = "the mill of a town stood by water and burned one day in 1820".split()  # noqa: SIM905


def report(name: str, ask: Callable[[list[Any]], list[Any]], requests: list[Any], times: int = 3) -> None:
    """Print prompts a second, or tokens where texts are written; a failed request is an error."""
    seconds = []
    for _ in range(times + 1):
        begun = time.perf_counter()
        responses = ask(requests)
        seconds.append(time.perf_counter() - begun)
    if failures := [response for response in responses if isinstance(response, Failure)]:
        raise SystemExit(f"{name}: {failures[0]}")
    texts = isinstance(requests[0], Generate)
    count = sum(response.usage.new_tokens for response in responses) if texts else len(responses)
    print(
        f"| {name} | {count / statistics.median(seconds[1:]):,.1f} {'tokens' if texts else 'prompts'}/s |", flush=True
    )


def on_cpu() -> None:
    """The embedded model: 64 judgments, and 64 samples of 32 tokens at a time."""
    rng, template = random.Random(0), ragworth.prompt("abstention", "plain")
    model: Any = ragworth.llm("embedded:base")
    prompts = [
        template.render({"query": f"Who built mill {i}?", "passage": " ".join(rng.choices(WORDS, k=length))})
        for i, length in enumerate(rng.choices(range(120, 170), k=64))
    ]
    report("judgments", model.choose, [Choose(prompt, ("NO-RESPONSE", "Yes")) for prompt in prompts])
    stories = [Prompt.chat(f"Write a long story about a mill, a town and {each}.") for each in WORDS[-4:]]
    for more in ({}, {"top_p": 0.9}, {"stop": ("never written",)}, {"detail": "entropies"}):
        requests = [Generate(story, max_tokens=32, temperature=1.0, n=16, **more) for story in stories]  # type: ignore
        report(f"64 samples {more or ''}", model.generate, requests, times=1)


def random_model(folder: Path) -> None:
    """Write a model with random weights, and a tokenizer whose words are the ids."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        LlamaForCausalLM(LlamaConfig(**SHAPE)).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({str(i): i for i in range(SHAPE["vocab_size"])}, unk_token="0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder)


def on_gpu(folder: Path, way: str) -> None:
    """Judgments of 190 to 260 tokens, scores of 12 tokens, answers of 64 and of 20 to 200 tokens."""
    backend, options = WAYS[way]
    rng, begun = random.Random(0), time.perf_counter()

    def text(number: int) -> str:
        return " ".join(str(rng.randrange(20, SHAPE["vocab_size"])) for _ in range(number))

    prefix = text(PREFIX)
    prompts = [Prompt.text(f"{prefix} {text(rng.randint(190, 260) - PREFIX)}") for _ in range(JUDGMENTS)]
    model: Any = ragworth.llm(f"{backend}:{folder}", **options)
    judge = [Choose(prompt, (" 5", " 6")) for prompt in prompts]
    model.choose(judge[:1])
    print(f"\n{way}: ready after {time.perf_counter() - begun:.0f} s\n\n| work | rate |\n| --- | ---: |", flush=True)
    report("judgments", model.choose, judge)
    report("scores", model.score, [Score(prompt, " " + text(12)) for prompt in prompts[:512]])
    for low, high in ((64, 64), (20, 200)):
        answers = [Generate(prompt, max_tokens=rng.randint(low, high)) for prompt in prompts[:ANSWERS]]
        report(f"answers of {low} to {high} tokens", model.generate, answers, times=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", nargs="+", choices=WAYS, default=[], help="ways to run a 3B model on a GPU")
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.model:
        on_gpu(options.model, *options.gpu)
    elif options.gpu:
        with tempfile.TemporaryDirectory() as folder:
            random_model(Path(folder))
            for way in options.gpu:
                subprocess.run([sys.executable, __file__, "--gpu", way, "--model", folder], check=True)
    else:
        on_cpu()


if __name__ == "__main__":
    main()
