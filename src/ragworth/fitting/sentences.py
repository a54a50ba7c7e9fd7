"""What was learned, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragworth.fitting.ablation import AblationResult
from ragworth.fitting.parameter_choice import CorrelationKind, ParameterChoice
from ragworth.metrics.theta import Theta
from ragworth.stats.resampling import ConfidenceInterval

KIND_WORDS: dict[CorrelationKind, str] = {"within": "within queries", "pooled": "over all contexts"}
NO_CORRELATION = "no query has a correlation, so nothing can be said"


def theta_sentence(theta: Theta) -> str:
    """What learning bought, on queries held out."""
    held, plain, gain = (theta.figures[name] for name in ("held_out", "udcg", "gain"))
    if None in (held["value"], plain["value"], gain["value"]):
        return f"On queries held out: {NO_CORRELATION}."
    return (
        f"On queries held out (n = {gain['queries']:,}), learned weights correlate "
        f"{held['value']:.3f}{_interval_words(held)} "
        f"with {theta.learned_from.get('outcome', 'the outcome')} within queries, UDCG@{theta.k} {plain['value']:.3f}: "
        f"{_gain_words(gain)}, difference {gain['value']:+.3f}{_interval_words(gain)}."
    )


def ablation_sentence(ablation: AblationResult) -> str:
    """Whether UDCG predicts the outcome better than nDCG, then the other differences, clear ones first."""
    clear, unclear = [], []
    (first, *others) = ablation.differences.items()
    for (a, b), figure in others:
        if _is_clear(figure):
            clear.append(f"{a} − {b} {figure['value']:+.3f}{_interval_words(figure)}")
        else:
            unclear.append(f"{a} − {b}")
    (udcg, ndcg), figure = first
    words = f"{udcg} and {ndcg} can't be compared: {NO_CORRELATION}"
    if figure["value"] is not None:
        verb = "beats" if figure["value"] > 0 else "is worse than"
        verb = verb if _is_clear(figure) else "is not significantly different from"
        words = f"{udcg} {verb} {ndcg}, difference {figure['value']:+.3f}{_interval_words(figure)}"
    more = [f" Also clear: {'; '.join(clear)}."] if clear else []
    more += [f" Not clear: {'; '.join(unclear)}."] if unclear else []
    return f"{ablation.name} ({ablation.queries:,} held-out queries): {words}.{''.join(more)}"


def _is_clear(figure: Mapping[str, Any]) -> bool:
    return figure["low"] is not None and (figure["low"] > 0 or figure["high"] < 0)


def _gain_words(gain: Mapping[str, Any]) -> str:
    if gain["low"] is None:
        return "too few queries to tell which is better"
    return "learning helps" if gain["low"] > 0 else "learning harms" if gain["high"] < 0 else "no clear gain"


def _interval_words(figure: Mapping[str, Any]) -> str:
    return _span_words(ConfidenceInterval(figure["low"], figure["high"]) if figure["low"] is not None else None)


def choice_sentence(parameter: str, choice: ParameterChoice, up: int) -> str:
    """What a choice says, plainly; ``up`` is −1 where a lower value of the metric is better."""
    default = f"the default {choice.default:.4g} ({choice.at_default:.3f})"
    values = ", ".join(f"{value:.4g}" + (f" {n} times" if n > 1 else "") for value, n in choice.chosen.items())
    gain = f"{choice.gain:+.3f}{_span_words(choice.gain_interval)}"
    return (
        f"{KIND_WORDS[choice.kind].capitalize()}, {parameter} chosen by cross-validation ({values}) correlates "
        f"{choice.held_out:.3f}{_span_words(choice.interval)} with the outcome on queries held out "
        f"(n = {choice.queries:,}): {_verdict(choice, up)} {default}, difference {gain}. "
        f"The best on all queries at once is {choice.best:.4g} ({choice.in_sample:.3f}, in-sample)."
    )


def _verdict(choice: ParameterChoice, up: int) -> str:
    low, high = sorted(up * end for end in choice.gain_interval or (0.0, 0.0))
    return "better than" if low > 0 else "worse than" if high < 0 else "not clearly better than"


def _span_words(span: ConfidenceInterval | None) -> str:
    return f" [{span.low:.3f}, {span.high:.3f}]" if span is not None else ""
