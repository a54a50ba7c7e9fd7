"""BM25 against a direct implementation of its formulas, and at the edges."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.core.errors import InputError
from ragworth.retrieval import retrieve
from ragworth.retrieval.steps.bm25 import Bm25
from tests.retrieval.samples import PASSAGES, passages, world


def reference(step: Bm25, texts: dict[str, str], query: str) -> dict[str, float]:
    """Scores of all passages that share a word with the query, word by word from the formula."""
    split = {name: re.findall(r"\w+", text.lower()) for name, text in texts.items()}
    total, mean = len(texts), sum(map(len, split.values())) / len(texts)
    scores: dict[str, float] = {}
    asked = re.findall(r"\w+", query.lower())
    holders = {word: sum(word in words for words in split.values()) for word in asked}
    for name, words in split.items():
        counts = Counter(words)
        score, weighs = 0.0, False
        for word in asked:
            if n := holders[word]:
                score += idf(n, total) * tf(step, counts[word], len(words) / mean)
                weighs |= counts[word] > 0
        if weighs:
            scores[name] = score
    return scores


def idf(n: int, total: int) -> float:
    return math.log(1 + (total - n + 0.5) / (n + 0.5))


def tf(step: Bm25, f: int, length: float) -> float:
    return f / (f + step.k1 * (1 - step.b + step.b * length)) if f else 0.0


def found(step: Bm25, texts: dict[str, str], query: str, depth: int = 1000) -> dict[str, float]:
    frame = retrieve({"bm25": step}, world(texts, {"q": query}, None, depth=depth)).frame
    assert frame["rank"].to_list() == list(range(1, frame.height + 1))
    return dict(frame.select("passage", "score").iter_rows())


SOME = st.lists(st.sampled_from(["mill", "corn", "Old", "water", "x1"]), max_size=8).map(" ".join)


@given(
    st.lists(SOME, min_size=1, max_size=6),
    SOME,
    st.builds(Bm25, k1=st.floats(0.001, 3), b=st.floats(0, 1)),
)
def test_scores_are_those_of_the_formula(texts: list[str], query: str, step: Bm25) -> None:
    named = {f"p{number}": text for number, text in enumerate(texts)}
    expected = reference(step, named, query)
    got = found(step, named, query)
    assert got == pytest.approx(expected, rel=1e-9)
    assert list(got) == sorted(got, key=lambda name: (got[name], name), reverse=True)


def test_hand_worked() -> None:
    # N = 2, mean length 2; "mill": n = 1, idf = ln(1 + 1.5 / 1.5) = ln 2.
    # p1 has 1 word: tf = 1 / (1 + 1.2 · (0.25 + 0.75 · 1 / 2)) = 1 / 1.75.
    assert found(Bm25(), {"p1": "mill", "p2": "a b c"}, "MILL") == {"p1": pytest.approx(math.log(2) / 1.75)}


def test_a_word_that_is_twice_in_the_query_counts_twice() -> None:
    once, twice = (found(Bm25(), PASSAGES, query)["p4"] for query in ("corn", "corn corn"))
    assert twice == pytest.approx(2 * once)


def test_equal_scores_by_id_descending_even_at_the_cut() -> None:
    texts = dict.fromkeys(("a", "c", "b", "d", "10", "9"), "the same text")
    assert list(found(Bm25(), texts, "same")) == ["d", "c", "b", "a", "9", "10"]
    assert list(found(Bm25(), texts, "same", depth=3)) == ["d", "c", "b"]


def test_nothing_in_common_is_not_retrieved() -> None:
    made = retrieve({"bm25": Bm25()}, world())
    shown = passages(made, "bm25")
    assert "p3" not in shown["q1"]
    assert shown["q2"] == ["p3"]
    assert shown["q3"] == shown["q4"] == []  # an unknown word; no word at all
    assert made.empty == {("bm25", "q3"), ("bm25", "q4")}
    assert made.notes == ("bm25: nothing was retrieved for 2 queries ('q3', 'q4')",)


@pytest.mark.parametrize("texts", [{"p1": ""}, {"p1": "", "p2": " .,! "}])
def test_passages_without_words(texts: dict[str, str], tmp_path: Path) -> None:
    for _ in range(2):
        made = retrieve({"bm25": Bm25()}, world(texts, {"q": "mill"}, None, cache=tmp_path))
        assert made.empty == {("bm25", "q")}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("हिन्दी भाषा में लिखा", "भाषा"),
        ("黒い猫が庭にいる", "猫"),
        ("黒い猫が庭にいる", "猫が"),
        ("ภาษาไทยเขียนติดกัน", "ไทย"),
        ("Η Αθήνα είναι πρωτεύουσα", "ΑΘΉΝΑ"),
        ("Москва — столица", "москва"),
        ("كتاب جديد", "كتاب"),
        ("한국어 문서", "문서"),
        ("Cafe\u0301 ouvert", "caf\u00e9"),
        ("Ｆｕｌｌ width", "full"),
    ],
)
def test_non_latin_text(text: str, query: str) -> None:
    assert list(found(Bm25(), {"p1": text, "p2": "something else"}, query)) == ["p1"]


def test_stop_words_are_left_out() -> None:
    texts = {"p1": "who was the builder", "p2": "mill"}
    assert found(Bm25(stopwords="english"), texts, "who was the mill").keys() == {"p2"}
    assert found(Bm25(stopwords="english"), texts, "who was the") == {}
    # Left out of lengths as well: "builder" alone is as long as "mill" alone.
    both = found(Bm25(stopwords="english"), texts, "builder mill")
    assert both["p1"] == both["p2"]


def test_stemming() -> None:
    pytest.importorskip("Stemmer")
    assert found(Bm25(stemmer="english"), {"p1": "the mills", "p2": "bread"}, "milling").keys() == {"p1"}


def test_texts_that_are_needed() -> None:
    with pytest.raises(InputError) as caught:
        retrieve({"bm25": "bm25"}, world({}, {"q": "mill"}, None))
    assert "no texts of passages" in str(caught.value)
    context = world()
    with pytest.raises(InputError, match=r"no text of 1 query \('strange'\)"):
        retrieve({"bm25": "bm25"}, context.of(context.collection, ["q1", "strange"]))
