"""Judge how well a passage answers a question by whether a reader answers from it or declines.

A model that was taught to read and to decline is no judge: asked for a label, it says anything. What it can say is how
likely it is to decline, and 1 less that is a judgment of relevance as good as it can give.
"""

from __future__ import annotations

import math

from ragworth.calls.programs import Program, require_response
from ragworth.judging.labels import LabelResult, LabelScale
from ragworth.llm.contract import Card, Choose, Chosen, Prompt
from ragworth.llm.prompts.template import Template

NO_RESPONSE_LABEL = "NO-RESPONSE"
"""What prompts tell a model to write if it declines."""

REFUSAL_LABELS = ("I", "Sorry", "Unknown")
"""How models begin when they decline in other words. If it costs nothing, their probability counts too."""


RATED_ANSWERABILITY_NOTE = (
    "the ratings are answerability, not graded quality: the probability that the model answers the sub-question from "
    "the text, mapped to 0–5"
)

DECLINING = LabelScale((NO_RESPONSE_LABEL,), (1.0,), ("abstained",))
"""The only label of prompts for answers. A prompt file may declare another word: ``labels: UNKNOWN = abstained``."""


def declining_label(template: Template) -> str:
    """What this prompt tells a model to write if it declines."""
    return next(iter(DECLINING.for_prompt(template).written))


def answerability_labels(card: Card, label: str = NO_RESPONSE_LABEL) -> tuple[str, ...]:
    """Labels whose probability is asked for. Each may cost an extra call to an endpoint, so endpoints get only one."""
    return (label,) if card.endpoint else (label, *(word for word in REFUSAL_LABELS if word != label))


def calibrate(p: float, card: Card) -> float:
    """Calibrate a probability of declining: divide its log-odds by the model's temperature, if it has one."""
    p = min(1.0, p)
    if card.declining is None or p in (0, 1):
        return p
    odds = (math.log(p) - math.log1p(-p)) / card.declining
    small = math.exp(-abs(odds))  # never too large a number, whatever the odds
    return 1 / (1 + small) if odds >= 0 else small / (1 + small)


def name_p(card: Card, *, calibrated: bool) -> tuple[str, ...]:
    """Name the p that counts, for the source of a value: nothing if the model has only its own."""
    if card.declining is None:
        return ()
    return (f"calibrated p (log-odds / {card.declining:g})" if calibrated else "raw p",)


def ask_answerability(
    prompt: Prompt, scale: LabelScale, card: Card, label: str = NO_RESPONSE_LABEL
) -> Program[LabelResult]:
    """Turn the probability that the model answers into a value on the scale, from lowest to highest."""
    (outcome,) = yield [Choose(prompt, answerability_labels(card, label))]
    chosen = require_response(outcome, Chosen)
    answers = 1 - calibrate(chosen.probabilities[0], card)
    low, high = min(scale.values), max(scale.values)
    expected = low + answers * (high - low)
    number = min(range(len(scale.values)), key=lambda n: (abs(scale.values[n] - expected), n))
    shares = (answers, 1 - answers) if len(scale.values) == 2 else None
    estimator = ", ".join(("answerability", *name_p(card, calibrated=True)))
    return LabelResult(
        scale.labels[number], scale.values[number], chosen.usage, None, shares, expected, None, estimator
    )
