"""An evaluation whose calls are made in shards is the same evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragworth.calls.capture import capture_requests
from ragworth.calls.shards.merge import merge_shards
from ragworth.calls.shards.plan import ShardWriter
from ragworth.calls.shards.run import run_shard
from ragworth.errors import JobStopped
from ragworth.evaluation.run import Evaluation, evaluate
from tests.evaluation.samples import Models, workspace

ROUNDS = 5


def planned(folder: Path, plan: Path) -> ShardWriter | Evaluation:
    """The calls that an evaluation lacks, or the evaluation if it lacks none."""
    writer = ShardWriter(plan, 2)
    with capture_requests(writer):
        try:
            return evaluate(folder)
        except JobStopped:
            return writer


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_tables_are_equal_to_those_of_a_local_run(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "sharded")
    rounds: list[Any] = []
    for number in range(ROUNDS):
        found = planned(folder, tmp_path / f"plan-{number}")
        if isinstance(found, Evaluation):
            break
        plan = found.finish()
        assert not models.asked
        for shard in range(len(plan.shards)):
            run_shard(plan, shard, models(plan.card(plan.shard(shard)).name))
        models.asked.clear()
        rounds.append(list(merge_shards(plan, folder / "calls.sqlite")))
    assert isinstance(found, Evaluation)
    assert 1 < len(rounds) < ROUNDS  # answers are graded after they are written
    local = evaluate(workspace(tmp_path / "local"))
    assert models.asked
    for name in ("scores", "judgments", "outcomes"):
        ours, theirs = (getattr(each.results, name).frame for each in (found, local))
        assert ours.height
        assert ours.equals(theirs), name
