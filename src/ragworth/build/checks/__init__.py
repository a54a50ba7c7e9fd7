"""Checks of questions: behind one contract (`contract.py`), listed in `CHECKS`.

Other packages add checks through entry points in the group ``ragworth.checks``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragworth.core.registry import Registry

if TYPE_CHECKING:
    from ragworth.build.checks.contract import Check

CHECKS: Registry[type[Check]] = Registry(
    "check",
    "ragworth.checks",
    {
        "verbatim": "ragworth.build.checks.text_checks:Verbatim",
        "stated": "ragworth.build.checks.text_checks:StatedAnswer",
        "self-contained": "ragworth.build.checks.self_contained:SelfContained",
        "language": "ragworth.build.checks.text_checks:SameLanguage",
        "copied": "ragworth.build.checks.text_checks:NotCopied",
        "answerable": "ragworth.build.checks.reader_checks:AnswerableWithPassages",
        "closed-book": "ragworth.build.checks.reader_checks:NeedsPassage",
        "each-passage": "ragworth.build.checks.reader_checks:NeedsEachPassage",
        "unanswerable": "ragworth.build.checks.reader_checks:Unanswerable",
        "duplicate": "ragworth.build.checks.duplicate:NoDuplicate",
        "round-trip": "ragworth.build.checks.text_checks:RoundTrip",
    },
)
"""In the order in which a draft gets its status: the first check that it fails. ``duplicate`` comes last, since only a
question that is kept can be repeated."""
