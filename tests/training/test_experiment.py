"""The experiment end to end, with a tiny model of random weights: every arm is trained, used and compared."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from training.rewriter import answers, arms, comparison, conversations, experiment, models, results
from training.rewriter.arms import Examples
from training.rewriter.sample import drawn, ranked
from training.rewriter.setup import Experiment

from ragworth.annotators.control_questions import CONTROL_QUESTIONS
from ragworth.generation.answering import build_writer
from ragworth.generation.rewriter import QueryRewriter
from ragworth.rewriting.training.run import TrainingRun
from ragworth.rewriting.training.settings import TrainingSettings
from ragworth.rewriting.utilities import KeyEntropyUtility
from tests.llm.local import made_gguf
from tests.training.test_conversations import GROUP

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Could not find a config file"),  # PEFT knows no embedded model
]

TORCH = "cpu:0"
"""The models as on a GPU, not their 8-bit graphs."""
TRAINED = {
    *("sft-random", "sft-utility", "dpo-utility", "dpo-shuffled", "sft-answerability", "dpo-answerability"),
    *("sft-gold-rank", "dpo-gold-rank", "sft-human", "sft-human-all"),
}
RULES = {"last", "all", "first+last", "history-terms", "human"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    folder = tmp_path_factory.mktemp("experiment")
    names = ("Lauen", "Orm", "Senn", "Varn", "Dell", "Ashby", "Kell")  # the last three are to judge by
    groups = folder / "tunnels.txt"
    groups.write_text("\n".join(GROUP.format(name, f"{name}by") for name in names), encoding="utf-8")
    conversations.write([groups], folder / "data", seed=3)
    settings = TrainingSettings(
        sft_rates=(1e-3,), dpo_rates=(1e-4,), epochs=1, rank=2, alpha=4, batch=4, micro_batch=4, held_out=0
    )
    made = Experiment(folder / "data", folder / "out", TORCH, (), 4, 4, samples=1, training=settings)
    fields: dict[str, Any] = {"llama.context_length": 8192}
    weights = made_gguf.write(folder / "tiny.gguf", **fields)
    with pytest.MonkeyPatch.context() as patch:
        for module in ("ragworth.llm.embedded", "ragworth.rewriting.training.base_model", "training.rewriter.models"):
            patch.setattr(f"{module}.weights_file", lambda: weights)
        patch.setattr(models, "reader", models.base)  # the adapter of the reader fits another model
        patch.setattr(experiment, "UTILITIES", (KeyEntropyUtility(length=8), *experiment.UTILITIES[1:]))
        patch.setattr(experiment, "train", _train_once)
        # Random weights never end a text.
        for user in (arms, experiment):
            patch.setattr(user, "QueryRewriter", partial(QueryRewriter, length=4))
        patch.setattr(answers, "build_writer", lambda *given: replace(build_writer(*given), length=4))
        experiment.run(made, "labels", [])
        _fill(made.folder / "labels-answerability.parquet")
        for part in ("arms", "answers", "tables"):
            experiment.run(made, part, [0, 1])
        experiment.run(made, "arms", [0, 1])  # everything is there: nothing is trained again
    return made


def _train_once(run: TrainingRun, examples: Examples, adapters: Path) -> Path:
    """Train with seed 0; other seeds have copies of its adapters, because only the averages over seeds are checked."""
    trained = run.output.parent.with_name("adapters-0") / run.output.name
    return arms.train(run, examples, adapters) if run.output == trained else shutil.copytree(trained, run.output)


def _fill(labels: Path) -> None:
    """Values in the place of those that random weights can't have: they never decline."""
    table = pl.read_parquet(labels)
    table.with_columns(value=pl.col("text").str.len_chars() / 100, status=pl.lit("ok")).write_parquet(labels)


def test_every_arm_is_measured_on_every_turn_with_every_seed(made: Experiment) -> None:
    table = pl.read_csv(made.folder / "arms.csv")
    trained = table.filter(pl.col("seed").is_not_null())
    assert set(trained["arm"]) == TRAINED
    assert trained.height == 2 * len(TRAINED)
    assert set(table.filter(pl.col("seed").is_null())["arm"]) == RULES | {"base", "base-few-shot"}
    values = pl.read_csv(made.folder / "values.csv").filter(pl.col("measure") == "RR")
    turns = made.tests()["judge"].turns.height
    assert set(values.group_by("arm", "seed").len()["len"]) == {turns}
    assert table.filter(pl.col("arm") == "last")["unchanged"].item() == 1


def test_differences_are_between_arms_averaged_over_seeds(made: Experiment) -> None:
    table = pl.read_csv(made.folder / "differences.csv")
    means = {row["arm"]: row["value"] for row in _rows(made, "means.csv") if row["measure"] == "RR"}
    for row in table.filter(pl.col("measure") == "RR").iter_rows(named=True):
        assert row["difference"] == pytest.approx(means[row["arm"]] - means[row["against"]], abs=1e-9)
    assert {"last", "sft-random", "dpo-shuffled"} <= set(table["against"])


def test_each_arm_is_trained_once_and_each_context_is_labelled_once(made: Experiment) -> None:
    stages = [row["stage"] for row in _rows(made, "costs.csv")]
    assert len(stages) == len(set(stages))
    assert sum(stage.startswith("train ") for stage in stages) == 2 * len(TRAINED)
    labels = pl.read_parquet(made.folder / "labels-answerability.parquet")
    calls = next(row["calls"] for row in _rows(made, "costs.csv") if row["stage"] == "labels by answerability")
    contexts = labels.filter(pl.col("context") != "").select("query", "context").n_unique()
    assert contexts < labels.height
    assert calls == contexts + 2 * len(CONTROL_QUESTIONS)


def test_labels_agree_with_themselves() -> None:
    rows = [("q", "a", 1.0), ("q", "b", 2.0), ("q", "c", 3.0), ("r", "a", 1.0), ("r", "b", 5.0)]
    labels = pl.DataFrame(rows, schema=["query", "context", "value"], orient="row").with_columns(status=pl.lit("ok"))
    turned = labels.with_columns(-pl.col("value"))
    found = results.agreement({"one": labels, "same": labels, "turned": turned}).rows(named=True)
    assert [round(row["mean tau"], 9) for row in found] == [1, -1, -1]
    assert [row["shared best context"] for row in found] == [1, 0, 0]


def test_choices_are_ranked_by_the_labels_that_made_them() -> None:
    rows = [("a-t2", "x", 1.0), ("a-t2", "y", 0.5), ("b-t2", "x", 0.0), ("b-t2", "y", 0.25)]
    gold = pl.DataFrame(rows, schema=["query", "candidate", "value"], orient="row").with_columns(status=pl.lit("ok"))
    other = gold.with_columns(value=pl.Series([0.9, 0.1, 0.9, 0.1]))
    table = results.choices({"other": other, "gold-rank": gold}, {"a-t2": "a", "b-t2": "b"})
    found = {(kind, name): value for kind, name, value in table.select("labels", "candidate", "reciprocal rank").rows()}
    assert found["other", "best"] == pytest.approx(0.5)
    assert found["other", "worst"] == pytest.approx(0.375)
    assert found["gold-rank", "best"] == pytest.approx(0.625)
    assert found["gold-rank", "random"] == pytest.approx(0.4375)


def test_rewrites_to_read_have_ranks(made: Experiment) -> None:
    collection = made.tests()["judge"]
    found = ranked(comparison.rewrites_file(made.folder, "judge", "sft-human-0"), collection)
    assert len(found) == collection.turns.height
    assert all(one.gold_rank is not None and one.gold_rank >= 1 for one in found)
    assert len(drawn(found, 2, 0)) == 2 < len(found)


def _rows(made: Experiment, name: str) -> list[dict[str, Any]]:
    return pl.read_csv(made.folder / name).rows(named=True)
