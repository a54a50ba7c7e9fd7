"""Prompts as token ids: chat templates, one BOS, and text that cannot pose as a control token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ragworth.errors import ModelError
from ragworth.llm.contract import Message, Prompt

TAIL = 64
"""Characters at the end of a prompt that can share a token with what follows."""


class Tokenizer(Protocol):
    """What is needed of a tokenizer."""

    def encode(self, texts: Sequence[str], *, whole: bool) -> list[list[int]]:
        """Ids of texts. ``whole``: with the tokens the model wants around a text, such as BOS."""
        ...

    def decode(self, ids: list[int]) -> str:
        """The text of ids, control tokens left out."""
        ...


class Written(NamedTuple):
    """A prompt as the text the model reads, in tokens, and how many control tokens were defused in it."""

    text: str
    ids: list[int]
    defused: int


@dataclass(frozen=True)
class Writer:
    """Turns prompts into ids and ids into text.

    ``render`` applies the chat template to messages; None for a model that has none, which then reads the
    messages as paragraphs. ``control`` are the model's control tokens as they are spelt, ``ends`` the ids
    that end a turn.
    """

    tokenizer: Tokenizer
    render: Callable[[list[dict[str, str]]], str] | None
    control: tuple[str, ...]
    ends: frozenset[int]

    def text(self, prompt: Prompt) -> tuple[str, int]:
        """The prompt as the one text that the model reads, and how many control tokens were defused in it."""
        defused = 0
        messages: list[Message] = []
        for message in prompt.messages:
            content, found = defuse(message.content, self.control)
            defused += found
            messages.append(Message(message.role, content))
        if messages[0].role == "text":
            return messages[0].content, defused
        if self.render is None:
            return "\n\n".join(message.content for message in messages) + "\n\n", defused
        chat = [{"role": message.role, "content": message.content} for message in messages]
        try:
            return self.render(chat), defused
        except Exception:
            # Some templates know no system turn: the instructions then open the user's.
            if chat[0]["role"] != "system" or len(chat) < 2:
                raise
            first = {"role": chat[1]["role"], "content": f"{chat[0]['content']}\n\n{chat[1]['content']}"}
            return self.render([first, *chat[2:]]), defused

    def plain(self, prompt: Prompt) -> bool:
        """Whether the prompt is read as plain text, which gets the BOS that a chat template brings itself."""
        return prompt.messages[0].role == "text" or self.render is None

    def ids(self, prompts: Sequence[Prompt]) -> list[Written]:
        """The prompts in tokens, with one BOS each if the model wants one."""
        texts = [self.text(prompt) for prompt in prompts]
        found: list[Written | None] = [None] * len(prompts)
        for plain in (False, True):
            numbers = [n for n, prompt in enumerate(prompts) if self.plain(prompt) is plain]
            encoded = self.tokenizer.encode([texts[n][0] for n in numbers], whole=plain) if numbers else []
            for n, ids in zip(numbers, encoded, strict=True):
                found[n] = Written(texts[n][0], ids, texts[n][1])
        return [one for one in found if one is not None]

    def after(self, text: str, continuation: str) -> list[int]:
        """Ids of a continuation, such that they follow the text's as in one text.

        The end of the text and the continuation are encoded together; where the text's own ids begin the
        result, the rest is the continuation. Otherwise a token spans the boundary: the text then stands as
        it is and the continuation is encoded by itself, which is what a model that has read the text can
        still produce.
        """
        tail = text[-TAIL:]
        before, together, alone = self.tokenizer.encode([tail, tail + continuation, continuation], whole=False)
        return together[len(before) :] if together[: len(before)] == before else alone


def defuse(text: str, control: tuple[str, ...]) -> tuple[str, int]:
    """Take control tokens apart that a text spells out, and say how many.

    A passage that contains ``<|im_end|>`` would otherwise end the user's turn and could speak as the
    assistant. A blank after the first character is enough for it to be read as text.
    """
    found = 0
    for token in control:
        while len(token) > 1 and token in text:  # again: the ends of two may have overlapped
            found += text.count(token)
            text = text.replace(token, f"{token[0]} {token[1:]}")
    return text, found


def chat_template(source: str, names: Mapping[str, str]) -> Callable[[list[dict[str, str]]], str]:
    """A chat template in Jinja as models carry it, in a sandbox; ``names`` are tokens it may refer to."""
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = refuse
    try:
        template = environment.from_string(source)
    except TemplateError as error:
        raise ModelError(f"the model's chat template cannot be used: {error}") from error

    def render(messages: list[dict[str, str]]) -> str:
        facts: dict[str, Any] = dict(names)
        return template.render(messages=messages, add_generation_prompt=True, **facts)

    return render
