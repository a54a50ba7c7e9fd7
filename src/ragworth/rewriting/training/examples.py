"""Training examples as tokens: the prompt exactly as the engine reads it, then the rewrite and the end of the turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragworth.core.errors import InputError, format_count
from ragworth.data.conversations import Turn, cut_messages
from ragworth.judging.rewriter import render_turn
from ragworth.llm.local.prompt_encoding import EncodedPrompt, PromptEncoder
from ragworth.llm.prompts.template import Template
from ragworth.rewriting.training.settings import TrainingSettings

IGNORED = -100
"""Label of tokens that don't count in the loss."""

TOO_LONG = "longer than max_tokens"
NO_HISTORY = "no history to rewrite from"
SAME_TEXTS = "both rewrites are the same"
BOUNDARY = "a token spans the prompt and the rewrite"


class EncodedExamples(NamedTuple):
    """Rows for the trainer, and how many examples were left out, by reason."""

    rows: list[dict[str, Any]]
    left_out: dict[str, int]
    cut_histories: int


class ExampleEncoder:
    """Encodes examples of turns."""

    def __init__(
        self,
        encoder: PromptEncoder,
        end: int,
        template: Template,
        turns: Mapping[str, Turn],
        settings: TrainingSettings,
        context_length: int | None = None,
    ) -> None:
        self.encoder, self.end, self.template, self.turns, self.settings = encoder, end, template, turns, settings
        self.most = min(settings.max_tokens, context_length or settings.max_tokens)

    def sft(self, rewrites: Sequence[tuple[str, str]]) -> EncodedExamples:
        """Rows of ``input_ids`` and ``labels`` from (query, text)."""

        def row(prompt: list[int], sides: Sequence[list[int]]) -> dict[str, Any]:
            return {"input_ids": prompt + sides[0], "labels": [IGNORED] * len(prompt) + sides[0]}

        return self._encode([(query, (text,)) for query, text in rewrites], row)

    def dpo(self, pairs: Sequence[tuple[str, str, str]]) -> EncodedExamples:
        """Rows of ``prompt_ids``, ``chosen_ids`` and ``rejected_ids`` from (query, chosen, rejected)."""

        def row(prompt: list[int], sides: Sequence[list[int]]) -> dict[str, Any]:
            return {"prompt_ids": prompt, "chosen_ids": sides[0], "rejected_ids": sides[1]}

        return self._encode([(query, (chosen, rejected)) for query, chosen, rejected in pairs], row)

    def _encode(self, examples: Sequence[tuple[str, tuple[str, ...]]], row: Any) -> EncodedExamples:
        rows: list[dict[str, Any]] = []
        left_out: dict[str, int] = {}
        cut = 0
        for query, texts in examples:
            found = SAME_TEXTS if len(set(texts)) < len(texts) else self._tokens(self.turns[query], texts)
            if isinstance(found, str):
                left_out[found] = left_out.get(found, 0) + 1
                continue
            cut += cut_messages(self.turns[query].history, self.settings.history) > 0
            rows.append(row(*found))
        return EncodedExamples(rows, left_out, cut)

    def _tokens(self, turn: Turn, texts: Sequence[str]) -> tuple[list[int], list[list[int]]] | str:
        """The tokens of the prompt and of each rewrite, or why the example can't be used."""
        if not turn.history:
            return NO_HISTORY
        prompt = self.prompt(turn)
        sides = [self.encoder.after(prompt, text) for text in texts]
        if any(side is None for side in sides):
            return BOUNDARY
        ended = [[*side, self.end] for side in sides if side is not None]
        if len(prompt.ids) + max(map(len, ended)) > self.most:
            return TOO_LONG
        return prompt.ids, ended

    def prompt(self, turn: Turn) -> EncodedPrompt:
        """The prompt of a turn."""
        rendered = render_turn(self.template, turn, self.settings.history)
        return self.encoder.ids([rendered], continued=True)[0]


def require_examples(found: EncodedExamples, what: str) -> None:
    """Refuse to train on nothing."""
    if not found.rows:
        reasons = "; ".join(f"{reason}: {format_count(number, 'example')}" for reason, number in found.left_out.items())
        raise InputError(f"no {what} can be used ({reasons or 'there are none'})", expected="at least one")
