"""The checks of ragworth build on two published sets: what share of their questions fails each.

    RAGWORTH_DATA=FOLDER python -m benchmarks.published_sets [--set NAME] [--sample N] [--check NAME] [--reader none]

ClapNQ's development set (answerable questions with their passage and answer) and MuSiQue (questions on two to four
paragraphs). A failure isn't an error of the authors: each set was made for another purpose than this one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ragworth.build.checks.run import CheckResult, CheckSettings, run_checks
from ragworth.build.checks.summary import examples_table, flag_scores, summarise_checks, summary_table
from ragworth.build.question_set import Question, QuestionSet
from ragworth.build.questions.contract import SourceSpan
from ragworth.calls.job import Job
from ragworth.llm import llm
from ragworth.report.render import markdown_table


def _frame(passages: dict[str, str]) -> pl.DataFrame:
    return pl.DataFrame({"passage": list(passages), "text": list(passages.values())})


def read_clapnq(folder: Path) -> QuestionSet:
    """Answerable questions; the spans are the sentences that the annotators chose."""
    questions, passages = [], {}
    with gzip.open(folder / "clapnq_dev" / "clapnq_dev_answerable.jsonl.gz", "rt", encoding="utf-8") as stream:
        rows: list[dict[str, Any]] = [json.loads(line) for line in stream]
    for row in rows:
        passages[row["id"]] = row["passages"][0]["text"]
        chosen = row["output"][0].get("selected_sentences") or []
        answers = tuple(text for each in row["output"] if (text := each.get("answer", "").strip()))
        spans = tuple(SourceSpan(row["id"], text) for text in chosen if text.strip())
        questions.append(Question(row["id"], row["input"], answers, (row["id"],), spans))
    return QuestionSet(tuple(questions), _frame(passages))


def read_musique(folder: Path) -> QuestionSet:
    """Questions on several paragraphs, without spans."""
    questions, passages = [], {}
    with gzip.open(folder / "multihop" / "musique.json.gz", "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    rows = rows[0] if len(rows) == 1 and isinstance(rows[0], list) else rows
    for row in rows:
        support = []
        for paragraph in row["paragraphs"]:
            id = f"{row['id']} {paragraph['idx']}"
            passages[id] = f"{paragraph['title']}\n{paragraph['paragraph_text']}"
            support += [id] if paragraph["is_supporting"] else []
        answers = (row["answer"], *row.get("answer_aliases", ()))
        questions.append(Question(row["id"], row["question"], tuple(dict.fromkeys(answers)), tuple(support)))
    return QuestionSet(tuple(questions), _frame(passages))


SETS = {"ClapNQ": read_clapnq, "MuSiQue": read_musique}


def draw_questions(questions: QuestionSet, number: int | None, seed: int) -> QuestionSet:
    """Some of the questions, drawn at random and in their order, with all passages; all of them without a number."""
    if number is None or number >= len(questions.questions):
        return questions
    chosen = sorted(random.Random(seed).sample(range(len(questions.questions)), number))
    return replace(questions, questions=tuple(questions.questions[at] for at in chosen))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=[*SETS], action="append")
    parser.add_argument("--check", action="append", default=[])
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", default="embedded")
    parser.add_argument("--encoder", default="embedded")
    parser.add_argument("--store", default="published_sets.sqlite")
    parser.add_argument("--cache", type=Path, help="folder for the vectors of passages")
    parser.add_argument("--output", type=Path, help="folder for all findings, as CSV")
    given = parser.parse_args()
    folder = Path(os.environ["RAGWORTH_DATA"])
    for name in given.set or SETS:
        questions = draw_questions(SETS[name](folder), given.sample, given.seed)
        settings = CheckSettings(tuple(given.check), given.encoder, given.cache)
        with Job(llm(given.reader), given.store) if given.reader != "none" else nullcontext() as job:
            result = run_checks(questions, settings, job)
        print_result(name, result)
        if given.output:
            given.output.mkdir(parents=True, exist_ok=True)
            result.frame.write_csv(given.output / f"{name}-checks.csv")


def print_result(name: str, result: CheckResult) -> None:
    ids = [question.id for question in result.questions.questions]
    print(f"\n## {name}: {len(ids)} questions, {result.questions.passages.height} passages\n")
    for table in (summary_table(summarise_checks(result)), examples_table(result), flag_scores(result, ids)):
        print(markdown_table(table))
    for note in result.notes:
        print(f"- {note}", flush=True)


if __name__ == "__main__":
    main()
