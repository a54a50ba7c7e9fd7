"""Do all ways to run the same weights say the same?

The embedded model's file is read by the transformers library in float32 (the reference), by our ONNX runtime, by
llama.cpp in this process (if llama-cpp-python is installed) and by a llama.cpp server over HTTP (if xllamacpp is
installed). All get the same prompts: how many tokens, how likely are two labels, how likely is each token
of a continuation?

    python benchmarks/agreement.py --prompts 200
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

import ragworth
from ragworth.llm.contract import Choose, Chosen, Prompt, Score, Scored
from ragworth.llm.embedded import weights_file

LABELS = ("NO-RESPONSE", "Yes")
LARGEST_MEAN = 0.3
"""Mean difference of log-probabilities that 8-bit and 4-bit arithmetic may make."""
NAMES = ("Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hiro")
PLACES = ("Larkmoor", "Tennby", "Ostrava", "Kaldvik", "Río Pardo", "Nagasaki", "Żory", "Mbeya")
THINGS = ("mill", "bridge", "library", "lighthouse", "observatory", "market hall", "chapel", "tannery")
FILLER = (
    "The town council kept no record of the cost.",
    "Travellers of the time mention its red roof and the sound of water below.",
    "It burned down twice, the second time on a windless night in March.",
    "In 1931 the railway came within 300 m of it; the noise was a nuisance for years.",
    "Today it is a museum with 12,450 visitors a year — most of them in summer.",
)


def pairs(number: int) -> list[tuple[Prompt, str]]:
    """Invented questions and passages, half of which hold the answer."""
    rng = random.Random(0)
    template = ragworth.prompt("abstention", "plain")
    made = []
    for _ in range(number):
        name, place, thing = rng.choice(NAMES), rng.choice(PLACES), rng.choice(THINGS)
        fact = f"The {thing} of {place} was built by {name} in {rng.randint(1500, 1950)}. "
        filler = " ".join(rng.sample(FILLER, rng.randint(2, 5)))
        passage = (fact if rng.random() < 0.5 else "") + filler
        made.append((template.render({"query": f"Who built the {thing} of {place}?", "passage": passage}), name))
    return made


@contextmanager
def served(context: int) -> Iterator[str]:
    """A llama.cpp server of the same file."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights_file())
    settings.n_ctx, settings.n_parallel = context, 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.port, settings.verbosity = 0, -1
    server = xllamacpp.Server(settings)
    yield server.listening_address
    del server


def ways(stack: ExitStack) -> dict[str, Any]:
    """Models, the reference first."""
    file = f"gguf:{weights_file()}"
    found = {
        "transformers, float32": ragworth.llm(file, reader="transformers", context_length=2048),
        "embedded (ONNX)": ragworth.llm("embedded"),
    }
    if find_spec("llama_cpp"):
        found["llama.cpp"] = ragworth.llm(file, reader="llama.cpp", context_length=2048)
    if find_spec("xllamacpp") and find_spec("h11"):
        url = stack.enter_context(served(2048))
        found["llama.cpp server"] = ragworth.llm(f"openai:SmolLM2@{url}", concurrency=1, deadline=600)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=200)
    asked = pairs(parser.parse_args().prompts)
    rows = []
    with ExitStack() as stack:
        expected: tuple[list[Chosen], list[Scored]] | None = None
        for name, model in ways(stack).items():
            chosen: list[Any] = ragworth.ask(model, [Choose(prompt, LABELS) for prompt, _ in asked])
            scored: list[Any] = ragworth.ask(model, [Score(prompt, answer) for prompt, answer in asked])
            model.close()
            expected = expected or (chosen, scored)
            counts = sum(
                a.usage.prompt_tokens == b.usage.prompt_tokens for a, b in zip(chosen, expected[0], strict=True)
            )
            labels = [
                abs(math.log(p / q))
                for a, b in zip(chosen, expected[0], strict=True)
                for p, q in zip(a.probabilities, b.probabilities, strict=True)
            ]
            tokens = [
                abs(p - q)
                for a, b in zip(scored, expected[1], strict=True)
                for p, q in zip(a.trace.logprobs, b.trace.logprobs, strict=True)
            ]
            rows.append((name, f"{counts} of {len(asked)}", *spread(labels), *spread(tokens)))
    print("| way | same number of tokens | labels: mean | 95 % | largest | continuation: mean | 95 % | largest |")
    print("|" + " --- |" * 8)
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print("\nDifferences are of natural log-probabilities, from the first line.")
    far = [
        row[0] for row in rows if row[1] != rows[0][1] or float(row[2]) > LARGEST_MEAN or float(row[5]) > LARGEST_MEAN
    ]
    if far:
        sys.exit(f"these differ by more than quantisation explains: {', '.join(far)}")


def spread(values: list[float]) -> tuple[str, str, str]:
    """Mean, 95th percentile and largest."""
    ordered = sorted(values)
    return (
        f"{sum(ordered) / len(ordered):.4f}",
        f"{ordered[int(0.95 * (len(ordered) - 1))]:.4f}",
        f"{ordered[-1]:.4f}",
    )


if __name__ == "__main__":
    main()
