"""Passages judged per second: one next-token distribution a prompt, ours against the plain way.

The plain way is one prompt a call through the transformers library, softmax over the last logits, as
published scripts do it; sorted batches are what a careful user would write next. All read the same
prompts with the same weights.

    python benchmarks/models.py            # the embedded model, on the CPU
    python benchmarks/models.py --gpu      # the shape of a 3B Llama with random weights, on a GPU
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ragworth.llm.contract import Card, Choose, Chosen, Prompt
from ragworth.llm.local.batches import BatchBudget
from ragworth.llm.local.engine import LOCAL_ABILITIES, Engine
from ragworth.llm.local.loaded import LoadedModel
from ragworth.llm.local.prompt_encoding import PromptEncoder

Decode = Callable[[list[list[int]]], Any]
"""Reads rows and returns what extends them."""
PREFIX, SHORTEST, LONGEST = 58, 200, 250
STEPS = 8
MEMORY_RATE = 4.8e12
"""Bytes a second that an H200 reads."""


class Numbers:
    """A tokenizer for random weights: the text is the ids, written out."""

    def encode(self, texts: Sequence[str], *, whole: bool) -> list[list[int]]:
        return [[int(word) for word in text.split()] for text in texts]

    def decode(self, ids: list[int]) -> str:
        return " ".join(map(str, ids))


def prompts(number: int, vocabulary: int) -> list[list[int]]:
    """Random prompts of 200 to 250 tokens, the first 58 of them shared."""
    rng = random.Random(0)
    prefix = [rng.randrange(20, vocabulary) for _ in range(PREFIX)]
    return [
        prefix + [rng.randrange(20, vocabulary) for _ in range(rng.randint(SHORTEST, LONGEST) - PREFIX)]
        for _ in range(number)
    ]


def timed(work: Callable[[], Any], times: int) -> float:
    """Median seconds of several runs, after one that does not count."""
    work()
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def requests(rows: list[list[int]], labels: tuple[str, str]) -> list[Choose]:
    return [Choose(Prompt.text(" ".join(map(str, ids))), labels) for ids in rows]


def engine(loaded: LoadedModel, share: bool) -> Engine:
    return Engine(Card("hf", "benchmark", abilities=LOCAL_ABILITIES), lambda: loaded, share=share)


def one_by_one(model: Any, rows: list[list[int]], device: str) -> list[float]:
    """The published way."""
    import torch

    values = []
    with torch.inference_mode():
        for ids in rows:
            logits = model(torch.tensor([ids], device=device)).logits[0, -1]
            values.append(float(torch.softmax(logits.float(), -1)[5]))
    return values


def in_batches(model: Any, rows: list[list[int]], device: str, size: int) -> list[float]:
    """Sorted by length, padded in front."""
    import torch

    order = sorted(range(len(rows)), key=lambda n: -len(rows[n]))
    values = [0.0] * len(rows)
    with torch.inference_mode():
        for start in range(0, len(order), size):
            part = order[start : start + size]
            longest = len(rows[part[0]])
            ids = torch.tensor([[0] * (longest - len(rows[n])) + rows[n] for n in part], device=device)
            mask = torch.tensor([[0] * (longest - len(rows[n])) + [1] * len(rows[n]) for n in part], device=device)
            positions = (mask.cumsum(-1) - 1).clamp(min=0)
            out = model(ids, attention_mask=mask, position_ids=positions, logits_to_keep=1)
            found = torch.softmax(out.logits[:, -1].float(), -1)[:, 5].tolist()
            for n, value in zip(part, found, strict=True):
                values[n] = value
    return values


def ours(model: Engine, rows: list[list[int]]) -> list[float]:
    answers = model.choose(requests(rows, (" 5", " 6")))
    return [answer.probabilities[0] for answer in answers if isinstance(answer, Chosen)]


def generated(decode: Decode, rows: list[list[int]], weights: int) -> Iterator[tuple[int, float, float]]:
    """Answers written side by side: rows, seconds of a step, and those that reading all weights and keys takes."""
    import torch

    from ragworth.llm.local.runtime import SamplingDraw

    for size in (1, 32, 128, 512):
        draws = [SamplingDraw(0.0, 1.0, 0.5)] * size
        state = decode(rows[:size])
        picked = state.pick(draws)

        def write() -> None:
            for _ in range(STEPS):
                state.step(picked.ids, range(size))  # noqa: B023
                state.pick(draws)  # noqa: B023
            torch.cuda.synchronize()

        seconds = timed(write, 2) / STEPS
        kept = sum(layer.keys.nbytes + layer.values.nbytes for layer in state._cache.layers)
        yield size, seconds, (weights + kept) / MEMORY_RATE


def written(decode: Decode, rows: list[list[int]]) -> float:
    """Tokens a second of answers that end after 20 to 200 tokens; the second time, when all is compiled."""
    import torch

    from ragworth.llm.local.runtime import SamplingDraw

    ends = [random.Random(row).randrange(20, 200) for row in range(len(rows))]

    def write() -> None:
        state, left = decode(rows), list(range(len(rows)))
        picked = state.pick([SamplingDraw(0.0, 1.0, 0.5)] * len(left))
        for step in range(max(ends)):
            keep = [at for at, row in enumerate(left) if ends[row] > step]
            state.step([picked.ids[at] for at in keep], keep)
            left = [left[at] for at in keep]
            picked = state.pick([SamplingDraw(0.0, 1.0, 0.5)] * len(left))
        torch.cuda.synchronize()

    return sum(ends) / timed(write, 1)


def on_gpu(number: int) -> None:
    """A 3B Llama's shape with random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from ragworth.llm.local.torch_runtime import TorchRuntime

    shape = LlamaConfig(
        vocab_size=128256,
        hidden_size=3072,
        intermediate_size=8192,
        num_hidden_layers=28,
        num_attention_heads=24,
        num_key_value_heads=8,
        head_dim=128,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = LlamaForCausalLM(shape).eval()
    torch.set_default_dtype(torch.float32)
    rows = prompts(number, shape.vocab_size)
    weights = sum(p.numel() for name, p in model.named_parameters() if "embed" not in name)
    read = sum(map(len, rows))
    distinct = read - PREFIX * (len(rows) - 1)
    square = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def multiply() -> None:
        for _ in range(20):
            square @ square
        torch.cuda.synchronize()

    rate = 20 * 2 * 8192**3 / timed(multiply, 3)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; matrix products at {rate / 1e12:.0f} TFLOP/s")
    print(f"{number} prompts, {read / number:.0f} tokens each, {distinct / number:.0f} of them distinct\n")
    few = rows[:64]
    one_by_one(model, few[:2], "cuda")
    start = time.perf_counter()
    one_by_one(model, few, "cuda")
    lines = [("one prompt a call, first 64", (time.perf_counter() - start) / len(few), read)]
    lines.append(("one prompt a call, the same again", timed(partial(one_by_one, model, few, "cuda"), 2) / 64, read))
    for size in (64, 256):
        name = f"sorted batches of {size}"
        lines.append((name, timed(partial(in_batches, model, rows, "cuda", size), 2) / number, read))
    writer = PromptEncoder(Numbers(), None, (), frozenset())
    expected = in_batches(model, few, "cuda", 64)
    answers = []
    for dtype, compiled in (("bfloat16", False), ("bfloat16", True), ("float8", True)):
        runtime = TorchRuntime(model, dtype, float8=dtype == "float8", compiled=compiled)
        name = f"{dtype}{', compiled' if compiled else ''}"
        read_all = weights * (1 if dtype == "float8" else 2)
        answers += [(name, *found) for found in generated(runtime.decode, rows, read_all)]
        print(f"{name}: {written(runtime.decode, rows[:256]):.0f} tokens/s in 256 answers of 20 to 200 tokens")
        loaded = LoadedModel(runtime, writer, BatchBudget(32768, 1024))
        for share in (False, True):
            mine = engine(loaded, share)
            name = f"ragworth, {dtype}{', prefix shared' if share else ''}{', compiled' if compiled else ''}"
            lines.append((name, timed(partial(ours, mine, rows), 2) / number, distinct if share else read))
            got = ours(mine, few)
            worst = max(abs(math.log(a / b)) for a, b in zip(got, expected, strict=True))
            print(f"{name}: log-probabilities within {worst:.2f} of the plain way's (bfloat16)")
    print("\n| way | rows at a time | ms a step | tokens/s | if memory were the limit: tokens/s |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, size, seconds, limit in answers:
        print(f"| {name} | {size} | {1000 * seconds:.1f} | {size / seconds:.0f} | {size / limit:.0f} |")
    print("\n| way | prompts/s | times the plain way | share of the matrix rate |\n| --- | --- | --- | --- |")
    for name, seconds, tokens in lines:
        used = 2 * weights * tokens / number / seconds / rate
        print(f"| {name} | {1 / seconds:.0f} | {lines[1][1] / seconds:.1f} | {used:.0%} |")


def on_cpu(number: int) -> None:
    """The embedded model against the same file in the transformers library, float32."""
    import ragworth
    from ragworth.llm.embedded import weights_file
    from ragworth.llm.hf import load_gguf

    rng = random.Random(0)
    template = ragworth.prompt("abstention", "plain")
    words = ("the", "mill", "of", "a", "town", "stood", "by", "water", "and", "burned", "one", "day", "in", "1820")
    asked = [
        Choose(
            template.render({"query": f"Who built mill {i}?", "passage": " ".join(rng.choices(words, k=length))}),
            ("NO-RESPONSE", "Yes"),
        )
        for i, length in enumerate(rng.choices(range(120, 170), k=number))
    ]
    start = time.perf_counter()
    plain = load_gguf(weights_file(), "float32", "cpu")
    loading = time.perf_counter() - start
    rows = [written.ids for written in plain.writer.ids([request.prompt for request in asked])]
    torch_model = plain.runtime._model  # type: ignore[union-attr]
    mine: Any = ragworth.llm("embedded")
    mine.choose(asked[:1])
    again: Any = ragworth.llm("embedded")
    start = time.perf_counter()
    again.choose(asked[:1])
    ready = time.perf_counter() - start
    print(f"{number} prompts, {sum(map(len, rows)) / number:.0f} tokens each")
    print(f"loading: transformers {loading:.1f} s, embedded {ready:.1f} s with the first answer (built before)\n")
    lines = [
        ("transformers float32, one prompt a call", timed(partial(one_by_one, torch_model, rows, "cpu"), 3)),
        ("transformers float32, sorted batches of 16", timed(partial(in_batches, torch_model, rows, "cpu", 16), 3)),
        ("ragworth embedded, one prompt a call", timed(lambda: [mine.choose([one]) for one in asked], 3)),
        ("ragworth embedded", timed(lambda: mine.choose(asked), 3)),
    ]
    print("| way | prompts/s | times the plain way |\n| --- | --- | --- |")
    for name, seconds in lines:
        print(f"| {name} | {number / seconds:.1f} | {lines[0][1] / seconds:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="a 3B shape with random weights on a GPU")
    parser.add_argument("--prompts", type=int, default=0, help="how many prompts  [default: 64, on a GPU 2048]")
    given = parser.parse_args()
    if given.gpu:
        on_gpu(given.prompts or 2048)
    else:
        on_cpu(given.prompts or 64)


if __name__ == "__main__":
    main()
