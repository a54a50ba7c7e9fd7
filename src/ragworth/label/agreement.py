"""How far annotators agree, from a table of labels: with others, with themselves, and with gold answers.

Agreement between people counts labels that are independent of each other: gold items, repeats, adjudicated labels, and
labels given after a model's suggestion was shown are left out, and counted. Intervals are bootstraps over groups
(queries).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.errors import format_count
from ragworth.label.distances import answer_distance, scale_numbers
from ragworth.label.labels import Label, Labels
from ragworth.label.ratios import ratio_estimate
from ragworth.label.spans import SpanAgreement, span_agreement
from ragworth.label.tasks.contract import LabelItem, LabelTask
from ragworth.label.tasks.fields import SpansField
from ragworth.stats.estimate import Estimate, Resampling
from ragworth.stats.judge_panels import Confusion, PairAgreement, confusions, pair_agreements, panel_agreements

Floats = npt.NDArray[np.float64]
QUICK = Resampling(resamples=400)
"""Resamples of a page that is computed while people label."""


class AnnotatorFacts(NamedTuple):
    """What one annotator did. ``shares`` has the share of each value among the labels that count for agreement.

    ``gold`` and ``self_agreement`` are (equal, all): answers equal to the gold answer, and to the person's own earlier
    answer.
    """

    name: str
    labels: int
    skipped: int
    shares: Mapping[str, float]
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
    """Agreement of a project's annotators.

    Everything is computed when it is first asked for. ``with_suggestions`` counts labels given after a suggestion too.
    """

    task: LabelTask
    items: Mapping[str, LabelItem]
    labels: Labels
    plan: Resampling = QUICK
    with_suggestions: bool = False

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
        if label.seen_suggestion and not self.with_suggestions:
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
        counted = [self._main(label) for label in self.independent if label.annotator == name]
        shares = {value: counted.count(value) / len(counted) for value in self.codes} if counted else {}
        seconds = [label.seconds for label in answers.values() if label.seconds is not None]
        golds = [(label, self.items[label.item].gold) for label in answers.values()]
        field_name = self.task.main.name
        equal = [self._main(label) == gold.get(field_name) for label, gold in golds if gold is not None]
        again = [(label, answers.get(self.items[label.item].repeat_of)) for label in answers.values()]
        same = [self._main(label) == self._main(first) for label, first in again if first is not None]
        skipped = sum(label.value is None for label in mine)
        middle = median(seconds) if seconds else None
        return AnnotatorFacts(
            name, len(answers), skipped, shares, middle, (sum(equal), len(equal)), (sum(same), len(same))
        )

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
