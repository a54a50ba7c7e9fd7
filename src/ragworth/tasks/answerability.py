"""Judge how well a passage answers a question by whether a reader answers from it or declines.

A model that was taught to read and to decline is no judge: asked for a label, it says anything. What it can say is how
likely it is to decline, and 1 less that is a judgment of relevance as good as it can give.
"""

from __future__ import annotations

import math

from ragworth.calls.programs import Program, require_response
from ragworth.llm.contract import Card, Choose, Chosen, Prompt
from ragworth.tasks.labels import LabelResult, LabelScale

NO_RESPONSE_LABEL = "NO-RESPONSE"
"""What prompts tell a model to write if it declines."""

REFUSAL_LABELS = ("I", "Sorry", "Unknown")
"""How models begin when they decline in other words. If it costs nothing, their probability counts too."""


RATED_ANSWERABILITY = "answerability, a probability mapped to 0–5"
"""The estimator of ratings that are answerability, for their source."""

RATED_ANSWERABILITY_NOTE = (
    "the ratings are answerability, not graded quality: the probability that the model answers the sub-question from "
    "the text, mapped to 0–5"
)


def answerability_labels(card: Card) -> tuple[str, ...]:
    """Labels whose probability is asked for. Each may cost an extra call to an endpoint, so endpoints get only one."""
    return (NO_RESPONSE_LABEL,) if card.endpoint else (NO_RESPONSE_LABEL, *REFUSAL_LABELS)


def calibrate(p: float, card: Card) -> float:
    """Calibrate a probability of declining: divide its log-odds by the model's temperature, if it has one."""
    if card.declining is None or not 0 < p < 1:
        return p
    odds = (math.log(p) - math.log1p(-p)) / card.declining
    small = math.exp(-abs(odds))  # never too large a number, whatever the odds
    return 1 / (1 + small) if odds >= 0 else small / (1 + small)


def ask_answerability(prompt: Prompt, scale: LabelScale, card: Card) -> Program[LabelResult]:
    """Turn the probability that the model answers into a value on the scale, from lowest to highest."""
    (outcome,) = yield [Choose(prompt, answerability_labels(card))]
    chosen = require_response(outcome, Chosen)
    answers = 1 - calibrate(min(1.0, chosen.probabilities[0]), card)
    low, high = min(scale.values), max(scale.values)
    expected = low + answers * (high - low)
    number = min(range(len(scale.values)), key=lambda n: (abs(scale.values[n] - expected), n))
    shares = (answers, 1 - answers) if len(scale.values) == 2 else None
    return LabelResult(
        scale.labels[number], scale.values[number], chosen.usage, None, shares, expected, None, "answerability"
    )
