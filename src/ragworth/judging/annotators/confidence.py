"""``confidence`` (GroGU): how much surer a context makes the model of what it answers, without any reference.

Paper: Hua et al., Evaluating the Utility of Grounding Documents with Reference-Free LLM-based Metrics.

H_i is the entropy of the model's distribution before token i, over the whole vocabulary, and s_i = −log p its
surprisal, both in nats, with the context; H'_i and s'_i are those of the same tokens without it.

============ ===================================================================
Entropy      −mean H_i over all tokens
PPL          −exp(mean s_i) over all tokens
KeyEntropy   −mean H_i over the key tokens: those with |H_i − H'_i| > a
KeyPPL       −exp(mean s_i) over the key tokens: those with |s_i − s'_i| > a
============ ===================================================================

Where no token is a key token, the ``top`` share of tokens with the highest H (s) are taken, at least one. Without
H', as for the answer that the model gives without a context, the key tokens are those with H_i > a.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.core.errors import InputError
from ragworth.judging.answers import NO_CONTEXT_SYSTEM, AnsweringResult, AnswerItem, AnswerWriter, WrittenAnswer
from ragworth.judging.contract import option, options_by_name
from ragworth.judging.findings import AspectValues, require_abilities, value_unless_cut
from ragworth.judging.judge import AnnotationItem, Annotator, Unit
from ragworth.llm.contract import Failure, Generate, Generated, Output, Response, Score, Scored, Trace, Usage
from ragworth.llm.prompts.template import Template

MEASURES = ("PPL", "KeyPPL", "Entropy", "KeyEntropy")


@dataclass(frozen=True)
class TokenStatistics:
    """What a model thought of each token of a text, with its context and, for the same tokens, without."""

    surprisals: Sequence[float]
    entropies: Sequence[float] | None = None
    surprisals_alone: Sequence[float] | None = None
    entropies_alone: Sequence[float] | None = None

    def pair(self, measure: str) -> tuple[Sequence[float], Sequence[float] | None] | None:
        """The quantity that a measure goes by, with and without the context."""
        if measure.endswith("PPL"):
            return self.surprisals, self.surprisals_alone
        return None if self.entropies is None else (self.entropies, self.entropies_alone)


def key_tokens(values: Sequence[float], alone: Sequence[float] | None, a: float, top: float) -> list[int]:
    """Numbers of the key tokens, in order."""
    changes = values if alone is None else [abs(x - y) for x, y in zip(values, alone, strict=True)]
    chosen = [number for number, change in enumerate(changes) if change > a]
    if chosen:
        return chosen
    highest = sorted(range(len(values)), key=lambda number: (-values[number], number))
    return sorted(highest[: fallback_count(top, len(values))])


def fallback_count(top: float, tokens: int) -> int:
    """How many tokens are taken where none is a key token: a share of all, rounded up, at least one."""
    # The product of a share and a whole number may fall short of a whole number by rounding.
    return max(1, math.ceil(round(top * tokens, 9)))


def confidences(tokens: TokenStatistics, a: float, top: float, measures: Sequence[str]) -> dict[str, float | NoValue]:
    """The measures of a text with at least one token; the reason, where a model does not tell what one needs."""
    found: dict[str, float | NoValue] = {}
    for measure in measures:
        quantities = tokens.pair(measure)
        if quantities is None:
            found[measure] = NoValue("no-entropies", "the model does not tell the entropy of its tokens")
            continue
        values, alone = quantities
        if measure.startswith("Key"):
            values = [values[number] for number in key_tokens(values, alone, a, top)]
        mean = math.fsum(values) / len(values)
        found[measure] = -math.exp(mean) if measure.endswith("PPL") else -mean
    return found


@dataclass(frozen=True)
class ConfidenceAnnotator(Annotator):
    """PPL, KeyPPL, Entropy and KeyEntropy of a context, all from the same calls; higher is more confident.

    The model answers greedily with the context; the same tokens are then read without it. Tokens that the context
    has changed the model's mind about are the key tokens. ``relative`` subtracts the model's confidence in what it
    answers without any context, which is the same for all contexts of a query.
    """

    a: float = option(0.05, "least change of a token's entropy (surprisal) that makes it a key token", low=0)
    top: float = option(0.1, "share of tokens, by entropy, taken where there are no key tokens", low=0, high=1)
    relative: bool = option(True, "subtract the confidence of the answer without a context")
    measures: str = option(",".join(MEASURES), "which of the four, with commas between them")
    each: bool = option(False, "judge every passage as a context of its own")
    approximate: bool = option(
        False, "with endpoints that return only the likeliest tokens, use the lowest possible entropy"
    )
    length: int = option(64, "maximum tokens of an answer", low=1)
    keep_cut: bool = option(False, "keep values of contexts that did not fit whole")

    kind = "confidence"
    title = "how sure the context makes the model of its answer (GroGU), without references"
    unit = "context"
    aspects = MEASURES
    prompts = ("reply", "reply-alone")
    rounds = 2
    details: ClassVar[Mapping[str, Any]] = {
        "answer_tokens": pl.List(pl.String),
        "key": pl.List(pl.Boolean),
        **dict.fromkeys(("entropies", "entropies_alone", "surprisals", "surprisals_alone"), pl.List(pl.Float64)),
        "finish": pl.String,
        "tokens": pl.Int64,
        "prompt_tokens": pl.Int64,
        "answer_alone": pl.String,
        "high": pl.Float64,
        "cut": pl.Int64,
    }

    def check(self) -> None:
        strange = [name for name in self.value_names if name not in MEASURES]
        if strange or not self.value_names or len(set(self.value_names)) < len(self.value_names):
            raise InputError(f"measures is {self.measures!r}", expected=f"some of {', '.join(MEASURES)}, each once")
        needs = ["generate", "logprobs" if self.approximate or not self._entropy else "entropies"]
        needs += ["score"] if self._key else []
        if self._entropy and self.approximate and "entropies" not in self.card.abilities and self.card.abilities:
            if "KeyEntropy" in self.value_names:
                raise InputError(
                    "key tokens cannot be found from bounds of entropies", expected="measures=PPL,KeyPPL,Entropy"
                )
            if self.relative:
                raise InputError("a difference of bounds is no bound", expected="relative=False (--no-relative)")
        require_abilities(self.card, tuple(needs), "confidence")

    @property
    def _key(self) -> bool:
        return any(name.startswith("Key") for name in self.value_names)

    @property
    def _entropy(self) -> bool:
        return any(name.endswith("Entropy") for name in self.value_names)

    @property
    def max_rounds(self) -> int:
        return 2 if self._key else 1

    @property
    def judged_unit(self) -> Unit:
        return "passage" if self.each else "context"

    @property
    def value_names(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.measures.split(",") if name.strip())

    @property
    def source(self) -> str:
        parts = [f"a={self.a:g} top={self.top:g}" if self._key else "", "relative" if self.relative else "absolute"]
        return " · ".join([super().source, *filter(None, parts)])

    def requests(self, item: AnnotationItem) -> tuple[Generate, Generate]:
        """Ask for the answer from the context, and for the answer without it."""
        query = self.texts.query(item.query)
        grounded = self.ask("reply", query=query, passages=self.fill(item, "passages"))
        alone = self.ask("reply-alone", query=query)
        return Generate(grounded, max_tokens=self.length), Generate(alone, max_tokens=self.length)

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        grounded, alone = self.requests(item)
        outcomes = yield [self._traced(grounded), *([self._traced(alone)] if self.relative else [])]
        made = require_response(outcomes[0], Generated)
        detail: dict[str, Any] = {"raw": made.outputs[0].text, "finish": made.outputs[0].finish, "cut": made.usage.cut}
        detail |= {"tokens": made.tokens_written, "prompt_tokens": made.tokens_read}
        try:
            output, trace = _output_with_trace(made)
        except NoValue as reason:
            return AspectValues(dict.fromkeys(self.value_names, reason), detail)
        base = self._base(outcomes[1]) if self.relative else None
        other: Trace | NoValue | None = None
        if self._key and not isinstance(base, NoValue):
            # Exactly the tokens that were written, where the model tells their numbers.
            (outcome,) = yield [Score(alone.prompt, output.text, trace.ids or ())]
            other = _trace_of_same_tokens(outcome, trace)
        tokens = self._tokens(trace, other if isinstance(other, Trace) else None)
        values = dict(confidences(tokens, self.a, self.top, self.value_names))
        if isinstance(other, NoValue):
            values |= {name: other for name in values if name.startswith("Key")}
        if isinstance(base, NoValue):
            values = dict.fromkeys(values, base)
        elif base is not None:
            values = {name: _subtract(value, base[1][name]) for name, value in values.items()}
        values = {
            name: value if isinstance(value, NoValue) else value_unless_cut(value, made.usage, self.keep_cut)
            for name, value in values.items()
        }
        detail |= self._token_detail(tokens, trace)
        if isinstance(base, tuple):
            detail["answer_alone"] = base[0]
        return AspectValues(
            values, detail, "least possible entropy" if trace.entropies is None and self._entropy else ""
        )

    def _base(self, outcome: Response | Failure) -> tuple[str, dict[str, float | NoValue]] | NoValue:
        """What the model answers without a context, and its confidence in that; or why there is none."""
        try:
            output, trace = _output_with_trace(require_response(outcome, Generated))
        except NoValue as reason:
            return reason
        return output.text, confidences(self._tokens(trace, None), self.a, self.top, self.value_names)

    def _traced(self, request: Generate) -> Generate:
        known = "entropies" in self.card.abilities or not self.card.abilities
        return replace(request, detail="entropies" if self._entropy and known else "logprobs")

    def _tokens(self, trace: Trace, alone: Trace | None) -> TokenStatistics:
        """What is known of each token; without a second trace, key tokens go by the first alone."""
        entropies: Sequence[float] | None = trace.entropies
        if entropies is None and trace.bounds is not None and self.approximate:
            entropies = [low for low, _ in trace.bounds]
        surprisals = [-value for value in trace.logprobs]
        if alone is None:
            return TokenStatistics(surprisals, entropies)
        return TokenStatistics(surprisals, entropies, [-value for value in alone.logprobs], alone.entropies)

    def _token_detail(self, tokens: TokenStatistics, trace: Trace) -> dict[str, Any]:
        detail: dict[str, Any] = {"answer_tokens": list(trace.tokens), "surprisals": list(tokens.surprisals)}
        detail["surprisals_alone"] = list(tokens.surprisals_alone) if tokens.surprisals_alone is not None else None
        if trace.entropies is not None:
            detail["entropies"] = list(trace.entropies)
            detail["entropies_alone"] = list(tokens.entropies_alone) if tokens.entropies_alone is not None else None
        elif trace.bounds is not None and self._entropy:
            most = [high for _, high in trace.bounds]
            detail["high"] = -sum(most) / len(most) if max(most) < float("inf") else None
        quantities = tokens.pair("Entropy" if trace.entropies is not None else "PPL")
        if quantities is not None and quantities[1] is not None:  # without the second reading, none is known to be key
            chosen = set(key_tokens(*quantities, self.a, self.top))
            detail["key"] = [number in chosen for number in range(len(trace.tokens))]
        return detail

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        """Say how many answers were ended by their length."""
        known = frame.filter(pl.col("finish").is_not_null())
        number = known.filter(pl.col("finish") == "length").height
        return [f"{number:,} of {known.height:,} answers were ended by their greatest length"] if number else []


def _output_with_trace(made: Generated) -> tuple[Output, Trace]:
    output = made.outputs[0]
    if output.trace is None or not output.trace.tokens:
        raise NoValue("empty-answer", "the model wrote nothing", output.text)
    return output, output.trace


def _trace_of_same_tokens(outcome: Response | Failure, trace: Trace) -> Trace | NoValue:
    """The reading without the context, if it is of the same tokens; or why there is none."""
    if isinstance(outcome, Failure):
        return NoValue(outcome.reason, outcome.detail)
    alone = require_response(outcome, Scored).trace
    if len(alone.tokens) != len(trace.tokens) or (not trace.ids and alone.tokens != trace.tokens):
        return NoValue("tokens-differ", "the answer falls into other tokens when it is read without the context")
    return alone


def _subtract(value: float | NoValue, base: float | NoValue) -> float | NoValue:
    if isinstance(value, NoValue):
        return value
    return base if isinstance(base, NoValue) else value - base


TOKEN_COLUMNS = ("answer_tokens", "key", "entropies", "entropies_alone", "surprisals", "surprisals_alone")
"""Columns of `written_answers` with a value for each token: its text, whether it is a key token, and its entropy and
surprisal with and without the context."""


@dataclass(frozen=True)
class AnswerConfidence(ConfidenceAnnotator):
    """Confidence in the answers that ``writer`` asks for, with its prompts and lengths.

    ``confidence`` alone asks with its own prompts, which don't offer to decline. Whoever compares confidence with the
    grade of an answer needs the confidence of that very answer: one greedy call gives both.
    """

    writer: AnswerWriter = field(kw_only=True)
    answers: Mapping[tuple[str, str], AnswerItem] = field(kw_only=True)
    """The answers to write, by system and query."""

    def check(self) -> None:
        super().check()
        if self.writer.temperature > 0:
            raise InputError(
                f"answers are sampled at temperature {self.writer.temperature:g}, and confidence is that of the "
                "greedy answer",
                expected="temperature = 0 under [answers]",
            )

    @classmethod
    def of(cls, writer: AnswerWriter, items: Sequence[AnswerItem], settings: Mapping[str, Any]) -> AnswerConfidence:
        """The confidence in these answers, with the settings of ``confidence``."""
        given = options_by_name(ConfidenceAnnotator, dict(settings), cls.kind) | {"each": False}
        answers = {(item.system, item.query): item for item in items}
        return cls(writer.card, writer.texts, writer.folder, writer=writer, answers=answers, **given)

    @property
    def items(self) -> list[AnnotationItem]:
        return [AnnotationItem(query, system=system) for system, query in self.answers]

    def requests(self, item: AnnotationItem) -> tuple[Generate, Generate]:
        answer = self.answers[item.system, item.query]
        return self.writer.request(answer), self.writer.request(AnswerItem(NO_CONTEXT_SYSTEM, item.query))

    @property
    def templates(self) -> dict[str, Template]:
        return {template.name: template for template in (self.writer.template, self.writer.template_alone)}

    def _load(self, name: str) -> Template:
        return self.writer.template if name == self.prompts[0] else self.writer.template_alone

    def _check_slots(self, name: str, template: Template) -> None:
        """The writer fills its own prompts."""


def written_answers(annotator: AnswerConfidence, frame: pl.DataFrame) -> AnsweringResult:
    """The answers in the rows that the annotator made: those of the writer, with `TOKEN_COLUMNS` besides."""
    pair, writer = ["system", "query"], annotator.writer
    first = frame.unique(pair, keep="first", maintain_order=True)
    rows = {(row["system"], row["query"]): row for row in first.iter_rows(named=True)}
    found = [_written(writer, item, rows[key]) for key, item in annotator.answers.items()]
    made = writer.collect(list(annotator.answers.values()), found, [])
    joined = made.frame.join(first.select(*pair, *TOKEN_COLUMNS), on=pair, how="left", maintain_order="left")
    return replace(made, frame=joined)


def _written(writer: AnswerWriter, item: AnswerItem, row: Mapping[str, Any]) -> WrittenAnswer | NoValue:
    """An answer from its row; the reason, where the model gave none."""
    if row["finish"] is None:
        return NoValue(row["status"], row["reason"] or "", row["raw"])
    usage = Usage(row["prompt_tokens"] or 0, row["tokens"] or 0, 0.0, row["cut"])
    try:
        return writer.parse(item, Generated((Output(row["raw"], row["finish"]),), usage))
    except NoValue as reason:
        return reason
