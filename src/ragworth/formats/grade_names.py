"""Which way a grade is better, by the words in its name."""

from __future__ import annotations

import re
from typing import Literal

Direction = Literal[1, 0, -1]
"""1 if higher is better, −1 if lower is, 0 if neither."""

GOOD_WORD = re.compile(
    r"correct\w*|accura\w*|match\w*|ok|pass(?:ed|es|ing)?|effective\w*|efficien\w*|handling|quality|robust\w*|free|safe\w*|"
    r"reciprocal|rejection|avoid\w*|recover\w*|resist\w*|true|f1|recall|precision|auc|auroc|correlation|percentile|resolv\w*|"
    r"resolutions?|solved|fixed|caught|awareness|sav(?:ed|ings?)"
)
BAD_WORD = re.compile(
    r"hallu[cz]inat\w*|toxic\w*|bias\w*|harm(?:s|ful\w*)?|malicious\w*|wrong\w*|irrelevan\w*|noise|errors?|distance|wer|cer|"
    r"latency|duration|elapsed|runtime|ttft|costs?|price|false|loss(?:es)?|penalt(?:y|ies)|violat\w*|fail(?:s|ed|ures?)?|"
    r"contradict\w*|dislike[sd]?|down|downvotes?|rmse|mae|mse|brier|ece|defects?|omi(?:ssions?|tted)|fabricat\w*|"
    r"negative|complaints?|issues?|risks?|severity|confusion|offensive\w*|leak(?:s|age)?|rank|fehler\w*|"
    r"in(?:accura|correct|complet|consisten|coheren|suffic)\w*|"
    r"mis(?:tak|lead|inform|match|attribut)\w*|miss(?:es|ed|ing)?|"
    r"un(?:faithful|ground|support|help|safe|relat|relia|verif|clear|answer)\w*"
)
SPENT_WORDS = frozenset(("latency", "duration", "elapsed", "runtime", "ttft", "cost", "costs", "price"))
QUALITY_WORD = re.compile(
    r"answered|em|exact|rouge\w*|bleu\w*|meteor|bert\w*|ndcg|mrr|scores?|rat(?:ing|ings|ed)|stars|grades?|"
    r"faithful\w*|relevan\w*|similar\w*|ground\w*|support\w*|help\w*|useful\w*|utility|complet\w*|concis\w*|coheren\w*|"
    r"consisten\w*|fluen\w*|clar\w*|satisf\w*|success\w*|trust\w*|adheren\w*|covera\w*|factual\w*|good\w*|thumbs|upvotes?|"
    r"likes?|liked|wins?|votes?|truth\w*|agree\w*|reward|overall"
)
"""Words of time and money, and words in names of which higher values are surely better."""

VERDICT_WORD = re.compile(
    r"correct(?:ness|ly)?|accura(?:te|cy)|pass(?:ed|es)?|success(?:ful)?|grades?|verdict|judge[ds]?|judge?ments?|overall|"
    r"annotators?"
)
SCORE_WORDS = frozenset(("score", "scores", "rating", "ratings", "rated"))
PASSAGE_WORD = re.compile(
    r"contexts?|contextual|passages?|chunks?|documents?|sources?|retriev\w*|search\w*|citations?|cited"
)
"""Words of grades that say how good an answer is as a whole, words that don't say of what a number is, and words of
what an answer rests on."""

NEUTRAL_WORDS = {"time", "timestamp", "date", "year", "tokens", "length", "size", "words", "chars", "count", "num"}
NEUTRAL_WORDS |= {"index", "seed", "temperature", "perplexity", "ppl", "nll", "entropy", "verbosity", "k", "position"}
NEUTRAL_WORDS |= {"refusal", "refusals", "refused", "declined", "confidence"}
NEUTRAL_ENDS = {"id", "cluster", "category", "class", "topic", "segment", "fold", "page", "priority"}
NEUTRAL_ENDS |= {"turn", "step", "row", "line", "level", "version", "steps", "calls", "attempts", "retries", "turns"}
COUNTING_WORDS = {"rate", "count", "number", "num", "of", "total", "share", "ratio", "mean", "avg", "per", "s", "ms"}
BOUND_WORDS = {"bound", "ci", "limit", "end", "quartile"}
NEGATIONS = {"no", "non", "not", "without"}
"""Words in names of numbers that other tools write next to answers: of which higher is better, and lower; which say
nothing of an answer's quality, anywhere or at the end; which say how something is counted; which, after "lower", make
it the end of an interval; and which turn a name into its opposite."""


def direction_of_name(name: str) -> Direction:
    """Which way a grade is better by the words in its name; higher if these say nothing.

    A name that begins with ``lower_`` or ``higher_`` says it itself.
    """
    words = words_of_name(name)
    if BOUND_WORDS.isdisjoint(words[1:2]) and words[:1] in (["lower"], ["higher"]):
        return -1 if words[0] == "lower" else 1
    turned = not NEGATIONS.isdisjoint(words)
    if any(map(GOOD_WORD.fullmatch, words)):
        return -1 if turned else 1
    if any(map(BAD_WORD.fullmatch, words)):
        return 1 if turned else -1
    return 0 if turned or not NEUTRAL_ENDS.isdisjoint(words[-1:]) or not NEUTRAL_WORDS.isdisjoint(words) else 1


def names_quality(name: str) -> bool:
    """Whether a word in a name says how good or bad something is, other than by time or money."""
    words = [word for word in words_of_name(name) if word not in SPENT_WORDS]
    return any(pattern.fullmatch(word) for word in words for pattern in (GOOD_WORD, BAD_WORD, QUALITY_WORD))


def is_verdict(name: str) -> bool:
    """Whether a grade says how good an answer is as a whole: a word of its name says so, and none names a measure.

    ``llm_judge_score`` and ``gpt4_correct`` do; ``score`` may be of anything, and ``judge_faithfulness`` is a measure.
    """
    words = [word for word in words_of_name(name) if word not in SCORE_WORDS]
    others = [word for word in words if not VERDICT_WORD.fullmatch(word)]
    measures = (PASSAGE_WORD, QUALITY_WORD, BAD_WORD)
    return len(others) < len(words) and not any(each.fullmatch(word) for word in others for each in measures)


def name_with_direction(name: str, better: Literal[1, -1]) -> str:
    """The name of a grade whose direction is known, with ``higher_`` or ``lower_`` if its words say otherwise."""
    return name if direction_of_name(name) == better else f"{'higher' if better == 1 else 'lower'}_{name}"


def words_of_name(name: str) -> list[str]:
    """The words in a name, in lower case."""
    return re.findall(r"\bf1\b|[a-z]+", re.sub("_", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)).lower())
