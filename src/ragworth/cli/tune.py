"""``ragworth tune``."""

from __future__ import annotations

from typing import Any

import click

from ragworth.cli.task_output import print_rows, result_options, write_rows


@click.command("tune", short_help="Tune GroGU's key tokens by win rate.")
@click.argument("confidence")
@click.option("-q", "--qrels", required=True, help="Relevance labels of the passages.")
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="Folds for cross-validation.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the folds.")
@result_options
def command(
    confidence: str,
    qrels: str,
    folds: int,
    seed: int,
    output: str | None,
    look: str,
) -> None:
    """Find a and top of GroGU on a validation set, without asking the model again.

    CONFIDENCE is what ragworth annotate confidence -o FILE.parquet wrote. The win rate is how often the model is surer
    with the better one of two passages of a query; -o keeps the whole grid.

    \b
    ragworth annotate confidence contexts.jsonl --each -o confidence.parquet
    ragworth tune confidence.parquet --qrels qrels.txt
    """
    import polars as pl

    from ragworth import formats
    from ragworth.core.errors import InputError
    from ragworth.studies.key_token_tuning import tune_key_tokens

    judged = _read(confidence)
    if lacking := sorted({"query", "passage", "answer_tokens", "surprisals_alone"} - set(judged.columns)):
        raise InputError(
            f"there are no columns {', '.join(lacking)}",
            file=confidence,
            expected="what ragworth annotate confidence wrote, with --each",
        )
    given = formats.read_judgments(qrels).of("relevance").select("query", "passage", "value")
    # As everywhere, a passage that nobody judged counts as irrelevant.
    labels = judged.select("query", "passage").unique().join(given, on=["query", "passage"], how="left")
    labels = labels.with_columns(pl.col("value").fill_null(0.0))
    found = tune_key_tokens(judged, labels, folds=folds, seed=seed)
    write_rows(found.grid, output)
    names = {"measure": "measure", "a": "a", "top": "top", "win_rate": "win rate", "cross_validated": "cross-validated"}
    rows = [
        {title: getattr(one, name) for name, title in names.items()} | {"pairs": one.pairs, "queries": one.queries}
        for one in found.best
    ]
    print_rows(found.grid, look, pl.DataFrame(rows), output)


def _read(path: str) -> Any:
    """The rows of a file that keeps lists: Parquet or JSONL."""
    import polars as pl

    from ragworth.core.errors import FormatError
    from ragworth.formats.files import read_parquet

    if not path.endswith(".jsonl"):
        return read_parquet(path)
    try:
        return pl.read_ndjson(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FormatError(f"it cannot be read: {str(error)[:200]}", file=path, expected="JSON lines") from error
