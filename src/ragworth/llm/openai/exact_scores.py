"""Get exact probabilities of given texts from servers that offer them.

OpenAI's interface can't return the probability of a given text. llama.cpp and vLLM can, each in its own way; both also
tokenize texts, so it is known where a prompt ends and its continuation begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ragworth.llm.contract import Failure, Prompt
from ragworth.llm.openai.errors import EndpointError, malformed_reply
from ragworth.llm.openai.protocol import (
    GeneratedToken,
    TokenLogprob,
    chat_messages,
    is_text,
    joined_text,
    raw_choices,
    read_token,
    replace_surrogates,
)
from ragworth.llm.openai.validation import MAX_ID, bounded_int, read_own_logprob

T = TypeVar("T")


class SendRequest(Protocol):
    """Sends a JSON body and returns the reader's result for the reply. A path from / is outside the /v1 part."""

    async def __call__(self, path: str, body: dict[str, Any], read: Callable[[Any], T]) -> T: ...


class TokenizedPrompt(NamedTuple):
    """A prompt as the model reads it. ``whole``: whether BOS and the like are still to be added to the text."""

    text: str
    ids: list[int]
    whole: bool


class TokenSplit(NamedTuple):
    """The token ids of a prompt and of its continuation."""

    before: list[int]
    after: list[int]


class TokenServer(Protocol):
    """A server that tokenizes texts and returns probabilities of given tokens."""

    async def count(self, ask: SendRequest, prompt: Prompt) -> int: ...

    async def read(self, ask: SendRequest, prompt: Prompt) -> TokenizedPrompt: ...

    async def ids(self, ask: SendRequest, text: str, whole: bool) -> list[int]: ...

    async def forced(self, ask: SendRequest, before: Sequence[int], after: Sequence[int]) -> list[GeneratedToken]:
        """The tokens ``after`` with their log-probabilities, each given all before it."""
        ...


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
    reading = await tokens.read(ask, prompt)
    if not reading.ids:
        raise EndpointError(Failure("empty-prompt", "the prompt has no tokens to go on from", retry=False))
    splits = []
    for continuation in continuations:
        together = await tokens.ids(ask, f"{reading.text}{blanks}{continuation}", reading.whole)
        if together[: len(reading.ids)] != reading.ids:
            raise EndpointError(
                Failure("boundary", "a token spans the end of the prompt and what follows it", retry=False)
            )
        after = together[len(reading.ids) :]
        if not continuation or not after:
            raise EndpointError(Failure("empty-continuation", "there is nothing to score", retry=False))
        splits.append(TokenSplit(reading.ids, after))
    return splits


class LlamaCppServer:
    """llama.cpp's own interface. It reports the model's log-probability of any token it picks, so the wanted tokens are
    forced by a grammar of token ids.
    """

    def __init__(self, top: int = 20, template: Mapping[str, Any] | None = None) -> None:
        self.top = top
        self.template = dict(template or {})
        """Fields that change the chat template."""

    async def count(self, ask: SendRequest, prompt: Prompt) -> int:
        return len((await self.read(ask, prompt)).ids)

    async def read(self, ask: SendRequest, prompt: Prompt) -> TokenizedPrompt:
        text = joined_text(prompt)
        if not is_text(prompt):
            fields = {"messages": chat_messages(prompt), **self.template}
            text = await ask("/apply-template", fields, lambda value: _read_string(value, "prompt"))
        return TokenizedPrompt(text, await self.ids(ask, text, True), True)

    async def ids(self, ask: SendRequest, text: str, whole: bool) -> list[int]:
        return await ask("/tokenize", {"content": text, "add_special": whole, "parse_special": True}, _read_ids)

    async def forced(self, ask: SendRequest, before: Sequence[int], after: Sequence[int]) -> list[GeneratedToken]:
        rule = "root ::= " + " ".join(f"<[{token}]>" for token in after)
        fields = {"prompt": list(before), "n_predict": len(after), "n_probs": self.top, "temperature": 0}
        fields |= {"grammar": rule, "cache_prompt": True, "response_fields": ["completion_probabilities"]}

        def read(value: Any) -> list[GeneratedToken]:
            found = value.get("completion_probabilities") if isinstance(value, dict) else None
            tokens = [read_token(one) for one in found] if isinstance(found, list) else []
            if [one.token.id for one in tokens] != list(after):
                raise malformed_reply("the server went on with other tokens than those it was held to")
            return tokens

        return await ask("/completion", fields, read)


class VllmServer:
    """vLLM's interface: it returns the log-probabilities of a prompt, here of prompt and continuation as token ids.

    The text of a chat with its template is decoded from its token ids; `split_tokens` checks that it encodes to the
    same ids again.
    """

    def __init__(self, model: str, template: Mapping[str, Any] | None = None) -> None:
        self.model = model
        self.template = dict(template or {})
        """Fields that change the chat template."""

    async def count(self, ask: SendRequest, prompt: Prompt) -> int:
        return len(await self._prompt_ids(ask, prompt))

    async def read(self, ask: SendRequest, prompt: Prompt) -> TokenizedPrompt:
        ids = await self._prompt_ids(ask, prompt)
        if is_text(prompt):
            return TokenizedPrompt(joined_text(prompt), ids, True)
        fields = {"model": self.model, "tokens": ids}
        return TokenizedPrompt(
            await ask("/detokenize", fields, lambda value: _read_string(value, "prompt")), ids, False
        )

    async def _prompt_ids(self, ask: SendRequest, prompt: Prompt) -> list[int]:
        if is_text(prompt):
            return await self.ids(ask, joined_text(prompt), True)
        fields = {
            "model": self.model,
            "messages": chat_messages(prompt),
            "add_generation_prompt": True,
            **self.template,
        }
        return await ask("/tokenize", fields, _read_ids)

    async def ids(self, ask: SendRequest, text: str, whole: bool) -> list[int]:
        return await ask("/tokenize", {"model": self.model, "prompt": text, "add_special_tokens": whole}, _read_ids)

    async def forced(self, ask: SendRequest, before: Sequence[int], after: Sequence[int]) -> list[GeneratedToken]:
        fields = {"model": self.model, "prompt": [*before, *after], "max_tokens": 1, "temperature": 0}

        def read(value: Any) -> list[GeneratedToken]:
            found = raw_choices(value)[0].get("prompt_logprobs")
            if not isinstance(found, list) or len(found) != len(before) + len(after):
                raise malformed_reply("the log-probabilities of the prompt are missing or not as many as its tokens")
            return [_read_entry(one, token) for one, token in zip(found[len(before) :], after, strict=True)]

        return await ask("completions", fields | {"prompt_logprobs": 1}, read)


def _read_entry(entry: Any, token: int) -> GeneratedToken:
    """Read one position of vLLM's prompt_logprobs: a table of token ids."""
    found = entry.get(str(token)) if isinstance(entry, dict) else None
    if not isinstance(found, dict):
        raise malformed_reply("a token of the prompt has no log-probability")
    text = found.get("decoded_token")
    return GeneratedToken(
        TokenLogprob(
            replace_surrogates(text) if isinstance(text, str) else "", read_own_logprob(found.get("logprob")), token
        ),
        (),
    )


def _read_ids(value: Any) -> list[int]:
    found = value.get("tokens") if isinstance(value, dict) else None
    if not isinstance(found, list) or any(bounded_int(one, 0, MAX_ID) is None for one in found):
        raise malformed_reply("the reply has no list of token ids")
    return found


def _read_string(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, str):
        raise malformed_reply(f"the reply has no text in the field {name!r}")
    return found
