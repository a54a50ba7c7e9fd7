"""The model for tests: says what it is told, fails as it is told, the same way every time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import pytest

from ragworth.core.errors import ModelError
from ragworth.llm import llm
from ragworth.llm.contract import (
    Choose,
    Chosen,
    Failure,
    Generate,
    Generated,
    Prompt,
    Request,
    Score,
    Trace,
)
from ragworth.llm.scripted import Scripted, ScriptedReply
from tests.conftest import Save

HI = Prompt.chat("Hi there", system="Be brief.")


def asked(number: int) -> list[Choose]:
    return [Choose(Prompt.text(f"question {i}"), ("yes", "no")) for i in range(number)]


def reasons(found: Sequence[object]) -> Counter[str]:
    return Counter(one.reason if isinstance(one, Failure) else "ok" for one in found)


def test_texts() -> None:
    (found,) = Scripted({"Hi there": "I am fine today"}).generate([Generate(HI, max_tokens=3, n=2, detail="entropies")])
    assert isinstance(found, Generated)
    assert [(output.text, output.finish) for output in found.outputs] == [("I am fine", "length")] * 2
    assert found.outputs[0].trace == Trace(("I", "am", "fine"), (-0.5,) * 3, (0.5,) * 3)
    assert found.usage[:2] == (4, 6)
    (whole,) = Scripted({"Hi there": "I am fine today"}).generate([Generate(HI, max_tokens=4)])
    assert isinstance(whole, Generated)
    assert whole.outputs[0] == ("I am fine today", "stop", None)


def test_what_nobody_scripted_is_a_failure() -> None:
    (found,) = Scripted({"else": "text"}).generate([Generate(HI)])
    assert found == Failure("not-scripted", "nothing is scripted for 'Hi there'", retry=False)


WRONG: dict[str, tuple[ScriptedReply, Request]] = {
    "no-text": (0.5, Generate(HI)),
    "no-number": ("text", Score(HI, "a")),
    "no-labels": ("text", asked(1)[0]),
    "too-much": ({"yes": 0.75, "no": 0.5}, asked(1)[0]),
    "negative": ({"yes": -0.25}, asked(1)[0]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_script_that_does_not_fit_is_an_error(name: str) -> None:
    reply, request = WRONG[name]
    model = Scripted({"*": reply})
    with pytest.raises(ModelError, match="the script gave"):
        if isinstance(request, Generate):
            model.generate([request])
        elif isinstance(request, Score):
            model.score([request])
        else:
            model.choose([request])


def test_prompts_that_are_too_long_are_refused() -> None:
    model = Scripted({"*": {"yes": 1.0}}, context_length=5)
    fits, long = model.choose(
        [Choose(Prompt.text("a b c d"), ("yes", "no")), Choose(Prompt.text("a b c d e"), ("yes", "no"))]
    )
    assert isinstance(fits, Chosen)
    assert isinstance(long, Failure)
    assert (long.reason, long.retry) == ("too-long", False)
    assert "5 tokens and 1 to come; the model reads 5" in long.detail


def test_faults_come_in_their_share_and_the_same_way_every_time() -> None:
    found = [Scripted({"*": {"yes": 1.0}}, error=0.3).choose(asked(2000)) for _ in range(2)]
    assert found[0] == found[1]
    counts = reasons(found[0])
    assert counts.keys() == {"ok", "server-error"}
    assert 500 < counts["server-error"] < 700


def test_a_script_out_of_a_file(save: Save) -> None:
    path = save("script.json", json.dumps({"Hi there": "fine", "*": {"yes": 0.25}, "n": -1}))
    model = llm(f"scripted:{path}", batch=3, context_length=9)
    assert isinstance(model, Scripted)
    assert (model.card.name, model.batch, model.card.context_length) == ("script.json", 3, 9)
    (found,) = model.generate([Generate(HI, max_tokens=2)])
    assert isinstance(found, Generated)
    assert found.outputs[0].text == "fine"


@pytest.mark.parametrize("text", ["", "[]", '"text"', '{"a": null}', '{"a": [1]}', "{", b"\xff"], ids=repr)
def test_a_file_that_is_no_script(text: str | bytes, save: Save) -> None:
    path = save("bad.json", text)
    with pytest.raises(ModelError) as caught:
        llm(f"scripted:{path}")
    assert "bad.json" in str(caught.value)
