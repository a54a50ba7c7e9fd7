"""Find why an answer that a text has may be said of something else than the question asks."""

from __future__ import annotations

from ragworth.errors import quote_short
from ragworth.text_match.asked_ends import gives_other_end
from ragworth.text_match.asked_periods import is_for_other_period
from ragworth.text_match.comparisons import comparison_verdict
from ragworth.text_match.relations import is_other_relative, succession_verdict
from ragworth.text_match.roles import has_other_part
from ragworth.text_match.table_rows import is_in_other_row
from ragworth.text_match.text_facts import QuestionFacts, TextFacts


def find_other_subject(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> str:
    """What is said of the answer instead; empty if nothing is found."""
    if not question.raw or text.raw.strip() == wanted.raw.strip():
        return ""
    answer = quote_short(wanted.raw)
    if is_in_other_row(text, wanted, question):
        return f"has {answer} in another row or column"
    if gives_other_end(text, wanted, question):
        return f"has {answer} for the other end of what is asked"
    if is_for_other_period(text, wanted, question):
        return f"has {answer} for another period"
    sentences = (text.raw, wanted.raw, question.raw)
    if has_other_part(*sentences) or is_other_relative(*sentences) or succession_verdict(*sentences) < 0:
        return f"has {answer} in the other part"
    if comparison_verdict(text, wanted, question) < 0:
        return f"has {answer} on the other side of a comparison"
    return ""
