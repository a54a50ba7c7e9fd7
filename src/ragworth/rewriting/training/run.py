"""Train a rewriter: the warm-up, DPO, the search for learning rates, and the folder that comes of it.

Everything happens in ``OUTPUT.partial``, which becomes ``OUTPUT`` in one step at the end. The same call again after a
kill goes on in that folder; after the end, it trains nothing.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import ragworth
from ragworth.core.errors import InputError, format_count, quote_short
from ragworth.data.collection import Collection
from ragworth.data.conversations import Turn, turns_of
from ragworth.llm.local.adapter import ABOUT, CONFIG, WEIGHTS, PeftAdapter, is_adapter_folder
from ragworth.llm.prompts import load_prompt
from ragworth.rewriting.training.base_model import BaseFiles, base_path, find_base, load_base, require_training
from ragworth.rewriting.training.examples import EncodedExamples, ExampleEncoder, require_examples
from ragworth.rewriting.training.kept_adapter import write_json
from ragworth.rewriting.training.settings import TrainingSettings
from ragworth.rewriting.training.stage import BEST, Kind, StageData, TrainedStage, run_stage

PLAN = "plan.json"
PACKAGES = ("torch", "transformers", "trl", "peft", "datasets", "accelerate")


class Split(NamedTuple):
    """Turns to train on and turns to choose by, and the conversations of the latter."""

    train: list[str]
    held_out: list[str]
    conversations: tuple[str, ...]


def split_by_conversation(queries: Sequence[str], conversation: Mapping[str, str], share: float, seed: int) -> Split:
    """Hold out a share of the conversations, at least one if the share isn't 0.

    Which ones depends on the seed and the ids of the conversations, not on their order.
    """
    if not 0 <= share < 1:
        raise InputError(f"the share of held-out conversations is {share:g}", expected="at least 0, below 1")
    names = sorted({conversation[query] for query in queries}, key=lambda name: _rank(name, seed))
    number = max(1, round(share * len(names))) if share else 0
    if number >= len(names):
        raise InputError(
            f"{format_count(len(names), 'conversation')}, and {number:,} would be held out",
            expected="at least one to train on",
            remedy="give more conversations, or hold none out (--held-out 0)",
        )
    held = frozenset(names[:number])
    train = [query for query in queries if conversation[query] not in held]
    return Split(train, [query for query in queries if conversation[query] in held], tuple(sorted(held)))


def _rank(name: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogatepass")).hexdigest()


class TrainedRewriter(NamedTuple):
    """An adapter and how it was trained: ``about`` is what ``training.json`` says."""

    folder: Path
    about: dict[str, Any]
    trained: bool
    """False if the folder was complete before."""


class TrainingPlan(NamedTuple):
    """What training will do."""

    split: Split
    sft: int
    dpo: int
    stages: tuple[str, ...]

    def __str__(self) -> str:
        conversations = format_count(len(self.split.conversations), "conversation")
        held = f"{format_count(len(self.split.held_out), 'turn')} of {conversations} held out"
        return (
            f"{format_count(self.sft, 'rewrite')} for SFT and {format_count(self.dpo, 'pair')} for DPO; "
            f"{format_count(len(self.split.train), 'turn')} to train on, {held}; "
            f"stages: {', '.join(self.stages)}"
        )


@dataclass(frozen=True)
class TrainingRun:
    """The data and settings of a training, and where its adapter goes.

    Attributes
    ----------
    best: rewrites for SFT (query, text), or None to skip it.
    pairs: preferences for DPO (query, chosen, rejected), or None to skip it.
    start: folder of an adapter to start from instead of a new one.
    prompt: name or file of the prompt for rewriting.
    callbacks: more callbacks of the trainers.
    """

    collection: Collection
    output: Path
    base: str
    best: pl.DataFrame | None = None
    pairs: pl.DataFrame | None = None
    start: Path | None = None
    prompt: str = "rewrite"
    prompts: str | Path | None = None
    settings: TrainingSettings = field(default_factory=TrainingSettings)
    callbacks: Sequence[Any] = ()
    told: Callable[[str], None] | None = None

    @cached_property
    def queries(self) -> list[str]:
        """The turns in the data."""
        tables = [table for table in (self.best, self.pairs) if table is not None]
        if not tables:
            raise InputError("there is nothing to train on", expected="rewrites for SFT, pairs for DPO, or both")
        return list(dict.fromkeys(query for table in tables for query in table["query"]))

    @cached_property
    def turns(self) -> dict[str, Turn]:
        return {turn.query: turn for turn in turns_of(self.collection, self.queries)}

    @cached_property
    def split(self) -> Split:
        conversations = {query: turn.conversation for query, turn in self.turns.items()}
        return split_by_conversation(self.queries, conversations, self.settings.held_out, self.settings.seed)

    @cached_property
    def base_files(self) -> BaseFiles:
        return find_base(self.base)

    @cached_property
    def key(self) -> str:
        """Hash of everything that determines the adapter."""
        facts: dict[str, Any] = {
            "base": self.base_files.revision,
            "data": self.data_hash,
            "settings": self.settings.to_dict(),
            "prompt": load_prompt(self.prompt, self.prompts).version,
            "start": None if self.start is None else adapter_hash(self.start),
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    @cached_property
    def data_hash(self) -> str:
        """Hash of the examples and of the turns that they belong to."""
        digest = hashlib.sha256()
        for table, names in ((self.best, ("query", "text")), (self.pairs, ("query", "chosen", "rejected"))):
            rows = [] if table is None else table.select(names).rows()
            digest.update(json.dumps(rows).encode("utf-8", "surrogatepass") + b"\n")
        for turn in self.turns.values():
            said = [(message.role, message.text) for message in turn.history]
            facts = [turn.query, turn.conversation, turn.question, said]
            digest.update(json.dumps(facts).encode("utf-8", "surrogatepass") + b"\n")
        return digest.hexdigest()

    @property
    def stages(self) -> dict[Kind, tuple[float, ...]]:
        """Stages with the learning rates to try."""
        found: dict[Kind, tuple[float, ...]] = {}
        if self.best is not None:
            found["sft"] = self.settings.sft_rates
        if self.pairs is not None:
            found["dpo"] = self.settings.dpo_rates
        return found

    def plan(self) -> TrainingPlan:
        """Check everything that can be checked without a model."""
        self._check_texts()
        if self.start is not None and not is_adapter_folder(self.start):
            raise InputError("it is not an adapter's folder", file=str(self.start), expected=f"{CONFIG} in it")
        if self.start is not None:
            PeftAdapter(self.start).check_base(self.base_files.revision)
        names = tuple(f"{kind} at {rate:g}" for kind, rates in self.stages.items() for rate in rates)
        sft, dpo = (0 if table is None else table.height for table in (self.best, self.pairs))
        plan = TrainingPlan(self.split, sft, dpo, names)
        base_path(self.base)
        return plan

    def _check_texts(self) -> None:
        """Refuse empty rewrites before a model is loaded."""
        for table, names in ((self.best, ("text",)), (self.pairs, ("chosen", "rejected"))):
            for query, *texts in () if table is None else table.select("query", *names).iter_rows():
                if empty := [name for name, text in zip(names, texts, strict=True) if not text.strip()]:
                    raise InputError(f"{empty[0]} of the query {quote_short(query)} is empty", expected="a rewrite")

    def finished(self) -> TrainedRewriter | None:
        """The adapter of an earlier run of the same; another one in its place is an error."""
        if not self.output.exists():
            return None
        try:
            about = json.loads((self.output / ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            about = {}
        if about.get("key") != self.key:
            raise InputError(
                "there is something else already: nothing is overwritten",
                file=str(self.output),
                remedy="name another output, or remove it",
            )
        return TrainedRewriter(self.output, about, False)

    def train(self) -> TrainedRewriter:
        """Train, or go on where an earlier run of the same was killed."""
        self.plan()
        if (found := self.finished()) is not None:
            return found
        require_training()
        work = self._work_folder()
        data, left_out = self._encode()
        chosen: list[TrainedStage] = []
        start, every = self.start, []
        for kind, rates in self.stages.items():
            results = {rate: self._stage(kind, work, data[kind], rate, start) for rate in rates}
            best = min(rates, key=lambda rate: _loss(results[rate]))
            start = work / f"{kind}-{best:g}" / BEST
            chosen.append(results[best])
            every += list(results.values())
        assert start is not None
        about = self._about(chosen, every, left_out)
        self._finish(work, start, about)
        return TrainedRewriter(self.output, about, True)

    def _stage(self, kind: Kind, work: Path, data: StageData, rate: float, start: Path | None) -> TrainedStage:
        folder = work / f"{kind}-{rate:g}"
        if self.told is not None:
            self.told(f"{kind} at {rate:g}: {format_count(len(data.train), 'example')}")
        # Trainers change the model they are given, so each stage has its own.
        return run_stage(
            kind, folder, lambda: load_base(self.base_files), data, rate, self.settings, start, self.callbacks
        )

    def _work_folder(self) -> Path:
        work = self.output.with_name(f"{self.output.name}.partial")
        if (work / PLAN).is_file():
            if json.loads((work / PLAN).read_text(encoding="utf-8"))["key"] != self.key:
                raise InputError(
                    "it has the unfinished training of other data or settings",
                    file=str(work),
                    remedy="remove it, or name another output",
                )
            return work
        work.mkdir(parents=True, exist_ok=True)
        write_json(work / PLAN, {"key": self.key})
        return work

    def _encode(self) -> tuple[dict[Kind, StageData], dict[str, Any]]:
        """The examples as tokens, and how many were left out."""
        trainable = load_base(self.base_files)
        template = load_prompt(self.prompt, self.prompts)
        reads = getattr(trainable.model.config, "max_position_embeddings", None)
        encoder = ExampleEncoder(
            trainable.encoder, trainable.tokenizer.eos_token_id, template, self.turns, self.settings, reads
        )
        data: dict[Kind, StageData] = {}
        left_out: dict[str, Any] = {}
        held = set(self.split.held_out)
        for kind in self.stages:
            train, chooses = self._parts(kind, encoder, held)
            require_examples(train, f"example for {kind}")
            if held and not chooses.rows:
                raise InputError(
                    f"no held-out conversation has an example for {kind}",
                    expected="at least one to choose the learning rate and the epoch by",
                    remedy="hold out more (--held-out), or none (--held-out 0)",
                )
            data[kind] = StageData(train.rows, chooses.rows)
            left_out[kind] = {
                "left out": _sum_counts(train.left_out, chooses.left_out),
                "histories cut": train.cut_histories + chooses.cut_histories,
            }
        return data, left_out

    def _parts(self, kind: Kind, encoder: ExampleEncoder, held: set[str]) -> tuple[EncodedExamples, EncodedExamples]:
        if kind == "sft":
            assert self.best is not None
            rewrites = self.best.select("query", "text").rows()
            sides = ([row for row in rewrites if (row[0] in held) is side] for side in (False, True))
            return tuple(map(encoder.sft, sides))  # type: ignore[return-value]
        assert self.pairs is not None
        pairs = self.pairs.select("query", "chosen", "rejected").rows()
        sides = ([row for row in pairs if (row[0] in held) is side] for side in (False, True))
        return tuple(map(encoder.dpo, sides))  # type: ignore[return-value]

    def _about(self, chosen: list[TrainedStage], every: list[TrainedStage], left_out: dict[str, Any]) -> dict[str, Any]:
        return {
            "key": self.key,
            "base": {"spec": self.base, "revision": self.base_files.revision},
            "prompt": load_prompt(self.prompt, self.prompts).version,
            "start": None if self.start is None else {"folder": str(self.start), "hash": adapter_hash(self.start)},
            "data": {
                "hash": self.data_hash,
                "turns": len(self.queries),
                "conversations": len({turn.conversation for turn in self.turns.values()}),
                "held-out conversations": list(self.split.conversations),
                **left_out,
            },
            "settings": self.settings.to_dict(),
            "chosen": [{"stage": one.kind, "rate": one.rate, "epoch": one.epoch, "loss": one.loss} for one in chosen],
            "curves": [one._asdict() for one in every],
            "versions": package_versions(),
        }

    def _finish(self, work: Path, adapter: Path, about: dict[str, Any]) -> None:
        """Put the adapter and how it was trained into a folder, and that in its place."""
        done = work / "done"
        shutil.rmtree(done, ignore_errors=True)
        done.mkdir()
        shutil.copy(adapter / WEIGHTS, done / WEIGHTS)
        config = json.loads((adapter / CONFIG).read_text(encoding="utf-8"))
        write_json(done / CONFIG, config | {"base_model_name_or_path": self.base_files.name, "inference_mode": True})
        write_json(done / ABOUT, about)
        done.rename(self.output)
        shutil.rmtree(work)


def package_versions() -> dict[str, str]:
    """Versions of everything that training depends on."""
    versions = {"ragworth": ragworth.__version__, "python": platform.python_version()}
    return versions | {name: version(name) for name in PACKAGES}


def adapter_hash(folder: Path) -> str:
    """Hash of an adapter's weights."""
    try:
        return hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror or error}", file=str(folder / WEIGHTS)) from error


def _loss(result: TrainedStage) -> float:
    return 0.0 if result.loss is None else result.loss


def _sum_counts(*counts: dict[str, int]) -> dict[str, int]:
    return {
        name: sum(each.get(name, 0) for each in counts) for name in sorted({name for each in counts for name in each})
    }
