"""What the contributions of one context amount to, as outcomes of (system, query).

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

from typing import TypeAlias

import numpy as np

from ragworth.calls.programs import NoValue
from ragworth.contribution.answer_value import SplitAnswer
from ragworth.contribution.subsets import Floats

OutcomeValues: TypeAlias = dict[str, float | NoValue]

LEAST = 0.1
"""Nats from which a passage contributes: it makes the answer about 10 % likelier."""

SHARE = 0.05
"""Share of all contributions of a context, positive or not, from which one counts: next to 30 nats, 0.2 are nothing."""

NO_CONTRIBUTION = "no-contribution"
EMPTY_CONTEXT = "empty-context"
NO_CITATIONS = "no-citations"


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
