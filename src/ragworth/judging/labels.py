"""Ask a model for one of a few labels: by their probabilities, by parsing its text, or by whether it declines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar, cast

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.core.errors import InputError, PromptError, format_list
from ragworth.data import TRUNCATED
from ragworth.judging.findings import require_abilities
from ragworth.llm.contract import LENGTH, Card, Choose, Chosen, Generate, Generated, Prompt, Usage
from ragworth.llm.prompts.reply import REPLY_KEYS, UNDECLARED, ReplyFormat
from ragworth.llm.prompts.template import Template

T = TypeVar("T")

LABEL_METHODS = ("auto", "labels", "parsed", "answerability")
REFUSED = "refused"
UNPARSABLE = "unparsable"
_REFUSAL = re.compile(r"\b(sorry|apologi[sz]e|i can(?:no|')t|i am unable|i'm unable|as an ai)\b", re.I)


_BEFORE_LABEL = " \t\r\n\"'*`([{#"
_NUMBER = re.compile(r"[-−–]?\d+(?:[.,]\d+)*")
_NEGATED = re.compile(
    r"(?:\b(?:not|cannot|neither|nor|never|hardly|barely|partially|partly|mostly|almost|half)|n['’]t)"
    r"\W+(?:\w+\W+){0,2}$",
    re.I,
)
"""Words before a label that negate it."""

_CONTINUES_AS_RANGE = re.compile(r"\s*(?:or|to|and|[-–−/]|(?:out\s+)?of)?\s*[\d½¼¾]", re.I)

_FIELD_END = r"""\s*(?=\}|,\s*\}|,\s*["'][^"'\n]*["']\s*:|`{3}|\Z)"""
"""What follows the value of a JSON field, unlike that of the format in the instructions: ``"grade": "A" or "B"``."""

REPLY_KEYS_BY_LABELS: dict[int, tuple[str, ...]] = {0: (), 1: ("labels", "stop")}
"""What a prompt may declare if its reply is no label: nothing, or for an answer its end and the word for declining."""


class LabelResult(NamedTuple):
    """The label a model gave, and how certain it was."""

    label: str
    value: float
    usage: Usage
    raw: str | None = None
    """What the model wrote, if it was asked to write."""
    probabilities: tuple[float, ...] | None = None
    expected: float | None = None
    """Mean of the values, weighted by the labels' probabilities."""
    mass: float | None = None
    """Probability of all labels together."""
    estimator: str = "parsed"


@dataclass(frozen=True)
class LabelScale:
    """Labels as the model should write them, each with its value.

    A prompt can declare other labels, or a JSON field (`for_prompt`). Whatever the model writes, a result has the
    scale's own labels and their probabilities.
    """

    labels: tuple[str, ...]
    values: tuple[float, ...]
    meanings: tuple[str, ...] = ()
    """What prompt files call the labels; by default the labels themselves."""
    reply: ReplyFormat = UNDECLARED
    """What the prompt declares about its reply."""

    @staticmethod
    def numbers(low: int, high: int) -> LabelScale:
        """The whole numbers of a range."""
        return LabelScale(tuple(map(str, range(low, high + 1))), tuple(map(float, range(low, high + 1))))

    @staticmethod
    def declared(template: Template) -> LabelScale:
        """The labels of a prompt that declares their scores itself: ``labels: GOOD = 1, BAD = 0``."""
        try:
            scores = tuple(float(meaning) for _, meaning in template.reply.labels)
        except ValueError:
            scores = ()
        if len(scores) < 2 or not all(map(math.isfinite, scores)):
            raise PromptError(
                "it declares no labels with scores",
                file=template.file,
                line=template.reply.line,
                expected="a section [reply] with labels: GOOD = 1, BAD = 0",
            )
        labels = tuple(label for label, _ in template.reply.labels)
        own = replace(template.reply, labels=tuple(zip(labels, labels, strict=True)))
        return LabelScale(labels, scores, reply=own)

    def for_prompt(self, template: Template) -> LabelScale:
        """The scale as this prompt writes it; a declaration that doesn't fit is an error.

        The reply to a prompt with one label, or none, isn't read as a label: see `REPLY_KEYS_BY_LABELS`.
        """
        reply, known = template.reply, REPLY_KEYS_BY_LABELS.get(len(self.labels), REPLY_KEYS)
        words = [word.casefold() for word in self.meanings or self.labels]
        declared = [meaning.casefold() for _, meaning in reply.labels]
        unused = [key for key in reply.declared if key not in known]
        unknown = [meaning for meaning in declared if meaning not in words]
        missing = [word for word in words if declared and word not in declared]
        problem, remedy = "", "declare each of these meanings"
        if unused:
            problem = f"[reply] declares {format_list(unused)}, which nothing uses for this prompt"
            remedy = f"remove {format_list(unused)}"
        elif unknown or missing:
            problem = f"a label means {format_list(unknown)}" if unknown else f"no label means {format_list(missing)}"
        elif len(words) == 1 < len(declared):
            problem = f"{len(declared)} labels mean {words[0]}"
        if problem:
            example = ", ".join(f"LABEL = {word}" for word in words)
            expected = f"labels: {example}" if words else "no section [reply]"
            raise PromptError(problem, file=template.file, line=reply.line, expected=expected, remedy=remedy)
        return replace(self, reply=reply) if reply.declared else self

    @cached_property
    def written(self) -> dict[str, int]:
        """Labels as the model writes them, each with the number of the label that it stands for."""
        words = [word.casefold() for word in self.meanings or self.labels]
        declared = {label: words.index(meaning.casefold()) for label, meaning in self.reply.labels}
        return declared or {label: number for number, label in enumerate(self.labels)}

    def parse_field(self, text: str) -> int | None:
        """Find the label in the declared field of a JSON object, whatever surrounds the object.

        The object may be incomplete or have mistakes elsewhere. Two different labels leave none.
        """
        field = re.escape(self.reply.field)
        pattern = rf"""(["']){field}\1\s*:\s*(?:"([^"\n]*)"{_FIELD_END}|'([^'\n]*)'{_FIELD_END}|([\w.-]+)\s*[,}}])"""
        found = {self._match_label("".join(match.groups("")[1:])) for match in re.finditer(pattern, text, re.I)}
        return found.pop() if len(found) == 1 else None

    def _match_label(self, value: str) -> int | None:
        """The label that a value is, or begins with before a colon or the like (``A: relevant``)."""
        value = re.sub(r"(?<=\d)\.0+\b", "", self._bare(value)).strip()
        begins = [
            number
            for label, number in self.written.items()
            if re.match(rf"{re.escape(label)}\s*(?:$|[:.()–-](?!\d))", value, re.I)
        ]
        others = [n for label, n in self.written.items() if re.search(rf"(?<!\w){re.escape(label)}(?!\w)", value)]
        return begins[0] if begins and set(others) <= {begins[0]} else None

    def parse(self, text: str) -> int | None:
        """Find the label in a text: the one it begins with, or the only one in it, spelled as requested.

        Numbers beside it (``3 or 4``, ``4 out of 10``, ``3.5, where 5 is best``), another label (``YES or NO``), and a
        word before it that takes it back (``not CORRECT``, ``partially CORRECT``) leave none.
        """
        bare = self._bare(text).lstrip(_BEFORE_LABEL)
        exact = [match for match in self._pattern.finditer(bare) if match[0] in self.written]
        if begins := self._pattern.match(bare):
            label = begins[0]
            if self._counts and _CONTINUES_AS_RANGE.match(bare, begins.end()):
                return None
        elif exact and not (self._counts and set(_NUMBER.findall(bare)) != {match[0] for match in exact}):
            label = exact[0][0]
        else:
            return None
        number = self._names[label.casefold()]
        if not self._counts and (
            any(self._names[match[0].casefold()] != number for match in exact)
            or any(_NEGATED.search(bare[: match.start()]) for match in exact)
        ):
            return None
        return number if {self._names[match[0].casefold()] for match in exact} <= {number} or begins else None

    def begins(self, text: str) -> bool:
        """Whether a text begins with a label and has another word or line after it."""
        bare = self._bare(text).lstrip(_BEFORE_LABEL)
        label = self._pattern.match(bare)
        return label is not None and re.search(r"[\w\n]", bare[label.end() :]) is not None

    @property
    def _counts(self) -> bool:
        return all(label.isdigit() for label in self.written)

    @cached_property
    def schema(self) -> str:
        """A JSON schema that allows only the labels."""
        label = {"type": "string", "enum": list(self.written)}
        return json.dumps({"type": "object", "properties": {"label": label}, "required": ["label"]})

    def _bare(self, text: str) -> str:
        """Reduce a share of the highest value (``4/5``, ``4 out of 5``) to its number."""
        ordered = sorted(self.written, key=int) if self._counts else list(self.written)
        low, high = map(re.escape, (ordered[0], ordered[-1]))
        text = re.sub(rf"(?<!\w){low}\s*(?:[-–−]|to)\s*{high}(?!\w)", " ", text) if self._counts else text
        return re.sub(rf"(?<![\d.,-])(\d)\s*(?:/|out of)\s*{high}(?![\d.,/]*\d)", r"\1", text)

    @cached_property
    def _names(self) -> dict[str, int]:
        return {label.casefold(): number for label, number in self.written.items()}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self.written, key=len, reverse=True)
        # A declared letter before a word is no label but an article: "A document …".
        ends = [
            r"(?![ \t]+\w)" if self.reply.labels and len(label) == 1 and label.isalpha() else "" for label in longest
        ]
        words = "|".join(re.escape(label) + end for label, end in zip(longest, ends, strict=True))
        return re.compile(rf"(?<![\w.,/−–-])(?:{words})(?![\w/%−–-]|[.,:]\d)", re.I)


RATING_SCALE = LabelScale.numbers(0, 5)
"""How well a text answers a sub-question: 0 not at all, 5 fully."""


NO_LABELS = LabelScale((), ())
"""For prompts whose replies aren't read in a way that a prompt could declare."""


LabelMethod = Literal["labels", "parsed", "answerability"]


def choose_label_method(
    card: Card, how: str, purpose: str, *, answerable: bool = False, own_prompt: bool = False
) -> LabelMethod:
    """Choose the method for a model: by probabilities if it reports them, otherwise by parsing its text.

    ``answerable``: whether a passage can answer the question, so that a model that was taught to decline is asked that,
    unless the user chose a prompt (``own_prompt``).
    """
    if how not in LABEL_METHODS or (how == "answerability" and not answerable):
        raise InputError(
            f"how={how!r} is not possible for {purpose}", expected=", ".join(LABEL_METHODS[: 4 if answerable else 3])
        )
    if how == "auto" and answerable and card.declining is not None and not own_prompt:
        how = "answerability"
    if how == "auto":
        how = "labels" if "choose" in card.abilities or not card.abilities else "parsed"
    require_abilities(card, ("generate",) if how == "parsed" else ("choose",), purpose)
    return cast(LabelMethod, how)


def ask_label(
    prompt: Prompt, scale: LabelScale, card: Card, how: LabelMethod, *, length: int = 32
) -> Program[LabelResult]:
    """Ask for one of the labels. Ties go to the first label of the scale.

    In a JSON object, the label comes after other text, so it has no probability: the text is parsed in any case.
    """
    reply = scale.reply
    if how == "labels" and not reply.field:
        (outcome,) = yield [Choose(prompt, tuple(scale.written))]
        return _likeliest(require_response(outcome, Chosen), scale)
    schema = scale.schema if "schema" in card.abilities and not reply.field else ""
    request = Generate(prompt, max_tokens=max(length, reply.length), stop=reply.stop, schema=schema)
    (outcome,) = yield [request]
    return parse_label(require_response(outcome, Generated), scale)


def _likeliest(chosen: Chosen, scale: LabelScale) -> LabelResult:
    mass = chosen.mass
    if mass <= 0:
        raise NoValue("no-label", "the model gives none of the labels any probability")
    pairs = list(zip(scale.written.values(), chosen.probabilities, strict=True))
    values = tuple(sum(p for n, p in pairs if n == number) for number in range(len(scale.labels)))
    best = max(range(len(values)), key=lambda n: (values[n], -n))
    expected = sum(p * v for p, v in zip(values, scale.values, strict=True)) / mass
    return LabelResult(
        scale.labels[best], scale.values[best], chosen.usage, None, values, expected, mass, chosen.estimator
    )


def all_found(findings: Sequence[T | NoValue]) -> list[T]:
    """Return findings of which none is missing; raises the first reason."""
    found: list[T] = []
    for one in findings:
        if isinstance(one, NoValue):
            raise one
        found.append(one)
    return found


def parse_label(made: Generated, scale: LabelScale) -> LabelResult:
    """Parse the label from a model's text; raise the reason, with the text, if there is none.

    A truncated text may go on with another label, so a label counts only if the text begins with it and goes on.
    """
    output, field = scale.reply.trim(made.outputs[0]), scale.reply.field
    text, cut_off = _unwrap_json_label(output.text), output.finish == LENGTH
    number = scale.parse_field(output.text) if field else scale.parse(text)
    if number is not None and (field or not cut_off or text is not output.text or scale.begins(text)):
        estimator = "parsed from JSON" if field else "parsed"
        return LabelResult(scale.labels[number], scale.values[number], made.usage, output.text, estimator=estimator)
    if _REFUSAL.search(output.text):
        raise NoValue(REFUSED, "the model declined to judge", output.text)
    if cut_off:
        what = "a label came" if number is None else "the label was whole: allow more tokens (the option length)"
        raise NoValue(TRUNCATED, f"the text ended at its greatest length before {what}", output.text)
    names: Sequence[str] = list(scale.written)
    where = f"JSON with the field {field!r}: " if field else ""
    raise NoValue(UNPARSABLE, f"expected {where}one of {', '.join(names)}", output.text)


def _unwrap_json_label(text: str) -> str:
    """The label in a JSON object, if the text is one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    inside = found.get("label") if isinstance(found, dict) else None
    if isinstance(inside, float) and inside.is_integer():
        inside = int(inside)
    return str(inside) if isinstance(inside, str | int) and not isinstance(inside, bool) else text


NO_RESPONSE_LABEL = "NO-RESPONSE"
"""What prompts tell a model to write if it declines."""

REFUSAL_LABELS = ("I", "Sorry", "Unknown")
"""How models begin when they decline in other words. If it costs nothing, their probability counts too."""


RATED_ANSWERABILITY_NOTE = (
    "the ratings are answerability, not graded quality: the probability that the model answers the sub-question from "
    "the text, mapped to 0–5"
)

DECLINING = LabelScale((NO_RESPONSE_LABEL,), (1.0,), ("abstained",))
"""The only label of prompts for answers. A prompt file may declare another word: ``labels: UNKNOWN = abstained``."""


def declining_label(template: Template) -> str:
    """What this prompt tells a model to write if it declines."""
    return next(iter(DECLINING.for_prompt(template).written))


def answerability_labels(card: Card, label: str = NO_RESPONSE_LABEL) -> tuple[str, ...]:
    """Labels whose probability is asked for. Each may cost an extra call to an endpoint, so endpoints get only one."""
    return (label,) if card.endpoint else (label, *(word for word in REFUSAL_LABELS if word != label))


def calibrate(p: float, card: Card) -> float:
    """Calibrate a probability of declining: divide its log-odds by the model's temperature, if it has one."""
    p = min(1.0, p)
    if card.declining is None or p in (0, 1):
        return p
    odds = (math.log(p) - math.log1p(-p)) / card.declining
    small = math.exp(-abs(odds))  # never too large a number, whatever the odds
    return 1 / (1 + small) if odds >= 0 else small / (1 + small)


def name_p(card: Card, *, calibrated: bool) -> tuple[str, ...]:
    """Name the p that counts, for the source of a value: nothing if the model has only its own."""
    if card.declining is None:
        return ()
    return (f"calibrated p (log-odds / {card.declining:g})" if calibrated else "raw p",)


def ask_answerability(
    prompt: Prompt, scale: LabelScale, card: Card, label: str = NO_RESPONSE_LABEL
) -> Program[LabelResult]:
    """Turn the probability that the model answers from a passage into a value on the scale, from lowest to highest.

    A model that was taught to read and to decline is no judge: asked for a label, it says anything. 1 less its
    probability of declining is a judgment of relevance as good as it can give.
    """
    (outcome,) = yield [Choose(prompt, answerability_labels(card, label))]
    chosen = require_response(outcome, Chosen)
    answers = 1 - calibrate(chosen.probabilities[0], card)
    low, high = min(scale.values), max(scale.values)
    expected = low + answers * (high - low)
    number = min(range(len(scale.values)), key=lambda n: (abs(scale.values[n] - expected), n))
    shares = (answers, 1 - answers) if len(scale.values) == 2 else None
    mapped = ("mapped to 0–5",) if scale is RATING_SCALE else ()
    estimator = ", ".join(("answerability", *name_p(card, calibrated=True), *mapped))
    return LabelResult(
        scale.labels[number], scale.values[number], chosen.usage, None, shares, expected, None, estimator
    )
