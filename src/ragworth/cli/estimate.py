"""``ragworth estimate``."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from ragworth.cli.comparables import ComparisonInputs, split_comparables
from ragworth.cli.output import OutputTable, emit, output_format, output_options, print_notes
from ragworth.cli.scoring_options import ScoringOptions, read_scoring_inputs, scoring_options


@click.command("estimate", short_help="Estimate means from a cheap judge and a sample by an expensive one.")
@scoring_options
@click.option(
    "--expensive",
    required=True,
    multiple=True,
    metavar="FILE",
    help="Judgments by the better judge, for queries drawn at random; those of the same aspect in -j and -q are the "
    "cheap ones.",
)
@click.option(
    "--corrections",
    multiple=True,
    metavar="FILE",
    help="Labels by the better judge of items drawn because judges disagree; they replace the cheap ones.",
)
@click.option("-b", "--baseline", help="The system the others are compared with.  [default: the first]")
@output_options
def command(
    expensive: tuple[str, ...],
    corrections: tuple[str, ...],
    baseline: str | None,
    look: str | None,
    output: str | None,
    level: float,
    resamples: int | None,
    seed: int,
    quiet: bool,
    **given: Any,
) -> None:
    """Estimate the mean that an expensive judge would give for all queries, from its judgments of a sample.

    The cheap judge (-j, -q) has judged everything shown, the expensive one everything for some queries, drawn at
    random. "effective" is the number of queries that the sample alone would have needed for an interval this short.
    "judged" counts expensive judgments, and "saved" how many more that would have taken. "cheap alone" has the cheap
    judge's bias. CSV and Parquet have the means; the other formats have the differences too.

    \b
    ragworth estimate -q qrels.txt -j cheap.parquet --expensive expensive.parquet -m UDCG@5 bm25.run dense.run
    ragworth estimate results --expensive human.csv -m correct
    ragworth estimate results --expensive estimate-outcomes.csv --corrections corrections-outcomes.csv -m correct

    Instead of runs, name results or tables of outcomes (system, query, aspect, value) to estimate grades of answers:
    theirs are the cheap ones, and --expensive has better ones, such as people's, for some queries.
    """
    from ragworth import formats
    from ragworth.data import Judgments
    from ragworth.data.conversations import independence_notes
    from ragworth.two_judges import estimate
    from ragworth.two_judges.strata import check_corrections, check_random_share

    look = output_format(look, output, level)
    if given["incomplete"]:
        raise click.UsageError("--incomplete is not for estimates: a query counts for all systems or for none")
    skip = given["skip_bad_lines"]
    facts: dict[str, Any] = {"level": level, "resamples": resamples or 2000, "seed": seed}
    inputs = split_comparables(given["runs"], skip)
    for path in corrections:
        check_corrections(path)
    if inputs.tables:
        for path in expensive:
            check_random_share(path)
        files = (expensive, corrections)
        _emit(_estimate_answers(inputs, files, given["metrics"], skip, baseline, facts), look, output, facts, quiet)
        return

    def read_expensive(path: str) -> Judgments:
        judgments = formats.read_judgments(path, skip_bad_lines=skip)
        check_random_share(path)
        return judgments

    readings = [partial(read_expensive, path) for path in expensive]
    readings += [partial(formats.read_judgments, path, skip_bad_lines=skip) for path in corrections]
    found, dear = read_scoring_inputs(ScoringOptions(**given), readings)
    better, known = Judgments.concat(dear[: len(expensive)]), Judgments.concat(found.judgments)
    twice = known.frame["aspect"].is_in(better.frame["aspect"].unique().to_list())
    cheap = known.frame.filter(twice) if twice.any() else known.frame  # which is refused, with what there is
    result = estimate(
        found.contexts,
        Judgments.trusted(cheap, known.notes),
        better,
        found.metrics,
        others=Judgments.trusted(known.frame.filter(~twice)),
        corrections=Judgments.concat(dear[len(expensive) :]) if corrections else None,
        ratings=found.ratings,
        tokens=found.tokens,
        baseline=baseline,
        **facts,
    )
    notes = (*found.notes, *result.notes, *independence_notes(found.conversations))
    result = result._replace(notes=tuple(dict.fromkeys(notes)))
    _emit(result, look, output, facts, quiet)


def _estimate_answers(
    inputs: ComparisonInputs,
    files: tuple[tuple[str, ...], tuple[str, ...]],
    names: tuple[str, ...],
    skip: bool,
    baseline: str | None,
    facts: Any,
) -> Any:
    """Estimates for grades of answers; ``files`` are the expensive ones and the corrections."""
    from ragworth.comparison import conversations_of, join_scores
    from ragworth.data.conversations import independence_notes
    from ragworth.formats import outcomes
    from ragworth.two_judges import estimate_outcomes

    if inputs.runs:
        raise click.UsageError("give runs and judgments, or outcomes and results, not both")
    cheap = join_scores(inputs.tables).scores
    better, more = ({path: outcomes.read(path, skip_bad_lines=skip) for path in paths} for paths in files)
    corrections = join_scores(more).scores if more else None
    result = estimate_outcomes(
        cheap, join_scores(better).scores, names, corrections=corrections, baseline=baseline, **facts
    )
    return result._replace(notes=(*result.notes, *independence_notes(conversations_of(inputs.tables))))


def _emit(result: Any, look: str, output: str | None, facts: dict[str, Any], quiet: bool) -> None:
    """Print or write estimates and differences."""
    from ragworth.report import summary_tables

    print_notes(result.notes, quiet)
    level = facts["level"]
    sections = [OutputTable("estimates", "", result.frame, summary_tables.estimate_table(result.frame, level))]
    if result.differences.height:
        readable = summary_tables.estimated_difference_table(result.differences, level)
        sections.append(OutputTable("differences", "Differences, query by query", result.differences, readable))
    emit(sections, look, output, facts)
