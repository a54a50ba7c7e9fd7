"""What was learned, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragworth.fitting.parameter_choice import Choice, Kind
from ragworth.fitting.transfer import Transfer
from ragworth.formats.theta import Theta
from ragworth.stats.resampling import Span

WORDS: dict[Kind, str] = {"within": "within queries", "pooled": "over all contexts"}
NO_FIGURE = "no query has a correlation, so nothing can be said"


def theta_words(theta: Theta) -> str:
    """What learning bought, on queries held out."""
    held, plain, gain = (theta.figures[name] for name in ("held_out", "udcg", "gain"))
    if None in (held["value"], plain["value"], gain["value"]):
        return f"On queries held out: {NO_FIGURE}."
    return (
        f"On queries held out (n = {gain['queries']:,}), learned weights correlate {held['value']:.3f}{_ends(held)} "
        f"with {theta.learned_from.get('outcome', 'the outcome')} within queries, UDCG@{theta.k} {plain['value']:.3f}: "
        f"{_bought(gain)}, difference {gain['value']:+.3f}{_ends(gain)}."
    )


def transfer_words(found: Transfer, k: int) -> str:
    """What learned weights are worth elsewhere."""
    name = f"On {found.name}" if found.name else "There"
    if found.learned.value is None or found.udcg.value is None or found.gap.value is None:
        return f"{name}: {NO_FIGURE}."
    low, high = found.gap.interval or (None, None)
    gain = {"value": found.gap.value, "low": low, "high": high}
    return (
        f"{name} (n = {found.gap.queries:,}), which nothing was learned from, they correlate {found.learned.value:.3f}"
        f"{_between(found.learned.interval)}, UDCG@{k} {found.udcg.value:.3f}: {_bought(gain)}, difference "
        f"{found.gap.value:+.3f}{_ends(gain)}."
    )


def _bought(gain: Mapping[str, Any]) -> str:
    if gain["low"] is None:
        return "too few queries to tell which is better"
    return "learning helps" if gain["low"] > 0 else "learning harms" if gain["high"] < 0 else "no clear gain"


def _ends(figure: Mapping[str, Any]) -> str:
    return _between(Span(figure["low"], figure["high"]) if figure["low"] is not None else None)


def choice_words(parameter: str, choice: Choice, up: int) -> str:
    """What a choice says, plainly; ``up`` is −1 where a lower value of the metric is better."""
    default = f"the default {choice.default:.4g} ({choice.at_default:.3f})"
    values = ", ".join(f"{value:.4g}" + (f" {n} times" if n > 1 else "") for value, n in choice.chosen.items())
    gain = f"{choice.gain:+.3f}{_between(choice.gain_interval)}"
    return (
        f"{WORDS[choice.kind].capitalize()}, {parameter} chosen by cross-validation ({values}) correlates "
        f"{choice.held_out:.3f}{_between(choice.interval)} with the outcome on queries held out "
        f"(n = {choice.queries:,}): {_verdict(choice, up)} {default}, difference {gain}. "
        f"The best on all queries at once is {choice.best:.4g} ({choice.in_sample:.3f}, in-sample)."
    )


def _verdict(choice: Choice, up: int) -> str:
    low, high = sorted(up * end for end in choice.gain_interval or (0.0, 0.0))
    return "better than" if low > 0 else "worse than" if high < 0 else "not clearly better than"


def _between(span: Span | None) -> str:
    return f" [{span.low:.3f}, {span.high:.3f}]" if span is not None else ""
