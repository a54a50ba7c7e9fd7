"""Ask a model for one of a few labels: by their probabilities, or by parsing its text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, cast

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.errors import InputError
from ragworth.llm.contract import Card, Choose, Chosen, Generate, Generated, Prompt, Usage
from ragworth.tasks.findings import require_abilities
from ragworth.tasks.options import option

LABEL_METHODS = ("auto", "labels", "parsed", "answerability")
REFUSED = "refused"
TRUNCATED = "truncated"
UNPARSABLE = "unparsable"
_REFUSAL = re.compile(r"\b(sorry|apologi[sz]e|i can(?:no|')t|i am unable|i'm unable|as an ai)\b", re.I)


_NUMBER = re.compile(r"[-−–]?\d+(?:[.,]\d+)*")
_NEGATED = re.compile(
    r"(?:\b(?:not|cannot|neither|nor|never|hardly|barely|partially|partly|mostly|almost|half)|n['’]t)"
    r"\W+(?:\w+\W+){0,2}$",
    re.I,
)
"""Words before a label that negate it."""

_CONTINUES_AS_RANGE = re.compile(r"\s*(?:or|to|and|[-–−/]|(?:out\s+)?of)?\s*[\d½¼¾]", re.I)


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
    """Labels as the model should write them, each with its value."""

    labels: tuple[str, ...]
    values: tuple[float, ...]

    @staticmethod
    def numbers(low: int, high: int) -> LabelScale:
        """The whole numbers of a range."""
        return LabelScale(tuple(map(str, range(low, high + 1))), tuple(map(float, range(low, high + 1))))

    def parse(self, text: str) -> int | None:
        """Find the label in a text: the one it begins with, or the only one in it, spelled as requested.

        Numbers beside it (``3 or 4``, ``4 out of 10``, ``3.5, where 5 is best``), another label (``YES or NO``), and a
        word before it that takes it back (``not CORRECT``, ``partially CORRECT``) leave none.
        """
        bare = self._bare(text).lstrip(" \t\r\n\"'*`([{#")
        exact = [match for match in self._pattern.finditer(bare) if match[0] in self.labels]
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

    @property
    def _counts(self) -> bool:
        return self.labels[0].isdigit()

    @cached_property
    def schema(self) -> str:
        """A JSON schema that allows only the labels."""
        label = {"type": "string", "enum": list(self.labels)}
        return json.dumps({"type": "object", "properties": {"label": label}, "required": ["label"]})

    def _bare(self, text: str) -> str:
        """Reduce a share of the highest value (``4/5``, ``4 out of 5``) to its number."""
        low, high = map(re.escape, (self.labels[0], self.labels[-1]))
        text = re.sub(rf"(?<!\w){low}\s*(?:[-–−]|to)\s*{high}(?!\w)", " ", text) if self._counts else text
        return re.sub(rf"(?<![\d.,-])(\d)\s*(?:/|out of)\s*{re.escape(self.labels[-1])}(?![\d.,/]*\d)", r"\1", text)

    @cached_property
    def _names(self) -> dict[str, int]:
        return {label.casefold(): number for number, label in enumerate(self.labels)}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self.labels, key=len, reverse=True)
        return re.compile(rf"(?<![\w.,/−–-])(?:{'|'.join(map(re.escape, longest))})(?![\w/%−–-]|[.,:]\d)", re.I)


def label_method_option() -> str:
    """The setting of a kind that supports both methods."""
    return option(
        "auto", "by label probabilities, by what the model writes, or by whether it declines", choices=LABEL_METHODS
    )


LabelMethod = Literal["labels", "parsed", "answerability"]


def choose_label_method(card: Card, how: str, purpose: str, *, answerable: bool = False) -> LabelMethod:
    """Choose the method for a model: by probabilities if it reports them, otherwise by parsing its text.

    ``answerable``: whether a passage can answer the question, so that a model that was taught to decline is asked that.
    """
    if how not in LABEL_METHODS or (how == "answerability" and not answerable):
        raise InputError(
            f"how={how!r} is not possible for {purpose}", expected=", ".join(LABEL_METHODS[: 4 if answerable else 3])
        )
    if how == "auto" and answerable and card.declining is not None:
        how = "answerability"
    if how == "auto":
        how = "labels" if "choose" in card.abilities or not card.abilities else "parsed"
    require_abilities(card, ("generate",) if how == "parsed" else ("choose",), purpose)
    return cast(LabelMethod, how)


def ask_label(
    prompt: Prompt, scale: LabelScale, card: Card, how: LabelMethod, *, length: int = 32
) -> Program[LabelResult]:
    """Ask for one of the labels. Ties go to the first label of the scale."""
    if how == "labels":
        (outcome,) = yield [Choose(prompt, scale.labels)]
        return _likeliest(require_response(outcome, Chosen), scale)
    schema = scale.schema if "schema" in card.abilities else ""
    (outcome,) = yield [Generate(prompt, max_tokens=length, schema=schema)]
    return parse_label(require_response(outcome, Generated), scale)


def _likeliest(chosen: Chosen, scale: LabelScale) -> LabelResult:
    values, mass = chosen.probabilities, chosen.mass
    if mass <= 0:
        raise NoValue("no-label", "the model gives none of the labels any probability")
    best = max(range(len(values)), key=lambda n: (values[n], -n))
    expected = sum(p * v for p, v in zip(values, scale.values, strict=True)) / mass
    return LabelResult(
        scale.labels[best], scale.values[best], chosen.usage, None, values, expected, mass, chosen.estimator
    )


def parse_label(made: Generated, scale: LabelScale) -> LabelResult:
    """Parse the label from a model's text; raise the reason, with the text, if there is none."""
    output = made.outputs[0]
    number = scale.parse(_unwrap_json_label(output.text))
    if number is not None:
        return LabelResult(scale.labels[number], scale.values[number], made.usage, output.text)
    if output.finish == "content_filter" or _REFUSAL.search(output.text):
        raise NoValue(REFUSED, "the model declined to judge", output.text)
    if output.finish == "length":
        raise NoValue(TRUNCATED, "the text ended at its greatest length before a label came", output.text)
    names: Sequence[str] = scale.labels
    raise NoValue(UNPARSABLE, f"expected one of {', '.join(names)}", output.text)


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
