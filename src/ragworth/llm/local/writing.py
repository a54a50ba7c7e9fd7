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
    """A prompt as the text the model reads, in tokens, how many control tokens were defused in it, and the blanks
    at its end that are left to what follows."""

    text: str
    ids: list[int]
    defused: int
    blanks: str = ""


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

    def ids(self, prompts: Sequence[Prompt], *, continued: bool = False) -> list[Written]:
        """The prompts in tokens, with one BOS each if the model wants one.

        ``continued``: a given text will follow. Blanks at the end of a plain text are then left to it: tokens
        begin with blanks, and a text that ends in one has been split where no text ever is.
        """
        texts = [self.text(prompt) for prompt in prompts]
        kept = [
            text.rstrip() if continued and self.plain(prompt) and text.strip() else text
            for prompt, (text, _) in zip(prompts, texts, strict=True)
        ]
        found: list[Written | None] = [None] * len(prompts)
        for plain in (False, True):
            numbers = [n for n, prompt in enumerate(prompts) if self.plain(prompt) is plain]
            encoded = self.tokenizer.encode([kept[n] for n in numbers], whole=plain) if numbers else []
            for n, ids in zip(numbers, encoded, strict=True):
                found[n] = Written(kept[n], ids, texts[n][1], texts[n][0][len(kept[n]) :])
        return [one for one in found if one is not None]

    def after(self, written: Written, continuation: str) -> list[int] | None:
        """Ids of a continuation, such that they follow the prompt's as in one text; None where a token spans both.

        The end of the prompt and the continuation are encoded together; where the prompt's own ids begin the
        result, the rest is the continuation.
        """
        tail = written.text[-TAIL:]
        before, together = self.tokenizer.encode([tail, tail + written.blanks + continuation], whole=False)
        return together[len(before) :] if together[: len(before)] == before else None


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
