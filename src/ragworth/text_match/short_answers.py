"""Grade a short answer without a model, deterministically: correct, abstained or wrong.

Abstention comes first: an answer that declines (:mod:`ragworth.text_match.refusals`) is abstained, even if it mentions
an accepted answer. Otherwise it is correct if it gives an accepted answer (:mod:`ragworth.text_match.matching`: the
words are contained, with numbers and dates in any spelling, or almost contained), and wrong if not.
A correct answer written without any relevant passage in view is only partially correct (Trappolini et al.).

Limits of words: an accepted answer that is said of something else, or denied ("it was not Paris"), counts as given,
and a right answer in other words doesn't.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ragworth.errors import InputError, quote_short
from ragworth.text_match.matching import match_answer, to_matchable
from ragworth.text_match.overlap import require_accepted
from ragworth.text_match.refusals import find_refusal

GradeLabel = Literal["correct", "partially-correct", "abstained", "wrong"]


class ShortAnswerGrade(NamedTuple):
    label: GradeLabel
    why: str


def grade_short_answer(
    text: str, accepted: Sequence[str], *, relevant_shown: bool | None = None, phrases: Sequence[str] = ()
) -> ShortAnswerGrade:
    """Grade an answer against the accepted ones.

    ``relevant_shown`` is whether a relevant passage was among those shown; if not, a correct answer is
    "partially-correct". ``phrases`` are further phrases that decline. A blank answer can't be graded, and a blank
    accepted answer would be contained in every text, so both are errors.
    """
    if not text.strip():
        raise InputError(
            "the answer to be graded is blank", expected="a text", remedy="leave it out, with its reason as status"
        )
    for place, answer in enumerate(require_accepted(accepted), 1):
        if not answer.strip():
            raise InputError(f"accepted answer {place} of {len(accepted)} is blank", expected="a text")
    declined = find_refusal(text, phrases)
    # If declining is an accepted answer ("unknown", "none"), it is graded like any other.
    usable = accepted if declined is None else [answer for answer in accepted if find_refusal(answer, phrases)]
    words = to_matchable(text)
    for answer in usable:
        how = match_answer(words, answer)
        if how is None:
            continue
        why = f"{how} {quote_short(answer)}"
        if relevant_shown is False:
            return ShortAnswerGrade("partially-correct", f"{why}, though no relevant passage was shown")
        return ShortAnswerGrade("correct", why)
    if declined is not None:
        return ShortAnswerGrade("abstained", f"declines: {quote_short(declined.phrase)}")
    return ShortAnswerGrade("wrong", f"gives none of the accepted answers ({len(accepted)})")
