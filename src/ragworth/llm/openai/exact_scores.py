"""Exact probabilities of given texts, from the servers that offer them.

OpenAI's interface has no way to ask how likely a text is. llama.cpp and vLLM have, beside it, each in its own
way; both also say how a text falls into tokens, so that it is known where a prompt ends and its continuation
begins. Older completion servers repeat the prompt with its log-probabilities (``echo``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ragworth.llm.contract import Failure, Prompt
from ragworth.llm.openai.errors import Trouble, malformed
from ragworth.llm.openai.protocol import Step, Visible, encodable, is_text, messages, plain, raw_choices, step, steps
from ragworth.llm.openai.validation import MOST_ID, own_logprob, whole

FORCE = 1e4
"""Added to the logit of a token that has to come next: far more than logits differ by."""

T = TypeVar("T")


class Ask(Protocol):
    """Sends a JSON body and gives what the reader makes of the reply. A path from / is outside of the /v1 part."""

    async def __call__(self, path: str, body: dict[str, Any], read: Callable[[Any], T]) -> T: ...


class Reading(NamedTuple):
    """A prompt as the model reads it. ``whole``: whether BOS and the like are still to be added to the text."""

    text: str
    ids: list[int]
    whole: bool


class Split(NamedTuple):
    """The token ids of a prompt and of what comes after it."""

    before: list[int]
    after: list[int]


class Tokens(Protocol):
    """A server that tells tokens, and how likely given ones are."""

    async def count(self, ask: Ask, prompt: Prompt) -> int: ...

    async def read(self, ask: Ask, prompt: Prompt) -> Reading: ...

    async def ids(self, ask: Ask, text: str, whole: bool) -> list[int]: ...

    async def forced(self, ask: Ask, before: Sequence[int], after: Sequence[int]) -> list[Step]:
        """The tokens ``after`` with their log-probabilities, each given all before it."""
        ...


async def split(tokens: Tokens, ask: Ask, prompt: Prompt, continuations: Sequence[str]) -> list[Split]:
    """Where the prompt ends and each continuation begins, in tokens.

    Prompt and continuation are put into tokens together, and the prompt's own tokens must begin the result.
    The blanks at the end of a plain text go to the continuation, whose first token they are part of.
    """
    blanks = ""
    if is_text(prompt) and (stripped := plain(prompt).rstrip()):
        blanks = plain(prompt)[len(stripped) :]
        prompt = Prompt.text(stripped)
    reading = await tokens.read(ask, prompt)
    if not reading.ids:
        raise Trouble(Failure("empty-prompt", "the prompt has no tokens to go on from", retry=False))
    made = []
    for continuation in continuations:
        together = await tokens.ids(ask, f"{reading.text}{blanks}{continuation}", reading.whole)
        if together[: len(reading.ids)] != reading.ids:
            raise Trouble(Failure("boundary", "a token spans the end of the prompt and what follows it", retry=False))
        after = together[len(reading.ids) :]
        if not continuation or not after:
            raise Trouble(Failure("empty-continuation", "there is nothing to score", retry=False))
        made.append(Split(reading.ids, after))
    return made


class LlamaCpp:
    """llama.cpp's own interface. It reports the model's own log-probability of whatever token was picked, so
    the wanted tokens are forced: by a grammar of token ids, or one at a time where it is too old for those."""

    def __init__(self, grammar: bool = True, top: int = 20) -> None:
        self.grammar = grammar
        self.top = top

    async def count(self, ask: Ask, prompt: Prompt) -> int:
        return len((await self.read(ask, prompt)).ids)

    async def read(self, ask: Ask, prompt: Prompt) -> Reading:
        text = plain(prompt)
        if not is_text(prompt):
            text = await ask("/apply-template", {"messages": messages(prompt)}, lambda value: _string(value, "prompt"))
        return Reading(text, await self.ids(ask, text, True), True)

    async def ids(self, ask: Ask, text: str, whole: bool) -> list[int]:
        return await ask("/tokenize", {"content": text, "add_special": whole, "parse_special": True}, _ids)

    async def forced(self, ask: Ask, before: Sequence[int], after: Sequence[int]) -> list[Step]:
        if self.grammar:
            rule = "root ::= " + " ".join(f"<[{token}]>" for token in after)
            return await self._completed(ask, before, after, {"grammar": rule})
        made: list[Step] = []
        for i, token in enumerate(after):
            bias = {"logit_bias": [[token, FORCE]]}
            made += await self._completed(ask, [*before, *after[:i]], [token], bias)
        return made

    async def _completed(
        self, ask: Ask, before: Sequence[int], after: Sequence[int], force: dict[str, Any]
    ) -> list[Step]:
        fields = {"prompt": list(before), "n_predict": len(after), "n_probs": self.top, "temperature": 0, **force}
        fields |= {"cache_prompt": True, "response_fields": ["completion_probabilities"]}

        def read(value: Any) -> list[Step]:
            found = value.get("completion_probabilities") if isinstance(value, dict) else None
            made = [step(one) for one in found] if isinstance(found, list) else []
            if [one.token.id for one in made] != list(after):
                raise malformed("the server went on with other tokens than those it was held to")
            return made

        return await ask("/completion", fields, read)


class Vllm:
    """vLLM's interface: it tells the log-probabilities of a prompt, here of prompt and continuation as token ids.

    The text of a chat with its template is what its token ids decode to; that it encodes to the same ids again
    is what `split` sees to.
    """

    def __init__(self, model: str) -> None:
        self.model = model

    async def count(self, ask: Ask, prompt: Prompt) -> int:
        return len(await self._prompt_ids(ask, prompt))

    async def read(self, ask: Ask, prompt: Prompt) -> Reading:
        ids = await self._prompt_ids(ask, prompt)
        if is_text(prompt):
            return Reading(plain(prompt), ids, True)
        fields = {"model": self.model, "tokens": ids}
        return Reading(await ask("/detokenize", fields, lambda value: _string(value, "prompt")), ids, False)

    async def _prompt_ids(self, ask: Ask, prompt: Prompt) -> list[int]:
        if is_text(prompt):
            return await self.ids(ask, plain(prompt), True)
        fields = {"model": self.model, "messages": messages(prompt), "add_generation_prompt": True}
        return await ask("/tokenize", fields, _ids)

    async def ids(self, ask: Ask, text: str, whole: bool) -> list[int]:
        return await ask("/tokenize", {"model": self.model, "prompt": text, "add_special_tokens": whole}, _ids)

    async def forced(self, ask: Ask, before: Sequence[int], after: Sequence[int]) -> list[Step]:
        fields = {"model": self.model, "prompt": [*before, *after], "max_tokens": 1, "temperature": 0}

        def read(value: Any) -> list[Step]:
            found = raw_choices(value)[0].get("prompt_logprobs")
            if not isinstance(found, list) or len(found) != len(before) + len(after):
                raise malformed("the log-probabilities of the prompt are missing or not as many as its tokens")
            return [_entry(one, token) for one, token in zip(found[len(before) :], after, strict=True)]

        return await ask("completions", fields | {"prompt_logprobs": 1}, read)


async def echoed(ask: Ask, model: str, prompt: Prompt, continuation: str) -> tuple[list[Step], int]:
    """The tokens of a continuation with their log-probabilities, from a server that repeats the prompt, and
    the number of the prompt's tokens."""
    start = plain(prompt)
    fields = {"model": model, "prompt": start + continuation, "max_tokens": 1, "temperature": 0, "logprobs": 1}
    made = await ask("completions", fields | {"echo": True}, _echo)
    return _after(made, start, continuation)


def _echo(value: Any) -> tuple[Step, ...]:
    made = steps(raw_choices(value)[0])
    if not made:
        raise malformed("the prompt was not repeated with its log-probabilities")
    return made


def _after(made: Sequence[Step], start: str, continuation: str) -> tuple[list[Step], int]:
    """Those steps that spell out the continuation, if tokens begin and end where it does."""
    if not continuation:
        raise Trouble(Failure("empty-continuation", "there is nothing to score", retry=False))
    text, first = "", None
    for i, one in enumerate(made):
        if text == start and first is None:
            first = i
        if text == start + continuation and first is not None:
            return list(made[first:i]), first
        text += one.token.text
    raise Trouble(Failure("boundary", "no token begins where the prompt ends, or the texts differ", retry=False))


def _entry(entry: Any, token: int) -> Step:
    """One position of vLLM's prompt_logprobs: a table from token ids to what is known of them."""
    found = entry.get(str(token)) if isinstance(entry, dict) else None
    if not isinstance(found, dict):
        raise malformed("a token of the prompt has no log-probability")
    text = found.get("decoded_token")
    return Step(Visible(encodable(text) if isinstance(text, str) else "", own_logprob(found.get("logprob")), token), ())


def _ids(value: Any) -> list[int]:
    found = value.get("tokens") if isinstance(value, dict) else None
    if not isinstance(found, list) or any(whole(one, 0, MOST_ID) is None for one in found):
        raise malformed("the reply has no list of token ids")
    return found


def _string(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, str):
        raise malformed(f"the reply has no text in the field {name!r}")
    return found
