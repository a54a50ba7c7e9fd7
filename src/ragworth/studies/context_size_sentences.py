"""Contexts of several sizes in words: what was done, and what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from ragworth.errors import format_count, format_list
from ragworth.stats.paired import compare_paired
from ragworth.studies.arms import SHARE, p_words
from ragworth.studies.context_size_results import SizedCase, places
from ragworth.studies.context_size_tables import spread
from ragworth.studies.sentences import between, measure_words, signed


def lead(sized: SizedCase) -> str:
    """Which contexts, of how many queries, with which outcome."""
    sizes = format_list([str(k) for k in sized.rows], 20)
    queries = format_count(len({query for rows in sized.rows.values() for query in rows.queries}), "query", "queries")
    if sized.made:
        number = format_count(sum(len(rows.queries) for rows in sized.rows.values()), "context")
        return f"{sized.case.name}: {number} of {queries}, {sizes} passages each, with the outcome {sized.aspect!r}."
    whole = "" if sized.moves else " of the whole context"
    systems = format_count(len(sized.case.results.contexts.systems), "system")
    return (
        f"{sized.case.name}: the contexts of {systems} for {queries}, cut at {sizes} passages, with the outcome "
        f"{sized.aspect!r}{whole}."
    )


def sentences(sized: SizedCase) -> list[str]:
    """Which metric predicts best and which is steadiest; then what more passages change."""
    made = [sentence for over in sized.ways for sentence in _best(sized, over)]
    return made + _changed(sized) + _answers(sized)


def _best(sized: SizedCase, over: str) -> list[str]:
    """Which metric predicts best over all sizes, and which strays least."""
    where = f"{sized.case.name}: " + ("" if over == "queries" else "over systems ")
    ranked, words = sized.ranked(over), measure_words(sized.measure)
    if not ranked:
        return [f"{where}no metric has a correlation with the outcome."]
    lines = {metric: sized.line(over, metric) for metric in ranked}
    best = _alike(ranked, {name: (len(line), _average(line)) for name, line in lines.items()})
    line, (value, span, n) = lines[best[0]], sized.mean(over, best[0])
    many, who = len(best) > 1, format_list(best, 20)
    if span is not None and span.low > 0:
        what = f"{who} {'predict' if many else 'predicts'} best"
    else:
        what = f"no metric surely predicts the outcome; {who} {'come' if many else 'comes'} nearest"
    low, high = min(line, key=lambda k: line[k]), max(line, key=lambda k: line[k])
    unit = format_count(n, "query", "queries") if over == "queries" else format_count(n, "system")
    figure = f"{words} {signed(value)} {between(span)} over {unit}"
    if len(line) == 1:
        return [f"{where}{what}: {figure} (k = {low})."]
    same = all(lines[name] == line for name in best)
    ends = f", from {signed(line[low])} (k = {low}) to {signed(line[high])} (k = {high})" if same else ""
    return [f"{where}{what} over all sizes: mean {figure}{ends}.", *_strays(sized, over, where)]


def _strays(sized: SizedCase, over: str, where: str) -> list[str]:
    """Which metric strays least over the sizes, and which most."""
    rows = spread(sized).filter(pl.col("over") == over).drop_nulls("deviation").select("metric", "deviation").rows()
    known = {metric: round(value, 12) for metric, value in rows}
    if len(set(known.values())) < 2:
        return []
    order = sorted(known, key=lambda name: known[name])
    least, most = _alike(order, known), _alike(order[::-1], known)
    return [
        f"{where}{format_list(least, 20)} {'strays' if len(least) == 1 else 'stray'} least over the sizes (standard "
        f"deviation {known[least[0]]:.3f}), {format_list(most, 20)} most ({known[most[0]]:.3f})."
    ]


def _alike(order: Sequence[str], figures: Mapping[str, object]) -> list[str]:
    """The first, with all whose figure is the same."""
    return [name for name in order if figures[name] == figures[order[0]]]


def _average(line: Mapping[int, float]) -> float:
    return round(float(np.mean(list(line.values()))), 12)


def _changed(sized: SizedCase) -> list[str]:
    """Whether the best metric predicts otherwise at the largest size than at the smallest."""
    best, sizes = sized.ranked("queries")[:1], list(sized.rows)
    for metric, one, p in sized.changes():
        if [metric] == best and one.value is not None and p is not None:
            sure = "" if p < 1 - sized.study.level else ", which may be chance"
            return [
                f"{sized.case.name}: from k = {sizes[0]} to k = {sizes[-1]} the correlation of {metric} changes by "
                f"{signed(one.value)} {between(one.interval)}, {p_words(p)} after Holm{sure}, over "
                f"{format_count(one.n, 'query', 'queries')}."
            ]
    return []


def _answers(sized: SizedCase) -> list[str]:
    """What more passages do to the outcome."""
    sizes = list(sized.rows)
    if not sized.moves or len(sizes) < 2:
        return []
    (first, a), (last, b) = (sized.worth(size) for size in (sizes[0], sizes[-1]))
    both = sorted(set(first) & set(last))
    a, b = a[places(both, first)], b[places(both, last)]
    one = compare_paired(
        a,
        b,
        "wilcoxon",
        level=sized.study.level,
        resamples=sized.study.resamples,
        seed=sized.study.seed,
        bounds=SHARE if sized.graded else None,
    )
    if one.value is None:
        return []
    what = "accuracy" if sized.graded else f"mean {sized.aspect}"
    ends = [f"{100 * float(each.mean()):.1f} %" if sized.graded else signed(float(each.mean())) for each in (a, b)]
    gap = f"{signed(one.value)} {between(one.interval)}"
    if sized.graded:
        points = [f"{100 * each:.1f}".replace("-", "−") for each in (one.value, *(one.interval or ()))]
        gap = f"{points[0]} points [{', '.join(points[1:])}]" if one.interval else f"{points[0]} points (no interval)"
    return [
        f"{sized.case.name}: {what} goes from {ends[0]} at k = {sizes[0]} to {ends[1]} at k = {sizes[-1]}, a "
        f"difference of {gap}, Wilcoxon {p_words(one.p)}."
    ]
