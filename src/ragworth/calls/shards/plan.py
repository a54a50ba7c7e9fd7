"""Plan shards: collect requests on disk by range of keys, then sort and write each range as a file."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.calls.cards import card_from_json, card_to_json
from ragworth.calls.serialization import model_digest, request_to_json
from ragworth.errors import InputError, StoreError
from ragworth.llm.contract import Card, Request
from ragworth.storage.places import Place, is_empty, to_place, write_whole
from ragworth.storage.private import private_folder
from ragworth.storage.remote import RemotePath

MANIFEST = "plan.json"
VERSION = 1
MAX_SHARDS = 4096
BUFFERED = 32_768
"""Requests kept in memory before they go to the files of their shards."""

REQUESTS: dict[str, Any] = {"key": pl.Binary, "request": pl.String}


class Shard(NamedTuple):
    """A file of requests to one model. ``sha256`` is that of the file, ``model`` the digest of the model's card."""

    file: str
    sha256: str
    calls: int
    model: str

    @property
    def name(self) -> str:
        return self.file.removesuffix(".parquet")


@dataclass(frozen=True)
class ShardPlan:
    """A folder of shards."""

    folder: Place
    shards: tuple[Shard, ...]
    models: Mapping[str, str]
    """Cards of the models as JSON, by digest."""

    @classmethod
    def read(cls, folder: str | Path) -> ShardPlan:
        place = to_place(folder)
        path = place / MANIFEST
        try:
            found = json.loads(path.read_bytes())
            if found["version"] != VERSION:
                raise StoreError(
                    f"it is of version {found['version']}", file=str(path), expected=str(VERSION), remedy="plan again"
                )
            shards = tuple(Shard(**shard) for shard in found["shards"])
            for shard in shards:
                if Path(shard.file).name != shard.file:
                    raise ValueError(f"{shard.file!r} is no file name")
            return cls(place, shards, dict(found["models"]))
        except FileNotFoundError as error:
            raise InputError("there is no plan", file=str(path), remedy="ragworth calls plan writes one") from error
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise InputError(f"it can't be read: {error}", file=str(path), remedy="plan again") from error

    @cached_property
    def calls(self) -> int:
        return sum(shard.calls for shard in self.shards)

    def shard(self, number: int) -> Shard:
        if not 0 <= number < len(self.shards):
            raise InputError(
                f"there is no shard {number}", file=str(self.folder), expected=f"0 to {len(self.shards) - 1}"
            )
        return self.shards[number]

    def card(self, shard: Shard) -> Card:
        """The model that a shard's requests are for."""
        try:
            card = card_from_json(self.models[shard.model])
            if model_digest(card).hex() != shard.model:
                raise ValueError("the digest is another model's")
            return card
        except (ValueError, LookupError, TypeError) as error:
            raise InputError(
                f"the card of a model can't be read: {error}", file=str(self.folder / MANIFEST), remedy="plan again"
            ) from error

    def requests(self, shard: Shard) -> pl.DataFrame:
        """Keys and requests of a shard; a file that changed is an error."""
        path = self.folder / shard.file
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(f"it can't be read: {error.strerror or error}", file=str(path)) from error
        if hashlib.sha256(data).hexdigest() != shard.sha256:
            raise InputError("it changed after it was written", file=str(path), remedy="copy it again, or plan again")
        return pl.read_parquet(data)

    def answers(self, shard: Shard) -> Place:
        """Folder of a shard's answers."""
        return self.folder / "answers" / shard.name


class ShardWriter:
    """Collects requests for a plan. Memory doesn't grow with their number: they wait in a file for each shard."""

    def __init__(self, folder: str | Path, shards: int) -> None:
        if not 1 <= shards <= MAX_SHARDS:
            raise InputError(f"the number of shards is {shards}", expected=f"1 to {MAX_SHARDS:,}")
        self.folder = to_place(folder)
        if not is_empty(self.folder):
            raise InputError("the folder is not empty", file=str(folder), remedy="name a new folder for the plan")
        self._shards = shards
        self._cards: dict[str, Card] = {}
        self._waiting: dict[tuple[str, int], list[str]] = {}
        self._number = 0
        self.total = 0
        """Requests so far; equal ones may count several times."""

    def add(self, card: Card, missing: Mapping[bytes, Request]) -> None:
        model = model_digest(card).hex()
        self._cards.setdefault(model, card)
        for key, request in missing.items():
            number = int.from_bytes(key[:4], "big") * self._shards >> 32
            line = f"{key.hex()}\t{request_to_json(request)}\n"
            self._waiting.setdefault((model, number), []).append(line)
        self._number += len(missing)
        self.total += len(missing)
        if self._number >= BUFFERED:
            self._spill()

    def _spill(self) -> None:
        for place, lines in self._waiting.items():
            with self._file(*place).open("a", encoding="ascii") as file:
                file.writelines(lines)
        self._waiting.clear()
        self._number = 0

    @cached_property
    def _spool(self) -> Path:
        """Where requests wait: in the folder of the plan, or among the system's temporary files."""
        if isinstance(self.folder, RemotePath):
            return Path(tempfile.mkdtemp(prefix="ragworth-plan-"))
        spool = self.folder / "unsorted"
        private_folder(spool)
        return spool

    def _file(self, model: str, number: int) -> Path:
        return self._spool / f"{model}-{number:04}.txt"

    def finish(self) -> ShardPlan:
        """Sort and write the shards; the plan is complete when its manifest is there."""
        self._spill()
        shards: list[Shard] = []
        for path in sorted(self._spool.iterdir()):
            shards.append(self._write(path, len(shards)))
            path.unlink()
        self._spool.rmdir()
        models = {digest: card_to_json(card) for digest, card in self._cards.items()}
        made = ShardPlan(self.folder, tuple(shards), models)
        facts = {"version": VERSION, "models": models, "shards": [shard._asdict() for shard in shards]}
        write_whole(self.folder / MANIFEST, json.dumps(facts, indent=1).encode())
        return made

    def _write(self, path: Path, number: int) -> Shard:
        model = path.stem.rpartition("-")[0]
        rows = dict(_lines(path))
        keys = sorted(rows)
        frame = pl.DataFrame({"key": keys, "request": [rows[key] for key in keys]}, schema=REQUESTS)
        content = hashlib.sha256(bytes.fromhex(model) + b"".join(keys)).hexdigest()[:16]
        data = to_parquet(frame)
        name = f"shard-{number:04}-{content}.parquet"
        write_whole(self.folder / name, data)
        return Shard(name, hashlib.sha256(data).hexdigest(), len(keys), model)


def _lines(path: Path) -> Iterator[tuple[bytes, str]]:
    with path.open(encoding="ascii") as file:
        for line in file:
            key, _, request = line.rstrip("\n").partition("\t")
            yield bytes.fromhex(key), request


def to_parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()
