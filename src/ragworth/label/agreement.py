"""How far annotators agree, from a table of labels: with others, with themselves, and with gold answers.

Agreement between people counts labels that are independent of each other: gold items, repeats, adjudicated labels, and
labels given after a model's suggestion was shown are left out, and counted. Intervals are bootstraps over groups
(queries).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.core.errors import format_count
from ragworth.label.labels import Label, Labels
from ragworth.label.tasks.contract import LabelItem, LabelTask
from ragworth.label.tasks.fields import SpansField
from ragworth.stats.estimate import Estimate, Resampling
from ragworth.stats.judge_panels import Confusion, PairAgreement, confusions, pair_agreements, panel_agreements
from ragworth.stats.resampling import resample_counts, share_interval, unit_numbers

Floats = npt.NDArray[np.float64]
QUICK = Resampling(resamples=400)
"""Resamples of a page that is computed while people label."""
CHUNK = 256
"""Resamples whose counts are held at a time."""
NOTHING = "no two annotators of an item highlighted anything"


class AnnotatorFacts(NamedTuple):
    """What one annotator did.

    ``gold`` and ``self_agreement`` are (equal, all): answers equal to the gold answer, and to the person's own earlier
    answer.
    """

    name: str
    labels: int
    skipped: int
    median_seconds: float | None
    gold: tuple[int, int]
    self_agreement: tuple[int, int]


class Dispute(NamedTuple):
    """An item on which annotators differ: their values, and how far they are apart (0 to 1)."""

    item: LabelItem
    values: Mapping[str, str]
    distance: float


@dataclass(frozen=True)
class LabelAgreement:
    """Agreement of a project's annotators. Everything is computed when it is first asked for."""

    task: LabelTask
    items: Mapping[str, LabelItem]
    labels: Labels
    plan: Resampling = QUICK

    @cached_property
    def independent(self) -> list[Label]:
        """The labels that count for agreement between people."""
        return [label for label, why in zip(self.labels.answers, self._reasons, strict=True) if not why]

    @cached_property
    def left_out(self) -> dict[str, int]:
        """How many labels don't count, by reason."""
        return dict(Counter(filter(None, self._reasons)))

    def _reason(self, label: Label) -> str:
        item = self.items[label.item]
        if label.adjudicated:
            return "adjudicated"
        if item.gold is not None:
            return "gold items"
        if item.repeat_of:
            return "repeats"
        if label.seen_suggestion:
            return "a suggestion was shown"
        return "" if self._main(label) is not None else f"no {self._main_name}"

    @cached_property
    def annotators(self) -> list[str]:
        return list(dict.fromkeys(label.annotator for label in self.independent))

    @cached_property
    def values(self) -> Floats:
        """Items × annotators: each label's number, NaN where there is none."""
        rows = {item: at for at, item in enumerate(self._labelled)}
        columns = {name: at for at, name in enumerate(self.annotators)}
        found = np.full((len(rows), len(columns)), np.nan)
        for label in self.independent:
            found[rows[label.item], columns[label.annotator]] = self.codes[str(self._main(label))]
        return found

    @cached_property
    def codes(self) -> dict[str, float]:
        """The number of each value."""
        return scale_numbers(self.task)

    @cached_property
    def together(self) -> dict[str, Estimate]:
        """Fleiss' κ and Krippendorff's α of all annotators; n counts items with two labels or more."""
        return panel_agreements(self.values, self._groups, self.plan, nominal=True, ordered=self.task.ordered)

    @cached_property
    def pairs(self) -> list[PairAgreement]:
        """Cohen's κ and Spearman's ρ of every two annotators, by their place in `annotators`."""
        return pair_agreements(self.values, self._groups, self.plan, nominal=True, ordered=self.task.ordered)

    def confusion(self, first: int, second: int) -> list[Confusion]:
        """What the second annotator says, by what the first says."""
        return confusions(self.values[:, first], self.values[:, second])

    @cached_property
    def base_rates(self) -> dict[str, Estimate]:
        """Share of each value among all items that have labels, each item with the weight 1 / its probability.

        An item's labels count as one, by their shares. Items without a probability, such as those chosen by hand, have
        no weight, and the reason counts them. If no item has one, the shares are of the labelled items alone.
        """
        inclusion = [self.items[name].probability for name in self._labelled]
        unknown = sum(probability is None for probability in inclusion)
        if unknown < len(inclusion):
            weights = np.array([0.0 if probability is None else 1 / probability for probability in inclusion])
            reason = f"{format_count(unknown, 'item')} without an inclusion probability left out" if unknown else ""
        else:
            weights = np.ones(len(inclusion))
            reason = "no inclusion probabilities: shares of the labelled items, not of all"
        counts = (~np.isnan(self.values)).sum(axis=1)
        found = {}
        for value, code in self.codes.items():
            share = (self.values == code).sum(axis=1) / counts
            one = ratio_estimate(weights * share, weights, self._groups, self.plan, "no labels")
            known = int((weights > 0).sum())
            found[value] = one._replace(reason=reason, n=known) if one.value is not None else one
        return found

    @cached_property
    def spans(self) -> dict[str, SpanAgreement]:
        """Agreement of highlights by field, over all pairs of annotators of an item."""
        names = [one.name for one in self.task.fields if isinstance(one, SpansField)]
        return {name: span_agreement(self.independent, self.items, name, self.plan) for name in names}

    @cached_property
    def people(self) -> list[AnnotatorFacts]:
        return [self._facts(name) for name in self.labels.annotators]

    def _facts(self, name: str) -> AnnotatorFacts:
        mine = [label for label in self.labels if label.annotator == name]
        answers = {label.item: label for label in mine if label.value is not None}
        seconds = [label.seconds for label in answers.values() if label.seconds is not None]
        golds = [(label, self.items[label.item].gold) for label in answers.values()]
        field_name = self.task.main.name
        equal = [self._main(label) == gold.get(field_name) for label, gold in golds if gold is not None]
        again = [(label, answers.get(self.items[label.item].repeat_of)) for label in answers.values()]
        same = [self._main(label) == self._main(first) for label, first in again if first is not None]
        skipped = sum(label.value is None for label in mine)
        middle = median(seconds) if seconds else None
        return AnnotatorFacts(name, len(answers), skipped, middle, (sum(equal), len(equal)), (sum(same), len(same)))

    @cached_property
    def disputes(self) -> list[Dispute]:
        """Items on which annotators differ and that nobody has adjudicated, the most distant first."""
        settled = {label.item for label in self.labels.answers if label.adjudicated}
        by_item: dict[str, dict[str, str]] = {}
        for label in self.independent:
            by_item.setdefault(label.item, {})[label.annotator] = str(self._main(label))
        found = [
            Dispute(self.items[item], values, answer_distance(self.task, list(values.values())))
            for item, values in by_item.items()
            if item not in settled and len(set(values.values())) > 1
        ]
        return sorted(found, key=lambda one: (-one.distance, one.item.id))

    def _main(self, label: Label) -> str | None:
        return None if label.value is None else label.value.get(self._main_name)

    @cached_property
    def _main_name(self) -> str:
        return self.task.main.name

    @cached_property
    def _reasons(self) -> list[str]:
        """Why each answer doesn't count, or an empty text."""
        return [self._reason(label) for label in self.labels.answers]

    @cached_property
    def _labelled(self) -> list[str]:
        return list(dict.fromkeys(label.item for label in self.independent))

    @cached_property
    def _groups(self) -> npt.NDArray[np.int64]:
        names = np.array([self.items[item].group or item for item in self._labelled], dtype=str)
        return np.unique(names, return_inverse=True)[1].reshape(-1).astype(np.int64)


def ratio_estimate(above: Floats, below: Floats, groups: npt.ArrayLike, plan: Resampling, nothing: str) -> Estimate:
    """Σ above / Σ below, with a bootstrap interval over groups of rows. Without rows, ``nothing`` is the reason."""
    if not len(above) or not below.sum():
        return Estimate(reason=nothing)
    units = unit_numbers(groups, len(above))
    sums = np.zeros((int(units.max()) + 1, 2))
    np.add.at(sums, units, np.column_stack([above, below]))
    draws = np.concatenate([n @ sums for n in resample_counts(len(sums), plan.resamples, plan.seed, CHUNK)])
    shares = np.divide(draws[:, 0], draws[:, 1], out=np.full(len(draws), np.nan), where=draws[:, 1] > 0)
    low, high = share_interval(shares, len(sums), plan.level) or (None, None)
    return Estimate(float(above.sum() / below.sum()), low, high, n=len(above))


class SpanAgreement(NamedTuple):
    """F1 of two annotators' highlights, over all pairs of annotators and all items of which either highlighted some.

    ``exact`` counts spans with equal ends; ``overlap`` counts characters. Both are 2·shared / (first's + second's),
    summed over pairs and items; n counts pairs.
    """

    exact: Estimate
    overlap: Estimate


def span_agreement(
    labels: Sequence[Label], items: Mapping[str, LabelItem], field: str, plan: Resampling
) -> SpanAgreement:
    """Agreement of the highlights in a field; labels without a value have none."""
    by_item: dict[str, list[list[Any]]] = {}
    for label in labels:
        if label.value is not None:
            by_item.setdefault(label.item, []).append(list(label.value.get(field) or ()))
    groups: list[str] = []
    counts: list[tuple[int, int, int, int]] = []
    for item, every in by_item.items():
        for first, second in combinations(every, 2):
            if first or second:
                groups.append(items[item].group or item)
                counts.append((*_shared_spans(first, second), *_shared_characters(first, second)))
    table = np.array(counts, dtype=np.float64).reshape(-1, 4)
    exact, overlap = (ratio_estimate(table[:, at], table[:, at + 1], np.array(groups), plan, NOTHING) for at in (0, 2))
    return SpanAgreement(exact, overlap)


def _shared_spans(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Twice the number of equal spans, and the number of all."""
    a, b = ({(one["part"], one["start"], one["end"]) for one in side} for side in (first, second))
    return 2 * len(a & b), len(a) + len(b)


def _shared_characters(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Twice the number of characters that both highlighted, and the sum of both."""
    shared = sum(
        max(0, min(a["end"], b["end"]) - max(a["start"], b["start"]))
        for a in first
        for b in second
        if a["part"] == b["part"]
    )
    return 2 * shared, sum(one["end"] - one["start"] for side in (first, second) for one in side)


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
