"""Merge the answers of shards into a store: check each, keep the first one of each key, write a segment per shard."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.calls.seals import all_intact, is_intact
from ragworth.calls.segments import Segments, StoreSegment
from ragworth.calls.serialization import DECODE_ERRORS, response_from_json, responses_from_json
from ragworth.calls.shards.plan import Shard, ShardPlan
from ragworth.calls.shards.run import PART, part_files, read_part
from ragworth.calls.store import Store
from ragworth.errors import RagworthError
from ragworth.storage.output import rename_durably
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
        merged, answers = _checked_answers(plan, shard, set(requests["key"].to_list()))
        if answers.height:
            segment = _write_segment(plan, shard, segments.folder, answers, requests if prompts else requests.head(0))
            segments = segments.add(segment._replace(source=source))
        yield merged


def _source(plan: ShardPlan, shard: Shard) -> str:
    """Hash of the names of the files of answers, which are hashes of their content."""
    names = "\n".join(path.name for path in part_files(plan.answers(shard)))
    return hashlib.sha256(names.encode()).hexdigest()


def _segment_name(shard: Shard) -> str:
    return f"{shard.name}.sqlite"


def _checked_answers(plan: ShardPlan, shard: Shard, keys: Set[bytes]) -> tuple[MergedShard, pl.DataFrame]:
    """The first good answer of each key, and counts of everything else."""
    rejected: list[str] = []
    parts = [_sound_rows(frame, shard, keys, rejected) for frame in _frames(plan, shard, rejected)]
    rows = pl.concat([pl.DataFrame(schema=PART), *parts]).sort("made", maintain_order=True)
    answers = rows.drop_nulls("response")
    kept = answers.unique("key", keep="first", maintain_order=True)
    same = answers.join(kept, on=["key", "response"], how="semi").height
    failures = rows.filter(pl.col("response").is_null()).unique("key", keep="last", maintain_order=True)
    failed = Counter(failures.join(kept, on="key", how="anti")["reason"].to_list())
    counts = (kept.height, same - kept.height, answers.height - same)
    return MergedShard(shard, *counts, tuple(rejected), failed), kept.sort("key").select(COLUMNS)


COLUMNS = ("key", "kind", "response", "prompt_tokens", "new_tokens", "seconds", "made", "seal")


def _frames(plan: ShardPlan, shard: Shard, rejected: list[str]) -> Iterator[pl.DataFrame]:
    for path in part_files(plan.answers(shard)):
        try:
            yield read_part(path)
        except (RagworthError, pl.exceptions.PolarsError, OSError) as error:
            rejected.append(f"{path.name}: {error}")


def _sound_rows(frame: pl.DataFrame, shard: Shard, keys: Set[bytes], rejected: list[str]) -> pl.DataFrame:
    """The rows without a problem. Only if there is one somewhere are rows looked at one by one."""
    if _is_sound(frame, shard, keys):
        return frame
    problems = [_problem(row, shard, keys) for row in frame.iter_rows(named=True)]
    named = zip(frame["key"].to_list(), problems, strict=True)
    rejected += [f"call {key.hex()}: {problem}" for key, problem in named if problem]
    return frame.filter(pl.Series([not problem for problem in problems], dtype=pl.Boolean))


def _is_sound(frame: pl.DataFrame, shard: Shard, keys: Set[bytes]) -> bool:
    answers = frame.drop_nulls("response").select("key", "kind", "response", "seal")
    if {bytes.fromhex(shard.model)} != set(frame["model"].unique()) or not keys >= set(frame["key"].to_list()):
        return False
    if not all_intact(answers.with_columns(pl.col("kind", "response").cast(pl.Binary)).rows()):
        return False
    try:
        return all(True for _ in responses_from_json(answers.drop("seal").rows()))
    except DECODE_ERRORS:
        return False


def _problem(row: dict[str, Any], shard: Shard, keys: Set[bytes]) -> str:
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
    plan: ShardPlan, shard: Shard, folder: Path, answers: pl.DataFrame, requests: pl.DataFrame
) -> StoreSegment:
    """Write a shard's answers, in the order of their keys, as a store under another name first."""
    private_folder(folder)
    partial = folder / f".{shard.name}.{os.getpid()}.partial"
    for left in folder.glob(f".{shard.name}.*.partial*"):
        left.unlink()
    answered = requests.join(answers, on="key", how="semi", maintain_order="left")
    packed = ((key, zlib.compress(text.encode(), 1)) for key, text in answered.iter_rows())
    with Store(partial) as store:
        store.insert_answers(plan.card(shard), answers.iter_rows(), packed)
        store.query("PRAGMA wal_checkpoint(TRUNCATE)")
        store.query("PRAGMA journal_mode = DELETE")  # nobody writes to it any more
    rename_durably(partial, folder / _segment_name(shard))
    for left in folder.glob(f".{shard.name}.*.partial*"):
        left.unlink()
    first, last = answers["key"].head(1).item(), answers["key"].tail(1).item()
    return StoreSegment(_segment_name(shard), first.hex(), last.hex(), answers.height, "")
