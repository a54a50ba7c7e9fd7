"""Tokens drawn without sorting the vocabulary are those of the full, stable sort."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ragworth.llm.contract import Generate, Prompt
from ragworth.llm.local.engine import Sample
from ragworth.llm.local.prompt_encoding import PromptEncoder
from ragworth.llm.local.runtime import LOG_GAPS, NO_TOKEN, SamplingDraw, entropy, log_softmax, pick_token


def fully_sorted(logits: NDArray[Any], draw: SamplingDraw) -> int:
    """The definition: all tokens in descending order of probability, equal ones by id."""
    probabilities = np.exp(log_softmax(logits.astype(np.float64) / draw.temperature))
    order = np.argsort(-probabilities, kind="stable")
    reached = np.cumsum(probabilities[order])
    if draw.top_p < 1:
        reached = reached[: int((reached - probabilities[order] < draw.top_p).sum())]
    place = int(np.searchsorted(reached, draw.uniform * reached[-1], side="right"))
    return int(order[min(place, len(reached) - 1)])


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("scale", [0.01, 1.0, 4.0, 20.0, 300.0])
@pytest.mark.parametrize("size", [1, 2, 40, 3000])
def test_the_same_tokens_are_drawn_as_from_all(size: int, scale: float, ties: bool) -> None:
    rng = np.random.default_rng(size)
    for _ in range(60):
        logits = rng.normal(scale=scale, size=size).astype(np.float32)
        if ties:
            logits = np.rint(logits / scale * 2).astype(np.float32) * np.float32(scale / 2)
        uniform = float(rng.choice([0.0, rng.random(), 1 - rng.random() ** 8, 1 - 1e-9]))
        draw = SamplingDraw(float(rng.choice([0.3, 1.0, 2.0])), float(rng.choice([0.05, 0.5, 0.93, 1.0])), uniform)
        assert pick_token(logits, draw)[0] == fully_sorted(logits, draw), draw


def test_tokens_beyond_the_first_gap_are_found() -> None:
    logits = np.array([0.0] + [-LOG_GAPS[0] - 1] * 5000 + [-LOG_GAPS[1] - 1] * 400_000, np.float32)
    picks = [pick_token(logits, SamplingDraw(1.0, 1.0, uniform, "text"))[0] for uniform in (0.1, 0.8, 0.999)]
    assert picks == [fully_sorted(logits, SamplingDraw(1.0, 1.0, uniform)) for uniform in (0.1, 0.8, 0.999)]
    assert picks[0] == 0 < picks[1] <= 5000 < picks[2]


@pytest.mark.parametrize("values", [[1.0, math.nan, 2.0], [math.inf, 1.0], [-math.inf, -math.inf]])
def test_no_token_is_picked_from_logits_that_are_not_finite(values: list[float]) -> None:
    logits = np.array(values, np.float32)
    assert [pick_token(logits, SamplingDraw(heat, 1.0, 0.5))[0] for heat in (0.0, 1.0)] == [NO_TOKEN] * 2
    sound = np.array([1.0, 3.0], np.float32)
    assert [pick_token(sound, SamplingDraw(heat, 1.0, 0.0))[0] for heat in (0.0, 1e-320, 1e300)] == [1, NO_TOKEN, 0]


def test_numbers_are_computed_where_they_are_asked_for() -> None:
    logits = np.array([1.0, 3.0, -np.inf, 2.0], np.float32)
    logs = log_softmax(logits)
    for temperature in (0.0, 1.0):
        draw = SamplingDraw(temperature, 1.0, 0.2)
        assert list(pick_token(logits, draw)) == [1, logs[1], entropy(logs)]
        token, logprob, chaos = pick_token(logits, draw._replace(detail="logprobs"))
        assert (token, logprob, math.isnan(chaos)) == (1, logs[1], True)
        token, *others = pick_token(logits, draw._replace(detail="text"))
        assert (token, *map(math.isnan, others)) == (1, True, True)


class Letters:
    """A tokenizer whose tokens are UTF-8 bytes, and which counts what it decodes."""

    decoded = 0

    def encode(self, texts: Any, *, whole: bool) -> list[list[int]]:
        return [list(text.encode()) for text in texts]

    def decode(self, ids: list[int]) -> str:
        self.decoded += len(ids)
        return bytes(ids).decode("utf-8", "replace")


@pytest.mark.parametrize("stop", [("END",), ("zz", "für"), ("ü",), ("never",), ("END", "…d"), ("",)])
def test_a_text_ends_at_its_first_stop_text_without_being_decoded_again_and_again(stop: tuple[str, ...]) -> None:
    text = "a long text " * 200 + "ends …dafür hier END and more"
    tokenizer = Letters()
    encoder = PromptEncoder(tokenizer, None, (), frozenset())
    sample = Sample(Generate(Prompt.text("x"), max_tokens=len(text.encode()), stop=stop), [1], 0)
    for token in tokenizer.encode([text], whole=False)[0]:
        sample.add(token, 0.0, 0.0, encoder)
        if sample.finish:
            break
    places = [place for each in stop if (place := text.find(each)) >= 0]
    assert sample.text == (text[: min(places)] if places else text)
    assert sample.finish == ("stop" if places else "length")
    assert tokenizer.decoded < 30 * len(text.encode())
