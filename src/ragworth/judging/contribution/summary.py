"""Settings of splitting an answer among passages, and summaries of one context as outcomes of (system, query).

========================== ======================================================================= =======
outcome                    value                                                                   range
========================== ======================================================================= =======
``gain`` or ``reliance``   what the context adds to the answer's log-probability, in nats          any
``contributing``           share of the passages that contribute more than `threshold`             0 to 1
``harm`` or ``opposition`` share of all contribution, positive or not, that goes against it        0 to 1
``effective``              effective number of passages behind the answer: (Σφ⁺)² / Σ(φ⁺)²         1 to k
``redundancy``             share of the contribution that the others would make up for             0 to 1
``cited-contributing``     share of the cited passages that contribute                             0 to 1
========================== ======================================================================= =======

``gain`` and ``harm`` are for accepted answers: what goes against an accepted answer does harm. For what a model
answered, which may be wrong, the same numbers are called ``reliance`` and ``opposition``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ragworth.calls.programs import NoValue
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.contribution.answer_value import SplitAnswer
from ragworth.judging.contribution.design import METHODS, MOST_EXACT, Design, Floats

LEAST = 0.1
"""Nats from which a passage contributes: it makes the answer about 10 % likelier."""

SHARE = 0.05
"""Share of all contributions of a context, positive or not, from which one counts: next to 30 nats, 0.2 are nothing."""

NO_CONTRIBUTION = "no-contribution"
EMPTY_CONTEXT = "empty-context"
NO_CITATIONS = "no-citations"


@dataclass(frozen=True)
class ContributionOptions:
    """Settings of the annotator and of the grader."""

    method: str = option(
        "auto", "how the answer is split among passages; auto depends on their number", choices=METHODS
    )
    subsets: int = option(256, "maximum subsets of a context to ask about, if not all", low=8)
    least: float = option(LEAST, "lowest contribution, in nats, that counts", low=0)
    seed: int = option(0, "seed of random orders and subsets", low=0)
    prompt: str = prompt_option("reply")
    keep_cut: bool = option(False, "keep values of contexts that did not fit whole")

    @cached_property
    def design(self) -> Design:
        return Design(self.method, self.subsets, self.seed)

    @property
    def splits_by_shapley(self) -> bool:
        """Whether there are contributions beside those of leaving one passage out."""
        return self.method != "leave-one-out"

    @property
    def split_rounds(self) -> int:
        """How often it may ask about one context."""
        return 1 + self.subsets if self.method in ("auto", "permutations") else 1

    def check_size(self, passages: int) -> None:
        """Raise `NoValue` if a context is too large for the method."""
        if self.method == "exact" and passages > MOST_EXACT:
            words = f"{passages} passages have 2^{passages} subsets"
            raise NoValue("too-many-passages", f"{words}; exact takes {MOST_EXACT} passages at most")


OutcomeValues: TypeAlias = dict[str, float | NoValue]


def threshold(totals: Floats, least: float) -> float:
    """Nats above which a passage of a context contributes, and below minus which it goes against the answer."""
    return max(least, SHARE * float(np.abs(totals).sum()))


def aspects(*, accepted: bool, shapley: bool, cited: bool) -> tuple[str, ...]:
    """Names of the outcomes.

    ``accepted``: whether the answers are known to be right. ``shapley``: whether there are Shapley values beside
    leave-one-out. ``cited``: whether answers may have citations.
    """
    names = ("gain", "contributing", "harm") if accepted else ("reliance", "contributing", "opposition")
    more = (("redundancy",) if shapley else ()) + (("cited-contributing",) if cited else ())
    return (*names, "effective", *more)


def outcome_values(split: SplitAnswer, shown: tuple[str, ...], least: float, *, accepted: bool) -> OutcomeValues:
    """All outcomes of one context, each a number or the reason why it has none."""
    found, totals = split.found, split.found.totals
    opposed = opposition(totals, least)
    bound = threshold(totals, least)
    cited = cited_contributing(dict(zip(shown, totals.tolist(), strict=True)), split.cited, bound)
    return {
        "gain" if accepted else "reliance": found.gain,
        "contributing": float((totals > bound).mean()) if len(totals) else _no_passages(),
        "harm" if accepted else "opposition": opposed,
        "effective": effective_passages(totals, least),
        "redundancy": redundancy(totals, found.alone, least),
        "cited-contributing": cited,
    }


def opposition(totals: Floats, least: float) -> float | NoValue:
    """Share of Σ|φ| that is negative. Without a contribution of ``least`` nats either way there is none."""
    if not len(totals):
        return _no_passages()
    if float(np.abs(totals).max()) <= least:
        return _no_contribution(least)
    return float(np.maximum(-totals, 0).sum() / np.abs(totals).sum())


def effective_passages(totals: Floats, least: float) -> float | NoValue:
    """How many equal contributors would be as concentrated as these: 1 if one passage does all, k if all do the same.

    (Σφ⁺)² / Σ(φ⁺)², the inverse Simpson index of the positive contributions.
    """
    if not len(totals):
        return _no_passages()
    positive = np.maximum(totals, 0)
    if float(positive.max()) <= least:
        return _no_contribution(least)
    return float(positive.sum() ** 2 / (positive**2).sum())


def redundancy(totals: Floats, alone: Floats, least: float) -> float | NoValue:
    """Share of the positive contributions that wouldn't be lost if single passages were removed.

    1 − Σ min(φ⁺, δ⁺) / Σ φ⁺, where δ is what removing the passage alone takes from the answer. 0 if passages do
    different things; 1 if each could be left out.
    """
    if not len(totals):
        return _no_passages()
    positive = np.maximum(totals, 0)
    if float(positive.max()) <= least:
        return _no_contribution(least)
    return float(1 - np.minimum(positive, np.maximum(alone, 0)).sum() / positive.sum())


def cited_contributing(by_passage: dict[str, float], cited: tuple[str, ...], least: float) -> float | NoValue:
    """Share of the cited passages that contribute more than ``least`` nats."""
    if not cited:
        return NoValue(NO_CITATIONS, "the answer cites no passage")
    return sum(by_passage[passage] > least for passage in cited) / len(cited)


def _no_passages() -> NoValue:
    return NoValue(EMPTY_CONTEXT, "the context has no passages")


def _no_contribution(least: float) -> NoValue:
    return NoValue(NO_CONTRIBUTION, f"no passage makes the answer likelier by more than {least:g} nats")
