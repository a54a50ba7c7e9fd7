"""``ragworth chunk``."""

from __future__ import annotations

from typing import Any

import click

from ragworth.cli.output import print_notes
from ragworth.cli.task_output import check_parent_folder, check_rows_file


@click.command("chunk", short_help="Cut documents into passages.")
@click.argument("documents")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    callback=check_rows_file,
    help="Write passages to this file: .jsonl, .parquet, .csv or .tsv.",
)
@click.option(
    "--by",
    type=click.Choice(["words", "tokens", "sentences"]),
    default="words",
    show_default=True,
    help="Unit of --size and --overlap.",
)
@click.option(
    "--size", type=click.IntRange(1), help="Length of a passage.  [default: 200 words, 256 tokens, 5 sentences]"
)
@click.option(
    "--overlap", type=click.IntRange(0), default=0, show_default=True, help="Overlap of consecutive passages."
)
@click.option("--paragraphs", is_flag=True, help="Never let a passage cross a blank line.")
@click.option(
    "--titles",
    type=click.Choice(["apart", "front"]),
    default="apart",
    show_default=True,
    help="Keep the document title in its own column, or put it before each passage.",
)
@click.option(
    "--tokenizer",
    help=("Tokenizer: embedded, gguf:FILE, a tokenizer.json, or a folder with one.  [default: words and marks]"),
)
@click.option("--name", default="", help="Name of this chunking if a file holds several; becomes part of the ids.")
@click.option("--add", is_flag=True, help="Keep the passages of other chunkings in the file.")
@click.option("-q", "--qrels", help="Relevance labels of the documents, passed on to their passages.")
@click.option(
    "--labels",
    type=click.Path(dir_okay=False),
    callback=check_parent_folder,
    help="Write the passages' relevance labels to this file.",
)
@click.option("--quiet", is_flag=True, help="Print nothing.")
def command(
    documents: str, output: str, add: bool, qrels: str | None, labels: str | None, quiet: bool, **settings: Any
) -> None:
    """Cut DOCUMENTS into passages: JSONL, Parquet, CSV or TSV with an id, a text and maybe a title, or a file or folder
    of Markdown, HTML, PDF or text.

    The id of a passage says where it comes from: DOC:120-240 are the characters 120 to 240 of document DOC. Two
    chunkings that are to be compared go into one file, each under a name.

    \b
    ragworth chunk documents.jsonl -o passages.jsonl --by sentences --size 5 --overlap 1
    ragworth chunk docs -o passages.jsonl --paragraphs
    ragworth chunk documents.jsonl -o passages.jsonl --size 50 --name small -q qrels.txt --labels labels.txt
    ragworth chunk documents.jsonl -o passages.jsonl --size 200 --name large -q qrels.txt --labels labels.txt --add
    """
    from ragworth import formats
    from ragworth.core.errors import InputError, JobStopped
    from ragworth.retrieval.chunks import chunk

    if (qrels is None) != (labels is None):
        raise InputError("--qrels and --labels go together", expected="both: where labels come from, and where they go")
    _check_distinct_files({"DOCUMENTS": documents, "--qrels": qrels}, {"--output": output, "--labels": labels})
    judged = formats.read_judgments(qrels) if qrels is not None else None
    chunks = chunk(documents, **settings)
    name = settings["name"]
    _write(chunks.frame, output, name if add else None)
    notes = chunks.notes
    if judged is not None and labels is not None:
        table = chunks.labels(judged)
        notes = (*notes, *table.notes)
        _write_labels(table, labels, name if add else None)
    print_notes(notes, quiet)
    if not quiet:
        _report(chunks.frame, output, settings["tokenizer"])
    if not chunks.frame.height:
        raise JobStopped("there is not one passage: no document has a text\n  to do: see the texts of the documents")


def _check_distinct_files(read: dict[str, str | None], written: dict[str, str | None]) -> None:
    """Refuse to write over what is read, and two things into one file."""
    from ragworth.core.errors import InputError

    for option, path in written.items():
        for other, source in {**read, **written}.items():
            if option != other and path is not None and source is not None and _same_file(path, source):
                expected = "another file, since it is written over"
                raise InputError(f"{option} is the file of {other}", file=path, expected=expected)


def _same_file(one: str, other: str) -> bool:
    """Whether two paths lead to one file, there or not; each may have its format in front."""
    from contextlib import suppress
    from pathlib import Path

    from ragworth.formats import FORMATS

    first, second = (
        Path(rest if sign and kind in FORMATS else path)
        for path, (kind, sign, rest) in ((each, each.partition(":")) for each in (one, other))
    )
    with suppress(OSError, ValueError):
        return first.samefile(second)
    return first.absolute() == second.absolute()


def _write(frame: Any, output: str, name: str | None) -> None:
    """Write passages; with a name, beside those of other names that are there."""
    from pathlib import Path

    import polars as pl

    from ragworth.cli.task_output import ENDINGS, encode_rows
    from ragworth.report.render import save_bytes

    if name is not None and Path(output).exists():
        frame = pl.concat([_other_chunkings(_existing_passages(output), name), frame], how="diagonal_relaxed")
    ending = next(each for each in ENDINGS if output.endswith(each))
    if ending == ".jsonl":
        title = pl.when(pl.col("document_title") != "").then(pl.col("document_title")).alias("document_title")
        frame = frame.select(pl.col("passage").alias("_id"), "text", "document", title)
    save_bytes(encode_rows(frame, ending), output)


def _existing_passages(output: str) -> Any:
    """The passages that a file has."""
    import polars as pl

    from ragworth.core.errors import FormatError
    from ragworth.formats.tables import read_table
    from ragworth.formats.values import read_objects

    expected = "passages that this command wrote"
    if output.endswith(".jsonl"):
        items = [item for _, item in read_objects(output, [], skip=False, expected=expected)]
        names = {"passage": "_id", "text": "text", "document": "document", "document_title": "document_title"}
        columns = {name: [item.get(key, "") for item in items] for name, key in names.items()}
        frame = pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String), strict=False)
    else:
        frame, _ = read_table(output)
    lacking = {"passage", "text", "document", "document_title"} - set(frame.columns)
    if lacking or (frame["passage"] == "").any():
        raise FormatError("it holds other things than passages of documents", file=output, expected=expected)
    return frame.with_columns(pl.col("document_title").fill_null(""))


def _other_chunkings(frame: Any, name: str) -> Any:
    """The rows of passages that belong to chunkings of other names."""
    import polars as pl

    from ragworth.retrieval.origins import origin

    mine = [(found := origin(passage)) is not None and found.name == name for passage in frame["passage"]]
    return frame.filter(~pl.Series(mine, dtype=pl.Boolean))


def _write_labels(table: Any, labels: str, name: str | None) -> None:
    """Write the passages' relevance; with a name, beside that of passages of other names."""
    from pathlib import Path

    import polars as pl

    from ragworth import formats
    from ragworth.data import Judgments

    frame = table.frame
    if name is not None and Path(labels).exists():
        frame = pl.concat([_other_chunkings(formats.read_judgments(labels).frame, name), frame])
    formats.write(Judgments.trusted(frame), labels)


def _report(frame: Any, output: str, tokenizer: str | None) -> None:
    """How many passages there are, and how long: in tokens of the model by whose they were cut."""
    from ragworth.core.errors import format_count
    from ragworth.data.tokens import WORD_PATTERN
    from ragworth.report.render import printable

    sizes = frame["text"].str.count_matches(WORD_PATTERN) if tokenizer is None else _tokens(frame["text"], tokenizer)
    units = "words and marks" if tokenizer is None else "tokens"
    found = f"{format_count(frame.height, 'passage')} of {format_count(frame['document'].n_unique(), 'document')}"
    about = f", {sizes.min()} to {sizes.max()} {units}, {sizes.mean():.0f} on average" if frame.height else ""
    click.echo(printable(f"{found}{about}: {output}"))


def _tokens(texts: Any, tokenizer: str) -> Any:
    """How many tokens texts have."""
    import polars as pl

    from ragworth.retrieval.chunks import BATCH_ROWS, load_tokenizer

    tool = load_tokenizer(tokenizer)
    parts = [texts.slice(start, BATCH_ROWS).to_list() for start in range(0, len(texts), BATCH_ROWS)]
    return pl.Series([len(each) for part in parts for each in tool.encode_batch(part, add_special_tokens=False)])
