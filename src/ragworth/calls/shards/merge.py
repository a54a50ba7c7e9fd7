"""Merge the answers of shards into a store: check each, keep the first one of each key, write a segment per shard."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.calls.seals import is_intact
from ragworth.calls.segments import Segments, StoreSegment
from ragworth.calls.serialization import response_from_json
from ragworth.calls.shards.plan import Shard, ShardPlan
from ragworth.calls.shards.run import part_files, read_part
from ragworth.calls.store import DECODE_ERRORS, Store
from ragworth.errors import RagworthError
from ragworth.storage.durable import rename_durably
from ragworth.storage.private import private_folder


class MergedShard(NamedTuple):
    """What became of a shard.

    ``repeated`` answers came again with the same value, ``conflicts`` with another one, of which the first was kept.
    ``rejected`` rows and files didn't pass a check, ``failed`` calls have a failure and no answer, by reason.
    """

    shard: Shard
    answers: int = 0
    repeated: int = 0
    conflicts: int = 0
    rejected: tuple[str, ...] = ()
    failed: Mapping[str, int] = {}
    written: bool = True
    """False if the segment was there already."""

    @property
    def missing(self) -> int:
        return self.shard.calls - self.answers


def merge_shards(plan: ShardPlan, path: str | Path, *, prompts: bool = True) -> Iterator[MergedShard]:
    """Merge every shard, one at a time. Merging again takes only shards with new answers."""
    with Store(path) as store:
        for digest in plan.models:
            store.add_model(plan.card(Shard("", "", 0, digest)))
        where = store.path
    segments = Segments.beside(where)
    for shard in plan.shards:
        source = _source(plan, shard)
        known = {segment.file: segment for segment in segments.found}.get(_segment_name(shard))
        if known is not None and known.source == source and (segments.folder / known.file).exists():
            yield MergedShard(shard, known.calls, written=False)
            continue
        requests = plan.requests(shard)
        merged, rows = _checked_rows(plan, shard, set(requests["key"]))
        if rows:
            segment = _write_segment(plan, shard, segments.folder, rows, requests if prompts else requests.head(0))
            segments = segments.add(segment._replace(source=source))
        yield merged


def _source(plan: ShardPlan, shard: Shard) -> str:
    """Hash of the names of the files of answers, which are hashes of their content."""
    names = "\n".join(path.name for path in part_files(plan.answers(shard)))
    return hashlib.sha256(names.encode()).hexdigest()


def _segment_name(shard: Shard) -> str:
    return f"{shard.name}.sqlite"


def _checked_rows(plan: ShardPlan, shard: Shard, keys: set[bytes]) -> tuple[MergedShard, dict[bytes, tuple[Any, ...]]]:
    """The first good answer of each key, and counts of everything else."""
    kept: dict[bytes, tuple[Any, ...]] = {}
    failures: dict[bytes, str] = {}
    rejected: list[str] = []
    repeated = conflicts = 0
    for row in sorted(_rows(plan, shard, rejected), key=lambda row: row["made"]):
        key, text = row["key"], row["response"]
        if problem := _problem(row, shard, keys):
            rejected.append(f"call {key.hex()}: {problem}")
        elif text is None:
            failures[key] = row["reason"]
        elif key not in kept:
            kept[key] = tuple(row[name] for name in COLUMNS)
        elif kept[key][2] == text:
            repeated += 1
        else:
            conflicts += 1
    failed = Counter(reason for key, reason in failures.items() if key not in kept)
    return MergedShard(shard, len(kept), repeated, conflicts, tuple(rejected), failed), kept


COLUMNS = ("key", "kind", "response", "prompt_tokens", "new_tokens", "seconds", "made", "seal")


def _rows(plan: ShardPlan, shard: Shard, rejected: list[str]) -> Iterator[dict[str, Any]]:
    for path in part_files(plan.answers(shard)):
        try:
            frame = read_part(path)
        except (RagworthError, pl.exceptions.PolarsError, OSError) as error:
            rejected.append(f"{path.name}: {error}")
            continue
        yield from frame.iter_rows(named=True)


def _problem(row: dict[str, Any], shard: Shard, keys: set[bytes]) -> str:
    """What is wrong with an answer, if anything is."""
    if row["model"].hex() != shard.model:
        return "it is another model's"
    if row["key"] not in keys:
        return "it was not planned"
    if row["response"] is None:
        return ""
    if not is_intact((row["key"], row["kind"].encode(), row["response"].encode(), row["seal"])):
        return "it changed after it was written"
    try:
        response_from_json(row["kind"], row["response"])
    except DECODE_ERRORS as error:
        return f"it can't be read ({error})"
    return ""


def _write_segment(
    plan: ShardPlan, shard: Shard, folder: Path, rows: dict[bytes, tuple[Any, ...]], requests: pl.DataFrame
) -> StoreSegment:
    """Write a shard's answers in the order of their keys, as a store under another name first."""
    private_folder(folder)
    partial = folder / f".{shard.name}.{os.getpid()}.partial"
    for left in folder.glob(f".{shard.name}.*.partial*"):
        left.unlink()
    keys = sorted(rows)
    packed = ((key, zlib.compress(text.encode(), 1)) for key, text in requests.iter_rows() if key in rows)
    with Store(partial) as store:
        store.insert_answers(plan.card(shard), (rows[key] for key in keys), packed)
        store.query("PRAGMA wal_checkpoint(TRUNCATE)")
        store.query("PRAGMA journal_mode = DELETE")  # nobody writes to it any more
    rename_durably(partial, folder / _segment_name(shard))
    for left in folder.glob(f".{shard.name}.*.partial*"):
        left.unlink()
    return StoreSegment(_segment_name(shard), keys[0].hex(), keys[-1].hex(), len(keys), "")
