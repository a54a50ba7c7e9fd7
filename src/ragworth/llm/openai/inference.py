"""Generate, score and choose with an endpoint whose capabilities are known."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from ragworth.core.errors import quote_short
from ragworth.llm.contract import (
    CONTENT_FILTER,
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
from ragworth.llm.openai.bounds import build_trace, share_of_token, shares_by_text
from ragworth.llm.openai.call import EndpointCall
from ragworth.llm.openai.probe import EndpointFacts
from ragworth.llm.openai.replies import (
    EndpointError,
    GeneratedToken,
    ReplyChoice,
    TokenCounts,
    TokenLogprob,
    read_choices,
    read_counts,
    unsupported,
)
from ragworth.llm.openai.requests import TEMPERATURE, RefusedParameters, adapt_system_turn, as_text_prompt, is_text
from ragworth.llm.openai.servers import TokenServer, TokenSplit, split_tokens
from ragworth.llm.reasoning import count_mark_tokens, drop_reasoning, may_open_reasoning
from ragworth.llm.truncation import fit_prompt

MAX_TEMPLATE_TOKENS = 512
"""Maximum tokens that a chat template adds. Text never has more tokens than bytes, so a prompt shorter than the context
by both need not be counted.
"""

MARK_TOKENS = 16
"""Tokens to request if an output begins with marks of reasoning, which may be empty."""

BLANKS = " \t\r\n\u2581\u0120\u010a"
"""Blanks, and the signs for them in vocabularies: ▁ (SentencePiece), Ġ and Ċ (byte-level BPE)."""

T = TypeVar("T")


class ParsedReply(NamedTuple):
    """The texts of a reply, and its cost."""

    choices: list[ReplyChoice]
    counts: TokenCounts


@dataclass(frozen=True)
class EndpointRequest:
    """One request of the caller."""

    model: str
    facts: EndpointFacts
    on_long: str
    call: EndpointCall
    refused: RefusedParameters

    async def count(self, prompt: Prompt) -> int:
        return await self._tokens().count(self.call.send, self._adapt_prompt(prompt))

    async def generate(self, request: Generate) -> Generated:
        """Greedy outputs are equal and requested once. If fewer come than requested, the others are requested one by
        one, each with its own seed.
        """
        has_chat = self.facts.form.chat and not is_text(request.prompt)
        self._require_ability(request, has_chat)
        prompt, cut = await self._fit_prompt(request.prompt, request.max_tokens)
        request = replace(request, prompt=prompt)
        is_sampled = request.temperature > 0 or TEMPERATURE in self.refused.names
        number = request.n if is_sampled else 1
        ask = self._complete if number == 1 else self._sample
        replies = await ask(request, request.seed, number, is_traced=request.detail == "logprobs")
        outputs = [self._output(request, choice) for reply in replies for choice in reply.choices][:number]
        # A total with an unknown part is unknown: 0.
        prompts, news = (list(column) for column in zip(*(reply.counts for reply in replies), strict=True))
        is_silent = any(not reply.counts.new and any(one.text for one in reply.choices) for reply in replies)
        usage = self._usage(sum(prompts) if all(prompts) else 0, 0 if is_silent else sum(news), cut)
        return Generated(tuple(outputs if is_sampled else outputs * request.n), usage)

    def _require_ability(self, request: Generate, has_chat: bool) -> None:
        if request.detail == "entropies":
            raise unsupported("no-logprobs", "an endpoint shows only some of the probabilities: entropies have bounds")
        if request.detail == "logprobs" and "logprobs" not in self.facts.abilities:
            raise unsupported("no-logprobs", "the endpoint shows no log-probabilities")
        if request.schema and not (self.facts.schema and has_chat):
            raise unsupported("cannot", "the endpoint does not follow JSON schemas, or not for plain texts")
        try:
            json.loads(request.schema or "null")
        except ValueError:
            raise unsupported("refused", "the schema of the request is not JSON") from None

    async def _sample(self, request: Generate, seed: int, n: int, is_traced: bool) -> list[ParsedReply]:
        """Request several outputs at once, and those that don't come one by one."""
        replies: list[ParsedReply] = []
        if not self.refused.several:
            try:
                replies = await self._complete(request, seed, n, is_traced)
            except EndpointError as error:
                # Some servers refuse several outputs per request.
                if error.failure.reason != "refused" or error.status not in (400, 422):
                    raise
        first = sum(len(reply.choices) for reply in replies)
        self.refused.several |= first == 0
        seeds = range(seed + first, seed + n)
        others = await gather_all([self._complete(request, seed, 1, is_traced) for seed in seeds])
        return replies + [reply for [reply] in others]

    async def _complete(self, request: Generate, seed: int, n: int, is_traced: bool) -> list[ParsedReply]:
        """Request ``n`` texts at once."""
        is_chat = self.facts.form.chat and not is_text(request.prompt)
        top = (self.facts.form.top if is_chat else self.facts.text_top) if is_traced else 0

        def read(value: Any) -> ParsedReply:
            return ParsedReply(read_choices(value, n, shown=top > 0), read_counts(value))

        form = self.facts.form._replace(chat=is_chat, top=top)
        return [await self.call.complete(self.model, request, form, self.refused, read, seed=seed, n=n)]

    def _output(self, request: Generate, choice: ReplyChoice) -> Output:
        trace = None
        if request.detail != "text":
            if choice.steps is None and choice.text:
                raise EndpointError(Failure("no-logprobs", "the reply came without log-probabilities"))
            trace = self._trace(choice.steps or ())
        output = drop_reasoning(Output(choice.text, choice.finish, trace))
        if isinstance(output, Failure):
            raise EndpointError(output)
        return cut_at_length(cut_at_stop(output, request.stop), request.max_tokens)

    def _trace(self, steps: Sequence[GeneratedToken]) -> Trace:
        """Tokens and log-probabilities. Tokens may spell out the key together, though none contains it alone."""
        trace = build_trace(steps, self.facts.vocabulary)
        return trace._replace(tokens=self.call.client.redact_tokens(trace.tokens))

    async def score(self, request: Score) -> Scored:
        prompt, tokens = self._adapt_prompt(request.prompt), self._exact()
        [parts], cut = await self._split(prompt, [request.continuation])
        steps = await tokens.forced(self.call.send, parts.before, parts.after)
        return Scored(self._trace(steps), self._usage(len(parts.before), len(parts.after), cut))

    async def choose(self, request: Choose) -> Chosen:
        if not request.labels or "" in request.labels:
            raise unsupported("bad-label", "there are no labels, or an empty one")
        prompt = self._adapt_prompt(request.prompt)
        if self.facts.scores or request.estimator == "sequence":
            return await self._choose_by_tokens(request, prompt)
        return await self._choose_by_text(request, prompt)

    async def _choose_by_tokens(self, request: Choose, prompt: Prompt) -> Chosen:
        """Labels by their tokens' ids, requesting those that aren't among the likeliest one by one."""
        tokens = self._exact()
        parts, cut = await self._split(prompt, request.labels)
        is_first = request.estimator == "first-token"
        starts = [part.after[:1] if is_first else part.after for part in parts]
        _require_distinct(request, starts)
        before = parts[0].before
        shown = await self._top_tokens(before) if is_first else ()
        values = [share_of_token(start[0], shown) for start in starts]
        missing = [i for i, value in enumerate(values) if value is None]
        forced = await gather_all([tokens.forced(self.call.send, before, starts[i]) for i in missing])
        for i, steps in zip(missing, forced, strict=True):
            values[i] = math.exp(sum(step.token.logprob for step in steps))
        shares = tuple(value or 0.0 for value in values)
        return Chosen(shares, shares, shares, request.estimator, self._usage(len(before), 1, cut))

    async def _top_tokens(self, before: list[int]) -> tuple[TokenLogprob, ...]:
        """The likeliest next tokens; vLLM returns their ids only on request."""
        fields = {"model": self.model, "prompt": before, "max_tokens": 1, "temperature": 0}
        fields |= {"logprobs": max(self.facts.text_top, 1), "return_tokens_as_token_ids": True}
        choices = await self.call.send("completions", fields, read_choices)
        return choices[0].steps[0].top if choices[0].steps else ()

    async def _choose_by_text(self, request: Choose, prompt: Prompt) -> Chosen:
        """Labels by the likeliest tokens shown, as bounds."""
        if not self.facts.form.top:
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
                detail = f"the labels {alike[0]!r} and {alike[1]!r} begin with the same token"
                raise unsupported("ambiguous-labels", detail)
        usage = self._usage(counts.prompt, max(1, counts.new), cut)
        return Chosen(*shares_by_text(request.labels, shown), request.estimator, usage)

    async def _top_after_marks(self, prompt: Prompt, tokens: int) -> tuple[tuple[TokenLogprob, ...], TokenCounts]:
        """The likeliest tokens where the answer begins, after marks of empty reasoning, which are among ``tokens``."""
        [reply] = await self._complete(Generate(prompt, max_tokens=tokens), 0, 1, is_traced=True)
        steps = reply.choices[0].steps or ()
        marks = count_mark_tokens([step.token.text for step in steps]) if tokens > 1 else 0
        if reply.choices[0].finish == CONTENT_FILTER:
            raise unsupported("refused", WITHHELD)
        if not steps or not all(step.top for step in steps):
            raise EndpointError(Failure("no-logprobs", "the reply came without log-probabilities"))
        if marks is None or marks == len(steps):
            raise unsupported(
                "reasons-first",
                "the model reasons before it answers: turn that off at the server, or count samples (sampled:MODEL)",
            )
        return steps[marks].top, reply.counts

    def _usage(self, prompt: int, new: int, cut: int) -> Usage:
        """The cost of the request: its replies, and those that couldn't be used before them. Unknown is 0."""
        call, limit = self.call, self.facts.context_length if cut else None
        prompt, new = prompt and prompt + call.wasted.prompt, new and new + call.wasted.new
        return Usage(prompt, new, call.seconds, cut, limit=limit or 0, model=call.model)

    async def _split(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[list[TokenSplit], int]:
        """Tokenize prompt and continuations, truncating passages if they don't fit."""
        parts, cut = await split_tokens(self._tokens(), self.call.send, prompt, continuations), 0
        limit, room = self.facts.context_length, max(len(part.after) for part in parts) + 1
        if limit is not None and len(parts[0].before) + room > limit:
            prompt, cut = await self._cut(prompt, limit, room, len(parts[0].before))
            parts = await split_tokens(self._tokens(), self.call.send, prompt, continuations)
        return parts, cut

    async def _fit_prompt(self, prompt: Prompt, room: int) -> tuple[Prompt, int]:
        """Fit the prompt with room for more tokens; also returns the number of characters cut."""
        prompt, limit = self._adapt_prompt(prompt), self.facts.context_length
        size = sum(len(message.content.encode("utf-8", "surrogatepass")) for message in prompt.messages)
        if limit is None or self.facts.tokens is None or size + MAX_TEMPLATE_TOKENS + room <= limit:
            return prompt, 0
        number = await self.facts.tokens.count(self.call.send, prompt)
        return (prompt, 0) if number + room <= limit else await self._cut(prompt, limit, room, number)

    async def _cut(self, prompt: Prompt, limit: int, room: int, number: int) -> tuple[Prompt, int]:
        shorter = None
        if self.on_long == "cut":
            # In a separate thread: it counts many times, and this loop has to answer it.
            shorter = await asyncio.to_thread(fit_prompt, prompt, limit - room, self._count_outside)
        if shorter is None:
            raise unsupported("too-long", f"{number} tokens and {room} to come; the model reads {limit}")
        return shorter

    def _count_outside(self, prompt: Prompt) -> int:
        """Count tokens from another thread. Each count has a deadline of its own."""
        return self.call.client.run(replace(self, call=EndpointCall(self.call.client)).count(prompt))

    def _adapt_prompt(self, prompt: Prompt) -> Prompt:
        """The prompt as it is sent: plain text if there is no chat interface."""
        return adapt_system_turn(prompt, self.refused.names) if self.facts.form.chat else as_text_prompt(prompt)

    def _tokens(self) -> TokenServer:
        if self.facts.tokens is None:
            raise unsupported("cannot", "the endpoint does not tell tokens")
        return self.facts.tokens

    def _exact(self) -> TokenServer:
        if not self.facts.scores:
            raise unsupported("no-logprobs", "the endpoint does not tell how likely a given text is")
        return self._tokens()


async def gather_all(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; the first error is raised when all have ended, so that nothing keeps running unseen."""
    if len(work) == 1:
        return [await work[0]]
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


def _require_distinct(request: Choose, starts: Sequence[list[int]]) -> None:
    """Raise if the tokens of one label begin those of another, so they can't be distinguished."""
    for i, start in enumerate(starts):
        for j, other in enumerate(starts):
            if i != j and other[: len(start)] == start:
                names = f"{quote_short(request.labels[i])} and {quote_short(request.labels[j])}"
                raise unsupported("ambiguous-labels", f"by {request.estimator}, {names} begin alike")
