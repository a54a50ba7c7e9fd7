"""Send the three kinds of requests to an endpoint with known capabilities."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ragworth.core.errors import quote_short
from ragworth.llm.contract import (
    CONTENT_FILTER,
    NO_USAGE,
    WITHHELD,
    Choose,
    Chosen,
    Failure,
    Generate,
    Generated,
    Output,
    Prompt,
    Score,
    Scored,
    Trace,
    Usage,
    cut_at_length,
    cut_at_stop,
)
from ragworth.llm.openai.bounds import LabelShares, build_trace, exact_shares, share_of_token, shares_by_text
from ragworth.llm.openai.errors import EndpointError
from ragworth.llm.openai.exact_scores import TokenServer, TokenSplit, split_tokens
from ragworth.llm.openai.probe import EndpointFacts
from ragworth.llm.openai.protocol import (
    TEMPERATURE,
    GeneratedToken,
    ReplyChoice,
    RequestFormat,
    TokenCounts,
    TokenLogprob,
    adapt_system_turn,
    as_text_prompt,
    is_text,
    read_choices,
    read_counts,
    request_body,
)
from ragworth.llm.openai.refused_parameters import RefusedParameters
from ragworth.llm.reasoning import count_mark_tokens, drop_reasoning, may_open_reasoning
from ragworth.llm.truncation import fit_prompt

if TYPE_CHECKING:
    from ragworth.llm.openai.http import EndpointSession

MAX_TEMPLATE_TOKENS = 512
"""Maximum tokens that a chat template adds. Text never has more tokens than bytes, so a prompt shorter than the context
by both need not be counted.
"""

MARK_TOKENS = 16
"""Tokens to request if an output begins with marks of reasoning, which may be empty."""

BLANKS = " \t\r\n\u2581\u0120\u010a"
"""Blanks, and the signs for them in vocabularies: ▁ (SentencePiece), Ġ and Ċ (byte-level BPE)."""

T = TypeVar("T")


class ParsedReply(NamedTuple, Generic[T]):
    """Results for each text of a reply, and its cost."""

    texts: list[T]
    counts: TokenCounts


def _sum_counts(replies: Sequence[ParsedReply[Output]]) -> TokenCounts:
    """Total cost of replies. A total with an unknown part is unknown: 0."""
    read, written = (list(column) for column in zip(*(reply.counts for reply in replies), strict=True))
    silent = any(not reply.counts.new and any(one.text for one in reply.texts) for reply in replies)
    return TokenCounts(sum(read) if all(read) else 0, 0 if silent else sum(written))


@dataclass(frozen=True)
class EndpointRequest:
    """One request of the caller."""

    model: str
    facts: EndpointFacts
    on_long: str
    line: EndpointSession
    refused: RefusedParameters = field(default_factory=RefusedParameters)

    async def count(self, prompt: Prompt) -> int:
        return await self._tokens().count(self.line.ask, self._adapt_prompt(prompt))

    async def generate(self, request: Generate) -> Generated:
        """Greedy outputs are equal and requested once. If fewer come than requested, the others are requested one by
        one, each with its own seed.
        """
        chat = self._check(request)
        prompt, cut = await self._fit_prompt(request.prompt, request.max_tokens)
        request = replace(request, prompt=prompt)
        shown = (self.facts.manner.top if chat else self.facts.text_top) if request.detail == "logprobs" else 0
        manner = self.facts.manner._replace(chat=chat, top=shown)
        wanted = request.n if request.temperature > 0 or TEMPERATURE in self.refused.names else 1
        replies = await self._sampled(request, manner, wanted)
        outputs = [output for reply in replies for output in reply.texts][:wanted]
        if wanted < request.n:
            outputs *= request.n
        return Generated(tuple(outputs), self._usage(*_sum_counts(replies), cut))

    def _check(self, request: Generate) -> bool:
        """Whether the request goes to the chat interface; raises if the endpoint can't do it."""
        chat = self.facts.manner.chat and not is_text(request.prompt)
        if request.detail == "entropies":
            raise unsupported("no-logprobs", "an endpoint shows only some of the probabilities: entropies have bounds")
        if request.detail == "logprobs" and "logprobs" not in self.facts.abilities:
            raise unsupported("no-logprobs", "the endpoint shows no log-probabilities")
        if request.schema and not (self.facts.schema and chat):
            raise unsupported("cannot", "the endpoint does not follow JSON schemas, or not for plain texts")
        try:
            json.loads(request.schema or "null")
        except ValueError:
            raise unsupported("refused", "the schema of the request is not JSON") from None
        return chat

    async def _sampled(self, request: Generate, manner: RequestFormat, wanted: int) -> list[ParsedReply[Output]]:
        def output(choice: ReplyChoice) -> Output:
            found = drop_reasoning(Output(choice.text, choice.finish, self._trace(request, choice)))
            if isinstance(found, Failure):
                raise EndpointError(found)
            return cut_at_length(cut_at_stop(found, request.stop), request.max_tokens)

        replies: list[ParsedReply[Output]] = []
        if wanted == 1 or not self.refused.several:
            try:
                replies = [await self._complete(request, manner, request.seed, wanted, output)]
            except EndpointError as trouble:
                # Some servers refuse several outputs per request.
                if wanted == 1 or trouble.failure.reason != "refused" or trouble.status not in (400, 422):
                    raise
        have = sum(len(reply.texts) for reply in replies)
        seeds = range(request.seed + have, request.seed + wanted)
        replies += await gather_all([self._complete(request, manner, seed, 1, output) for seed in seeds])
        self.refused.several |= have == 0
        return replies

    async def _complete(
        self, request: Generate, manner: RequestFormat, seed: int, n: int, make: Callable[[ReplyChoice], T]
    ) -> ParsedReply[T]:
        path = "chat/completions" if manner.chat else "completions"

        def body(manner: RequestFormat) -> dict[str, Any]:
            return request_body(self.model, request, manner, seed=seed, n=n)

        def read(value: Any) -> ParsedReply[T]:
            return ParsedReply([make(one) for one in read_choices(value, n, shown=manner.top > 0)], read_counts(value))

        return await self.refused.ask(self.line.ask, path, manner, body, read)

    def _trace(self, request: Generate, choice: ReplyChoice) -> Trace | None:
        if request.detail == "text":
            return None
        if choice.steps is None and choice.text:
            raise EndpointError(Failure("no-logprobs", "the reply came without log-probabilities"))
        return self._traced(choice.steps or ())

    def _traced(self, steps: Sequence[GeneratedToken]) -> Trace:
        """Tokens and log-probabilities. Tokens may spell out the key together, though none contains it alone."""
        found = build_trace(steps, self.facts.vocabulary)
        return found._replace(tokens=self.line.channel.redact_tokens(found.tokens))

    async def score(self, request: Score) -> Scored:
        prompt = self._adapt_prompt(request.prompt)
        tokens = self._exact()
        [parts], cut = await self._split(prompt, [request.continuation])
        steps = await tokens.forced(self.line.ask, parts.before, parts.after)
        usage = self._usage(len(parts.before), len(parts.after), cut)
        return Scored(self._traced(steps), usage)

    async def choose(self, request: Choose) -> Chosen:
        if not request.labels or "" in request.labels:
            raise unsupported("bad-label", "there are no labels, or an empty one")
        prompt = self._adapt_prompt(request.prompt)
        if self.facts.scores:
            return await self._by_tokens(request, prompt)
        if request.estimator == "sequence":
            self._exact()
        return await self._by_text(request, prompt)

    async def _by_tokens(self, request: Choose, prompt: Prompt) -> Chosen:
        """Labels by their tokens' ids, requesting those that aren't among the likeliest one by one."""
        tokens = self._exact()
        parts, cut = await self._split(prompt, request.labels)
        first = request.estimator == "first-token"
        starts = [part.after[:1] if first else part.after for part in parts]
        _require_distinct(request, starts)
        before = parts[0].before
        shown = await self._top_tokens(before) if first else ()
        known = [share_of_token(start[0], shown) for start in starts]
        missing = [i for i, value in enumerate(known) if value is None]
        forced = await gather_all([tokens.forced(self.line.ask, before, starts[i]) for i in missing])
        for i, steps in zip(missing, forced, strict=True):
            known[i] = _joint_probability(steps)
        return self._chosen(request, exact_shares([value or 0.0 for value in known]), len(before), cut)

    async def _top_tokens(self, before: list[int]) -> tuple[TokenLogprob, ...]:
        """The likeliest next tokens; vLLM returns their ids only on request."""
        fields = {"model": self.model, "prompt": before, "max_tokens": 1, "temperature": 0}
        fields |= {"logprobs": max(self.facts.text_top, 1), "return_tokens_as_token_ids": True}
        return _first_top(await self.line.ask("completions", fields, read_choices))

    async def _by_text(self, request: Choose, prompt: Prompt) -> Chosen:
        """Labels by the likeliest tokens shown, as bounds."""
        if not self.facts.manner.top:
            raise unsupported("no-logprobs", "the endpoint shows no log-probabilities")
        prompt, cut = await self._fit_prompt(prompt, 1)
        shown, counts = await self._top_after_marks(prompt, 1)
        likeliest = max(shown, key=lambda one: one.logprob).text
        if may_open_reasoning(likeliest) and not any(label.startswith(likeliest.strip()) for label in request.labels):
            shown, more = await self._top_after_marks(prompt, MARK_TOKENS)
            counts = counts.plus(more)
        if not is_text(prompt) and not any(
            one.text and label.startswith(one.text) for one in shown for label in request.labels
        ):
            # Some tokenizers begin every reply with a blank, and some servers show the tokenizer's sign for it.
            shown = tuple(one._replace(text=one.text.lstrip(BLANKS)) for one in shown)
        for one in shown:
            alike = [label for label in request.labels if one.text and label.startswith(one.text)]
            if len(alike) > 1:
                raise unsupported(
                    "ambiguous-labels", f"the labels {alike[0]!r} and {alike[1]!r} begin with the same token"
                )
        usage = self._usage(counts.prompt, max(1, counts.new), cut)
        return Chosen(*shares_by_text(request.labels, shown), request.estimator, usage)

    @property
    def spent(self) -> Usage:
        """What the request has cost so far, as far as the endpoint reports it."""
        turn = self.line.turn
        return Usage(*turn.spent, turn.seconds) if any(turn.spent) else NO_USAGE

    async def _top_after_marks(self, prompt: Prompt, tokens: int) -> tuple[tuple[TokenLogprob, ...], TokenCounts]:
        """The likeliest tokens where the answer begins, after marks of empty reasoning, which are among ``tokens``."""
        chat = not is_text(prompt)
        manner = self.facts.manner._replace(chat=chat, top=self.facts.manner.top if chat else self.facts.text_top)
        reply = await self._complete(Generate(prompt, max_tokens=tokens), manner, 0, 1, lambda choice: choice)
        steps = reply.texts[0].steps or ()
        marks = count_mark_tokens([step.token.text for step in steps]) if tokens > 1 else 0
        if reply.texts[0].finish == CONTENT_FILTER:
            raise unsupported("refused", WITHHELD)
        if not steps or not all(step.top for step in steps):
            raise EndpointError(Failure("no-logprobs", "the reply came without log-probabilities"))
        if marks is None or marks == len(steps):
            raise unsupported(
                "reasons-first",
                "the model reasons before it answers: turn that off at the server, or count samples (sampled:MODEL)",
            )
        return steps[marks].top, reply.counts

    def _usage(self, read: int, written: int, cut: int) -> Usage:
        """The cost of the request: its replies, and those that couldn't be used before them. Unknown is 0."""
        limit, wasted = self.facts.context_length if cut else None, self.line.turn.wasted
        read, written = read and read + wasted.prompt, written and written + wasted.new
        return Usage(read, written, self.line.turn.seconds, cut, limit=limit or 0, model=self.line.turn.model)

    def _chosen(self, request: Choose, shares: LabelShares, before: int, cut: int) -> Chosen:
        usage = self._usage(before, 1, cut)
        return Chosen(*shares, request.estimator, usage)

    async def _split(self, prompt: Prompt, after: Sequence[str]) -> tuple[list[TokenSplit], int]:
        """Tokenize prompt and continuations, truncating passages if they don't fit."""
        parts, cut = await split_tokens(self._tokens(), self.line.ask, prompt, after), 0
        limit, room = self.facts.context_length, max(len(part.after) for part in parts) + 1
        if limit is not None and len(parts[0].before) + room > limit:
            prompt, cut = await self._cut(prompt, limit, room, len(parts[0].before))
            parts = await split_tokens(self._tokens(), self.line.ask, prompt, after)
        return parts, cut

    async def _fit_prompt(self, prompt: Prompt, room: int) -> tuple[Prompt, int]:
        """Fit the prompt with room for more tokens; also returns the number of characters cut."""
        prompt, limit = self._adapt_prompt(prompt), self.facts.context_length
        size = sum(len(message.content.encode("utf-8", "surrogatepass")) for message in prompt.messages)
        if limit is None or self.facts.tokens is None or size + MAX_TEMPLATE_TOKENS + room <= limit:
            return prompt, 0
        found = await self.facts.tokens.count(self.line.ask, prompt)
        return (prompt, 0) if found + room <= limit else await self._cut(prompt, limit, room, found)

    async def _cut(self, prompt: Prompt, limit: int, room: int, found: int) -> tuple[Prompt, int]:
        shorter = None
        if self.on_long == "cut":
            # In a separate thread: it counts many times, and this loop has to answer it.
            shorter = await asyncio.to_thread(fit_prompt, prompt, limit - room, self._count_outside)
        if shorter is None:
            raise unsupported("too-long", f"{found} tokens and {room} to come; the model reads {limit}")
        return shorter

    def _count_outside(self, prompt: Prompt) -> int:
        return self.line.channel.run(replace(self, line=self.line.anew()).count(prompt))

    def _adapt_prompt(self, prompt: Prompt) -> Prompt:
        """The prompt as it is sent: plain text if there is no chat interface."""
        if not self.facts.manner.chat:
            return as_text_prompt(prompt)
        return adapt_system_turn(prompt, self.facts.manner._replace(without=self.refused.names))

    def _tokens(self) -> TokenServer:
        if self.facts.tokens is None:
            raise unsupported("cannot", "the endpoint does not tell tokens")
        return self.facts.tokens

    def _exact(self) -> TokenServer:
        if not self.facts.scores:
            raise unsupported("no-logprobs", "the endpoint does not tell how likely a given text is")
        return self._tokens()


def unsupported(reason: str, detail: str) -> EndpointError:
    """The error for a request that this endpoint can never fulfil."""
    return EndpointError(Failure(reason, detail, retry=False))


async def gather_all(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; the first error is raised when all have ended, so that nothing keeps running unseen."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


def _first_top(found: Sequence[ReplyChoice]) -> tuple[TokenLogprob, ...]:
    """The likeliest tokens at the first position, if shown."""
    steps = found[0].steps
    return steps[0].top if steps else ()


def _joint_probability(steps: Sequence[GeneratedToken]) -> float:
    return math.exp(sum(step.token.logprob for step in steps))


def _require_distinct(request: Choose, starts: Sequence[list[int]]) -> None:
    """Raise if the tokens of one label begin those of another, so they can't be distinguished."""
    for i, start in enumerate(starts):
        for j, other in enumerate(starts):
            if i != j and other[: len(start)] == start:
                names = f"{quote_short(request.labels[i])} and {quote_short(request.labels[j])}"
                raise unsupported("ambiguous-labels", f"by {request.estimator}, {names} begin alike")
