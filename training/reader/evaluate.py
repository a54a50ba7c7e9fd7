"""How good is the embedded reader on sets it has never seen: judging, reading, and do its judgments predict answers?

    RAGWORTH_DATA=FOLDER python -m training.reader.evaluate judging --model embedded --model embedded:base
    RAGWORTH_DATA=FOLDER python -m training.reader.evaluate reading --model embedded
    RAGWORTH_DATA=FOLDER python -m training.reader.evaluate alignment --model embedded

The sets are RGB, ClapNQ, HotpotQA, 2WikiMultihopQA, and one in twelve of the groups in ``written/``: nothing of them is
in the training examples. How far they had a say in what ships is in README.md. Everything goes through the store named
by ``--store``, so that a second run asks nothing.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from benchmarks.judgments import Case, lines, rgb

import ragworth
from ragworth.stats.auc import auc_interval, pairs_within, win_rate
from ragworth.stats.correlation import kendall
from ragworth.stats.resampling import ConfidenceInterval, expanded_interval, resample_counts, unit_numbers
from ragworth.text_match.matching import match_answer, to_matchable
from training.reader import written

Floats = npt.NDArray[np.float64]
READ = Path(__file__).parent / "rgb.tsv"
"""Does a passage alone answer the question? Two readings of those that are drawn by default, without their labels."""


def clapnq(data: Path) -> list[Case]:
    """Answerable questions have a gold passage, unanswerable ones a passage that looked right to their annotators."""
    parts: list[list[Case]] = []
    for kind in ("answerable", "unanswerable"):
        good, cases = kind == "answerable", []
        for item in lines(data / "clapnq_dev" / f"clapnq_dev_{kind}.jsonl.gz"):
            texts = [f"{each['title']}\n{each['text']}" for each in item["passages"]]
            answers = [each["answer"] for each in item["output"] if each.get("answer")]
            cases.append(Case(item["input"], answers, texts if good else [], [] if good else texts))
        parts.append(cases)
    return [case for both in zip(*parts, strict=True) for case in both]


def paragraphs(name: str) -> Callable[[Path], list[Case]]:
    def of(data: Path) -> list[Case]:
        cases = []
        for item in lines(data / "multihop" / f"{name}.json.gz"):
            if "context" not in item:
                continue
            titles = {title for title, _ in item["supporting_facts"]}
            texts = [(title in titles, f"{title}\n{''.join(parts)}") for title, parts in item["context"]]
            good, bad = ([text for yes, text in texts if yes is wanted] for wanted in (True, False))
            cases.append(Case(item["question"], [item["answer"]], good, bad))
        return cases

    return of


def groups(hard: bool) -> Callable[[Path], list[Case]]:
    """Questions of the groups to judge by that are hard, or that are not, in an order that tells nothing."""

    def of(_: Path) -> list[Case]:
        cases = []
        for path in written.files():
            for group in written.split(written.read(path)).judged_by if path.name.startswith("hard-") is hard else []:
                for asked in group.questions:
                    good = [group.passages[n] for n in asked.answering]
                    cases.append(Case(asked.text, list(asked.answers), good, group.missing(asked)))
        random.Random(0).shuffle(cases)
        return cases

    return of


SETS: dict[str, Callable[[Path], list[Case]]] = {
    "RGB": rgb,
    "ClapNQ": clapnq,
    "HotpotQA": paragraphs("hotpot"),
    "2Wiki": paragraphs("wikihop"),
    "written": groups(hard=False),
    "written, hard": groups(hard=True),
}


class World(NamedTuple):
    """Cases as a collection: which passages each question has, and which of them are good."""

    texts: ragworth.Collection
    judged: pl.DataFrame
    """query, passage, value, kind: ``good``, ``bad`` or ``random``."""


def world(cases: list[Case], each: int, seed: int = 0) -> World:
    """At most ``each`` good, bad and random passages for a question; random ones are another question's good ones."""
    draw = random.Random(seed)
    pool = [text for case in cases for text in case.good]
    passages: dict[str, str] = {}
    rows: list[tuple[str, str, float, str]] = []
    for number, case in enumerate(cases):
        others = [text for text in draw.sample(pool, min(4, len(pool))) if text not in (*case.good, *case.bad)]
        for kind, texts in (("good", case.good), ("bad", case.bad), ("random", others)):
            for place, text in enumerate(draw.sample(texts, min(each, len(texts)))):
                name = f"{number}-{kind}-{place}"
                passages[name] = text
                rows.append((str(number), name, float(kind == "good"), kind))
    ids = [str(number) for number in range(len(cases))]
    answers = [(str(number), text) for number, case in enumerate(cases) for text in case.answers]
    judged = pl.DataFrame(rows, schema=["query", "passage", "value", "kind"], orient="row")
    whole = ragworth.Collection.of(
        queries={"query": ids, "text": [case.question for case in cases]},
        passages={"passage": list(passages), "text": list(passages.values())},
        answers={"query": [query for query, _ in answers], "text": [text for _, text in answers]},
        relevance=judged.select("query", "passage", "value"),
    )
    return World(whole, judged)


def shown(rows: pl.DataFrame, system: str = "run") -> ragworth.Contexts:
    """Passages as contexts, in the order of the rows."""
    rank = pl.int_range(1, pl.len() + 1).over("query").alias("rank")
    return ragworth.Contexts(rows.select("query", "passage").with_columns(rank), system=system)


class CalibrationError(NamedTuple):
    """Expected calibration error, with its bootstrap interval over questions."""

    value: float
    interval: ConfidenceInterval | None


def ece(p: Floats, yes: npt.NDArray[np.bool_], questions: npt.ArrayLike, bins: int = 10) -> CalibrationError:
    """Expected calibration error in ten equal bins. Whole questions are drawn, since their passages aren't
    independent."""
    question = unit_numbers(questions, len(p))
    gaps = np.zeros((int(question.max()) + 1, bins))
    np.add.at(gaps, (question, np.minimum((p * bins).astype(int), bins - 1)), p - yes)
    sizes = np.bincount(question)
    draws = [np.abs(some @ gaps).sum(axis=1) / (some @ sizes) for some in resample_counts(len(gaps), 2000, 0, 500)]
    value = float(np.abs(gaps.sum(axis=0)).sum() / len(p))
    return CalibrationError(value, expanded_interval(np.concatenate(draws), len(gaps), 0.95))


def judging(given: argparse.Namespace, data: Path) -> None:
    """p_abstain of single passages: does it tell those that answer from those that do not?"""
    print("| set | against | model | AUC | win rate | ECE | p good | p other | n |\n" + "| --- " * 9 + "|")
    for name, cases in SETS.items():
        place = world(cases(data)[: given.questions], given.each)
        for model in given.model:
            found = ragworth.annotate("abstention", shown(place.judged), place.texts, model, store=given.store).frame
            frame = place.judged.join(
                found.select("query", "passage", "value", "p"), on=["query", "passage"], suffix="_"
            )
            # A model that never declines has its values withdrawn; what it said is compared all the same.
            frame = frame.with_columns(pl.coalesce("value_", "p").alias("declines")).drop_nulls(["declines"])
            for against, mine in compared(name, place, frame, data):
                declines, good = mine["declines"].to_numpy(), mine["good"].to_numpy()
                query = mine["query"].to_numpy()
                area = auc_interval(-declines, good, query)
                won = win_rate(*pairs_within(-declines, good, query))
                means = [declines[good].mean(), declines[~good].mean()]
                error = words(ece(declines, ~good, query))
                print(
                    f"| {name} | {against} | {model} | {words(area)} | {words(won)} | {error} "
                    f"| {means[0]:.3f} | {means[1]:.3f} | {len(mine)} |",
                    flush=True,
                )
            if given.plot and model == "embedded":
                with given.plot.open("a") as file:
                    for value, kind in frame.select("declines", "kind").iter_rows():
                        file.write(json.dumps([name, value, kind]) + "\n")


def compared(name: str, place: World, frame: pl.DataFrame, data: Path) -> Iterator[tuple[str, pl.DataFrame]]:
    """What good passages are held against, where there is something of both; ``good`` is which of them are."""
    good, bad = pl.col("kind") == "good", pl.col("kind") == "bad"
    sides = {"bad": frame.filter(good | bad), "random": frame.filter(good | (pl.col("kind") == "random"))}
    if held := holding(place):
        sides["bad, no answer in it"] = frame.filter(good | (bad & ~pl.col("passage").is_in(held)))
    found = {against: mine.with_columns(good.alias("good")) for against, mine in sides.items()}
    if name == "RGB":
        read = frame.join(readings(place, data), on="passage")
        lacks = pl.col("read") == "lacks"
        found["bad, lack it by reading"] = read.filter(good | (bad & lacks)).with_columns(good.alias("good"))
        sure = read.filter(pl.col("read").is_in(["answers", "lacks"]))
        found["by reading alone"] = sure.with_columns((pl.col("read") == "answers").alias("good"))
    yield from ((against, mine) for against, mine in found.items() if mine["good"].n_unique() == 2)


def readings(place: World, data: Path) -> pl.DataFrame:
    """What both readings of a passage of RGB say of it; ``partly`` where they differ."""
    cases, said = rgb(data), {}
    with READ.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            case = cases[int(row["question"])]
            text = (case.good if row["list"] == "positive" else case.bad)[int(row["place"])]
            said[row["question"], text] = row["first"] if row["first"] == row["second"] else "partly"
    texts = dict(place.texts.passages.iter_rows())
    rows = place.judged.filter(pl.col("kind") != "random").select("query", "passage").iter_rows()
    read = [(passage, said.get((query, texts[passage]), "unread")) for query, passage in rows]
    return pl.DataFrame(read, ["passage", "read"], orient="row")


def holding(place: World) -> list[str]:
    """Passages labelled bad that hold an accepted answer all the same."""
    texts = dict(place.texts.passages.iter_rows())
    answers: dict[str, list[str]] = {}
    for query, text in place.texts.answers.iter_rows():
        answers.setdefault(query, []).append(text)
    bad = place.judged.filter(pl.col("kind") == "bad").select("query", "passage").iter_rows()
    found = ((passage, to_matchable(texts[passage]), answers.get(query, [])) for query, passage in bad)
    return [
        passage for passage, text, accepted in found if any(match_answer(text, each) is not None for each in accepted)
    ]


def words(found: Any) -> str:
    if found.value is None:
        return "–"
    return f"{found.value:.3f}" + (f" ({found.interval.low:.3f}–{found.interval.high:.3f})" if found.interval else "")


def reading(given: argparse.Namespace, data: Path) -> None:
    """Answers from the gold passage, from it among four near misses, and from five near misses."""
    print("| set | shown | model | correct | abstained | wrong | right of answered | n |\n" + "| --- " * 8 + "|")
    for name in ("RGB", "HotpotQA"):
        cases = [case for case in SETS[name](data) if case.good and len(case.bad) >= 5][: given.questions]
        if name == "RGB":
            cases = [case for case in SETS[name](data) if case.good and len(case.bad) >= 1][: given.questions]
        place = world(cases, 5)
        draw = random.Random(1)
        contexts = {}
        for kind in ("gold", "1 + 4", "5 near misses"):
            rows = []
            for (query,), mine in place.judged.group_by("query", maintain_order=True):
                good = mine.filter(pl.col("kind") == "good")["passage"].to_list()
                # Where a question has too few near misses, random passages stand in for them.
                near = [
                    *mine.filter(pl.col("kind") == "bad")["passage"],
                    *mine.filter(pl.col("kind") == "random")["passage"],
                ]
                gold = good[:1] if name == "RGB" else good
                one = {"gold": gold, "1 + 4": [*gold, *near][: 5 if name == "RGB" else 6], "5 near misses": near[:5]}[
                    kind
                ]
                draw.shuffle(one)
                rows += [(query, passage) for passage in one]
            contexts[kind] = shown(pl.DataFrame(rows, schema=["query", "passage"], orient="row"), kind)
        for model in given.model:
            answers = ragworth.answer(
                ragworth.Contexts.concat(list(contexts.values())), place.texts, model, store=given.store, length=24
            )
            graded = ragworth.grade("deterministic", answers, place.texts).answers
            for (kind,), mine in graded.group_by("system", maintain_order=True):
                labels = mine["label"].to_list()
                correct, abstained, wrong = (
                    labels.count(label) / len(labels) for label in ("correct", "abstained", "wrong")
                )
                print(
                    f"| {name} | {kind!s} | {model} | {correct:.3f} | {abstained:.3f} | {wrong:.3f} "
                    f"| {correct / (1 - abstained) if abstained < 1 else 0:.3f} | {mine.height} |",
                    flush=True,
                )


def alignment(given: argparse.Namespace, data: Path) -> None:
    """Contexts of five passages of one question: does a metric rank them as the reader's own answers do?"""
    metrics = ["UDCG@5", "nDCG(ideal=retrieved)@5", "P@5", "RR@5", "Utility@5"]
    taus: dict[str, list[float]] = {metric: [] for metric in metrics}
    same = 0
    for name in ("RGB", "HotpotQA"):
        cases = [case for case in SETS[name](data) if case.good and len(case.bad) >= 2][: given.questions]
        place = world(cases, 5)
        draw = random.Random(2)
        tables = []
        for number in range(given.contexts):
            rows = []
            for (query,), mine in place.judged.group_by("query", maintain_order=True):
                good, near, far = (
                    mine.filter(pl.col("kind") == kind)["passage"].to_list() for kind in ("good", "bad", "random")
                )
                some = draw.sample(good, draw.randint(1, min(2, len(good)))) if number % 2 else []
                rest = draw.sample([*near, *far], min(5 - len(some), len(near) + len(far)))
                one = [*some, *rest]
                draw.shuffle(one)
                rows += [(query, passage) for passage in one]
            tables.append(shown(pl.DataFrame(rows, schema=["query", "passage"], orient="row"), f"c{number}"))
        contexts = ragworth.Contexts.concat(tables)
        model = given.model[0]
        judged = ragworth.annotate("abstention", contexts, place.texts, model, store=given.store).table
        answers = ragworth.answer(contexts, place.texts, model, store=given.store, length=24)
        graded = ragworth.grade("deterministic", answers, place.texts, contexts=contexts).table.frame
        assert place.texts.relevance is not None
        both = ragworth.Judgments.concat([place.texts.relevance, judged])  # type: ignore[list-item]
        scores = ragworth.score(contexts, both, metrics).frame.rename({"value": "score"})
        frame = scores.join(graded.select("system", "query", "value"), on=["system", "query"]).drop_nulls(
            ["score", "value"]
        )
        for _, mine in frame.group_by("query", maintain_order=True):
            if mine["value"].n_unique() < 2:
                same += 1
                continue
            for (metric,), part in mine.group_by("metric", maintain_order=True):
                tau = kendall(part["score"].to_numpy(), part["value"].to_numpy())
                taus[str(metric)].append(tau)
    values = np.array([taus[metric] for metric in metrics])
    picks = np.random.default_rng(0).integers(0, values.shape[1], (5000, values.shape[1]))
    print(f"{values.shape[1]} questions; {same} left out, whose contexts all came to the same outcome\n")
    print(
        "| metric | mean Kendall τ-b | UDCG@5 less it, same questions | questions where it is constant |\n"
        + "| --- " * 4
        + "|"
    )
    for metric, mine in zip(metrics, values, strict=True):
        low, high = np.quantile(np.nanmean(mine[picks], axis=1), [0.025, 0.975])
        difference = values[0] - mine
        less = np.quantile(np.nanmean(difference[picks], axis=1), [0.025, 0.975])
        print(
            f"| {metric} | {np.nanmean(mine):.3f} ({low:.3f}–{high:.3f}) "
            f"| {np.nanmean(difference):+.3f} ({less[0]:+.3f} to {less[1]:+.3f}) | {int(np.isnan(mine).sum())} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Evaluate a reader on sets that it has never seen.")
    parser.add_argument("what", choices=["judging", "reading", "alignment"])
    parser.add_argument("--model", action="append", default=None)
    parser.add_argument("--store", default="reader.sqlite")
    parser.add_argument("--questions", type=int, default=600)
    parser.add_argument("--each", type=int, default=2, help="passages of each kind for a question")
    parser.add_argument("--contexts", type=int, default=10)
    parser.add_argument("--plot", type=Path, help="append each probability to this file, for a reliability plot")
    given = parser.parse_args()
    given.model = given.model or ["embedded"]
    data = Path(os.environ["RAGWORTH_DATA"])
    {"judging": judging, "reading": reading, "alignment": alignment}[given.what](given, data)


if __name__ == "__main__":
    main()
