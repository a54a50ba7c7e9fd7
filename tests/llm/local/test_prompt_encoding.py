"""Prompts as the model reads them: one BOS, no control tokens out of texts, templates that can do no harm."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.core.errors import ModelError
from ragworth.llm.contract import Prompt, PromptMessage
from ragworth.llm.local.prompt_encoding import (
    EncodedPrompt,
    PromptEncoder,
    defuse,
    find_separator,
    load_chat_template,
)

BOS, END = "<s>", "<|end|>"
CONTROL = (BOS, END, "<|user|>", "<|assistant|>", "[INST]")


class Tokens:
    """A tokenizer of whole words, control tokens and blanks; ``whole`` puts a BOS in front."""

    def __init__(self) -> None:
        self.pieces: list[str] = [*CONTROL]

    def encode(self, texts: Sequence[str], *, whole: bool) -> list[list[int]]:
        return [[0] * whole + [self._id(piece) for piece in self._split(text)] for text in texts]

    def decode(self, ids: list[int]) -> str:
        return "".join(self.pieces[one] for one in ids if one >= len(CONTROL))

    def _split(self, text: str) -> list[str]:
        control = "|".join(map(re.escape, CONTROL))
        return re.findall(rf"{control}| ?\w+|\s|.", text, re.DOTALL)

    def _id(self, piece: str) -> int:
        if piece not in self.pieces:
            self.pieces.append(piece)
        return self.pieces.index(piece)


CHATML = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def writer(template: str | None = CHATML) -> PromptEncoder:
    render = None if template is None else load_chat_template(template, {"bos_token": BOS})
    return PromptEncoder(Tokens(), render, CONTROL, frozenset({1}))


def test_a_chat_goes_through_the_template() -> None:
    prompt = Prompt.chat("Hi", system="Be brief.")
    assert writer().text(prompt) == ("<s><|system|>Be brief.<|end|><|user|>Hi<|end|><|assistant|>", 0)


def test_without_a_template_messages_are_paragraphs() -> None:
    assert writer(None).text(Prompt.chat("Hi", system="Be brief.")) == ("Be brief.\n\nHi\n\n", 0)


@pytest.mark.parametrize("template", [CHATML, None], ids=["chat", "no-template"])
def test_every_prompt_has_one_bos(template: str | None) -> None:
    prompts = [Prompt.text("Once"), Prompt.chat("Hi"), Prompt.text("Twice upon"), Prompt.chat("Ho", system="Be <s>")]
    found = writer(template).ids(prompts)
    assert [one.ids.count(0) for one in found] == [1] * 4
    assert all(one.ids[0] == 0 for one in found)
    # In the order in which they were given.
    assert ["Once" in one.text for one in found] == [True, False, False, False]
    assert ["Ho" in one.text for one in found] == [False, False, False, True]
    assert [one.defused for one in found] == [0, 0, 0, 1]


# Control tokens in texts

NASTY = st.lists(
    st.sampled_from([*CONTROL, "<", "|end|>", "|", ">", "s", " ", "a", "<|", "[INS", "T]"]), max_size=10
).map("".join)


@given(NASTY)
def test_no_text_spells_a_control_token_once_it_is_defused(text: str) -> None:
    found, number = defuse(text, CONTROL)
    assert not any(token in found for token in CONTROL)
    assert found.replace(" ", "") == text.replace(" ", "")
    assert (found == text) == (number == 0)


@given(NASTY, NASTY)
def test_a_passage_cannot_end_its_turn(passage: str, system: str) -> None:
    text, _ = writer().text(Prompt.chat(passage, system=system or "x"))
    assert text.count(END) == 2
    assert text.count("<|assistant|>") == 1
    assert text.count(BOS) == 1


def test_defused_tokens_are_counted() -> None:
    assert defuse("a <|end|><|end|> b <s>", CONTROL) == ("a < |end|>< |end|> b < s>", 3)
    assert writer().text(Prompt.text("<s>Hi"))[1] == 1


@pytest.mark.parametrize("control", [("  ",), ("x ",), ("x  ", " "), ("xy", "x y"), ("< |a|>", "<|a|>")])
@pytest.mark.parametrize("text", ["a  b   c", "x  xy x y", "<|a|>< |a|>", " " * 200])
def test_control_tokens_with_blanks_are_taken_apart_for_good(control: tuple[str, ...], text: str) -> None:
    found, _ = defuse(text, control, find_separator(control))
    assert not any(token in found for token in control if len(token) > 1)


def test_blanks_take_tokens_apart_unless_a_token_has_them() -> None:
    assert find_separator(("<|im_end|>", " ")) == " "
    assert find_separator(("<|im_end|>", "  ")) not in ("", " ")


# Where a prompt ends and an answer begins


class Merging(Tokens):
    """A tokenizer that joins an ``a`` and a following ``b``."""

    def _split(self, text: str) -> list[str]:
        return re.findall("ab|.", text, re.DOTALL)


def test_a_continuation_is_encoded_as_in_one_text() -> None:
    tokens = Tokens()
    found = PromptEncoder(tokens, None, CONTROL, frozenset()).after(EncodedPrompt("Once upon", [], 0), " a time")
    assert found is not None
    assert tokens.decode(found) == " a time"
    assert found == tokens.encode([" a", " time"], whole=False)[0] + tokens.encode([" time"], whole=False)[0]


def test_a_token_across_the_boundary_is_none() -> None:
    tokens = Merging()
    writer = PromptEncoder(tokens, None, (), frozenset())
    assert writer.after(EncodedPrompt("xa", [], 0), "bc") is None
    found = writer.after(EncodedPrompt("x", [], 0), "abc")
    assert found is not None
    assert tokens.decode(found) == "abc"
    assert len(found) == 2


def test_blanks_at_the_end_of_a_text_go_to_what_follows() -> None:
    tokens = Tokens()
    writer = PromptEncoder(tokens, None, CONTROL, frozenset())
    with_blank, without = writer.ids([Prompt.text("Once upon "), Prompt.text("Once upon")], continued=True)
    assert (with_blank.ids, with_blank.blanks) == (without.ids, " ")
    assert writer.after(with_blank, "a time") == writer.after(without, " a time")
    (as_it_is,) = writer.ids([Prompt.text("Once upon ")])
    assert as_it_is.blanks == ""
    assert tokens.decode(as_it_is.ids).endswith(" ")


@given(st.text("ab ", max_size=100), st.text("ab ", max_size=8))
def test_a_continuation_is_never_longer_or_shorter_than_it_is(text: str, continuation: str) -> None:
    tokens = Merging()
    writer = PromptEncoder(tokens, None, (), frozenset())
    found = writer.after(EncodedPrompt(text, [], 0), continuation)
    assert found is None or tokens.decode(found) == continuation


# Templates that somebody else wrote

NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
)


def test_a_template_that_refuses_instructions_gets_them_in_the_first_turn() -> None:
    text, _ = writer(NO_SYSTEM).text(Prompt.chat("Hi", system="Be brief."))
    assert text == "<|user|>Be brief.\n\nHi<|end|>"
    longer = Prompt(
        (
            PromptMessage("system", "Be brief."),
            PromptMessage("user", "Hi"),
            PromptMessage("assistant", "Yes?"),
            PromptMessage("user", "Go"),
        )
    )
    assert (
        writer(NO_SYSTEM).text(longer)[0] == "<|user|>Be brief.\n\nHi<|end|><|assistant|>Yes?<|end|><|user|>Go<|end|>"
    )


def test_a_template_that_refuses_everything_is_an_error() -> None:
    refusing = writer("{{ raise_exception('never') }}")
    for prompt in (Prompt.chat("Hi"), Prompt.chat("Hi", system="Be brief.")):
        with pytest.raises(ModelError, match="never"):
            refusing.text(prompt)


def test_a_template_that_is_none_is_an_error_in_words() -> None:
    with pytest.raises(ModelError, match="chat template cannot be used"):
        load_chat_template("{% for %}", {})


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.__class__.__base__.__subclasses__() }}",
        "{{ raise_exception.__globals__['os'] }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'system'}) }}",
    ],
)
def test_a_template_reaches_nothing_but_what_it_is_given(source: str) -> None:
    chat = [{"role": "user", "content": "Hi"}]
    with pytest.raises(ModelError, match="unsafe"):
        load_chat_template(source, {})(chat)
    assert chat == [{"role": "user", "content": "Hi"}]


def test_nor_by_way_of_a_format() -> None:
    assert load_chat_template("<{{ '{0.__class__}'.format(messages) }}>", {})([]) == "<>"


@pytest.mark.parametrize("word", ["continue", "break"])
def test_templates_with_loop_controls_can_be_used(word: str) -> None:
    source = f"{{% for message in messages %}}{{% if loop.index > 1 %}}{{% {word} %}}{{% endif %}}x{{% endfor %}}"
    assert load_chat_template(source, {})([{"role": "user", "content": "Hi"}] * 3) == "x"


def test_a_template_cannot_count_for_ever() -> None:
    with pytest.raises(ModelError, match="Range too big"):
        load_chat_template("{% for i in range(10 ** 9) %}x{% endfor %}", {})([])


RENDER = load_chat_template("{{ messages[0].content }}", {})


@given(NASTY.filter(lambda text: "{" not in text))
def test_what_messages_say_is_not_read_as_template(text: str) -> None:
    chat: list[dict[str, Any]] = [{"role": "user", "content": "{{ 7 * 7 }}{% raw %}" + text}]
    assert RENDER(chat) == "{{ 7 * 7 }}{% raw %}" + text


def test_what_templates_of_models_use_can_be_used() -> None:
    source = "{% generation %}{{ {'a': '<é>'} | tojson }}{% endgeneration %}{{ strftime_now('%Y') | length }}"
    assert load_chat_template(source, {})([]) == '{"a": "<é>"}4'


DROPS = "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content | trim }} [/INST]{% endif %}{% endfor %}"


def test_a_template_that_drops_instructions_gets_them_in_the_first_turn() -> None:
    """As some of the [INST] kind do, in silence."""
    text, _ = writer(DROPS).text(Prompt.chat(" Hi ", system="Be brief."))
    assert text == "[INST] Be brief.\n\n Hi [/INST]"


@pytest.mark.parametrize("source", ["{{ messages[0].content }}", "{{ messages | length }}", ""])
def test_a_template_that_drops_the_question_is_an_error(source: str) -> None:
    with pytest.raises(ModelError, match="omits the message of the user: 'What"):
        writer(source or "{# nothing #}").text(
            Prompt(
                (PromptMessage("user", "Hi"), PromptMessage("assistant", "Yes?"), PromptMessage("user", "What is it?"))
            )
            if source.startswith("{{ messages[0]")
            else Prompt.chat("What is it?")
        )


def test_a_template_may_leave_out_what_the_model_thought() -> None:
    source = "{% for m in messages %}{% if m.role != 'assistant' %}<{{ m.content }}>{% endif %}{% endfor %}"
    chat = Prompt((PromptMessage("user", "Hi"), PromptMessage("assistant", "Hm."), PromptMessage("user", "Go")))
    assert writer(source).text(chat)[0] == "<Hi><Go>"
