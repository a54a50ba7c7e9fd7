"""The metrics of evaluations and studies if the user names none: those that declare it and can be computed."""

from __future__ import annotations

from collections.abc import Set

from ragworth.core.errors import InputError, format_list
from ragworth.metrics import METRICS

QRELS_HINT = "relevance = true under [judgments], or qrels under [collection]"


def default_metrics(have: Set[str], k: int, *, required: bool = True) -> tuple[str, ...]:
    """The metrics at the depth that the model reads.

    ``have``: aspects of judgments that there are; "ratings"; "tokens", where lengths of passages are known.
    ``required``: it is an error if there are none.
    """
    declared = sorted((METRICS.get(name) for name in METRICS.names()), key=lambda each: each.default)
    made = tuple(f"{each.name}@{k}" for each in declared if each.default and set(each.needs) <= have)
    if not made and required:
        raise _no_metrics_error(have)
    return made


def _no_metrics_error(have: Set[str]) -> InputError:
    """The error if no metric can be computed, with what is missing; abstention alone is not enough."""
    known = sorted(have - {"tokens"})
    if "abstention" in known:
        return InputError(
            "no metric can be computed: abstention is judged, and relevance is not known",
            remedy=f"UDCG needs both: add {QRELS_HINT}",
        )
    found = (
        f"there is nothing but {format_list(known)}" if known else "there are no relevance labels, judgments or ratings"
    )
    return InputError(
        f"no metric can be computed: {found}",
        remedy=f"add {QRELS_HINT}; or ratings, or other kinds of judgment",
    )
