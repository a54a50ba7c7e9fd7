"""Citations in answers: which passages they name, and the text without them."""

from __future__ import annotations

import pytest

from ragworth.text_match.sentences import parse_citations, without_citations


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("It rained [1].", "It rained."),
        ("It rained [2][3], then snowed [1, 3].", "It rained, then snowed."),
        ("It rained (1) and snowed (2, 3).", "It rained and snowed."),
        ("It rained [doc3], [Doc 3], [document_2] and [Source: 4].", "It rained,, and."),
        ("In 1998 (1998) f(1) held [sic].", "In 1998 (1998) f(1) held [sic]."),
        ("[1]", ""),
    ],
)
def test_without_citations(text: str, bare: str) -> None:
    assert without_citations(text) == bare


def test_named_documents_are_citations() -> None:
    assert parse_citations("So [doc2], [Passage 1; 3] and [doc 9].", ["a", "b", "c"]) == (("b", "a", "c"), 1)
