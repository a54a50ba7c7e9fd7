"""Everything that one evaluation came to, and the folder that holds it.

::

    results/
      contexts.parquet  judgments.parquet  ratings.parquet  answers.parquet  outcomes.parquet  scores.parquet
      texts/            queries.parquet  passages.parquet  answers.parquet  subquestions.parquet
                        turns.parquet, if the queries are turns of conversations
      said/             NAME.parquet: what the model said in each step
      estimates.parquet  estimated-differences.parquet: where a better judge saw a sample of the queries
      manifest.json     versions, seeds, models, prompts, settings, costs; and under "results" what the folder holds

A table that was not made has no file. Files are written one by one, each there only when it is whole, and the manifest
comes last with the digest of each: a folder that was left half way is recognised when it is read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from ragworth.comparison import summarise
from ragworth.core.errors import FormatError, TableError, format_count, format_list, quote_short
from ragworth.core.file_record import RECORD_NAME as RECORD
from ragworth.core.file_record import FileRecord
from ragworth.core.nested_text import parse_json
from ragworth.data import Answers, Contexts, Judgments, Outcomes, Ratings, Scores, Table
from ragworth.data.coercion import read_parquet, write_parquet
from ragworth.data.collection import Collection
from ragworth.data.conversations import check_turns, conversation_ids
from ragworth.data.tables import html_table
from ragworth.scoring import passage_tokens, reads_file, score

FORMAT = 1
"""What :meth:`Results.write` writes; another number is refused when it is read."""

TABLES: dict[str, type[Table]] = {
    "contexts": Contexts,
    "judgments": Judgments,
    "ratings": Ratings,
    "answers": Answers,
    "outcomes": Outcomes,
    "scores": Scores,
}
REQUIRED_TABLES = ("contexts", "scores")
ESTIMATE_TABLES = ("estimates", "estimated-differences")
"""What follows from a better judge of a sample (`ragworth.two_judges`)."""
TEXT_TABLES = ("queries", "passages", "answers", "subquestions")
TURNS_FILE = "texts/turns.parquet"
"""Turns of conversations, where there are any."""
SINGLE_ANSWERS = "answers"
"""After the name of a grading step: what was said of every single answer."""
MANIFEST = "manifest.json"
EXTRA_FILES = ("summary.parquet", "comparison.parquet", "report.html", "report.md")
"""What an evaluation writes beside them."""
OVERWRITE_REMEDY = "move it away or delete it, or write to another folder (--results DIR)"
REBUILD_REMEDY = "delete the damaged files and evaluate again: they are rebuilt from the store of calls"

T = TypeVar("T", bound=Table)


@dataclass(frozen=True)
class Results:
    """One evaluation: texts, the six tables, what the model said, and where it all comes from.

    Attributes
    ----------
    collection: texts of the queries and of all passages shown, accepted answers, sub-questions. Labels and ratings
        are in ``judgments`` and ``ratings``.
    said: by step (``abstention``, ``answers``, ``grade``, …) its rows with ``reason``, ``raw`` and details. If queries
        have several answers, what a grader said of every single one is beside it, as ``STEP-answers``.
    manifest: what JSON can hold: title, versions, files, seeds, models, prompts, settings, stages with their costs.
    estimates: both tables of `ragworth.two_judges` by their names (``ESTIMATES``), or nothing.
    """

    collection: Collection
    contexts: Contexts
    judgments: Judgments | None
    ratings: Ratings | None
    answers: Answers | None
    outcomes: Outcomes | None
    scores: Scores
    said: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    estimates: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def said_of_answers(self, step: str) -> pl.DataFrame | None:
        """What a grader said of every single answer; None if it graded none."""
        return self.said.get(f"{step}-{SINGLE_ANSWERS}", self.said.get(step))

    @property
    def conversations(self) -> dict[str, str]:
        """The conversation of each turn; empty if queries are independent."""
        return conversation_ids(self.collection)

    def _repr_html_(self) -> str:
        """Means of outcomes and metrics as a small table, for notebooks."""
        rows = [
            {
                "": row["metric"],
                "system": row["system"],
                "mean": row["mean"],
                "low": row["low"],
                "high": row["high"],
                "n of N": f"{row['n']:,} of {row['total']:,}",
                "missing": row["missing"],
            }
            for row in summarise(self).iter_rows(named=True)
        ]
        frame = pl.DataFrame(rows, schema_overrides=dict.fromkeys(("mean", "low", "high"), pl.Float64))
        title = self.manifest.get("title")
        caption = f"{title + ': ' if isinstance(title, str) and title else ''}means with 95 % intervals"
        return html_table(
            frame if any(row["missing"] for row in rows) else frame.drop("missing", strict=False), caption
        )

    def first_queries(self, number: int) -> Results:
        """The results of the first queries that have an outcome."""
        known = self.outcomes if self.outcomes is not None else self.contexts
        some = known.frame["query"].unique(maintain_order=True).head(number).to_list()

        def only(table: T) -> T:
            return type(table).trusted(table.frame.filter(pl.col("query").is_in(some)), table.notes)

        return replace(
            self,
            contexts=only(self.contexts),
            scores=only(self.scores),
            outcomes=only(self.outcomes) if self.outcomes is not None else None,
            answers=only(self.answers) if self.answers is not None else None,
        )

    def with_metrics(self, metrics: Sequence[str]) -> Results:
        """With the scores of some metrics: those that are there, and others computed now.

        A metric that reads a file is always computed: the file may be another one by now.
        """
        stay = [metric for metric in metrics if not reads_file(metric)]
        frame = self.scores.frame.filter(pl.col("metric").is_in(stay))
        if lacking := [metric for metric in metrics if metric not in set(frame["metric"])]:
            frame = pl.concat([frame, self.score(lacking).frame])
        return replace(self, scores=Scores.trusted(frame, self.scores.notes))

    def outcomes_of(self, aspect: str) -> pl.DataFrame:
        """The outcomes of an aspect, those without a value too."""
        frame = self.outcomes.frame if self.outcomes is not None else pl.DataFrame(schema=Outcomes.schema)
        return frame.filter(pl.col("aspect") == aspect)

    def scores_by_metric(self) -> dict[str, pl.DataFrame]:
        """The scores of each metric, those without a value too."""
        return {str(metric): part for (metric,), part in self.scores.frame.group_by("metric", maintain_order=True)}

    def score(self, metrics: Sequence[str], contexts: Contexts | None = None) -> Scores:
        """Scores of its contexts, or of other ones, by its judgments, ratings and texts."""
        shown, tokens = self.contexts if contexts is None else contexts, passage_tokens(self.collection)
        return score(shown, self.judgments, list(metrics), ratings=self.ratings, tokens=tokens, complete=False)

    def write(self, folder: str | Path) -> None:
        """Write all of it to a folder; what an earlier evaluation wrote there and this one does not have is deleted.

        Files that ragworth did not write are never replaced or deleted: one that is in the way is an error.
        """
        files = {f"{name}.parquet": table.file_frame for name in TABLES if (table := getattr(self, name)) is not None}
        files |= {f"{name}.parquet": self.estimates[name] for name in ESTIMATE_TABLES if name in self.estimates}
        files |= {f"texts/{name}.parquet": getattr(self.collection, name) for name in TEXT_TABLES}
        if self.collection.turns.height:
            files[TURNS_FILE] = self.collection.turns
        for name, frame in self.said.items():
            if not re.fullmatch(r"[\w-]+", name):
                raise TableError(f"{quote_short(name)} cannot name a file", expected="letters, digits, _ and -")
            files[f"said/{name}.parquet"] = frame
        manifest = json.dumps(dict(self.manifest), ensure_ascii=False)  # fails before anything is written
        record = results_record(folder)
        record.refuse_foreign([*files, MANIFEST])
        digests = {name: record.write(name, partial(write_parquet, frame)) for name, frame in files.items()}
        record.remove(name for name in record.names - set(files) if _is_table(name))
        tables = {name: getattr(self, name) for name in TABLES}
        whole = json.loads(manifest) | {
            "results": {
                "format": FORMAT,
                "empty": sorted([system, query] for system, query in self.contexts.empty),
                "notes": {name: list(table.notes) for name, table in tables.items() if table is not None},
                "files": digests,
            }
            | ({"turns": self.collection.turn_form} if self.collection.turns.height else {})
        }
        record.write(MANIFEST, (json.dumps(whole, ensure_ascii=False, indent=1) + "\n").encode())
        record.finish()

    @classmethod
    def read(cls, folder: str | Path) -> Results:
        """Read back what :meth:`write` wrote."""
        folder = Path(folder)
        manifest = _read_manifest(folder)
        inside = manifest.pop("results")
        frames = _read_frames(folder, inside["files"])
        made: dict[str, Any] = dict.fromkeys(TABLES)
        for name, table in TABLES.items():
            if (frame := frames.get(f"{name}.parquet")) is not None:
                made[name] = table(frame, source=str(folder / f"{name}.parquet"))
                made[name].notes = tuple(inside["notes"].get(name, ()))
        made["contexts"].empty = frozenset((system, query) for system, query in inside["empty"])
        texts: dict[str, Any] = {name: frames[f"texts/{name}.parquet"] for name in TEXT_TABLES}
        if TURNS_FILE in frames:
            texts["turns"] = check_turns(frames[TURNS_FILE], str(folder / TURNS_FILE))
            texts["turn_form"] = inside.get("turns", "conversation")
        said = {Path(name).stem: frame for name, frame in frames.items() if name.startswith("said/")}
        estimates = {name: frames[file] for name in ESTIMATE_TABLES if (file := f"{name}.parquet") in frames}
        return cls(Collection(**texts), said=said, manifest=manifest, estimates=estimates, **made)


def results_record(folder: str | Path) -> FileRecord:
    """Which files of a folder of results ragworth wrote."""
    return FileRecord(folder, OVERWRITE_REMEDY)


def delete_results(folder: Path) -> None:
    """Delete results, and the folder where nothing else is in it."""
    record = results_record(folder)
    record.remove(record.names)
    record.finish()
    if not record.names:
        (folder / RECORD).unlink(missing_ok=True)
    for each in (*(folder / name for name in ("texts", "said", "figures")), folder):
        with suppress(OSError):
            each.rmdir()


def fixed_file_names() -> list[str]:
    """All files that results have, or may have, whatever is evaluated."""
    return [
        *(f"{name}.parquet" for name in (*TABLES, *ESTIMATE_TABLES)),
        *(f"texts/{name}.parquet" for name in TEXT_TABLES),
        TURNS_FILE,
        MANIFEST,
    ]


def _is_table(name: str) -> bool:
    """Whether this module writes files of this name."""
    return name in fixed_file_names()[:-1] or re.fullmatch(r"said/[\w-]+\.parquet", name) is not None


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not folder.is_dir():
        raise FormatError("there is no such folder", file=str(folder), expected="results of ragworth evaluate")
    try:
        manifest = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FormatError(
            "this is not a results folder, or it is incomplete: it has no manifest.json",
            file=str(folder),
            expected="a folder written by ragworth evaluate, such as my-evaluation/results",
            remedy="run ragworth evaluate; if it was interrupted, run it again",
        ) from error
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot be read as JSON: {error}", file=str(path), remedy=REBUILD_REMEDY) from error
    inside = manifest.get("results") if isinstance(manifest, dict) else None
    if not isinstance(inside, dict) or not {"format", "empty", "notes", "files"} <= set(inside):
        raise FormatError("it does not say what the folder holds", file=str(path), remedy=REBUILD_REMEDY)
    if inside["format"] != FORMAT:
        raise FormatError(
            f"these results are of format {inside['format']}",
            file=str(path),
            expected=f"format {FORMAT}",
            remedy=REBUILD_REMEDY,
        )
    lacking = [name for name in REQUIRED_TABLES if f"{name}.parquet" not in inside["files"]]
    lacking += [f"texts/{name}" for name in TEXT_TABLES if f"texts/{name}.parquet" not in inside["files"]]
    if lacking:
        raise FormatError(f"it names no {format_list(lacking)}", file=str(path), remedy=REBUILD_REMEDY)
    return dict(manifest)


def _read_frames(folder: Path, digests: Mapping[str, str]) -> dict[str, pl.DataFrame]:
    """The files that the manifest names, each checked against its digest; all wrong ones are reported together."""
    frames: dict[str, pl.DataFrame] = {}
    wrong: list[str] = []
    for name, digest in digests.items():
        try:
            data = (folder / name).read_bytes()
        except OSError as error:
            wrong.append(f"{name}: {error.strerror or error}")
            continue
        if hashlib.sha256(data).hexdigest() != digest:
            wrong.append(f"{name}: not the file that the manifest was written with")
            continue
        try:
            frames[name] = read_parquet(data)
        except FormatError as error:
            wrong.append(f"{name}: {error.found}")
    if wrong:
        raise FormatError(
            f"{format_count(len(wrong), 'file')} of these results cannot be used",
            more=tuple(wrong[:12]),
            file=str(folder),
            remedy=REBUILD_REMEDY,
        )
    return frames
