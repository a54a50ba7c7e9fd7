"""Train rewriters on the utility of what they retrieve, on controls and on gold labels, and compare them all.

    python -m training.rewriter.experiment build/experiment --data build/conversations --others build/archipelago

runs everything: candidates and labels of the training turns, then every trained arm for each seed, then rewrites of
the test turns, answers from what they retrieve, and the tables. ``--processes 6`` lets that many share a GPU. Every
stage is cached in the folder, so the same command goes on where it was stopped. ``--only labels``,
``--only arms --seeds 1``, ``--only shipped`` (the rewriter that ships, on the CPU), ``--only answers`` and
``--only tables`` run parts.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl

import ragworth
from ragworth.calls.job import Job
from ragworth.collection import Collection
from ragworth.conversations import turns_of
from ragworth.generation.rewriter import QueryRewriter
from ragworth.llm.contract import Model
from ragworth.llm.embedded import REWRITER_SPEC
from ragworth.rewriting.candidates import Proposal, by_rules, from_samples, merge_candidates
from ragworth.rewriting.labels import RewriteLabelling
from ragworth.rewriting.training.run import TrainingRun
from ragworth.rewriting.training.settings import TrainingSettings
from ragworth.rewriting.utilities import AnswerabilityUtility, GoldRankUtility, KeyEntropyUtility, Utility
from ragworth.tasks.contract import run_task
from training.rewriter import answers, models, results
from training.rewriter.arms import BASE, FEW_SHOT_BASE, Labelled, chains, model_rewrites, train
from training.rewriter.comparison import rewrites_file
from training.rewriter.costs import Cost, stage
from training.rewriter.parts import run_parts, split_by_query
from training.rewriter.rule_candidates import name_candidates
from training.rewriter.setup import Experiment

CANDIDATE_RULES = ("last", "all", "first+last", "history-terms")
UTILITIES = (KeyEntropyUtility(), AnswerabilityUtility(), GoldRankUtility())
FEW_SHOT = Path(__file__).parent / "few-shot.txt"
"""Prompt of the base model's samples. With the prompt that ships it repeats the first line of the conversation."""
PARTS = ("labels", "arms", "shipped", "answers", "tables")
MICRO_BATCH = 16
"""Examples read at a time: six processes then share 85 GB of GPU memory."""
SFT_RATES, DPO_RATES = (1e-4, 1e-3), (5e-6, 5e-5)


def candidates(experiment: Experiment, collection: Collection) -> pl.DataFrame:
    """Candidates of the training turns: by rules, with names of the history, and samples of the base model."""
    path = experiment.folder / "candidates.parquet"
    if path.exists():
        return pl.read_parquet(path)
    turns = turns_of(collection)
    proposals: list[Proposal | str | None] = [*by_rules(turns, CANDIDATE_RULES, collection)]
    for turn in turns:
        proposals += [Proposal(turn.query, name, text, "name") for name, text in name_candidates(turn).items()]
    if experiment.samples:
        with (
            stage(experiment.folder, "candidates") as cost,
            Job(models.base(experiment.device), experiment.store()) as job,
        ):
            rewriter = QueryRewriter(
                job.card, prompt=str(FEW_SHOT), samples=experiment.samples, temperature=experiment.temperature
            )
            proposals += from_samples(run_task(rewriter, turns, job).frame, "sample")
            cost.add(job)
    made = merge_candidates(turns, proposals)
    print(made, flush=True)
    made.frame.write_parquet(path)
    return made.frame


def labels(experiment: Experiment, collection: Collection) -> Labelled:
    """The candidates with the utility of what they retrieve, of each kind."""
    made = candidates(experiment, collection)
    found: dict[str, pl.DataFrame] = {}
    for utility in UTILITIES:
        path = experiment.folder / f"labels-{utility.kind}.parquet"
        if not path.exists():
            with stage(experiment.folder, f"labels by {utility.kind}") as cost:
                label = partial(label_part, experiment, utility)
                found_parts = run_parts(label, split_by_query(made, experiment.processes), cost)
            pl.concat(found_parts).write_parquet(path)
        found[utility.kind] = pl.read_parquet(path)
    return Labelled(collection, found, experiment.human_sources())


def label_part(experiment: Experiment, utility: Utility, made: pl.DataFrame, part: int) -> tuple[pl.DataFrame, Cost]:
    """Labels of some of the candidates."""
    task, cost = RewriteLabelling(made, experiment.train(), utility, cache=experiment.folder / "cache"), Cost()
    if utility.asks_model:
        with Job(models.reader(experiment.device), experiment.store(part)) as job:
            result = task.run(job)
            cost.add(job)
    else:
        result = task.run(None)
    print(result, *result.notes, sep="\n", flush=True)
    return result.frame, cost


def arms(experiment: Experiment, labelled: Labelled, seed: int, names: Sequence[str]) -> None:
    """Train some arms with one seed, and rewrite the test turns with each."""
    adapters = experiment.folder / f"adapters-{seed}"
    settings = replace(experiment.training, seed=seed)
    every = labelled.arms(seed)
    for name in names:
        run = TrainingRun(labelled.collection, adapters / name, "embedded:base", settings=settings)
        if not run.output.exists():
            with stage(experiment.folder, f"train {name}, seed {seed}"):
                train(run, every[name], adapters)
        rewrite(experiment, f"{name}-{seed}", partial(models.rewriter, run.output, experiment.device))


def all_arms(experiment: Experiment, seeds: Sequence[int]) -> None:
    """Every arm with every seed; side by side, except those that start from another."""
    labelled = labels(experiment, experiment.train())
    work = [(seed, chain) for seed in seeds for chain in chains(labelled.arms(seed))]
    if experiment.processes == 1:
        for seed, chain in work:
            arms(experiment, labelled, seed, chain)
        return
    # Hashing a dataset imports JAX where it is installed, and JAX takes most of the GPU's memory for itself.
    os.environ["JAX_PLATFORMS"] = "cpu"
    with ProcessPoolExecutor(experiment.processes, get_context("spawn"), max_tasks_per_child=1) as pool:
        running = {pool.submit(arms, experiment, labelled, *each): each for each in work}
        failed = {f"{', '.join(chain)} with seed {seed}": job.exception() for job, (seed, chain) in running.items()}
    problems = [f"{name}: {error}" for name, error in failed.items() if error]
    if problems:
        raise SystemExit("\n".join([*problems, "the same command goes on from there"]))


def rewrite(experiment: Experiment, name: str, load: Callable[[], Model], prompt: str = "rewrite") -> None:
    """Rewrite the turns of every test with a model, unless that is done."""
    files = {test: rewrites_file(experiment.folder, test, name) for test in experiment.tests()}
    if all(path.exists() for path in files.values()):
        return
    with (
        stage(experiment.folder, f"rewrite with {name}") as cost,
        Job(load(), experiment.folder / f"rewrites-{name}.sqlite") as job,
    ):
        for test, collection in experiment.tests().items():
            files[test].parent.mkdir(parents=True, exist_ok=True)
            model_rewrites(collection, job, prompt).write_ndjson(files[test])
        cost.add(job)


def run(experiment: Experiment, only: str, seeds: Sequence[int]) -> None:
    """All parts, or one of them."""
    experiment.folder.mkdir(parents=True, exist_ok=True)
    collection = experiment.train()
    if only in ("", "labels"):
        labels(experiment, collection)
        base = partial(models.base, experiment.device)
        rewrite(experiment, BASE, base)
        rewrite(experiment, FEW_SHOT_BASE, base, str(FEW_SHOT))
    if only in ("", "arms"):
        all_arms(experiment, seeds)
    if only in ("", "shipped"):
        rewrite(experiment, "shipped", partial(ragworth.llm, REWRITER_SPEC))
    if only in ("", "answers"):
        answers.write(experiment)
    if only in ("", "tables"):
        results.write(experiment, labels(experiment, collection).labels)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    training = TrainingSettings(
        sft_rates=tuple(options.sft_rates),
        dpo_rates=tuple(options.dpo_rates),
        epochs=options.epochs,
        batch=options.batch,
        micro_batch=min(options.batch, MICRO_BATCH),
        save_steps=100_000,
        rank=8,
        alpha=16,
    )
    experiment = Experiment(
        options.data,
        options.folder,
        options.device or _device(),
        tuple(options.others),
        options.train_turns,
        options.test_turns,
        options.samples,
        canard=options.canard,
        processes=options.processes,
        training=training,
    )
    run(experiment, options.only, options.seeds)


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else models.CPU


def _parser() -> Any:
    parser = argparse.ArgumentParser(description="Train rewriters on utility, on controls and on labels; compare them.")
    parser.add_argument("folder", type=Path, help="where everything is written; an unfinished run goes on there")
    parser.add_argument("--data", type=Path, required=True, help="folder with train, judge and passages.jsonl")
    parser.add_argument("--others", type=Path, nargs="*", default=[], help="folders of further test conversations")
    parser.add_argument("--canard", type=Path, help="folder of CANARD's turns, to learn from its human rewrites")
    parser.add_argument("--train-turns", type=int, default=Experiment.train_turns)
    parser.add_argument("--test-turns", type=int, default=Experiment.test_turns)
    parser.add_argument("--samples", type=int, default=Experiment.samples, help="rewrites of the base model, each turn")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--sft-rates", type=float, nargs="+", default=SFT_RATES)
    parser.add_argument("--dpo-rates", type=float, nargs="+", default=DPO_RATES)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--processes", type=int, default=1, help="that label and answer side by side")
    parser.add_argument("--device", default="", help="cpu or cuda; a GPU if there is one by default")
    parser.add_argument("--only", choices=PARTS, default="", help="one part of the experiment")
    return parser


if __name__ == "__main__":
    main()
