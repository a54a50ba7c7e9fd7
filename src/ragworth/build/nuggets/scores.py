"""Scores of an answer from the nuggets that it supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragworth.build.nuggets.files import ASSIGNMENTS, Nugget
from ragworth.calls.programs import NoValue

SCORES = (
    "strict_vital_score",
    "vital_score",
    "strict_all_score",
    "all_score",
    "strict_weighted_score",
    "weighted_score",
)
CREDIT = dict(zip(ASSIGNMENTS, (1.0, 0.5, 0.0), strict=True))
OKAY_WEIGHT = 0.5
NO_NUGGETS, NO_VITAL, UNASSIGNED, NO_IMPORTANCE = "no-nuggets", "no-vital-nuggets", "unassigned", "no-importance"


def nugget_scores(nuggets: Sequence[Nugget], assignments: Sequence[str]) -> Mapping[str, float | NoValue]:
    """The six scores of TREC 2024 RAG. Support counts 1, partial support 0.5, or 0 in the strict variants.

    ``all`` is the mean over all nuggets, ``vital`` over the vital ones, and ``weighted`` over all with weight 1 for
    vital and 0.5 for okay ones. A failed assignment or unknown importance leaves the scores that depend on it without
    a value (nuggetizer counts them as no support and as okay). No nuggets, or no vital ones, is no value either
    (nuggetizer: 0).
    """
    groups = {
        "vital": [(nugget, said, 1.0) for nugget, said in zip(nuggets, assignments, strict=True) if _vital(nugget)],
        "all": [(nugget, said, 1.0) for nugget, said in zip(nuggets, assignments, strict=True)],
        "weighted": [
            (nugget, said, 1.0 if _vital(nugget) else OKAY_WEIGHT)
            for nugget, said in zip(nuggets, assignments, strict=True)
        ],
    }
    unknown = sum(not nugget.importance for nugget in nuggets)
    scores: dict[str, float | NoValue] = {}
    for name in SCORES:
        strict, kind = name.startswith("strict_"), name.removeprefix("strict_").removesuffix("_score")
        if unknown and kind != "all":
            scores[name] = NoValue(NO_IMPORTANCE, f"the importance of {unknown:,} nuggets is unknown")
        else:
            scores[name] = _mean([(said, weight) for _, said, weight in groups[kind]], strict, bool(nuggets))
    return scores


def _vital(nugget: Nugget) -> bool:
    return nugget.importance == "vital"


def _mean(rows: Sequence[tuple[str, float]], strict: bool, some: bool) -> float | NoValue:
    if not rows:
        return NoValue(NO_VITAL if some else NO_NUGGETS, "there is no nugget to score by")
    failed = sum(not said for said, _ in rows)
    if failed:
        return NoValue(UNASSIGNED, f"{failed:,} of {len(rows):,} assignments failed")
    credit = [CREDIT[said] * weight for said, weight in rows if not strict or CREDIT[said] == 1]
    return sum(credit) / sum(weight for _, weight in rows)
