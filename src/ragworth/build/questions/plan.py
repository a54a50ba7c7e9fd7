"""The plan of a build: how many questions of each type and style.

Shares come from a TOML file; everything in it is optional::

    questions = 100
    drafts = 1.5          # drafts for each question, since checks drop some; 3 by default where rules write
    seed = 0

    [types]               # shares; a type that isn't named gets none
    fact = 3
    unanswerable = 1

    [styles]
    question = 2
    keywords = 1
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from ragworth.build.questions.contract import QuestionSlot
from ragworth.build.questions.types import QUESTION_TYPES, STYLES
from ragworth.core.errors import format_list
from ragworth.workspace.toml import Amount, Count, Positive, check_toml, read_toml

MODEL_DRAFTS, RULE_DRAFTS = 1.5, 3.0
CANDIDATES = 100
"""Passages that a writer may try for one question."""


def _names(known: Iterable[str]) -> AfterValidator:
    """Shares have known names, and one is above 0."""

    def check(shares: Mapping[str, float]) -> Mapping[str, float]:
        if unknown := [name for name in shares if name not in known]:
            raise ValueError(f"there is no {format_list(unknown)}; expected {', '.join(known)}", unknown[0])
        if not any(shares.values()):
            raise ValueError("all shares are 0; expected one above 0")
        return shares

    return AfterValidator(check)


Shares = Mapping[str, Amount]


@dataclass(frozen=True)
class QuestionPlan:
    """What to write: shares of types and styles, numbers, and the seed."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}

    questions: Positive = 100
    drafts: Annotated[float, Field(strict=True, ge=1, le=20)] | None = None
    """Drafts for each question. None: `MODEL_DRAFTS`, or `RULE_DRAFTS` where rules write."""
    seed: Count = 0
    types: Annotated[Shares, _names(QUESTION_TYPES)] = field(
        default_factory=lambda: {n: t.share for n, t in QUESTION_TYPES.items()}
    )
    styles: Annotated[Shares, _names(STYLES)] = field(
        default_factory=lambda: {name: share for name, (share, _) in STYLES.items()}
    )

    @property
    def draft_count(self) -> int:
        return max(self.questions, round(self.questions * (self.drafts or MODEL_DRAFTS)))

    def for_rules(self) -> QuestionPlan:
        """The plan for a writer that costs nothing and finds nothing to ask in many passages."""
        return self if self.drafts is not None else replace(self, drafts=RULE_DRAFTS)

    def describe(self) -> dict[str, Any]:
        return {
            "questions": self.questions,
            "drafts": self.draft_count,
            "types": {name: share for name, share in self.types.items() if share},
            "styles": {name: share for name, share in self.styles.items() if share},
        }


def read_plan(path: str | Path, **changes: Any) -> QuestionPlan:
    """Read a plan from a TOML file; ``changes`` that aren't None replace what it says."""
    given, text = read_toml(path, "a plan in TOML")
    given |= {name: value for name, value in changes.items() if value is not None}
    return check_toml(QuestionPlan, given, str(path), text)


def allocate(total: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Split a number by shares, by the largest remainders. The parts add up to the number."""
    whole = sum(shares.values())
    exact = {name: total * share / whole for name, share in shares.items() if share > 0}
    parts = {name: int(value) for name, value in exact.items()}
    rest = sorted(exact, key=lambda name: parts[name] - exact[name])
    for name in rest[: total - sum(parts.values())]:
        parts[name] += 1
    return parts


def plan_slots(plan: QuestionPlan, passages: Sequence[str]) -> list[QuestionSlot]:
    """The questions to write. Each type and style gets its share; each question starts at another passage, as long as
    there are some, and goes on with random ones."""
    strata = {(kind, style): plan.types[kind] * plan.styles[style] for kind, style in product(plan.types, plan.styles)}
    counts = allocate(plan.draft_count, {"\t".join(key): share for key, share in strata.items()}) if passages else {}
    draw = random.Random(f"{plan.seed} candidates")
    starts = draw.sample(passages, len(passages))
    slots: list[QuestionSlot] = []
    for key, count in counts.items():
        kind, style = key.split("\t")
        for _ in range(count):
            id, start = f"q{len(slots) + 1:05}", starts[len(slots) % len(starts)]
            others = draw.sample(passages, min(len(passages), CANDIDATES))
            candidates = tuple(dict.fromkeys((start, *others)))
            slots.append(QuestionSlot(id, kind, style, candidates, f"{plan.seed} {id}"))
    return slots


def count_slots(slots: Sequence[QuestionSlot]) -> list[tuple[str, str, int]]:
    """How many slots each type and style has, for display."""
    counts = Counter((slot.type, slot.style) for slot in slots)
    return [(kind, style, counts[kind, style]) for kind in QUESTION_TYPES for style in STYLES if counts[kind, style]]
