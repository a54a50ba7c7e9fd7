"""How far the answers of several people to one item are apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ragworth.label.tasks import LabelTask, Value


def answer_distance(task: LabelTask, answers: Sequence[Value]) -> float:
    """Mean distance of every two answers in the main field: a share of the scale, or 0 and 1 if it has no order.

    0 if all are equal, or if there are fewer than two.
    """
    places = {option.value: float(at) for at, option in enumerate(task.main.options)}
    scores = {option.value: option.score for option in task.main.options if option.score is not None}
    codes = scores if task.ordered and len(set(scores.values())) == len(places) else places
    chosen = [codes[answer[task.main.name]] for answer in answers if answer.get(task.main.name) in codes]
    width = max(codes.values()) - min(codes.values())
    pairs = list(combinations(chosen, 2))
    if not pairs:
        return 0.0
    return sum(abs(a - b) / width if task.ordered else float(a != b) for a, b in pairs) / len(pairs)
