"""``ragworth.study``: a study of workspaces, or of results that are there, from its contexts to its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from ragworth import __version__, config
from ragworth.collection import COUNTER
from ragworth.errors import FormatError, InputError
from ragworth.evaluation.alone import alone
from ragworth.evaluation.asking import Models
from ragworth.evaluation.checking import prepared
from ragworth.evaluation.kept import frame_digest
from ragworth.evaluation.planning import Stage
from ragworth.evaluation.state import Console, Silent
from ragworth.judging.settings import given
from ragworth.metrics.engine import Tokens
from ragworth.report.page import listed_again
from ragworth.report.study import Findings, write
from ragworth.results import Results
from ragworth.scoring import score, split
from ragworth.studies import STUDIES
from ragworth.studies.bench import FOLDER, Bench, Planned, fitted
from ragworth.studies.contract import Case, Study
from ragworth.tables import Scores

CASES = "cases"
"""Folder of the tables that a study made, below its own; each can be studied again without a model."""


@dataclass(frozen=True)
class Studied:
    """What came of a study: what it says, the tables it is from, and where all of it lies."""

    findings: Findings
    cases: tuple[Case, ...]
    folder: Path | None
    page: Path | None


def study(
    name: str,
    places: Sequence[str | Path] | str | Path = ".",
    *,
    metrics: Sequence[str] = (),
    limit: int | None = None,
    every: bool = False,
    output: str | Path | None = None,
    keep: bool = True,
    console: Console | None = None,
    wait: float = 0.0,
    **settings: Any,
) -> Studied:
    """Run a study.

    Parameters
    ----------
    name: ``alignment``, ``ideal``, …; ``ragworth study --help`` lists them.
    places: workspaces (files or folders), for each of which contexts are made and asked about; or folders of results,
        an evaluation's or those of an earlier study (below its ``cases``), for which no model is asked.
    metrics: written forms; by default those that what is known allows.
    limit, every: only the first queries, or all, as in `ragworth.evaluate`.
    output: folder to write to; by default ``studies/NAME`` in the results of the first place.
    keep: write tables, figures and the page; False only returns them.
    console: who is told how it goes.
    wait: seconds to wait for another process that uses a workspace or its store.
    settings: those of the study; ``ragworth study NAME --help`` lists them.
    """
    chosen = _made(name, settings)
    if metrics:
        split(list(metrics))  # refuses names that nobody knows, before anything is spent
    where = [Path(each) for each in ([places] if isinstance(places, str | Path) else places)]
    if not where:
        raise InputError("there is nothing to study", expected="one or more workspaces, or folders of results")
    read = [chosen.reads(place) for place in where]
    fresh = [one is None and not is_results(place) for one, place in zip(read, where, strict=True)]
    cases = _named(
        [
            _run(chosen, place, metrics, limit, every, console or Silent(), wait)
            if new
            else chosen.take(one or read_case(place, metrics))
            for one, place, new in zip(read, where, fresh, strict=True)
        ]
    )
    findings = chosen.find(cases)
    findings = replace(findings, settings={**_provenance(chosen, cases), **findings.settings})
    if not keep:
        return Studied(findings, tuple(cases), None, None)
    folder = Path(output) if output is not None else _folder(where[0]) / chosen.kind
    # Tables that were there already stay as they are, where they are.
    page = _written(findings, [case for case, new in zip(cases, fresh, strict=True) if new], folder)
    return Studied(findings, tuple(cases), folder, page)


def planned(
    name: str,
    places: Sequence[str | Path],
    *,
    metrics: Sequence[str] = (),
    limit: int | None = None,
    every: bool = False,
    **settings: Any,
) -> list[Stage]:
    """What a study would take; nothing is asked of a model."""
    chosen, found = _made(name, settings), []
    for place in map(Path, places):
        if (one := chosen.reads(place)) is not None or is_results(place):
            chosen.take(one or read_case(place, metrics))
            continue
        space = chosen.fit(fitted(config.read(place), chosen.judges, answers=chosen.answers))
        with Models(space) as models:
            material = prepared(space, models, limit=limit, every=every)
            plan: list[Stage] = []
            with suppress(Planned):
                chosen.run(Bench(material, models, chosen.kind, space.title, plan=plan, metrics=tuple(metrics)))
            several = f"{space.title}: " if len(places) > 1 else ""
            found += [Stage(f"{several}{stage.name}", stage.words) for stage in plan]
    return found


def _made(name: str, settings: dict[str, Any]) -> Study:
    kind = STUDIES.get(name)
    return kind(**given(kind, settings, name))


def is_results(place: Path) -> bool:
    """Whether a place is a folder of results, and not a workspace."""
    return place.is_dir() and (place / "manifest.json").is_file() and not (place / config.NAME).is_file()


def _run(
    chosen: Study, place: Path, metrics: Sequence[str], limit: int | None, every: bool, console: Console, wait: float
) -> Case:
    space = chosen.fit(fitted(config.read(place), chosen.judges, answers=chosen.answers))
    with Models(space, wait) as models:
        material = prepared(space, models, limit=limit, every=every)
        if chosen.labels and not material.setting.labels and "relevance" not in space.judgments:
            raise InputError(
                f"{chosen.kind} needs relevance labels",
                file=str(space.file),
                remedy="name qrels under [collection], or have it judged: relevance = true under [judgments]",
            )
        if chosen.answers and not material.collection.answers.height and not space.grades.keys() - {"deterministic"}:
            raise InputError(
                f"{chosen.kind} grades answers, and there are no accepted ones",
                file=str(space.file),
                remedy="name answers under [collection], or a grader under [grades] that needs none",
            )
        with alone(space, wait):
            bench = Bench(material, models, chosen.kind, space.title, console, metrics=tuple(metrics))
            return chosen.run(bench)


def read_case(folder: Path, metrics: Sequence[str] = ()) -> Case:
    """A case out of a folder of results; metrics that it has no scores of are computed from its judgments."""
    results = Results.read(folder)
    inside = results.manifest.get("study")
    name = str(results.manifest.get("title") or folder.resolve().parent.name)
    made = Case(name, results)
    if isinstance(inside, dict):
        try:
            design = pl.DataFrame(inside["design"], infer_schema_length=None) if inside["design"] else made.design
            made = Case(str(inside["case"]), results, design, dict(inside["left_out"]))
        except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise FormatError(f"what it says of its study cannot be read: {error}", file=str(folder)) from error
    return replace(made, results=replace(results, scores=_scores(results, metrics))) if metrics else made


def _scores(results: Results, metrics: Sequence[str]) -> Scores:
    """The scores of some metrics: those that are there, and others computed now."""
    frame = results.scores.frame.filter(pl.col("metric").is_in(list(metrics)))
    lacking = [metric for metric in metrics if metric not in set(frame["metric"])]
    if lacking:
        texts = results.collection
        tokens = Tokens.of(texts.tokens(), COUNTER) if texts.passages.height else None
        more = score(
            results.contexts, results.judgments, lacking, ratings=results.ratings, tokens=tokens, complete=False
        )
        frame = pl.concat([frame, more.frame])
    return Scores.trusted(frame, results.scores.notes)


def _named(cases: list[Case]) -> list[Case]:
    """Cases of the same name get a number."""
    counts = Counter(case.name for case in cases)
    seen: Counter[str] = Counter()
    made = []
    for case in cases:
        seen[case.name] += 1
        more = f" ({seen[case.name]})" if counts[case.name] > 1 else ""
        made.append(replace(case, name=case.name + more))
    return made


def _folder(place: Path) -> Path:
    """Where the studies of a place lie."""
    if is_results(place):
        inside = place.resolve()
        # The tables of a study, studied again: beside that study.
        return inside.parents[2] if inside.parent.name == CASES and inside.parents[2].name == FOLDER else place / FOLDER
    if place.is_file() and place.suffix != ".toml":
        return place.parent / FOLDER
    space = config.read(place)
    return space.path(space.results) / FOLDER


def _written(findings: Findings, cases: Sequence[Case], folder: Path) -> Path:
    """Tables of the cases, then what the study says; the report of the evaluation beside it names it."""
    report = folder.parent.parent / "report.html"
    there = report.is_file() and folder.parent.name == FOLDER
    for number, case in enumerate(cases, 1):
        about = {
            "case": case.name,
            "design": case.design.to_dicts() if case.design.width > 1 else [],
            "left_out": dict(case.left_out),
        }
        results = replace(case.results, manifest={**case.results.manifest, "study": about})
        place = folder / CASES / f"{number:02d}"
        results.write(place)
    page = write(findings, folder, back=report if there else None)
    if there:
        listed_again(report)
    return page


def _provenance(chosen: Study, cases: Sequence[Case]) -> dict[str, Any]:
    """What is needed to make each number again."""
    made: dict[str, Any] = {"study": chosen.kind, "ragworth": __version__, "settings": chosen.settings}
    made["cases"] = [
        {
            "name": case.name,
            "workspace": case.results.manifest.get("workspace"),
            "models": [each.get("name") for each in case.results.manifest.get("models", []) if isinstance(each, dict)],
            "seed": case.results.manifest.get("seed"),
            "contexts": frame_digest(case.results.contexts.frame),
        }
        for case in cases
    ]
    return made
