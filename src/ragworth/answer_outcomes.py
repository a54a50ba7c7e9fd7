"""Outcomes of answers as scores, so that they are compared like metrics.

A three-way grade (1 correct, 0.5 partially correct, 0 abstained, −1 wrong) gives three outcomes besides itself:

========= ===================================== =========
outcome   value for a query                     better
========= ===================================== =========
correct   share of its answers that are right   higher
wrong     share that is wrong                   lower
abstained share that declines                   neither
========= ===================================== =========

A partially correct answer is right, though no passage that was shown supports it, so it counts as correct here. An
answer without a grade is missing: it is never counted as wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

import polars as pl

from ragworth.formats.grade_words import IN_WORDS, MEAN_OF_WORDS
from ragworth.tables import OK, Outcomes, Scores

Direction = Literal[1, 0, -1]
"""1 if higher is better, −1 if lower is, 0 if neither."""

UNIT = (0.0, 1.0)
GRADE, HUMAN = "grade", "human"
THREE_WAY = [1.0, 0.5, 0.0, -1.0]
"""Values of three-way grades."""
OUR_GRADERS = r"^deterministic|\bgrade(-swapped)?@"
"""Sources of grades that are known to be three-way."""
SEVERAL_ANSWERS = "several-answers"
"""Status of a share that can't be computed, because only the mean grade of several answers is known."""


class OutcomeType(NamedTuple):
    """What a value means, which direction is better, and the lowest and highest value (None if unknown)."""

    title: str
    direction: Direction = 1
    bounds: tuple[float, float] | None = UNIT


OUTCOME_TYPES = {
    "correct": OutcomeType("answers that are correct"),
    "wrong": OutcomeType("answers that are wrong", -1),
    "abstained": OutcomeType("answers that decline", 0),
    GRADE: OutcomeType("grade: 1 correct, 0.5 partially correct, 0 abstained, −1 wrong", 1, (-1.0, 1.0)),
    "em": OutcomeType("exact match with an accepted answer"),
    "f1": OutcomeType("token F1 with the closest accepted answer"),
    "containment": OutcomeType("answers that contain an accepted answer"),
    "rouge-l": OutcomeType("ROUGE-L with the closest accepted answer"),
    "ideal": OutcomeType("how much of an ideal answer it holds, 1 to 5", 1, (1.0, 5.0)),
    "coverage": OutcomeType("share of the sub-questions that it answers"),
    "density": OutcomeType("sub-questions answered, by length", 1, None),
    "supported": OutcomeType("sentences that the context supports"),
    "contradicted": OutcomeType("sentences that the context contradicts", -1),
    "unsupported": OutcomeType("sentences that the context says nothing about", -1),
    "citation-recall": OutcomeType("sentences that their citations support"),
    "citation-precision": OutcomeType("citations that support their sentence"),
    "gain": OutcomeType("what the context adds to the log-probability of an accepted answer", 1, None),
    "reliance": OutcomeType("what the context adds to the log-probability of the answer", 0, None),
    "contributing": OutcomeType("passages that contribute to the answer"),
    "harm": OutcomeType("share of the contributions that goes against an accepted answer", -1),
    "opposition": OutcomeType("share of the contributions that goes against the answer", 0),
    "effective": OutcomeType("effective number of passages behind the answer", 0, None),
    "redundancy": OutcomeType("share of the contributions that other passages would make up for", 0),
    "cited-contributing": OutcomeType("cited passages that contribute to the answer"),
    "hops-needed": OutcomeType("searches after which the others add nothing to the answer", 0, None),
    "bertscore": OutcomeType("similarity to an accepted answer, by an encoder", 1, None),
    "utility": OutcomeType("gain over the answer without a context", 1, None),
    **{name: OutcomeType("how sure the model is", 0, None) for name in ("PPL", "KeyPPL", "Entropy", "KeyEntropy")},
}
SHARES = ("correct", "wrong", "abstained")
"""What follows from a three-way grade."""

GOOD_WORD = re.compile(
    r"correct\w*|accura\w*|match\w*|ok|pass(?:ed|es|ing)?|effective\w*|efficien\w*|handling|quality|robust\w*|free|safe\w*|"
    r"reciprocal|rejection|higher|avoid\w*|recover\w*|resist\w*"
)
BAD_WORD = re.compile(
    r"hallu[cz]inat\w*|toxic\w*|bias\w*|harm(?:s|ful\w*)?|malicious\w*|wrong\w*|irrelevan\w*|noise|errors?|distance|wer|cer|"
    r"latency|duration|elapsed|runtime|ttft|costs?|price|lower|loss(?:es)?|penalt(?:y|ies)|violat\w*|fail(?:s|ed|ures?)?|"
    r"contradict\w*|dislike[sd]?|down|downvotes?|rmse|mae|mse|brier|ece|defects?|omi(?:ssions?|tted)|fabricat\w*|"
    r"negative|complaints?|issues?|risks?|severity|confusion|offensive\w*|leak(?:s|age)?|rank|fehler\w*|"
    r"in(?:accura|correct|complet|consisten|coheren|suffic)\w*|"
    r"mis(?:tak|lead|inform|match|attribut)\w*|miss(?:es|ed|ing)?|"
    r"un(?:faithful|ground|support|help|safe|relat|relia|verif|clear|answer)\w*"
)
SPENT_WORDS = frozenset(("latency", "duration", "elapsed", "runtime", "ttft", "cost", "costs", "price"))
QUALITY_WORD = re.compile(
    r"answer\w*|f1|em|exact|rouge\w*|bleu\w*|meteor|bert\w*|recall|precision|ndcg|mrr|scores?|rat(?:ing|ings|ed)|stars|grades?|"
    r"faithful\w*|relevan\w*|similar\w*|ground\w*|support\w*|help\w*|useful\w*|utility|complet\w*|concis\w*|coheren\w*|"
    r"consisten\w*|fluen\w*|clar\w*|satisf\w*|success\w*|trust\w*|adheren\w*|covera\w*|factual\w*|good\w*|up|upvotes?|"
    r"likes?|liked|wins?|votes?|truth\w*|agree\w*|reward|confidence|resolved|solved|overall"
)
"""Words of time and money, and words in names of which higher values are surely better."""

NEUTRAL_WORDS = {"time", "timestamp", "date", "year", "tokens", "length", "size", "words", "chars", "count", "num"}
NEUTRAL_WORDS |= {"index", "seed", "temperature", "perplexity", "ppl", "nll", "entropy", "verbosity", "k", "position"}
NEUTRAL_WORDS |= {"refusal", "refusals", "refused", "declined"}
NEUTRAL_ENDS = {"id", "cluster", "category", "class", "topic", "segment", "fold", "page", "priority"}
NEUTRAL_ENDS |= {"steps", "calls", "attempts", "retries", "turns"}
NEGATIONS = {"no", "non", "not", "without"}
"""Words in names of numbers that other tools write next to answers: of which higher is better, and lower; which say
nothing of an answer's quality, anywhere or at the end; and which turn a name into its opposite."""


def outcome_type(name: str) -> OutcomeType | None:
    """What is known of an outcome by its name, also with a grader's or a judge's name before it; None if nothing."""
    while name not in OUTCOME_TYPES:
        _, hyphen, name = name.partition("-")
        if not hyphen:
            return None
    return OUTCOME_TYPES[name]


def outcome_direction(name: str) -> Direction:
    """Which way an outcome is better: as defined here, or else by the words in its name; higher if these say nothing.

    ``hallucination`` and ``latency_ms`` are better if lower, ``price_correct`` and ``error_handling`` if higher;
    ``timestamp`` is neither.
    """
    known = outcome_type(name)
    if known is not None:
        return known.direction
    words = _words(name)
    turned = not NEGATIONS.isdisjoint(words)
    if any(map(GOOD_WORD.fullmatch, words)):
        return -1 if turned else 1
    if any(map(BAD_WORD.fullmatch, words)):
        return 1 if turned else -1
    return 0 if turned or not NEUTRAL_ENDS.isdisjoint(words[-1:]) or not NEUTRAL_WORDS.isdisjoint(words) else 1


def is_surely_better_if_higher(name: str) -> bool:
    """Whether the name of an outcome says that higher values are better, rather than nothing."""
    words = _words(name)
    return (
        outcome_type(name) is not None
        or HUMAN in name.lower()
        or any(GOOD_WORD.fullmatch(word) or QUALITY_WORD.fullmatch(word) for word in words)
    )


def _words(name: str) -> list[str]:
    return re.findall("[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def outcome_scores(outcomes: Outcomes, said: Mapping[str, pl.DataFrame] | None = None) -> Scores:
    """Outcomes as scores: the aspects as metrics, and the shares that follow from grades.

    ``said``: what graders said (`Results.said`), with the value of ``each`` answer where a query has several.
    """
    aspects = outcomes.distinct("aspect")
    parts: list[pl.DataFrame] = []
    for aspect in aspects:
        rows = outcomes.having("aspect", [aspect]).frame
        shares = _shares(rows, aspect, said or {})
        prefix = aspect.removesuffix(GRADE) if _is_grade(aspect) else f"{aspect}-"
        for name, part in shares.items():
            free = f"{prefix}{name}" if f"{prefix}{name}" not in aspects else f"{aspect}-{name}"
            parts.append(_as_scores(part, free))
        parts.append(_as_scores(rows, aspect))
    return Scores.of_parts(parts, outcomes.notes)


def main_outcome(names: list[str]) -> str | None:
    """The outcome that says best which system answers better: people's labels, then correctness, then the others.

    Scores of contexts, such as ``context_recall`` of ragas, come last: they don't depend on the answer. An outcome
    of a file that is better if lower, such as ``mistakes``, is the main one if no other is; time and money never are.
    """
    useful = [name for name in names if outcome_direction(name) == 1] or [
        name
        for name in names
        if outcome_direction(name) == -1 and outcome_type(name) is None and SPENT_WORDS.isdisjoint(_words(name))
    ]
    useful.sort(key=lambda name: (bool(re.search("context|retriev", name.lower())), "correct" not in _stems(name)))
    wanted = (f"{HUMAN}-correct", HUMAN, "correct", GRADE, "em", "f1")
    people = [name for name in useful if HUMAN in name.lower()]
    return next((name for name in (*wanted[:2], *people, *wanted[2:], *useful) if name in useful), None)


def _stems(name: str) -> set[str]:
    return {word.removesuffix("ness") for word in _words(name)}


def _is_grade(aspect: str) -> bool:
    return aspect == GRADE or aspect.endswith(f"-{GRADE}")


def _as_scores(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    return rows.select("system", "query", pl.lit(name).alias("metric"), "value", "status")


def _single_values(rows: pl.DataFrame, aspect: str, said: Mapping[str, pl.DataFrame]) -> pl.Series | None:
    """The grades of the single answers behind each row, in the order of the rows; None if they aren't known."""
    keys = ["system", "query"]
    for frame in said.values():
        if {*keys, "aspect", "each"} <= set(frame.columns):
            mine = frame.filter(pl.col("aspect") == aspect).select(*keys, "each")
            if mine.height:
                return rows.select(keys).join(mine, on=keys, how="left", maintain_order="left")["each"]
    return None


def _shares(rows: pl.DataFrame, aspect: str, said: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Shares of correct, wrong and abstained answers; nothing if the outcome isn't a three-way grade.

    Of grades that are only 0 and 1 and aren't known to be three-way, 0 may mean wrong as well as abstained, so only
    the share of correct answers is known. People's grades are known to be three-way if they were words.
    """
    if not (_is_grade(aspect) or HUMAN in aspect.lower()):
        return {}
    each = _single_values(rows, aspect, said)
    ours = each is not None or bool(rows["source"].str.contains(OUR_GRADERS).any())
    each = rows.select(pl.concat_list("value")).to_series() if each is None else each
    values = each.explode().drop_nulls().unique()
    mean_of_words = rows["source"].str.ends_with(MEAN_OF_WORDS)
    single = each.filter(~mean_of_words).explode().drop_nulls().unique()
    if not single.is_in(THREE_WAY).all() and not (ours and values.is_between(-1.0, 1.0).all()):
        return {}
    names = SHARES if ours else _known_shares(rows, aspect, single)
    exact = each.list.eval(pl.element().is_null() | pl.element().is_in(THREE_WAY)).list.all() & ~mean_of_words
    known = (rows["status"] == OK) & exact
    status = pl.when((pl.col("status") == OK) & ~exact).then(pl.lit(SEVERAL_ANSWERS)).otherwise("status")
    return {
        name: rows.with_columns(value=pl.when(known).then(each.list.eval(_COUNTED[name]).list.mean()), status=status)
        for name in names
    }


def _known_shares(rows: pl.DataFrame, aspect: str, values: pl.Series) -> tuple[str, ...]:
    """The shares that follow from grades that no grader of ours gave."""
    graded = rows.drop_nulls("value")
    words = graded["source"].str.ends_with(IN_WORDS) | graded["source"].str.ends_with(MEAN_OF_WORDS)
    zero = bool((values == 0.0).any())
    if words.all() and len(words):
        return SHARES if zero else SHARES[:2]
    numbers = graded.filter(~words)["value"]
    binary = bool(numbers.is_in([0.0, 1.0]).all()) and len(values) > 0
    if _is_grade(aspect):
        return SHARES if (values == -1.0).any() else SHARES[:1] if binary else ()
    if binary:  # of numbers alone, the mean is the share
        return SHARES[:1] if words.any() else ()
    return SHARES[:2] if numbers.is_in([1.0, -1.0]).all() and not zero else ()


_COUNTED = {
    name: held.cast(pl.Float64)
    for name, held in zip(SHARES, (pl.element() >= 0.5, pl.element() == -1.0, pl.element() == 0.0), strict=True)
}
