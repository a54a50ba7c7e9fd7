"""Does contribution tell passages that support the answer from those that don't, and at what cost?

``rgb``: a supporting, a counterfactual and two irrelevant passages of each question of RGB. ``multihop``: two
supporting paragraphs and two others of each question of HotpotQA, 2WikiMultihopQA and MuSiQue. Both with the embedded
reader and the accepted answer; single-passage judgments of the same passages beside it. ``grades``: answers from two
of the paragraphs of ``multihop``, and which numbers go with their grades. ``calls``: error against calls, for a reader
whose contributions are known. ``speed``: subsets, CPU time and passages per second of the embedded reader, for
contexts of RGB of growing size.

    RAGWORTH_DATA=FOLDER python benchmarks/contribution.py rgb --limit 60 --store calls.sqlite
"""

from __future__ import annotations

import argparse
import math
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from benchmarks.files import read_lines
from benchmarks.question_sets import _hops

import ragworth
from ragworth.contribution.design import Contributions, Design, SubsetAsker, contributions
from ragworth.contribution.rows import context_rows, passage_rows
from ragworth.contribution.subsets import Floats
from ragworth.report.charts.drawing import render_png
from ragworth.report.charts.planes import curve_chart
from ragworth.stats.auc import auc_interval, pairs_within, win_rate
from ragworth.stats.correlation import spearman
from ragworth.stats.estimate import Estimate, Resampling, mean_estimates
from ragworth.stats.paired import difference
from ragworth.stats.within_query import query_correlations, within_query_correlations
from ragworth.text_match.overlap import containment

SUPPORTING = "supporting"


class MixedContext(NamedTuple):
    """One question with passages of known kinds, in random order."""

    id: str
    text: str
    accepted: tuple[str, ...]
    passages: tuple[tuple[str, str], ...]
    """Kind and text."""


def rgb(data: Path) -> Iterator[MixedContext]:
    for row in read_lines(data / "rgb" / "en_fact.json.gz"):
        answer = row["answer"]
        accepted = (answer,) if isinstance(answer, str) else tuple(each for some in answer for each in some)
        clean = [text for text in row["negative"] if not containment(text, accepted)][:2]
        wrong = [text for text in row["positive_wrong"] if text not in row["positive"]][:1]
        if len(clean) == 2 and wrong:
            kinds = [(SUPPORTING, row["positive"][0]), ("counterfactual", wrong[0])]
            yield _mixed(f"rgb-{row['id']:03}", row["query"], accepted, [*kinds, *(("irrelevant", t) for t in clean)])


def multihop(data: Path) -> Iterator[MixedContext]:
    sets = [list(_hops(data, name)) for name in ("hotpot", "wikihop", "musique")]
    for row in zip(*sets, strict=False):
        for each in row:
            if len(each.relevant) == 2 and len(each.others) >= 2:
                kinds = [*((SUPPORTING, text) for text in each.relevant), *(("other", t) for t in each.others[:2])]
                yield _mixed(each.id, each.text, each.accepted, kinds)


def _mixed(name: str, text: str, accepted: tuple[str, ...], kinds: list[tuple[str, str]]) -> MixedContext:
    return MixedContext(name, text, accepted, tuple(random.Random(name).sample(kinds, len(kinds))))


def passage_table(questions: list[MixedContext]) -> pl.DataFrame:
    rows = [(q.id, f"{q.id}-{n}", kind, text, n) for q in questions for n, (kind, text) in enumerate(q.passages, 1)]
    return pl.DataFrame(rows, schema=["query", "passage", "kind", "text", "rank"], orient="row")


def texts_of(questions: list[MixedContext], table: pl.DataFrame) -> ragworth.Collection:
    accepted = [(q.id, a) for q in questions for a in q.accepted]
    return ragworth.Collection.of(
        queries={"query": [q.id for q in questions], "text": [q.text for q in questions]},
        passages=table.select("passage", "text"),
        answers=pl.DataFrame(accepted, schema=["query", "text"], orient="row"),
    )


def judged(questions: list[MixedContext], store: Path) -> pl.DataFrame:
    """A row for each passage: its kind, what it contributes, and what it is worth by itself."""
    table = passage_table(questions)
    world = texts_of(questions, table)
    contexts = ragworth.Contexts(table.select(pl.lit("mixed").alias("system"), "query", "passage", "rank"))
    split = ragworth.annotate("contribution", contexts, world, store=store, answer="accepted")
    print(*split.notes, sep="\n")
    found = table.join(
        passage_rows(split.frame).select("query", "passage", "contribution", "removed"), on=["query", "passage"]
    )
    known = context_rows(split.frame).filter(pl.col("single").is_not_null())
    alone = known.select("query", pl.col("passages").alias("passage"), pl.col("single").alias("alone"))
    judged_alone = ragworth.annotate("abstention", contexts, world, store=store)
    print(*judged_alone.notes, sep="\n")
    values = judged_alone.frame.select("query", "passage", (1 - pl.col("value")).alias("1 − p_abstain"))
    for more in (alone.explode("passage", "alone"), values):
        found = found.join(more, on=["query", "passage"], how="left", maintain_order="left")
    return found


PAIRS = {"both": (0, 1), "first": (0, 2), "second": (1, 3), "neither": (2, 3)}
"""Contexts of two passages: the places of those among the two supporting ones, then the two others."""


def pair_contexts(table: pl.DataFrame) -> ragworth.Contexts:
    """Four contexts for each question, with both supporting passages, either, or neither."""
    rows = []
    for (query,), mine in table.group_by("query", maintain_order=True):
        places = mine.sort(pl.col("kind") != SUPPORTING, "rank").select("rank", "passage").rows()
        for system, pair in PAIRS.items():
            rows += [(system, query, passage, n) for n, (_, passage) in enumerate(sorted(places[i] for i in pair), 1)]
    return ragworth.Contexts(pl.DataFrame(rows, schema=["system", "query", "passage", "rank"], orient="row"))


def graded(questions: list[MixedContext], store: Path) -> Iterator[str]:
    """Which numbers go with the grades of answers from two passages, within questions."""
    found = judged(questions, store)
    world, contexts = texts_of(questions, found), pair_contexts(found)
    answers = ragworth.answer(contexts, world, store=store, length=24)
    grades = ragworth.grade("deterministic", answers, world).frame.filter(pl.col("aspect") == "grade")
    for (system,), mine in grades.group_by("system", maintain_order=True):
        yield f"{system}: {dict(Counter(mine['value'].to_list()))}"
    gains = ragworth.annotate(
        "contribution", contexts, world, store=store, answer="accepted", method="leave-one-out"
    ).frame.filter(pl.col("aspect") == "gain")
    labels = found.select("query", "passage", (pl.col("kind") == SUPPORTING).cast(pl.Float64).alias("relevance"),
                          (1 - pl.col("1 − p_abstain")).alias("abstention"))  # fmt: skip
    scores = ragworth.score(contexts, ragworth.Judgments(labels), ["P@2", "UDCG@2"]).frame
    sums = contexts.frame.join(found.drop("rank"), on=["query", "passage"]).group_by("system", "query")
    keys = ["system", "query"]
    rows = grades.select(*keys, pl.col("value").alias("grade"))
    wide = scores.pivot("metric", index=keys, values="value")
    others = sums.agg(pl.col("contribution", "alone", "1 − p_abstain").sum())
    for more in (wide, gains.select(*keys, pl.col("value").alias("gain")), others):
        rows = rows.join(more, on=keys, how="left", maintain_order="left")
    names = [name for name in rows.columns if name not in (*keys, "grade")]
    numbers = rows.select(names).cast(pl.Float64).fill_null(float("nan")).to_numpy()
    grade = rows["grade"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    for name, one in zip(names, within_query_correlations(numbers, grade, rows["query"].to_numpy()), strict=True):
        yield f"| {name} | {_shown(one.value, one.interval)} | {one.n} of {len(questions)} |"
    each = dict(zip(names, query_correlations(numbers, grade, rows["query"].to_numpy()).values.T, strict=True))
    for first, second in (("gain", "UDCG@2"), ("contribution", "UDCG@2"), ("contribution", "alone")):
        known = ~(np.isnan(each[first]) | np.isnan(each[second]))
        gap = difference(each[first][known], each[second][known], "randomisation", Resampling(), (-2.0, 2.0))
        yield f"{first} less {second}: {_shown(gap.value, gap.interval)}, p = {gap.p:.3g}, n = {gap.n}"


def separation(found: pl.DataFrame, other: str) -> Iterator[str]:
    """How well each value tells supporting passages from those of another kind: AUC, and within questions."""
    mine = found.filter(pl.col("kind").is_in([SUPPORTING, other]))
    labels, queries = (mine["kind"] == SUPPORTING).to_numpy(), mine["query"].to_numpy()
    rates: dict[str, dict[str, float]] = {}
    for name in ("contribution", "removed", "alone", "1 − p_abstain"):
        values = mine[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        area = auc_interval(values, labels, queries)
        pairs, whose = pairs_within(values, labels, queries)
        won = win_rate(pairs, whose)
        rates[name] = _rates(values, labels, queries)
        cells = (other, name, _shown(area.value, area.interval), _shown(won.value, won.interval), won.n)
        yield f"| {' | '.join(map(str, cells))} |"
    for name in ("1 − p_abstain", "alone"):
        shared = sorted(rates["contribution"].keys() & rates[name].keys())
        first, second = (np.array([rates[each][q] for q in shared]) for each in ("contribution", name))
        gap = difference(first, second, "randomisation", Resampling(), (-1.0, 1.0))
        words = f"{_shown(gap.value, gap.interval)}, p = {gap.p:.3g}, n = {gap.n}"
        yield f"contribution less {name}, within questions: {words}"


def mean_contributions(found: pl.DataFrame, questions: list[MixedContext]) -> Iterator[str]:
    """Mean contribution by kind, and by whether the passage contains an accepted answer; intervals over questions."""
    accepted = {each.id: each.accepted for each in questions}
    known = found.with_columns(
        pl.Series("answer", [bool(containment(text, accepted[q])) for q, text in found.select("query", "text").rows()])
    )
    for (kind, answer), mine in sorted(known.group_by("kind", "answer"), key=str):
        values, queries = mine["contribution"].to_numpy().reshape(-1, 1), mine["query"].to_numpy()
        (mean,) = mean_estimates(values, Resampling(), clusters=queries)
        cells = (kind, "yes" if answer else "no", _shown(mean.value, mean.interval), mine.height)
        yield f"| {' | '.join(map(str, cells))} |"


def _rates(values: Floats, labels: np.ndarray, queries: np.ndarray) -> dict[str, float]:
    found = {}
    for query in dict.fromkeys(queries.tolist()):
        here = queries == query
        pairs, _ = pairs_within(values[here], labels[here], queries[here])
        known = pairs[~np.isnan(pairs).any(axis=1)]
        if len(known):
            found[query] = float(((known[:, 0] > known[:, 1]) + 0.5 * (known[:, 0] == known[:, 1])).mean())
    return found


def _shown(value: float | None, interval: object, digits: int = 2) -> str:
    if value is None or not isinstance(interval, tuple):
        return "–" if value is None else f"{value:.{digits}f}"
    return f"{value:.{digits}f} [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"


def saturating(k: int, seed: int) -> tuple[Floats, float]:
    draw = np.random.default_rng(seed)
    return draw.gamma(0.7, 1.0, k) * draw.choice([1, 1, 1, -0.5], k), 3.0


def split_known(k: int, seed: int, design: Design) -> Contributions:
    """Contributions by a reader for whom further passages add less and less."""
    weights, scale = saturating(k, seed)
    asker = SubsetAsker(k, lambda numbers: numbers, lambda numbers: _value(numbers, weights, scale))  # type: ignore
    program = contributions(asker, design, str(seed))
    asked = next(program)
    while True:
        try:
            asked = program.send(list(asked))  # type: ignore[arg-type]
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _value(numbers: object, weights: Floats, scale: float) -> Floats:
    chosen = np.asarray(numbers, dtype=np.int64)
    return np.array([-20 + 6 * np.tanh(float(weights[chosen].sum()) / scale)])


class Accuracy(NamedTuple):
    """How far the contributions of a method are from the exact ones, on average over contexts."""

    method: str
    subsets: float
    error: float
    """Root mean square, in nats."""
    error_interval: tuple[float, float]
    """Over contexts."""
    ranks: Estimate
    """Mean Spearman ρ with the exact ones, over the contexts in which it is defined."""


def calls() -> Iterator[Accuracy]:
    """Every method with more and more subsets of 10 passages."""
    k, contexts = 10, 30
    truth = [split_known(k, seed, Design("exact")).totals for seed in range(contexts)]
    yield _accuracy("leave-one-out", truth, k, Design("leave-one-out"))
    for method in ("permutations", "surrogate"):
        for subsets in (48, 84, 128, 256, 512):
            yield _accuracy(method, truth, k, Design(method, subsets, 0.9999, 0.0))


def _accuracy(method: str, truth: list[Floats], k: int, design: Design) -> Accuracy:
    found = [split_known(k, seed, design) for seed in range(len(truth))]
    squares = np.array([((one.totals - true) ** 2).mean() for one, true in zip(found, truth, strict=True)])
    ranks = np.array([spearman(one.totals, true) for one, true in zip(found, truth, strict=True)])
    subsets = float(np.mean([one.subsets for one in found]))
    (error,) = mean_estimates(squares.reshape(-1, 1), Resampling())
    (order,) = mean_estimates(ranks[~np.isnan(ranks)].reshape(-1, 1), Resampling(), bounds=(-1.0, 1.0))
    low, high = error.interval or (0.0, 0.0)
    return Accuracy(
        method, subsets, math.sqrt(squares.mean()), (math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))), order
    )


class Pace(NamedTuple):
    """What contributions of contexts of one size take."""

    passages: int
    contexts: int
    method: str
    subsets: float
    """Of a context, on average."""
    seconds: float
    """CPU time of a context, on average."""


def paces(data: Path, sizes: tuple[int, ...] = (2, 4, 6), contexts: int = 2) -> Iterator[Pace]:
    """Contexts of RGB of growing size, split with the embedded reader by the default method, without a store."""
    model = ragworth.llm("embedded")
    rows = [row for row in read_lines(data / "rgb" / "en_fact.json.gz") if isinstance(row["answer"], str)]
    for k in sizes:
        mixed = []
        for row in rows[:contexts]:
            texts = dict.fromkeys([*row["positive"][: k // 2], *row["negative"]])
            kinds = [(SUPPORTING, text) for text in texts][:k]
            mixed.append(_mixed(f"rgb-{row['id']:03}", row["query"], (row["answer"],), kinds))
        table = passage_table(mixed)
        shown = ragworth.Contexts(table.select(pl.lit("mixed").alias("system"), "query", "passage", "rank"))
        start = time.process_time()
        split = ragworth.annotate("contribution", shown, texts_of(mixed, table), model, answer="accepted")
        seconds = time.process_time() - start
        known = context_rows(split.frame)
        method, number = known["method"].drop_nulls()[0], known["subsets"].drop_nulls()
        yield Pace(k, contexts, method, float(np.mean(number.to_numpy())), seconds / contexts)


def draw_calls(rows: list[Accuracy], path: Path) -> None:
    """Error against calls, as a picture."""
    lines = pl.DataFrame([(row.method, round(row.subsets), row.error) for row in rows], orient="row")
    lines.columns = ["line", "place", "value"]
    spec = curve_chart(lines, "subsets that are scored, of 1,024", "root mean square error, nats", zero=True, log=True)
    path.write_bytes(render_png(spec))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("rgb", "multihop", "grades", "calls", "speed"))
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--store", type=Path, default=Path("calls.sqlite"))
    parser.add_argument("--plot", type=Path, help="of calls: write a picture (PNG)")
    given = parser.parse_args()
    if given.what == "calls":
        rows = list(calls())
        print(
            "| method | subsets | error | rank correlation | contexts |",
            "| --- | ---: | ---: | ---: | ---: |",
            sep="\n",
        )
        for row in rows:
            error = _shown(row.error, row.error_interval, 3)
            order = _shown(row.ranks.value, row.ranks.interval, 3)
            print(f"| {row.method} | {row.subsets:.0f} | {error} | {order} | {row.ranks.n} |")
        if given.plot is not None:
            draw_calls(rows, given.plot)
        return
    data = Path(os.environ["RAGWORTH_DATA"])
    if given.what == "speed":
        print("| passages | method | subsets | of | CPU seconds a context | passages a second |")
        for pace in paces(data):
            rate = pace.passages / pace.seconds
            cells = (pace.passages, pace.method, f"{pace.subsets:.0f}", f"{1 << pace.passages:,}",
                     f"{pace.seconds:.2f}", f"{rate:.2f}")  # fmt: skip
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
        return
    questions = list((rgb if given.what == "rgb" else multihop)(data))[: given.limit]
    if given.what == "grades":
        print(*graded(questions, given.store), sep="\n")
        return
    found = judged(questions, given.store)
    print(f"{len(questions)} questions", "| against | value | AUC | within questions | n |", sep="\n")
    print("| --- | --- | --- | --- | ---: |")
    for other in ("counterfactual", "irrelevant", "other"):
        if other in found["kind"].to_list():
            print(*separation(found, other), sep="\n")
    print("| kind | contains the answer | mean contribution, nats | passages |", "| --- | --- | --- | ---: |", sep="\n")
    print(*mean_contributions(found, questions), sep="\n")


if __name__ == "__main__":
    main()
