"""Which items people label: a random share, items where judges disagree, gold items and repeats.

Whole groups (queries) are drawn at random, each with the same probability, and all their items are labelled. So the
random share gives unbiased estimates, and `ragworth estimate` can use it. Disputed items are drawn one by one, from all
items and independently of the groups, with a probability proportional to the judges' disagreement. Every item records
which draws it came up in (its stratum), and the probability with which it got in:

    π = 1 − (1 − share of groups) · (1 − probability as a disputed item)

A mean over all labels with weights 1/π is unbiased too; a mean without them isn't. `ragworth estimate` needs no
weights: labels of disputed items correct the cheap judge, and the random share measures the rest of its error.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ragworth.core.errors import InputError, format_count, format_list
from ragworth.label.tasks.contract import LabelItem, LabelTask
from ragworth.two_judges.strata import BOTH, DISPUTED, RANDOM

GOLD, REPEAT = "gold", "repeat"
"""Values of `LabelItem.stratum`, beside those of `ragworth.two_judges.strata`."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Selection:
    """What to select.

    Attributes
    ----------
    queries: groups drawn at random; None for all of them.
    disputed: expected number of disputed items.
    repeats: items that are shown again to the same person.
    seed: of everything that is drawn.
    """

    queries: int | None = None
    disputed: int = 0
    repeats: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("queries", "disputed", "repeats"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"{name} is {value}", expected="0 or more")


def select_items(
    task: LabelTask,
    items: Sequence[LabelItem],
    selection: Selection,
    disagreement: Mapping[str, float] | None = None,
    gold: Iterable[LabelItem] = (),
) -> list[LabelItem]:
    """The items to label, in their order; gold items and repeats come last (a site mixes them in).

    ``disagreement`` is by item id, as `judge_disagreement` has it. A task that opens after another one keeps all its
    items, because its own rule draws them: by answers, not at random, so they have no stratum and no probability.
    Items that were drawn before, such as those of another project, keep their stratum and probability.
    """
    if selection.disputed and not disagreement:
        raise InputError(
            "disputed items are wanted, and nothing says on which items judges disagree",
            remedy="give judgments by two judges or more (--judges A.csv --judges B.csv)",
        )
    if task.after:
        return list(items)
    was_drawn = any(item.stratum or item.probability is not None for item in items)
    if was_drawn and (selection.queries is not None or selection.disputed):
        raise InputError(
            "the items say how they were selected, so they can't be drawn again",
            remedy="take them all, or remove stratum and probability from the file if it has all items there are",
        )
    chosen = list(items) if was_drawn else _draw(items, selection, disagreement or {})
    return [*chosen, *_gold_items(task, gold), *repeated_items(chosen, selection.repeats, selection.seed)]


def _draw(items: Sequence[LabelItem], selection: Selection, disagreement: Mapping[str, float]) -> list[LabelItem]:
    """Random groups and disputed items, with their stratum and probability."""
    groups = list(dict.fromkeys(item.group for item in items))
    wanted = len(groups) if selection.queries is None else selection.queries
    if wanted > len(groups):
        raise InputError(f"{wanted:,} random queries are wanted, and there are {len(groups):,}")
    draw = random.Random(repr(("groups", selection.seed)))
    drawn = set(draw.sample(groups, wanted))
    share = wanted / len(groups) if groups else 0.0
    disputed = _disputed_probabilities([disagreement.get(item.id, 0.0) for item in items], selection.disputed)
    chosen: list[LabelItem] = []
    for item, own in zip(items, disputed.tolist(), strict=True):
        # Drawn for every item, so that one item's chance never depends on another's.
        also = random.Random(repr(("disputed", selection.seed, item.id))).random() < own
        if item.group in drawn or also:
            stratum = DISPUTED if item.group not in drawn else BOTH if also else RANDOM
            chosen.append(replace(item, stratum=stratum, probability=1 - (1 - share) * (1 - own)))
    if not chosen:
        raise InputError("no item is selected", remedy="ask for more random queries or disputed items")
    return chosen


def _disputed_probabilities(disagreement: Sequence[float], wanted: int) -> Floats:
    """Probabilities proportional to disagreement, at most 1, with the sum ``wanted`` if so many items are disputed."""
    size = np.array(disagreement, dtype=np.float64)
    if not np.isfinite(size).all() or (size < 0).any():
        raise InputError("a disagreement is negative or not a number", expected="0 or more")
    found, open_ = np.zeros(len(size)), size > 0
    left = float(min(wanted, int(open_.sum())))
    while open_.any() and left > 0:
        scaled = np.where(open_, size * left / size[open_].sum(), 0.0)
        full = open_ & (scaled >= 1 - 1e-12)
        if not full.any():
            return np.where(open_, scaled, found)
        found[full] = 1.0
        left -= float(full.sum())
        open_ &= ~full
    return found


def _gold_items(task: LabelTask, gold: Iterable[LabelItem]) -> list[LabelItem]:
    found = list(gold)
    if bare := [item.id for item in found if item.gold is None]:
        raise InputError(f"{format_count(len(bare), 'gold item')} without an answer: {format_list(bare)}")
    for item in found:
        if problems := task.item_problems(item):
            raise InputError(f"the gold item {item.id!r}: {problems[0]}")
    return [replace(item, stratum=GOLD, probability=None) for item in found]


def repeated_items(items: Sequence[LabelItem], count: int, seed: int) -> list[LabelItem]:
    """Copies of items drawn at random, to be shown again to the same person later."""
    if count > len(items):
        raise InputError(f"{count:,} repeats are wanted, and there are {format_count(len(items), 'item')}")
    drawn = random.Random(repr(("repeats", seed))).sample(list(items), count)
    return [replace(item, id=f"{item.id}-again", repeat_of=item.id, stratum=REPEAT, probability=None) for item in drawn]
