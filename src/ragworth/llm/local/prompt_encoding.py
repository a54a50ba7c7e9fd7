"""Encode prompts as token ids: chat templates, one BOS, and text that can't pose as a control token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from ragworth.core.errors import ModelError, quote_short
from ragworth.llm.contract import Prompt, PromptMessage
from ragworth.llm.local.chat_templates import RenderChat, TemplateError

TAIL = 64
"""Characters at the end of a prompt that can share a token with the continuation."""


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
        defused = 0
        messages: list[PromptMessage] = []
        for message in prompt.messages:
            content, found = defuse(message.content, self.control, self._separator)
            defused += found
            messages.append(PromptMessage(message.role, content))
        if messages[0].role == "text":
            return messages[0].content, defused
        if self.render is None:
            return "\n\n".join(message.content for message in messages) + "\n\n", defused
        return self._render_chat(self.render, messages), defused

    def _render_chat(self, render: RenderChat, messages: Sequence[PromptMessage]) -> str:
        """Render the messages with the chat template, and check that it omits none.

        Some templates reject a system turn, and some ignore it silently; the instructions then open the user's turn.
        """
        chat = [{"role": message.role, "content": message.content} for message in messages]
        try:
            text = render(chat)
            lost = _missing_messages(chat, text)
        except TemplateError:
            if not _has_system_turn(chat):
                raise
            lost = chat[:1]
        if lost == chat[:1] and _has_system_turn(chat):
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

    def plain(self, prompt: Prompt) -> bool:
        """Whether the prompt is read as plain text, which needs the BOS that a chat template adds itself."""
        return prompt.messages[0].role == "text" or self.render is None

    def ids(self, prompts: Sequence[Prompt], *, continued: bool = False) -> list[EncodedPrompt]:
        """Encode the prompts, with one BOS each if the model expects it.

        ``continued``: a given text will follow. Blanks at the end of a plain text are then left to it, because tokens
        begin with blanks, and a trailing blank would be an unnatural split.
        """
        texts = [self.text(prompt) for prompt in prompts]
        kept = [
            text.rstrip() if continued and self.plain(prompt) and text.strip() else text
            for prompt, (text, _) in zip(prompts, texts, strict=True)
        ]
        found: list[EncodedPrompt | None] = [None] * len(prompts)
        for plain in (False, True):
            numbers = [n for n, prompt in enumerate(prompts) if self.plain(prompt) is plain]
            encoded = self.tokenizer.encode([kept[n] for n in numbers], whole=plain) if numbers else []
            for n, ids in zip(numbers, encoded, strict=True):
                found[n] = EncodedPrompt(kept[n], ids, texts[n][1], texts[n][0][len(kept[n]) :])
        return [one for one in found if one is not None]

    def after(self, written: EncodedPrompt, continuation: str) -> list[int] | None:
        """Ids of a continuation, such that they follow the prompt's as in one text; None if a token spans both.

        The end of the prompt and the continuation are encoded together; if the result begins with the prompt's own ids,
        the rest is the continuation.
        """
        tail = written.text[-TAIL:]
        before, together = self.tokenizer.encode([tail, tail + written.blanks + continuation], whole=False)
        return together[len(before) :] if together[: len(before)] == before else None


def _has_system_turn(chat: Sequence[dict[str, str]]) -> bool:
    return len(chat) > 1 and chat[0]["role"] == "system"


def _missing_messages(chat: Sequence[dict[str, str]], text: str) -> list[dict[str, str]]:
    """Messages that a rendered chat doesn't show. Templates may trim blanks, and omit a model's reasoning."""
    given = [message for message in chat if message["role"] != "assistant"]
    lost = [message for message in given if message["content"].strip() not in text]
    seen = "".join(text.split()) if lost else ""
    return [message for message in lost if "".join(message["content"].split()) not in seen]


SEPARATORS = (" ", "\u200b", "\u2060", "\u00b7", "\ufffd")
"""Separators for control tokens: the first that occurs in none of them is used."""


def find_separator(control: Sequence[str]) -> str:
    """Find a character that breaks up every one of these tokens and is part of none, so it can't form another."""
    used = {sign for token in control if len(token) > 1 for sign in token}
    found = next((sign for sign in SEPARATORS if sign not in used), "")
    if not found:
        raise ModelError(
            "the model's control tokens use every character that could break them up", remedy="use another model"
        )
    return found


def defuse(text: str, control: Sequence[str], sign: str = " ") -> tuple[str, int]:
    """Break up control tokens spelt out in a text, and count them.

    A passage that contains ``<|im_end|>`` would otherwise end the user's turn and could speak as the assistant. A
    ``sign`` after the first character, which is part of no control token, is enough for it to be read as text.
    """
    found = 0
    for token in control:
        while len(token) > 1 and token in text:  # again: the ends of two may have overlapped
            found += text.count(token)
            text = text.replace(token, f"{token[0]}{sign}{token[1:]}")
    return text, found
