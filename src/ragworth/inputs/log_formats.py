"""Which files are logs: what systems showed or answered, query by query, in a format of any RAG tool."""

from __future__ import annotations

from collections.abc import Mapping

from ragworth.errors import InputError
from ragworth.formats.detection import detect
from ragworth.inputs.file_heads import FileHead

OTHER_FORMATS = ("trec", "table", "jsonl", "beir", "exam", "ir_datasets")
"""Formats of single tables and whole collections, which are told apart by their columns."""


def find_log_format(head: FileHead, columns: Mapping[str, str] | None) -> str | None:
    """The name of a log's format; None if the file is something else."""
    try:
        form = detect(head.file.path)
    except (InputError, NotImplementedError):
        return "log" if columns else None
    return None if form.name in OTHER_FORMATS else form.name
