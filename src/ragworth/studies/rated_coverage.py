"""Coverage and density of long answers at any threshold, from ratings that were given once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import FormatError, InputError, format_list
from ragworth.data import OK
from ragworth.data.tokens import TokenCounter, count_words
from ragworth.formats import read_ratings
from ragworth.formats.files import PathOrStr, run_name
from ragworth.formats.tables import read_table
from ragworth.formats.texts import read as read_texts
from ragworth.metrics.required_passages import REQUIRED, answerable, required, without_failed
from ragworth.results import Results
from ragworth.text_match.sentences import without_citations

WEIGHT = 0.5
"""Exponent of density, as for contexts."""
VALUES = {"system": pl.String, "query": pl.String, "value": pl.Float64}
NOTHING = pl.DataFrame(schema=VALUES)
HUMAN = "(human)"
"""The system whose answers people wrote."""
ACCEPTED, LONG = "answers", 20
"""The source that means the accepted answers, and the fewest words of one that is a long answer."""
THRESHOLD = r"(?:^| · )eta ([0-9.]+)(?: · |$)"
"""How the source of a grade names its threshold."""


class AnswerCoverage(NamedTuple):
    """Coverage and density of answers at one threshold: tables of system, query and value."""

    coverage: pl.DataFrame
    density: pl.DataFrame

    def __bool__(self) -> bool:
        return any(each.height for each in self)


def answer_coverage(results: Results, eta: float) -> AnswerCoverage:
    """What the answers cover, from their ratings, or as graded at this threshold.

    Nothing is known of answers that weren't rated for everything that is answerable at this threshold.
    """
    rated, graded = _from_ratings(results, eta), _graded(results, eta)
    return AnswerCoverage(*(one if one.height else other for one, other in zip(rated, graded, strict=True)))


def _from_ratings(results: Results, eta: float) -> AnswerCoverage:
    said = results.said.get("coverage")
    if said is None or results.ratings is None or "ratings" not in said.columns:
        return AnswerCoverage(NOTHING, NOTHING)
    wanted, lengths = answerable(results.ratings, eta), _required_tokens(results, eta)
    shares: dict[tuple[str, str], list[float]] = {}
    dense: dict[tuple[str, str], list[float]] = {}
    rows = said.filter((pl.col("aspect") == "coverage") & (pl.col("status") == OK))
    names = ("system", "query", "subquestions", "ratings", "tokens")
    for system, query, parts, values, tokens in rows.select(names).iter_rows():
        rated = dict(zip(parts or [], values or [], strict=True))
        asked = wanted.get(query)
        if not asked or not asked <= rated.keys():
            continue
        share = sum(rated[name] >= eta for name in asked) / len(asked)
        shares.setdefault((system, query), []).append(share)
        if not share:
            dense.setdefault((system, query), []).append(0.0)
        elif tokens and lengths.get(query):
            dense.setdefault((system, query), []).append((share * lengths[query] / tokens) ** WEIGHT)
    made = ([(*pair, sum(some) / len(some)) for pair, some in each.items()] for each in (shares, dense))
    return AnswerCoverage(*(pl.DataFrame(each, schema=VALUES, orient="row") for each in made))


def _graded(results: Results, eta: float) -> AnswerCoverage:
    """Grades whose source names this threshold; others may have had any."""
    if results.outcomes is None:
        return AnswerCoverage(NOTHING, NOTHING)
    rows = results.outcomes.frame.filter(pl.col("status") == OK)
    mine = rows.filter(pl.col("source").str.extract(THRESHOLD).cast(pl.Float64, strict=False) == eta)
    return AnswerCoverage(
        *(mine.filter(pl.col("aspect") == aspect).select(list(VALUES)) for aspect in AnswerCoverage._fields)
    )


def coverage_by_people(results: Results, eta: float, file: str | None, systems: list[str]) -> pl.DataFrame:
    """Coverage of answers by others than the grader: system, query, judge and value.

    They are the outcomes ``JUDGE-coverage``, and those in a file of people's coverage of some of the ``systems``.
    """
    found = [pl.DataFrame(schema={**VALUES, "judge": pl.String})]
    if results.outcomes is not None:
        named = results.outcomes.frame.filter(pl.col("aspect").str.ends_with("-coverage"))
        found.append(named.select(*VALUES, judge=pl.col("aspect").str.strip_suffix("-coverage")))
    if file and results.ratings is not None:
        found.append(read_coverage(file, answerable(results.ratings, eta), systems))
    return pl.concat(found).drop_nulls("value")


def read_coverage(place: PathOrStr, answerable: Mapping[str, frozenset[str]], systems: list[str]) -> pl.DataFrame:
    """Read people's coverage of answers: system, query, judge and value.

    The table has system, query, value and optionally judge; with a column ``subquestion``, values are 0 or 1, and the
    coverage is their mean over the ``answerable`` ones, by query; null if a judge said nothing of some of them.
    """
    frame, _ = read_table(place, words=("judge",))
    if missing := [name for name in ("system", "query", "value") if name not in frame.columns]:
        raise FormatError(
            f"no column {format_list(missing)}", file=str(place), expected="system, query, value; optionally judge"
        )
    judge = pl.col("judge").cast(pl.String) if "judge" in frame.columns else pl.lit(run_name(place))
    keys = [pl.col("system").cast(pl.String), pl.col("query").cast(pl.String), judge.alias("judge")]
    rows = frame.select(
        *keys, pl.col("value").cast(pl.Float64), *(["subquestion"] if "subquestion" in frame.columns else [])
    )
    if "subquestion" in rows.columns:
        rows = _mean_of_answerable(rows, answerable)
    if not rows["system"].is_in(systems).any():
        raise InputError(
            f"no answers of {format_list(list(systems), 6)}", file=str(place), expected="systems of the study"
        )
    if not rows["value"].count():
        raise InputError(
            "no judge labelled all answerable sub-questions of an answer",
            file=str(place),
            remedy="use consensus-subquestions.csv of `ragworth label export`, which has all people's labels together",
        )
    return rows.select("system", "query", "value", "judge")


def _mean_of_answerable(rows: pl.DataFrame, answerable: Mapping[str, frozenset[str]]) -> pl.DataFrame:
    """Each judge's mean over the answerable sub-questions of an answer, if they judged all of them."""
    pairs = [(query, each) for query, parts in answerable.items() for each in parts]
    wanted = pl.DataFrame(pairs, schema={"query": pl.String, "subquestion": pl.String}, orient="row")
    mine = rows.with_columns(pl.col("subquestion").cast(pl.String)).join(
        wanted, on=["query", "subquestion"], how="semi", maintain_order="left"
    )
    judged = pl.col("subquestion").filter(pl.col("value").is_not_null()).n_unique()
    means = mine.group_by("system", "query", "judge", maintain_order=True).agg(pl.mean("value"), judged=judged)
    counts = means.join(wanted.group_by("query").len("all"), on="query", how="left", maintain_order="left")
    return counts.select(*("system", "query", "judge"), pl.when(judged=pl.col("all")).then("value").alias("value"))


def _required_tokens(results: Results, eta: float) -> Mapping[str, int]:
    """Tokens of each query's required subset, if the texts of all its passages are known."""
    assert results.ratings is not None
    classes = required(without_failed(results.ratings), eta).filter(pl.col("class") == REQUIRED)
    chosen = classes.join(results.collection.tokens(), on="passage", how="left")
    sums = chosen.group_by("query").agg(pl.col("tokens").sum(), pl.col("tokens").is_null().any().alias("unknown"))
    return {query: tokens for query, tokens, unknown in sums.iter_rows() if not unknown}


def human_texts(answers: pl.DataFrame, source: str) -> dict[str, str]:
    """What somebody wrote for each query: a file's text, or the only accepted answer of at least `LONG` words."""
    frame = answers if source == ACCEPTED else read_texts(source, "answers").answers
    long = [(query, text) for query, text in frame.iter_rows() if source != ACCEPTED or count_words(text) >= LONG]
    counts = Counter(query for query, _ in long)
    if texts := {query: text for query, text in long if counts[query] == 1}:
        return texts
    raise InputError(
        "no query has exactly one text by a person" + (f" of {LONG} words or more" if source == ACCEPTED else ""),
        file="" if source == ACCEPTED else source,
        remedy="name a file with query and text: --human FILE",
    )


def with_human_ratings(results: Results, file: str, texts: Mapping[str, str], counter: TokenCounter) -> Results:
    """The results with given ratings of what people wrote; without a text, there is coverage and no density."""
    rated = read_ratings(file).frame.filter(pl.col("status") == OK)
    best = rated.group_by("query", "subquestion", maintain_order=True).agg(pl.max("value"))
    rows = best.group_by("query", maintain_order=True).agg(subquestions="subquestion", ratings="value")
    tokens = {query: counter.count(without_citations(text)) for query, text in texts.items()}
    frame = rows.with_columns(
        pl.col("query").replace_strict(tokens, default=None, return_dtype=pl.Int64).alias("tokens"),
        system=pl.lit(HUMAN),
        aspect=pl.lit("coverage"),
        status=pl.lit(OK),
        source=pl.lit(file),
    )
    known = [results.said["coverage"].filter(pl.col("system") != HUMAN)] if "coverage" in results.said else []
    said = pl.concat([*known, frame], how="diagonal_relaxed")
    return replace(results, said={**results.said, "coverage": said})
