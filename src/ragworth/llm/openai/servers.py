"""Get exact probabilities of given texts from servers that offer them.

OpenAI's interface can't return the probability of a given text. llama.cpp and vLLM can, each in its own way; both also
tokenize texts, so it is known where a prompt ends and its continuation begins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragworth.llm.contract import Prompt
from ragworth.llm.openai.replies import (
    MAX_ID,
    GeneratedToken,
    TokenLogprob,
    bounded_int,
    malformed_reply,
    raw_choices,
    read_own_logprob,
    read_token,
    replace_surrogates,
    unsupported,
)
from ragworth.llm.openai.requests import SendRequest, chat_messages, is_text, joined_text

TEMPLATE_FIELDS = ("chat_template_kwargs",)
"""Fields of ``extra_body`` that change how a chat becomes text, so they also go to functions that tokenize chats."""


class TokenizedPrompt(NamedTuple):
    """A prompt as the model reads it. ``whole``: whether BOS and the like are still to be added to the text."""

    text: str
    ids: list[int]
    whole: bool


class TokenSplit(NamedTuple):
    """The token ids of a prompt and of its continuation."""

    before: list[int]
    after: list[int]


class TokenServer(ABC):
    """A server that tokenizes texts and returns probabilities of given tokens."""

    def __init__(self, model: str, extra: Mapping[str, Any]) -> None:
        self.model = model
        self.template = {name: extra[name] for name in TEMPLATE_FIELDS if name in extra}

    async def count(self, ask: SendRequest, prompt: Prompt) -> int:
        """The number of tokens of a prompt, including the template."""
        return len((await self.read(ask, prompt)).ids)

    @abstractmethod
    async def read(self, ask: SendRequest, prompt: Prompt) -> TokenizedPrompt: ...

    @abstractmethod
    async def ids(self, ask: SendRequest, text: str, whole: bool) -> list[int]: ...

    @abstractmethod
    async def forced(self, ask: SendRequest, before: Sequence[int], after: Sequence[int]) -> list[GeneratedToken]:
        """The tokens ``after`` with their log-probabilities, each given all before it."""


async def split_tokens(
    tokens: TokenServer, ask: SendRequest, prompt: Prompt, continuations: Sequence[str]
) -> list[TokenSplit]:
    """Split prompts and continuations into tokens.

    Prompt and continuation are tokenized together, and the result must begin with the prompt's own tokens. Blanks at
    the end of a plain text go to the continuation, whose first token they are part of.
    """
    blanks = ""
    if is_text(prompt) and (stripped := joined_text(prompt).rstrip()):
        blanks = joined_text(prompt)[len(stripped) :]
        prompt = Prompt.text(stripped)
    tokenized = await tokens.read(ask, prompt)
    if not tokenized.ids:
        raise unsupported("empty-prompt", "the prompt has no tokens to go on from")
    splits = []
    for continuation in continuations:
        together = await tokens.ids(ask, f"{tokenized.text}{blanks}{continuation}", tokenized.whole)
        if together[: len(tokenized.ids)] != tokenized.ids:
            raise unsupported("boundary", "a token spans the end of the prompt and what follows it")
        after = together[len(tokenized.ids) :]
        if not continuation or not after:
            raise unsupported("empty-continuation", "there is nothing to score")
        splits.append(TokenSplit(tokenized.ids, after))
    return splits


class LlamaCppServer(TokenServer):
    """llama.cpp's own interface. It reports the model's log-probability of any token it picks, so the wanted tokens are
    forced by a grammar of token ids.
    """

    async def read(self, ask: SendRequest, prompt: Prompt) -> TokenizedPrompt:
        text = joined_text(prompt)
        if not is_text(prompt):
            text = await ask("/apply-template", {"messages": chat_messages(prompt), **self.template}, _read_text)
        return TokenizedPrompt(text, await self.ids(ask, text, True), True)

    async def ids(self, ask: SendRequest, text: str, whole: bool) -> list[int]:
        return await ask("/tokenize", {"content": text, "add_special": whole, "parse_special": True}, _read_ids)

    async def forced(self, ask: SendRequest, before: Sequence[int], after: Sequence[int]) -> list[GeneratedToken]:
        rule = "root ::= " + " ".join(f"<[{token}]>" for token in after)
        fields = {"prompt": list(before), "n_predict": len(after), "n_probs": 20, "temperature": 0}
        fields |= {"grammar": rule, "cache_prompt": True, "response_fields": ["completion_probabilities"]}

        def read(value: Any) -> list[GeneratedToken]:
            entries = value.get("completion_probabilities") if isinstance(value, dict) else None
            steps = [read_token(one) for one in entries] if isinstance(entries, list) else []
            if [one.token.id for one in steps] != list(after):
                raise malformed_reply("the server went on with other tokens than those it was held to")
            return steps

        return await ask("/completion", fields, read)


class VllmServer(TokenServer):
    """vLLM's interface: it returns the log-probabilities of a prompt, here of prompt and continuation as token ids.

    The text of a chat with its template is decoded from its token ids; `split_tokens` checks that it encodes to the
    same ids again.
    """

    async def count(self, ask: SendRequest, prompt: Prompt) -> int:
        return len(await self._prompt_ids(ask, prompt))

    async def read(self, ask: SendRequest, prompt: Prompt) -> TokenizedPrompt:
        ids = await self._prompt_ids(ask, prompt)
        if is_text(prompt):
            return TokenizedPrompt(joined_text(prompt), ids, True)
        text = await ask("/detokenize", {"model": self.model, "tokens": ids}, _read_text)
        return TokenizedPrompt(text, ids, False)

    async def _prompt_ids(self, ask: SendRequest, prompt: Prompt) -> list[int]:
        if is_text(prompt):
            return await self.ids(ask, joined_text(prompt), True)
        fields = {"model": self.model, "messages": chat_messages(prompt), "add_generation_prompt": True}
        return await ask("/tokenize", {**fields, **self.template}, _read_ids)

    async def ids(self, ask: SendRequest, text: str, whole: bool) -> list[int]:
        return await ask("/tokenize", {"model": self.model, "prompt": text, "add_special_tokens": whole}, _read_ids)

    async def forced(self, ask: SendRequest, before: Sequence[int], after: Sequence[int]) -> list[GeneratedToken]:
        fields = {"model": self.model, "prompt": [*before, *after], "max_tokens": 1, "temperature": 0}

        def read(value: Any) -> list[GeneratedToken]:
            entries = raw_choices(value)[0].get("prompt_logprobs")
            if not isinstance(entries, list) or len(entries) != len(before) + len(after):
                raise malformed_reply("the log-probabilities of the prompt are missing or not as many as its tokens")
            return [_read_entry(one, token) for one, token in zip(entries[len(before) :], after, strict=True)]

        return await ask("completions", fields | {"prompt_logprobs": 1}, read)


def _read_entry(position: Any, token: int) -> GeneratedToken:
    """Read one position of vLLM's prompt_logprobs: a table of token ids."""
    entry = position.get(str(token)) if isinstance(position, dict) else None
    if not isinstance(entry, dict):
        raise malformed_reply("a token of the prompt has no log-probability")
    name, logprob = entry.get("decoded_token"), read_own_logprob(entry.get("logprob"))
    text = replace_surrogates(name) if isinstance(name, str) else ""
    return GeneratedToken(TokenLogprob(text, logprob, token), ())


def _read_ids(value: Any) -> list[int]:
    ids = value.get("tokens") if isinstance(value, dict) else None
    if not isinstance(ids, list) or any(bounded_int(one, 0, MAX_ID) is None for one in ids):
        raise malformed_reply("the reply has no list of token ids")
    return ids


def _read_text(value: Any) -> str:
    text = value.get("prompt") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise malformed_reply("the reply has no text in the field 'prompt'")
    return text
