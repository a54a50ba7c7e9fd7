"""Checks of questions: one file each, behind one contract (`contract.py`), listed in `CHECKS`.

Other packages add checks through entry points in the group ``ragworth.checks``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragworth.registry import Registry

if TYPE_CHECKING:
    from ragworth.build.checks.contract import Check

CHECKS: Registry[type[Check]] = Registry(
    "check",
    "ragworth.checks",
    {
        "verbatim": "ragworth.build.checks.verbatim:Verbatim",
        "stated": "ragworth.build.checks.stated:StatedAnswer",
        "self-contained": "ragworth.build.checks.self_contained:SelfContained",
        "language": "ragworth.build.checks.language:SameLanguage",
        "copied": "ragworth.build.checks.copied:NotCopied",
        "answerable": "ragworth.build.checks.answerable:AnswerableWithPassages",
        "closed-book": "ragworth.build.checks.closed_book:NeedsPassage",
        "each-passage": "ragworth.build.checks.each_passage:NeedsEachPassage",
        "unanswerable": "ragworth.build.checks.unanswerable:Unanswerable",
        "duplicate": "ragworth.build.checks.duplicate:NoDuplicate",
        "round-trip": "ragworth.build.checks.round_trip:RoundTrip",
    },
)
"""In the order in which a draft gets its status: the first check that it fails. ``duplicate`` comes last, since only a
question that is kept can be repeated."""
