"""Encode prompts as token ids: chat templates, one BOS, and text that can't pose as a control token."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias

from jinja2 import TemplateError as JinjaError
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ragworth.core.errors import ModelError, quote_short
from ragworth.llm.contract import Prompt, PromptMessage

TAIL = 64
"""Characters at the end of a prompt that can share a token with the continuation."""

SEPARATORS = (" ", "\u200b", "\u2060", "\u00b7", "\ufffd")
"""Separators for control tokens: the first that occurs in none of them is used."""

RenderChat: TypeAlias = Callable[[list[dict[str, str]]], str]
"""Turns messages, each with a role and content, into the text that the model reads."""


class TemplateError(ModelError):
    """The template raised an error for these messages; many do for a system turn."""


class _Generation(Extension):
    """``{% generation %}…{% endgeneration %}``, which marks training targets and is ignored."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def load_chat_template(source: str, facts: Mapping[str, Any]) -> RenderChat:
    """Load a chat template, which is a program that comes with a model, to be run in Jinja's sandbox.

    ``facts`` are what a template may refer to besides the messages, such as ``bos_token``.
    """

    def refuse(message: str) -> None:
        raise JinjaError(message)

    def to_json(value: Any, ensure_ascii: bool = False, **more: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **more)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
    )
    environment.globals |= {"raise_exception": refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
    environment.filters["tojson"] = to_json
    try:
        template = environment.from_string(source)
    except Exception as error:
        raise ModelError(f"the model's chat template cannot be used: {quote_short(str(error), 200)}") from error

    def render(messages: list[dict[str, str]]) -> str:
        try:
            return template.render(messages=messages, add_generation_prompt=True, **facts)
        except Exception as error:
            why = quote_short(str(error), 200)
            raise TemplateError(f"the model's chat template refuses a chat: {why}") from error

    return render


class Tokenizer(Protocol):
    def encode(self, texts: Sequence[str], *, whole: bool) -> list[list[int]]:
        """Ids of texts. ``whole``: with the tokens the model expects around a text, such as BOS."""
        ...

    def decode(self, ids: list[int]) -> str:
        """The text of ids, without control tokens."""
        ...


class EncodedPrompt(NamedTuple):
    """A prompt as text and tokens, the number of control tokens defused in it, and trailing blanks left to the
    continuation.
    """

    text: str
    ids: list[int]
    defused: int
    blanks: str = ""


@dataclass(frozen=True)
class PromptEncoder:
    """Turns prompts into ids and ids into text.

    ``render`` applies the chat template to messages; without one, the model reads the messages as paragraphs.
    ``control`` are the spellings of the model's control tokens, ``ends`` the ids that end a turn.
    """

    tokenizer: Tokenizer
    render: RenderChat | None
    control: tuple[str, ...]
    ends: frozenset[int]

    @cached_property
    def _separator(self) -> str:
        return find_separator(self.control)

    def text(self, prompt: Prompt) -> tuple[str, int]:
        """The prompt as a single text, and the number of control tokens defused in it."""
        contents, numbers = zip(
            *(defuse(message.content, self.control, self._separator) for message in prompt.messages), strict=True
        )
        if prompt.messages[0].role == "text":
            return contents[0], numbers[0]
        if self.render is None:
            return "\n\n".join(contents) + "\n\n", sum(numbers)
        messages = [PromptMessage(old.role, new) for old, new in zip(prompt.messages, contents, strict=True)]
        return _render_chat(self.render, messages), sum(numbers)

    def plain(self, prompt: Prompt) -> bool:
        """Whether the prompt is read as plain text, which needs the BOS that a chat template adds itself."""
        return prompt.messages[0].role == "text" or self.render is None

    def ids(self, prompts: Sequence[Prompt], *, continued: bool = False) -> list[EncodedPrompt]:
        """Encode the prompts, with one BOS each if the model expects it.

        ``continued``: a given text will follow. Blanks at the end of a plain text are then left to it, because tokens
        begin with blanks, and a trailing blank would be an unnatural split.
        """
        encoded: dict[int, EncodedPrompt] = {}
        for plain in (False, True):
            numbers = [n for n, prompt in enumerate(prompts) if self.plain(prompt) is plain]
            texts = [self.text(prompts[n]) for n in numbers]
            kept = [text.rstrip() or text if continued and plain else text for text, _ in texts]
            ids = self.tokenizer.encode(kept, whole=plain) if numbers else []
            for n, (text, defused), start, tokens in zip(numbers, texts, kept, ids, strict=True):
                encoded[n] = EncodedPrompt(start, tokens, defused, text[len(start) :])
        return [encoded[n] for n in range(len(prompts))]

    def after(self, written: EncodedPrompt, continuation: str) -> list[int] | None:
        """Ids of a continuation, such that they follow the prompt's as in one text; None if a token spans both.

        The end of the prompt and the continuation are encoded together; if the result begins with the prompt's own ids,
        the rest is the continuation.
        """
        tail = written.text[-TAIL:]
        before, together = self.tokenizer.encode([tail, tail + written.blanks + continuation], whole=False)
        return together[len(before) :] if together[: len(before)] == before else None


def _render_chat(render: RenderChat, messages: Sequence[PromptMessage]) -> str:
    """Render messages with a chat template, and check that it omits none.

    Some templates reject a system turn, and some ignore it silently; the instructions then open the user's turn.
    """
    chat = [{"role": message.role, "content": message.content} for message in messages]
    has_system = len(chat) > 1 and chat[0]["role"] == "system"
    try:
        text = render(chat)
        lost = _missing_messages(chat, text)
    except TemplateError:
        if not has_system:
            raise
        lost = chat[:1]
    if has_system and lost == chat[:1]:
        first = {"role": chat[1]["role"], "content": f"{chat[0]['content']}\n\n{chat[1]['content']}"}
        chat = [first, *chat[2:]]
        text = render(chat)
        lost = _missing_messages(chat, text)
    if lost:
        raise ModelError(
            f"the model's chat template omits the message of the {lost[0]['role']}: "
            f"{quote_short(lost[0]['content'], 80)}",
            remedy="use a model whose chat template shows every message",
        )
    return text


def _missing_messages(chat: Sequence[dict[str, str]], text: str) -> list[dict[str, str]]:
    """Messages that a rendered chat doesn't show. Templates may change blanks, and omit a model's reasoning."""
    given = [message for message in chat if message["role"] != "assistant"]
    if all(message["content"].strip() in text for message in given):
        return []
    shown = "".join(text.split())
    return [message for message in given if "".join(message["content"].split()) not in shown]


def find_separator(control: Sequence[str]) -> str:
    """Find a character that breaks up every one of these tokens and is part of none, so it can't form another."""
    used = {sign for token in control if len(token) > 1 for sign in token}
    for sign in SEPARATORS:
        if sign not in used:
            return sign
    raise ModelError(
        "the model's control tokens use every character that could break them up", remedy="use another model"
    )


def defuse(text: str, control: Sequence[str], sign: str = " ") -> tuple[str, int]:
    """Break up control tokens spelt out in a text, and count them.

    A passage that contains ``<|im_end|>`` would otherwise end the user's turn and could speak as the assistant. A
    ``sign`` after the first character, which is part of no control token, is enough for it to be read as text.
    """
    number = 0
    for token in control:
        while len(token) > 1 and token in text:  # again: the ends of two may have overlapped
            number += text.count(token)
            text = text.replace(token, f"{token[0]}{sign}{token[1:]}")
    return text, number
