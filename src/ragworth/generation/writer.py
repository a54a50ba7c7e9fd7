"""One answer: which passages are shown for it, how it is asked for, and what came of that."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ragworth import prompts
from ragworth.calls.programs import NoValue, Steps, wanted
from ragworth.errors import InputError
from ragworth.generation.oracle import BY, Oracle
from ragworth.llm.contract import Card, Generate, Generated
from ragworth.prompts.template import Template
from ragworth.tables import EMPTY, OK, TRUNCATED
from ragworth.tasks.findings import need, source_of
from ragworth.tasks.options import check_settings, setting
from ragworth.tasks.text_lookup import NO_PASSAGE, Texts
from ragworth.text_match.citations import citations
from ragworth.text_match.lengths import WORDS, Counter

NONE = "(none)"
"""The system that shows nothing: what the model knows by itself."""

ORACLE = "(oracle)"
"""The system that shows the best context there is."""


class Shown(NamedTuple):
    """A passage of a context, with its rank in the system's own list."""

    id: str
    rank: int


class Item(NamedTuple):
    """An answer to be written."""

    system: str
    query: str
    passages: tuple[Shown, ...] = ()
    repeat: int = 0


class Written(NamedTuple):
    """What the model wrote, and how."""

    text: str
    status: str
    tokens: int
    finish: str
    cited: tuple[str, ...]
    strays: int
    cut: int
    prompt_tokens: int


@dataclass(frozen=True)
class Writer:
    """How answers are asked for. Its settings are options of ``ragworth answer``."""

    card: Card
    texts: Texts
    folder: str | Path | None = None
    """A user's own prompts."""
    k: int | None = None
    """Passages shown at most."""
    counter: Counter = WORDS
    """What counts the tokens of the oracle's context, where the length of answers is tied to it."""

    prompt: str = setting("answer", "prompt for a context: a name (answer, answer-cited, answer-long) or a file")
    alone: str = setting("", "prompt for no context; by default that of the same name with -alone, or answer-alone")
    order: str = setting("rank", "order in which passages are shown", choices=("rank", "reversed", "shuffled"))
    length: int = setting(256, "most tokens of an answer", low=1)
    temperature: float = setting(0.0, "temperature of sampling; 0 is greedy", low=0)
    top_p: float = setting(1.0, "nucleus of sampling", low=0.0001, high=1)
    repeats: int = setting(
        1, "answers to each question, each with a seed of its own (the seed, and one more each time)", low=1
    )
    seed: int = setting(0, "seed of sampling, and of shuffling", low=0)
    tie_k: bool = setting(False, "show as many passages as the oracle's context has")
    tie_length: bool = setting(False, "let answers be as long as the oracle's context")
    oracle_by: str = setting(
        "auto", "what makes the oracle's context: required subset by ratings, or relevance", choices=BY
    )
    oracle_k: int = setting(0, "most passages of the oracle's context; 0 for all", low=0)
    level: float = setting(1.0, "lowest relevance that counts as relevant")
    eta: float = setting(3.0, "lowest rating that counts as answered")

    def __post_init__(self) -> None:
        check_settings(self, "answer")
        if self.repeats > 1 and self.temperature == 0:
            raise InputError(
                f"{self.repeats} greedy answers to a question are all the same",
                expected="a temperature above 0 where repeats are more than 1",
                remedy="give a temperature, such as 0.3, or ask once",
            )
        if self.tie_k or self.tie_length:
            self.oracle.check()
        need(self.card, ("generate",), "an answer")

    @cached_property
    def oracle(self) -> Oracle:
        return Oracle(self.texts, self.oracle_by, self.level, self.eta, self.oracle_k or None)

    @cached_property
    def template(self) -> Template:
        return prompts.load(self.prompt, self.folder, self.card.prompts)

    @cached_property
    def template_alone(self) -> Template:
        counterpart = f"{self.prompt}-alone"
        known = counterpart in prompts.names(self.folder)
        name = self.alone or (counterpart if known else "answer-alone")
        return prompts.load(name, self.folder, self.card.prompts)

    def shown(self, item: Item) -> tuple[Shown, ...]:
        """The passages of an answer in the order shown; `NoValue` where that cannot be known."""
        if item.system == NONE:
            return ()
        if item.system == ORACLE:
            passages = tuple(Shown(name, rank) for rank, name in enumerate(self.oracle.passages(item.query), 1))
        else:
            most = len(self.oracle.passages(item.query)) if self.tie_k else self.k
            passages = tuple(each for each in item.passages if most is None or each.rank <= most)
            missing = sorted(set(range(1, len(passages) + 1)) - {each.rank for each in passages})
            if missing:
                raise NoValue(NO_PASSAGE, f"nothing says which passage has rank {missing[0]}")
        return self._ordered(passages, item.query)

    def _ordered(self, passages: tuple[Shown, ...], query: str) -> tuple[Shown, ...]:
        if self.order == "shuffled":
            # By query, so that all systems with the same passages show them in the same order.
            return tuple(random.Random(f"{self.seed} {query}").sample(passages, len(passages)))
        return passages[::-1] if self.order == "reversed" else passages

    def seed_of(self, item: Item) -> int | None:
        """The seed of an answer that is sampled."""
        return self.seed + item.repeat if self.temperature > 0 else None

    def most_tokens(self, query: str) -> int:
        """How long an answer to a query may be."""
        if not self.tie_length:
            return self.length
        texts = [self.texts.passage(name) for name in self.oracle.passages(query)]
        return max(1, sum(map(self.counter.count, texts)))

    def write(self, item: Item) -> Steps[Written]:
        """Ask for one answer."""
        query, shown = self.texts.query(item.query), self.shown(item)
        template = self.template_alone if item.system == NONE else self.template
        values: dict[str, object] = {"query": query}
        if item.system != NONE or "passages" in template.slots:
            values["passages"] = [{"text": self.texts.passage(p.id), "id": p.id, "rank": p.rank} for p in shown]
        request = Generate(
            template.render(values),
            max_tokens=self.most_tokens(item.query),
            temperature=self.temperature,
            top_p=self.top_p if self.temperature > 0 else 1.0,
            seed=self.seed_of(item) or 0,
        )
        (outcome,) = yield [request]
        return _read(wanted(outcome, Generated), [each.id for each in shown])

    def source(self, system: str) -> str:
        """Where the answers of a system come from, in one line."""
        template = self.template_alone if system == NONE else self.template
        how = [f"temperature {self.temperature:g}" if self.temperature else ""]
        if system not in (NONE, ORACLE):
            how += ["k of the oracle" if self.tie_k else (f"k {self.k}" if self.k else "")]
        if system == ORACLE:
            how += [f"oracle by {self.oracle.by}"]
        how += [self.order if self.order != "rank" and system != NONE else ""]
        how += [f"length of the oracle in {self.counter.name}" if self.tie_length else ""]
        return source_of(self.card, [template], *how)


def _read(made: Generated, shown: Sequence[str]) -> Written:
    output, usage = made.outputs[0], made.usage
    if output.finish == "content_filter":
        raise NoValue("refused", "the endpoint withheld the answer", output.text)
    status = TRUNCATED if output.finish == "length" else OK
    cited = citations(output.text, shown)
    return Written(
        output.text,
        status if output.text.strip() else EMPTY,
        usage.new_tokens,
        output.finish,
        cited.passages,
        cited.strays,
        usage.cut,
        usage.prompt_tokens,
    )
