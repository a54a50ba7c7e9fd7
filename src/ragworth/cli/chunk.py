"""``ragworth chunk``."""

from __future__ import annotations

from typing import Any

import click

from ragworth.cli.output import tell
from ragworth.cli.results import placed, writable


@click.command("chunk", short_help="Cut documents into passages.")
@click.argument("documents")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    callback=writable,
    help="Write passages to this file: .jsonl, .parquet, .csv or .tsv.",
)
@click.option(
    "--by",
    type=click.Choice(["words", "tokens", "sentences"]),
    default="words",
    show_default=True,
    help="What to count.",
)
@click.option(
    "--size", type=click.IntRange(1), help="Units of a passage.  [default: 200 words, 256 tokens, 5 sentences]"
)
@click.option(
    "--overlap", type=click.IntRange(0), default=0, show_default=True, help="Units that the next one repeats."
)
@click.option("--paragraphs", is_flag=True, help="No passage goes across a blank line.")
@click.option(
    "--titles",
    type=click.Choice(["apart", "front"]),
    default="apart",
    show_default=True,
    help="Keep a document's title in a column, or put it in front of each of its passages.",
)
@click.option("--tokenizer", help="Whose tokens: embedded, gguf:FILE, tokenizer.json.  [default: words and marks]")
@click.option("--name", default="", help="Name of this chunking, where several go into one file; a part of the ids.")
@click.option("--add", is_flag=True, help="Keep passages of other names that are in the file already.")
@click.option("-q", "--qrels", help="Relevance of the documents, to be that of their passages.")
@click.option(
    "--labels", type=click.Path(dir_okay=False), callback=placed, help="Write the passages' relevance to this file."
)
@click.option("--quiet", is_flag=True, help="Say nothing.")
def command(
    documents: str, output: str, add: bool, qrels: str | None, labels: str | None, quiet: bool, **settings: Any
) -> None:
    """Cut DOCUMENTS (JSONL, Parquet, CSV or TSV with an id, a text and maybe a title) into passages.

    The id of a passage says where it comes from: DOC:120-240 are the characters 120 to 240 of document DOC. Two
    chunkings that are to be compared go into one file, each under a name.

    \b
    ragworth chunk documents.jsonl -o passages.jsonl --by sentences --size 5 --overlap 1
    ragworth chunk documents.jsonl -o passages.jsonl --size 50 --name small -q qrels.txt --labels labels.txt
    ragworth chunk documents.jsonl -o passages.jsonl --size 200 --name large -q qrels.txt --labels labels.txt --add
    """
    from ragworth import formats
    from ragworth.errors import InputError
    from ragworth.retrieval.chunks import chunk

    if (qrels is None) != (labels is None):
        raise InputError("--qrels and --labels go together", expected="both: where labels come from, and where they go")
    judged = formats.read_judgments(qrels) if qrels is not None else None
    chunks = chunk(documents, **settings)
    name = settings["name"]
    _write(chunks.frame, output, name if add else None)
    notes = chunks.notes
    if judged is not None and labels is not None:
        table = chunks.labels(judged)
        notes = (*notes, *table.notes)
        _label(table, labels, name if add else None)
    tell(notes, quiet)
    if not quiet:
        _report(chunks.frame, output)


def _write(frame: Any, output: str, name: str | None) -> None:
    """Write passages; with a name, beside those of other names that are there."""
    from pathlib import Path

    import polars as pl

    from ragworth.cli.results import ENDINGS, data
    from ragworth.report.render import save_bytes

    if name is not None and Path(output).exists():
        frame = pl.concat([_others(_before(output), name), frame], how="diagonal_relaxed")
    ending = next(each for each in ENDINGS if output.endswith(each))
    if ending == ".jsonl":
        title = pl.when(pl.col("document_title") != "").then(pl.col("document_title")).alias("document_title")
        frame = frame.select(pl.col("passage").alias("_id"), "text", "document", title)
    save_bytes(data(frame, ending), output)


def _before(output: str) -> Any:
    """The passages that a file has."""
    import polars as pl

    from ragworth.errors import FormatError
    from ragworth.formats.frames import read_table
    from ragworth.formats.jsonl import objects

    expected = "passages that this command wrote"
    if output.endswith(".jsonl"):
        items = [item for _, item in objects(output, [], skip=False, expected=expected)]
        names = {"passage": "_id", "text": "text", "document": "document", "document_title": "document_title"}
        columns = {name: [item.get(key, "") for item in items] for name, key in names.items()}
        frame = pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String), strict=False)
    else:
        frame, _ = read_table(output)
    lacking = {"passage", "text", "document", "document_title"} - set(frame.columns)
    if lacking or (frame["passage"] == "").any():
        raise FormatError("it holds other things than passages of documents", file=output, expected=expected)
    return frame.with_columns(pl.col("document_title").fill_null(""))


def _others(frame: Any, name: str) -> Any:
    """The rows of passages that belong to chunkings of other names."""
    import polars as pl

    from ragworth.retrieval.chunks import origin

    mine = [(found := origin(passage)) is not None and found.name == name for passage in frame["passage"]]
    return frame.filter(~pl.Series(mine, dtype=pl.Boolean))


def _label(table: Any, labels: str, name: str | None) -> None:
    """Write the passages' relevance; with a name, beside that of passages of other names."""
    from pathlib import Path

    import polars as pl

    from ragworth import formats
    from ragworth.tables import Judgments

    frame = table.frame
    if name is not None and Path(labels).exists():
        frame = pl.concat([_others(formats.read_judgments(labels).frame, name), frame])
    formats.write(Judgments.trusted(frame), labels)


def _report(frame: Any, output: str) -> None:
    """How many passages there are, and how long."""
    from ragworth.collection import WORD
    from ragworth.errors import counted
    from ragworth.report.render import printable

    sizes = frame["text"].str.count_matches(WORD)
    found = f"{counted(frame.height, 'passage')} of {counted(frame['document'].n_unique(), 'document')}"
    about = f", {sizes.min()} to {sizes.max()} words and marks, {sizes.mean():.0f} on average" if frame.height else ""
    click.echo(printable(f"{found}{about}: {output}"))
