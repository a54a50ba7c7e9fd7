"""BEIR folders among what was found: each is one collection, whatever else its files could be."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from ragworth import formats
from ragworth.core.errors import FormatError, InputError, format_list
from ragworth.data.collection import Collection
from ragworth.formats.files import run_name
from ragworth.workspace.file_heads import CandidateFile, read_head

PREFERRED_SPLITS = ("test", "dev", "validation", "val")


class BeirFolder(NamedTuple):
    """A folder with corpus, queries and labels."""

    name: str
    spec: str
    files: frozenset[str]
    """Names of what it is made of."""
    texts: Collection
    """From the beginnings of its files."""
    whole: bool
    doubt: str


def group_beir_files(files: list[CandidateFile]) -> dict[str, list[CandidateFile]]:
    """The files of each BEIR folder, by its name; ``.`` is the folder that was looked into."""
    made: dict[str, list[CandidateFile]] = {}
    names = {each.plain for each in files}
    for each in files:
        place, _, last = each.plain.rpartition("/")
        before = f"{place}/" if place else ""
        if last == "corpus.jsonl" and f"{before}queries.jsonl" in names:
            parts = [one for one in files if one.plain in (each.plain, f"{before}queries.jsonl")]
            splits = [one for one in files if one.plain.startswith(f"{before}qrels/") and one.plain.endswith(".tsv")]
            if splits:
                made[each.name.rpartition("/")[0] or "."] = [*parts, *splits]
    return made


def read_beir_folder(name: str, files: list[CandidateFile], scratch: Path) -> BeirFolder:
    """A folder, from how its files begin; raises an :class:`InputError` where it cannot be read."""
    splits = {run_name(each.path): each for each in files if each.plain.endswith(".tsv")}
    chosen = next((split for split in PREFERRED_SPLITS if split in splits), next(iter(splits)))
    place = scratch / f"beir-{len(list(scratch.iterdir()))}"
    (place / "qrels").mkdir(parents=True)
    whole = True
    for each in files:
        if each.plain.endswith(".tsv") and each is not splits[chosen]:
            continue
        begun = read_head(each, scratch)
        if begun is None:
            raise FormatError(f"{each.name} is no text")
        whole &= begun.whole
        last = Path(each.plain).name
        (place / ("qrels" if last.endswith(".tsv") else "") / last).write_bytes(begun.data)
    try:
        made = formats.load(f"beir:{place}", skip_bad_lines=not whole).collection
    except InputError as error:
        raise FormatError(f"it looks like a BEIR folder, but {error.found}") from error
    finally:
        shutil.rmtree(place)
    alone = len(splits) == 1 or chosen == "test"
    spec = f"beir:{name}" if alone else f"beir:{splits[chosen].name}"
    doubt = f"of the splits {format_list(sorted(splits))} it takes {chosen}" if len(splits) > 1 else ""
    return BeirFolder(name, spec, frozenset(each.name for each in files), made, whole, doubt)
