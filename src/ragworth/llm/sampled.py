"""``sampled:MODEL``: label probabilities for a model that can only generate, by counting samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ragworth.core.errors import ModelError, format_count
from ragworth.llm.contract import (
    LENGTH,
    WITHHELD,
    Card,
    Choose,
    Chosen,
    Failure,
    Generate,
    Generated,
    GeneratingModel,
    Model,
    Prompt,
)
from ragworth.stats.range_intervals import plain_wilson_interval


class SampledModel:
    """Samples a model at a temperature, and counts which label its answers begin with.

    Each share comes with a 95 % confidence interval of the probability (Wilson's, for a binomial count). An answer
    counts for the longest label that it begins with as a whole word, ignoring leading blanks, case, quotation marks and
    asterisks.
    """

    def __init__(
        self, model: Model, *, samples: int = 16, temperature: float = 1.0, max_tokens: int = 16, seed: int = 0
    ) -> None:
        if not isinstance(model, GeneratingModel):
            raise ModelError(f"the model {model.card.name!r} cannot generate, so it cannot be sampled")
        if samples < 1 or temperature <= 0 or max_tokens < 1:
            raise ModelError(
                f"samples={samples}, temperature={temperature}, max_tokens={max_tokens} is invalid",
                expected="at least one sample and one token, and a temperature above 0",
            )
        self._model = model
        self._generator: GeneratingModel = model
        self._sampling: dict[str, Any] = {
            "max_tokens": max_tokens,
            "temperature": float(temperature),
            "seed": seed,
            "n": samples,
        }
        self.batch = max(1, model.batch // samples)
        self.reasoning_tokens = int(getattr(model, "reasoning_tokens", 0))
        self.choice_tokens = samples * (max_tokens + self.reasoning_tokens)
        """Maximum tokens written to choose among labels."""
        self.concurrency = model.concurrency

    @property
    def card(self) -> Card:
        """The model's own card, with another quantisation."""
        return self._sampled_card(self._model.card)

    @property
    def partial(self) -> Card | None:
        """The card as far as known without calling an endpoint."""
        own: Card | None = getattr(self._model, "partial", None)
        return None if own is None else self._sampled_card(own)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(getattr(self._model, "warnings", ()))

    def _sampled_card(self, own: Card) -> Card:
        way = self._sampling
        how = f"{way['n']} samples, temperature {way['temperature']:g}, {way['max_tokens']} tokens, seed {way['seed']}"
        abilities = (own.abilities - {"score"}) | {"choose", "generate"}  # also before an endpoint was asked
        return replace(own, backend=f"sampled:{own.backend} ({how})", abilities=abilities)

    def count(self, prompt: Prompt) -> int | None:
        return self._model.count(prompt)

    def close(self) -> None:
        self._model.close()

    def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
        return self._generator.generate(requests)

    def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
        samples = self._generator.generate([Generate(request.prompt, **self._sampling) for request in requests])
        return [
            sampled if isinstance(sampled, Failure) else _count_labels(request, sampled)
            for request, sampled in zip(requests, samples, strict=True)
        ]


def _count_labels(request: Choose, sampled: Generated) -> Chosen | Failure:
    """Shares of the samples that begin with each label, with their intervals; a failure if a sample is incomplete."""
    if sampled.is_withheld:
        return Failure("refused", WITHHELD, False, sampled.usage)
    begins = [output.text.lstrip(" \t\r\n\"'*`").casefold() for output in sampled.outputs]
    labels = [label.strip().casefold() for label in request.labels]
    open_ended = [text for text, output in zip(begins, sampled.outputs, strict=True) if output.finish == LENGTH]
    # A whole label is one, as with max_tokens=1, unless a longer one begins with it.
    undecided = sum(any(label.startswith(text) and label != text for label in labels) for text in open_ended)
    if undecided:
        detail = f"{undecided} of {format_count(len(begins), 'sample')} ended within a label, at the greatest length: "
        return Failure("truncated", f"{detail}raise the option max_tokens", False, sampled.usage)
    counts = [0] * len(labels)
    for text in begins:
        matching = [i for i, label in enumerate(labels) if _starts_with_label(text, label)]
        if matching:
            counts[max(matching, key=lambda i: len(labels[i]))] += 1
    number = len(begins)
    bounds = [plain_wilson_interval(count, number, 0.95) for count in counts]
    return Chosen(
        tuple(count / number for count in counts),
        tuple(low for low, _ in bounds),
        tuple(high for _, high in bounds),
        f"sampled({number})",
        sampled.usage,
    )


def _starts_with_label(text: str, label: str) -> bool:
    """True if a text begins with a label as a whole word."""
    after = text[len(label) : len(label) + 1]
    return text.startswith(label) and not (label[-1:].isalnum() and after.isalnum())


def open_model(
    rest: str, *, samples: int = 16, temperature: float = 1.0, max_tokens: int = 16, seed: int = 0, **options: Any
) -> SampledModel:
    """Open ``sampled:MODEL``; other options go to the model."""
    from ragworth.llm import llm

    if not rest:
        raise ModelError("the model to sample is missing", expected="sampled:MODEL, such as sampled:openai:NAME@URL")
    return SampledModel(
        llm(rest, **options), samples=samples, temperature=temperature, max_tokens=max_tokens, seed=seed
    )
