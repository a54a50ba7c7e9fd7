"""Prompts made to fit: passages give way, the longest first, and nothing else does."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from ragworth.llm.contract import Prompt, PromptMessage, Span
from ragworth.llm.truncation import fit_prompt

WORDS = st.lists(st.sampled_from(["a", "bb", "ccc", "é", "\n", "  "]), max_size=12).map(" ".join)


def words(prompt: Prompt) -> int:
    return sum(len(message.content.split()) for message in prompt.messages)


def made(parts: list[list[tuple[str, bool]]]) -> Prompt:
    """A prompt out of messages out of pieces, each with whether it is a passage."""
    messages, spans = [], []
    for number, pieces in enumerate(parts):
        place = 0
        for text, passage in pieces:
            if passage and text:
                spans.append(Span(number, place, place + len(text)))
            place += len(text)
        messages.append(PromptMessage("user", "".join(text for text, _ in pieces)))
    return Prompt(tuple(messages), tuple(spans), "v")


def texts(prompt: Prompt) -> list[str]:
    return [prompt.messages[span.message].content[span.start : span.end] for span in prompt.passages]


def rest(prompt: Prompt) -> list[str]:
    """The messages without their passages."""
    found = [message.content for message in prompt.messages]
    for span in sorted(prompt.passages, reverse=True):
        found[span.message] = found[span.message][: span.start] + found[span.message][span.end :]
    return found


# Instructions end in a mark of their own, so that words of neighbours do not run together.
PIECES = st.lists(
    st.tuples(WORDS.map(lambda text: f" {text} | "), st.just(False)) | st.tuples(WORDS, st.just(True)), max_size=5
)
PROMPTS = st.lists(PIECES, min_size=1, max_size=3).map(made)


@given(PROMPTS, st.integers(0, 40))
def test_it_fits_and_only_passages_give_way(prompt: Prompt, limit: int) -> None:
    found = fit_prompt(prompt, limit, words)
    bare = sum(len(text.split()) for text in rest(prompt))
    if found is None:
        assert bare > limit
        return
    fitted, lost = found
    assert words(fitted) <= limit
    assert rest(fitted) == rest(prompt)
    assert [message.role for message in fitted.messages] == [message.role for message in prompt.messages]
    assert fitted.version == prompt.version
    before, after = texts(prompt), texts(fitted)
    assert len(before) == len(after)
    assert all(long.startswith(short) for long, short in zip(before, after, strict=True))
    assert lost == sum(map(len, before)) - sum(map(len, after))
    assert (lost == 0) == (fitted == prompt)


@given(PROMPTS, st.integers(0, 40))
def test_the_longest_lose_first_and_no_more_than_they_must(prompt: Prompt, limit: int) -> None:
    found = fit_prompt(prompt, limit, words)
    assume(found is not None)
    assert found is not None
    fitted, lost = found
    lengths = [
        (len(long.split()), len(short.split())) for long, short in zip(texts(prompt), texts(fitted), strict=True)
    ]
    level = max((after for before, after in lengths if after < before), default=None)
    if level is None:
        assert lost == 0 or all(before == after for before, after in lengths)
        return
    for before, after in lengths:
        assert after == min(before, level)
    # One word more in each would be too much.
    more = sum(min(before, level + 1) for before, _ in lengths) + sum(len(text.split()) for text in rest(prompt))
    assert more > limit


def test_short_passages_stay_whole() -> None:
    prompt = made(
        [[("Rules | ", False), ("one two", True), (" | ", False), ("a b c d e f", True), (" | Question", False)]]
    )
    found = fit_prompt(prompt, 10, words)
    assert found is not None
    fitted, lost = found
    assert fitted.messages[0].content == "Rules | one two | a b c | Question"
    assert texts(fitted) == ["one two", "a b c"]
    assert lost == len(" d e f")
