"""Where judgments, answers and outcomes go: a file with all that is known of each, and a summary for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

LOOKS = ("summary", "csv", "jsonl")
ENDINGS = (".parquet", ".csv", ".tsv", ".jsonl")


def result_options(function: F) -> F:
    """The options that say where rows go."""
    options = [
        click.option(
            "-o",
            "--output",
            type=click.Path(dir_okay=False),
            callback=check_rows_file,
            help="Write all rows to this file: .parquet, .csv, .tsv or .jsonl.",
        ),
        click.option(
            "-f",
            "--format",
            "look",
            type=click.Choice(LOOKS),
            default="summary",
            show_default=True,
            help="Print a summary, or all rows.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def check_rows_file(ctx: click.Context, option: click.Parameter, path: str | None) -> str | None:
    """Refuse an output file with an unknown extension or in a missing folder, before any call."""
    if path is not None and not path.endswith(ENDINGS):
        raise click.BadParameter(f"unknown file extension: {path!r}; expected one of {', '.join(ENDINGS)}")
    return check_parent_folder(ctx, option, path)


def check_parent_folder(ctx: click.Context, option: click.Parameter, path: str | None) -> str | None:
    """Refuse a file whose folder is not there."""
    if path is not None and not Path(path).resolve().parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(Path(path).parent)!r} to write to")
    return path


def encode_rows(frame: Any, ending: str, *, plain: bool = False) -> bytes:
    """Rows in a format, by its ending. Lists are written as JSON where cells are texts.

    ``plain`` spells out everything but ASCII in JSON, for terminals.
    """
    import io

    import polars as pl

    from ragworth.formats.csv import write_csv

    stream = io.BytesIO()
    if ending == ".parquet":
        frame.write_parquet(stream)
    elif ending == ".jsonl":
        for row in frame.iter_rows(named=True):
            known = {name: value for name, value in row.items() if value is not None}
            text = json.dumps(known, ensure_ascii=plain)
            stream.write((text.replace("\x7f", "\\u007f") if plain else text).encode("utf-8", "replace") + b"\n")
    else:
        lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
        texts = [
            pl.Series(name, [None if cell is None else json.dumps(cell.to_list()) for cell in frame[name]], pl.String)
            for name in lists
        ]
        # Everything that is not a number is quoted: texts of models hold any character.
        flat = frame.with_columns(texts)
        stream.write(write_csv(flat, separator="\t" if ending == ".tsv" else ",", quote="non_numeric"))
    return stream.getvalue()


def write_rows(frame: Any, output: str | None) -> None:
    """Write rows to a file, whole or not at all."""
    if output:
        from ragworth.report.render import save_bytes

        save_bytes(encode_rows(frame, next(ending for ending in ENDINGS if output.endswith(ending))), output)


def aspect_summary(frame: Any) -> Any:
    """How many have a value, and what the values are like, for each aspect."""
    import polars as pl

    from ragworth.data import OK

    groups = [name for name in ("system", "aspect") if name in frame.columns]
    ok = pl.col("value").filter(pl.col("status") == OK)
    facts = [
        ok.len().alias("n"),
        pl.len().alias("N"),
        ok.mean().alias("mean"),
        ok.min().alias("least"),
        ok.median().alias("median"),
        ok.max().alias("greatest"),
    ]
    return n_of_n(frame.group_by(groups, maintain_order=True).agg(facts) if groups else frame.select(facts))


def n_of_n(frame: Any) -> Any:
    """The columns n and N as one, in words."""
    import polars as pl

    words = pl.Series("n", [f"{n:,} of {total:,}" for n, total in frame.select("n", "N").iter_rows()], pl.String)
    return frame.with_columns(words).drop("N").rename({"n": "n of N"})


def stop_if_none(frame: Any, what: str, good: tuple[str, ...] = ("ok",), had: str = "a value") -> None:
    """End early, after all was written and said, where not one row has what was wanted."""
    from collections import Counter

    from ragworth.core.errors import JobStopped

    reasons = Counter(frame["status"].to_list())
    if frame.height and not any(reasons[status] for status in good):
        words = ", ".join(f"{status} {number:,}" for status, number in reasons.most_common())
        raise JobStopped(
            f"not one {what} has {had}: {words}\n  to do: see the reason of each row (-o FILE, or -f jsonl)"
        )


def print_rows(frame: Any, look: str, short: Any, output: str | None) -> None:
    """Print a summary, or all rows."""
    from ragworth.report.render import printable, render

    if look == "summary":
        click.echo(render(short, "text").decode(), nl=False)
        if output:
            click.echo(f"written to {printable(output)}", err=True)
    else:
        text = encode_rows(frame, f".{look}", plain=True).decode("utf-8", "replace")
        click.echo(printable(text), nl=False)
