"""Does grading by words agree with people? Against human judgements, and an own reading of answers that decline.

    RAGWORTH_DATA=… python benchmarks/grading.py               # both parts
    RAGWORTH_DATA=… python benchmarks/grading.py --disagree 20 # and answers on which people and the grader differ
    python benchmarks/grading.py --cases                       # only the cases written by hand; needs no data

Grading: every judged answer of EVOUNA-NQ (five systems; questions marked improper left out) and NQ301. NQ301 comes
without accepted answers; they are those that EVOUNA-NQ and the open NQ questions give for the same question.
Neither file has judgements of an automatic grader, so the published measures are computed here. Rules were chosen
on the questions whose SHA-256 begins with an even byte; the others are held out.

Numbers: answers with numbers from finance, science and sport, written by hand with a verdict
(``tests/text_match/answer_cases.csv``). Every third was held out while the rules were written.

Contradictions: answers that share words with the accepted one, written by hand with a verdict: half of them say
something else (``contradictions.csv``). The rules weren't made for them; they show what words miss.

Declining: 200 answers of eleven models to NoMIRACL questions (the held-out half), labelled by reading them with the
detector's verdict hidden. They were drawn by model and verdict, so each stands for ``weight`` others.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
import math
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.text_match.matching import match_answer, to_matchable
from ragworth.text_match.overlap import containment, exact_match, rouge_l, token_f1
from ragworth.text_match.refusals import find_refusal
from ragworth.text_match.short_answers import grade_short_answer

SYSTEMS = ["fid", "gpt35", "chatgpt", "gpt4", "newbing"]
SETS = ["relevant", "non_relevant"]
LABELS = Path(__file__).parents[1] / "tests" / "real" / "nomiracl_abstained.csv"
CASES = Path(__file__).parents[1] / "tests" / "text_match" / "answer_cases.csv"
CONTRADICTIONS = Path(__file__).with_name("contradictions.csv")
RESAMPLES = 2000


class Judged(NamedTuple):
    """An answer with what people said of it; ``people`` are single annotators, where they are known."""

    question: str
    source: str
    text: str
    accepted: list[str]
    correct: bool
    people: tuple[bool, ...] = ()


def lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def key(question: str) -> str:
    return " ".join(question.lower().split())


def held_out(name: str) -> bool:
    return bool(hashlib.sha256(name.encode()).digest()[0] % 2)


def evouna(data: Path) -> list[Judged]:
    with gzip.open(data / "answer_grading" / "evouna_NQ.json.gz", "rt", encoding="utf-8") as stream:
        rows = json.load(stream)
    return [
        Judged(
            key(row["question"]),
            name,
            row[f"answer_{name}"],
            row["golden_answer"].split("/"),
            row[f"judge_{name}"],
        )
        for row in rows
        if not row["improper"]
        for name in SYSTEMS
        if row[f"judge_{name}"] is not None and (row[f"answer_{name}"] or "").strip()
    ]


def nq301(data: Path) -> list[Judged]:
    with gzip.open(data / "answer_grading" / "evouna_NQ.json.gz", "rt", encoding="utf-8") as stream:
        accepted = {key(row["question"]): (row["golden_answer"] or "").split("/") for row in json.load(stream)}
    for row in lines(data / "nq_oracle" / "nq-open-oracle.jsonl.gz"):
        known = accepted.setdefault(key(row["question"]), [])
        known += [answer for answer in row["answers"] if answer not in known]
    with gzip.open(data / "answer_grading" / "NQ301_human.tsv.gz", "rt", encoding="utf-8") as stream:
        rows = list(csv.DictReader(io.StringIO(stream.read()), delimiter="\t"))
    return [
        Judged(
            key(row["Question"]),
            "nq301",
            row["Model answer"],
            [answer for answer in accepted[key(row["Question"])] if answer],
            row["Acceptable?"] == "Yes",
            (row["annotator1"] == "Yes", row["annotator2"] == "Yes"),
        )
        for row in rows
    ]


def agreement(rows: list[Judged], said: list[bool], people: list[bool]) -> dict[str, tuple[float, float, float]]:
    """Accuracy and Cohen's κ with 95 % percentile intervals over questions, because their answers go together."""
    place = {question: i for i, question in enumerate(dict.fromkeys(row.question for row in rows))}
    counts = np.zeros((len(place), 4))  # answers, agreed, said to be correct, correct by people
    for row, ours, theirs in zip(rows, said, people, strict=True):
        counts[place[row.question]] += (1, ours == theirs, ours, theirs)
    rng = np.random.default_rng(0)
    draws = rng.multinomial(len(place), np.full(len(place), 1 / len(place)), size=RESAMPLES) @ counts
    result = {}
    for name, of in (("accuracy", accuracy), ("kappa", kappa)):
        low, high = np.quantile(of(draws), [0.025, 0.975])
        result[name] = (float(of(counts.sum(axis=0))), float(low), float(high))
    return result


Counts = npt.NDArray[np.float64]


def accuracy(counts: Counts) -> Counts:
    return np.asarray(counts[..., 1] / counts[..., 0])


def kappa(counts: Counts) -> Counts:
    said, correct = counts[..., 2] / counts[..., 0], counts[..., 3] / counts[..., 0]
    chance = said * correct + (1 - said) * (1 - correct)
    return np.asarray((accuracy(counts) - chance) / (1 - chance))


GRADERS: dict[str, Callable[[Judged], bool]] = {
    "ragworth": lambda row: grade_short_answer(row.text, row.accepted, question=row.question).label == "correct",
    "containment": lambda row: containment(row.text, row.accepted) > 0,
    "exact match (SQuAD)": lambda row: exact_match(row.text, row.accepted, tokens="squad") > 0,
    "token F1 ≥ 0.5 (SQuAD)": lambda row: token_f1(row.text, row.accepted, tokens="squad") >= 0.5,
    "ROUGE-L ≥ 0.5": lambda row: rouge_l(row.text, row.accepted) >= 0.5,
}


def decisions(data: Path) -> None:
    """Precision and recall of "correct", and the share of answers that are decided."""
    print(DECISION_HEAD)
    for name, rows in (("EVOUNA-NQ", evouna(data)), ("NQ301", nq301(data))):
        chosen = [row for row in rows if held_out(row.question)]
        labels = [grade_short_answer(row.text, row.accepted, question=row.question).label for row in chosen]
        print(
            decision_row(f"{name}, held-out", [(label, row.correct) for label, row in zip(labels, chosen, strict=True)])
        )
    print()


def graded_cases(path: Path) -> list[tuple[str, str]]:
    """The grader's label and the person's verdict of cases written by hand."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [
            (grade_short_answer(row["answer"], [row["accepted"]], question=row["question"]).label, row["verdict"])
            for row in csv.DictReader(stream)
        ]


def contradictions() -> None:
    """The labels of answers that share words with the accepted one, by whether they say the same."""
    counts = Counter(graded_cases(CONTRADICTIONS))
    labels = ("correct", "undecided", "wrong", "abstained")
    print(f"| answers | {' | '.join(labels)} |\n| --- |{' ---: |' * len(labels)}")
    for verdict, name in (("correct", "say the same"), ("wrong", "say something else")):
        print(f"| {name} | {' | '.join(str(counts[label, verdict]) for label in labels)} |")
    print()


def cases() -> None:
    """The same of the answers with numbers, and how well those that decline are found."""
    rows = graded_cases(CASES)
    print(DECISION_HEAD)
    for half, part in (("development", False), ("held-out", True)):
        chosen = [row for place, row in enumerate(rows) if (place % 3 == 2) == part]
        print(decision_row(half, [(label, verdict == "correct") for label, verdict in chosen]))
    print("\n| declining | found | found wrongly | missed |\n| --- | ---: | ---: | ---: |")
    for half, part in (("development", False), ("held-out", True)):
        counts = Counter(
            (label == "abstained", verdict == "abstained")
            for place, (label, verdict) in enumerate(rows)
            if (place % 3 == 2) == part
        )
        print(f"| {half} | {counts[True, True]} | {counts[True, False]} | {counts[False, True]} |")
    print()


DECISION_HEAD = "| answers | n | decided | precision | recall, decided | recall, all |\n| --- |" + " ---: |" * 5


def decision_row(name: str, pairs: list[tuple[str, bool]]) -> str:
    decided = [pair for pair in pairs if pair[0] != "undecided"]
    right = sum(label == "correct" and correct for label, correct in decided)
    said, known, every = (
        sum(label == "correct" for label, _ in decided),
        sum(correct for _, correct in decided),
        sum(correct for _, correct in pairs),
    )
    return (
        f"| {name} | {len(pairs):,} | {len(decided) / len(pairs):.3f} | {right / said:.3f} | {right / known:.3f} "
        f"| {right / every:.3f} |"
    )


def grading(data: Path, disagree: int) -> None:
    print("| data | half | answers | questions | grader | accuracy | κ |\n|" + " --- |" * 7)
    for name, rows in (("EVOUNA-NQ", evouna(data)), ("NQ301", nq301(data))):
        for half in (False, True):
            chosen = [row for row in rows if held_out(row.question) == half]
            people = [row.correct for row in chosen]
            graded = {grader: [judge(row) for row in chosen] for grader, judge in GRADERS.items()}
            head = f"| {name} | {'held-out' if half else 'development'} | {len(chosen):,} |"
            head += f" {len({row.question for row in chosen}):,} |"
            for grader, said in graded.items():
                print(f"{head} {grader} | {shown(agreement(chosen, said, people))} |")
            if chosen[0].people:
                first, second = zip(*(row.people for row in chosen), strict=True)
                print(f"{head} one person by another | {shown(agreement(chosen, list(first), list(second)))} |")
    print()
    differing = [row for row in evouna(data) if not held_out(row.question) and GRADERS["ragworth"](row) != row.correct]
    for row in differing[:: max(1, len(differing) // disagree)][:disagree] if disagree else []:
        verdict = grade_short_answer(row.text, row.accepted, question=row.question)
        print(f"- {row.question} | {row.accepted[:3]} | {row.text[:160]!r} | people: {row.correct} | {verdict}")


def steps(data: Path) -> None:
    """How often people agree, by the reason that the grader gives; the held-out half of both sets."""
    found: dict[str, Counter[bool]] = defaultdict(Counter)
    for row in evouna(data) + nq301(data):
        if held_out(row.question):
            verdict = grade_short_answer(row.text, row.accepted, question=row.question)
            reason = verdict.why if verdict.label == "correct" else verdict.label
            found[reason.partition(" '")[0].partition(' "')[0]][row.correct] += 1
    print("| reason | answers | correct by people |\n| --- | ---: | ---: |")
    for reason, counts in sorted(found.items(), key=lambda item: -item[1].total()):
        print(f"| {reason} | {counts.total():,} | {counts[True] / counts.total():.3f} |")
    print()


def contained(data: Path) -> None:
    """Of the passages that people say have the answer, the share that contains it, by the answer's length in words."""
    pairs = [
        ("NQ", row["answers"], row["nq_annotated_gold"]["long_answer"])
        for row in lines(data / "nq_oracle" / "nq-open-oracle.jsonl.gz")
    ] + [
        ("ClapNQ", [row["output"][0]["answer"]], f"{row['passages'][0]['title']} {row['passages'][0]['text']}")
        for row in lines(data / "clapnq_dev" / "clapnq_dev_answerable.jsonl.gz")
    ]
    found: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for name, accepted, text in pairs:
        words = max(len(answer.split()) for answer in accepted)
        length = "1–5" if words <= 5 else "6–10" if words <= 10 else "11–30" if words <= 30 else "31 and more"
        passage = to_matchable(text)
        found[name, length][any(match_answer(passage, answer) for answer in accepted)] += 1
    print("| passages with the answer | words of the answer | passages | contain it |\n| --- | --- | ---: | ---: |")
    for (name, length), counts in sorted(found.items(), key=lambda item: item[0][0], reverse=True):
        print(f"| {name} | {length} | {counts.total():,} | {counts[True]:,} |")
    print()


def shown(values: dict[str, tuple[float, float, float]]) -> str:
    return " | ".join(f"{value:.3f} ({low:.3f}–{high:.3f})" for value, low, high in values.values())


class Sampled(NamedTuple):
    model: str
    declined: bool
    found: bool
    weight: float


def answers(data: Path) -> dict[tuple[str, str, str], str]:
    return {
        (name, row["query_id"], model): text
        for name in SETS
        for row in lines(data / "nomiracl_en" / f"{name}.en.test.vanilla_prompt.jsonl.gz")
        for model, text in row["results"].items()
        if text.strip()
    }


def sample(data: Path) -> list[Sampled]:
    texts = answers(data)
    with LABELS.open(encoding="utf-8", newline="") as stream:
        return [
            Sampled(
                row["model"],
                row["label"] == "abstained",
                find_refusal(texts[row["set"], row["query"], row["model"]]) is not None,
                float(row["weight"]),
            )
            for row in csv.DictReader(stream)
        ]


def share(rows: list[Sampled]) -> tuple[float, float, float]:
    """The weighted share of answers that decline, with Wilson's interval for Kish's effective number of answers."""
    total = sum(row.weight for row in rows)
    value = sum(row.weight for row in rows if row.declined) / total
    n = total**2 / sum(row.weight**2 for row in rows)
    z = 1.959963984540054
    middle, scale = value + z * z / (2 * n), 1 + z * z / n
    half = z * math.sqrt(value * (1 - value) / n + z * z / (4 * n * n))
    return value, max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def precision_and_recall(rows: list[Sampled]) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Both with intervals. Recall's comes from the share of declining answers among those not found."""
    found, others = [row for row in rows if row.found], [row for row in rows if not row.found]
    precision, missed = share(found), share(others)
    right = precision[0] * sum(row.weight for row in found)
    rest = sum(row.weight for row in others)
    value, high, low = (right / (right + part * rest) for part in missed)
    return precision, (value, low, high)


def declining(data: Path) -> None:
    rows = sample(data)
    (precision, *p_ends), (recall, *r_ends) = precision_and_recall(rows)
    wrong = Counter((row.found, row.declined) for row in rows)
    print(
        f"Declining, {len(rows)} answers read: precision {precision:.3f} ({p_ends[0]:.3f}–{p_ends[1]:.3f}), "
        f"recall {recall:.3f} ({r_ends[0]:.3f}–{r_ends[1]:.3f}); unweighted: {wrong[True, True]} found and declining, "
        f"{wrong[True, False]} found only, {wrong[False, True]} missed\n"
    )
    counts: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
    for (name, _, model), text in answers(data).items():
        counts[model][name, find_refusal(text) is not None] += 1
    print("| model | read | agreed | declines, answerable | declines, unanswerable |\n| --- |" + " ---: |" * 4)
    for model, seen in sorted(counts.items()):
        own = [row for row in rows if row.model == model]
        cells = [f"{seen[name, True]} of {seen[name, True] + seen[name, False]}" for name in SETS]
        print(f"| {model} | {len(own)} | {sum(row.found == row.declined for row in own)} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--disagree", type=int, default=0, metavar="N", help="show N answers of the development half")
    parser.add_argument("--cases", action="store_true", help="only the cases written by hand")
    options = parser.parse_args()
    if options.cases:
        cases()
        contradictions()
        return
    folder = os.environ.get("RAGWORTH_DATA")
    if not folder:
        sys.exit("RAGWORTH_DATA is not set: it names the folder of real data")
    grading(Path(folder), options.disagree)
    steps(Path(folder))
    contained(Path(folder))
    declining(Path(folder))
    decisions(Path(folder))
    cases()
    contradictions()


if __name__ == "__main__":
    main()
