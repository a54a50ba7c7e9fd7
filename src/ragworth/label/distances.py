"""How far the answers of several people to one item are apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ragworth.label.tasks.contract import LabelTask


def scale_numbers(task: LabelTask) -> dict[str, float]:
    """The number of each value: its score if they are in order and differ, otherwise its place in the scale."""
    options = task.main.options
    scores = {option.value: float(option.score) for option in options if option.score is not None}
    if task.ordered and len(set(scores.values())) == len(options):
        return scores
    return {option.value: float(at) for at, option in enumerate(options)}


def answer_distance(task: LabelTask, values: Sequence[str]) -> float:
    """Mean distance of every two values: a share of the scale, or 0 and 1 if it has no order.

    0 if all are equal, or if there are fewer than two.
    """
    numbers = scale_numbers(task)
    width = max(numbers.values()) - min(numbers.values())
    pairs = list(combinations([numbers[value] for value in values], 2))
    if not pairs:
        return 0.0
    return sum(abs(a - b) / width if task.ordered else float(a != b) for a, b in pairs) / len(pairs)
