"""Calls in shards: each planned once, run anywhere, checked when merged, and found afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from ragworth.calls import maintenance
from ragworth.calls.budget import JobLimits
from ragworth.calls.capture import capture_requests
from ragworth.calls.job import NOT_ASKED, Job
from ragworth.calls.shards import plan as planning
from ragworth.calls.shards import run as running
from ragworth.calls.shards.merge import merge_shards
from ragworth.calls.shards.plan import ShardPlan, ShardWriter
from ragworth.calls.shards.run import part_files, read_part, run_shard
from ragworth.calls.store import Store
from ragworth.errors import InputError, ModelError, StoreError
from ragworth.llm.contract import Chosen, Failure, Request
from ragworth.llm.scripted import Faults, Scripted
from tests.calls.samples import fresh, questions, share

CALLS = 500
SHARDS = 4
ROOT = Path(__file__).parents[2]


def planned(folder: Path, requests: list[Request], store: Path | None = None, shards: int = SHARDS) -> ShardPlan:
    writer = ShardWriter(folder, shards)
    with capture_requests(writer):
        outcomes = list(Job(Scripted(share), store).run(requests))
    assert any(isinstance(outcome, Failure) and outcome.reason == NOT_ASKED for outcome in outcomes)
    return writer.finish()


def run_all(plan: ShardPlan) -> None:
    for number in range(len(plan.shards)):
        run_shard(plan, number, Scripted(share))


def found(store: Path, requests: list[Request]) -> list[float]:
    """The stored values of requests; asking the model is an error."""
    model, noted = fresh()
    with Job(model, store) as job:
        outcomes = list(job.run(requests))
    assert not noted.seen
    return [outcome.probabilities[0] for outcome in outcomes if isinstance(outcome, Chosen)]


def values(requests: list[Request]) -> list[float]:
    return [share(request)["yes"] for request in requests]


def test_what_was_planned_is_found_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "BUFFERED", 64)
    monkeypatch.setattr(running, "PART_ROWS", 50)
    requests = questions(CALLS)
    plan = planned(tmp_path / "plan", [*requests, *requests[:100]])
    assert plan.calls == CALLS
    assert len(plan.shards) == SHARDS
    run_all(ShardPlan.read(tmp_path / "plan"))
    merged = list(merge_shards(plan, tmp_path / "calls.sqlite"))
    assert sum(one.answers for one in merged) == CALLS
    assert not any(one.missing or one.repeated or one.conflicts or one.rejected or one.failed for one in merged)
    assert found(tmp_path / "calls.sqlite", requests) == pytest.approx(values(requests))
    with Store(tmp_path / "calls.sqlite") as store:
        assert maintenance.verify(store)[:3] == (CALLS, 0, [])
        (totals,) = maintenance.stored_calls(store)
        assert totals.calls == CALLS
        assert len(list(maintenance.export_calls(store))) == CALLS


def test_a_shard_is_a_sorted_range_of_keys_and_its_name_is_its_content(tmp_path: Path) -> None:
    plan = planned(tmp_path / "one", questions(CALLS))
    again = planned(tmp_path / "two", list(reversed(questions(CALLS))))
    assert [shard.file for shard in plan.shards] == [shard.file for shard in again.shards]
    keys = [key for shard in plan.shards for key in plan.requests(shard)["key"]]
    assert keys == sorted(keys)
    assert all(shard.calls > CALLS / SHARDS / 2 for shard in plan.shards)


def test_only_what_the_store_lacks_is_planned_and_later_plans_add_to_it(tmp_path: Path) -> None:
    store, requests = tmp_path / "calls.sqlite", questions(CALLS)
    with Job(Scripted(share), store) as job:
        list(job.run(requests[:100]))
    first = planned(tmp_path / "first", requests[:300], store)
    assert first.calls == 200
    run_all(first)
    list(merge_shards(first, store))
    second = planned(tmp_path / "second", requests, store)
    assert second.calls == 200
    run_all(second)
    list(merge_shards(second, store))
    assert found(store, requests) == pytest.approx(values(requests))
    with Store(store) as kept:
        assert len(kept.segments.found) == 2 * SHARDS


def test_a_run_that_is_stopped_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PART_ROWS", 20)
    plan = planned(tmp_path / "plan", questions(200), shards=1)
    stopped = run_shard(plan, 0, Scripted(share), limits=JobLimits(calls=70))
    assert (stopped.done, stopped.tally.done, stopped.stopped) == (0, 70, "70 calls")
    model, noted = fresh()
    rest = run_shard(plan, 0, model)
    assert (rest.done, rest.tally.done, len(noted.seen)) == (70, 130, 130)
    assert run_shard(plan, 0, Scripted(share)).tally.calls == 0


CHILD = """
import sys
from ragworth.calls.shards import run as running
from ragworth.calls.shards.plan import ShardPlan
from ragworth.llm.scripted import Scripted
from tests.calls.samples import share

running.PART_ROWS = 40
log = open(sys.argv[2], "a", buffering=1)

def script(request):
    log.write(request.prompt.messages[-1].content + "\\n")
    return share(request)

running.run_shard(ShardPlan.read(sys.argv[1]), 0, Scripted(script, batch=8, seconds=0.002))
"""


@pytest.mark.slow
def test_killed_shards_pay_again_for_one_file_of_answers_at_most(tmp_path: Path) -> None:
    requests = questions(600)
    plan = planned(tmp_path / "plan", requests, shards=1)
    log, kills = tmp_path / "log", 0
    for _ in range(20):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(plan.folder), str(log)], cwd=ROOT)
        before, end = len(part_files(plan.answers(plan.shards[0]))), time.monotonic() + 60
        while child.poll() is None and kills < 2 and time.monotonic() < end:
            if len(part_files(plan.answers(plan.shards[0]))) >= before + 2:
                os.kill(child.pid, signal.SIGKILL)
                kills += 1
            time.sleep(0.005)
        if child.wait() == 0:
            break
    assert kills == 2
    (merged,) = merge_shards(plan, tmp_path / "calls.sqlite")
    assert (merged.answers, merged.repeated, merged.conflicts) == (600, 0, 0)
    assert len(log.read_text().splitlines()) <= 600 + kills * (40 + 2 * 8)
    assert found(tmp_path / "calls.sqlite", requests) == pytest.approx(values(requests))


def test_two_runs_of_one_shard_give_each_call_one_value_and_conflicts_are_counted(tmp_path: Path) -> None:
    plan = planned(tmp_path / "plan", questions(60), shards=1)
    other = ShardPlan(tmp_path / "copy", plan.shards, plan.models)
    (tmp_path / "copy").mkdir()
    shard = plan.shards[0]
    (other.folder / shard.file).write_bytes((plan.folder / shard.file).read_bytes())
    run_shard(plan, 0, Scripted(share))
    run_shard(other, 0, Scripted(lambda request: {"yes": 0.5} if share(request)["yes"] < 0.01 else share(request)))
    for path in part_files(other.answers(shard)):
        (plan.answers(shard) / path.name).write_bytes(path.read_bytes())
    (merged,) = merge_shards(plan, tmp_path / "calls.sqlite")
    assert (merged.answers, merged.conflicts) == (60, 10)
    # The first answer counts: that of the first run.
    assert found(tmp_path / "calls.sqlite", questions(60)) == pytest.approx(values(questions(60)))


def test_calls_that_fail_are_counted_and_asked_again(tmp_path: Path) -> None:
    plan = planned(tmp_path / "plan", questions(100), shards=1)
    ill = Scripted(share, faults=Faults(error=0.3), batch=1)
    run_shard(plan, 0, ill)
    (merged,) = merge_shards(plan, tmp_path / "calls.sqlite")
    assert 0 < merged.missing < 100
    assert sum(merged.failed.values()) == merged.missing
    run_shard(plan, 0, Scripted(share))
    (whole,) = merge_shards(plan, tmp_path / "calls.sqlite")
    assert (whole.missing, dict(whole.failed), whole.written) == (0, {}, True)
    (same,) = merge_shards(plan, tmp_path / "calls.sqlite")
    assert (same.answers, same.written) == (100, False)


def test_another_model_is_refused(tmp_path: Path) -> None:
    plan = planned(tmp_path / "plan", questions(10), shards=1)
    with pytest.raises(ModelError, match=r"another model than the planned one .*name: 'other'"):
        run_shard(plan, 0, Scripted(share, name="other"))


def test_changed_files_are_refused_or_left_out(tmp_path: Path) -> None:
    plan = planned(tmp_path / "plan", questions(50), shards=1)
    shard = plan.shards[0]
    run_shard(plan, 0, Scripted(share))
    (part,) = part_files(plan.answers(shard))
    rows = read_part(part)
    changed = rows.with_columns(
        response=pl.when(pl.int_range(pl.len()) == 3).then(pl.lit("[]")).otherwise("response"),
        model=pl.when(pl.int_range(pl.len()) == 4).then(pl.lit(b"other")).otherwise("model"),
        key=pl.when(pl.int_range(pl.len()) == 5).then(pl.lit(b"unknown")).otherwise("key"),
    )
    data = planning.to_parquet(changed)
    Path(str(part)).unlink()
    (part.parent / f"part-{hashlib.sha256(data).hexdigest()}.parquet").write_bytes(data)
    (part.parent / f"part-{'0' * 64}.parquet").write_bytes(data[:-100])
    (merged,) = merge_shards(plan, tmp_path / "calls.sqlite")
    assert merged.answers == 47
    assert len(merged.rejected) == 4
    text = " ".join(merged.rejected)
    for problem in ("it changed after it was written", "another model's", "was not planned"):
        assert problem in text
    path = plan.folder / shard.file
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="changed after it was written"):
        run_shard(plan, 0, Scripted(share))


def test_a_request_with_another_key_is_refused_before_the_model_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path / "plan", questions(5), shards=1)
    model, noted = fresh()
    monkeypatch.setattr("ragworth.calls.job.call_key", lambda model, request: b"another version's")
    with pytest.raises(InputError, match=r"(?s)not in the file.*plan again") as refused:
        run_shard(plan, 0, model)
    assert plan.shards[0].file in str(refused.value)
    assert not noted.seen


def test_a_changed_segment_is_refused(tmp_path: Path) -> None:
    store, requests = tmp_path / "calls.sqlite", questions(50)
    plan = planned(tmp_path / "plan", requests, shards=1)
    run_all(plan)
    list(merge_shards(plan, store))
    with Store(store) as kept, Store(kept.segments.files[0]) as segment:
        segment.change([("UPDATE answers SET response = '[]' WHERE key = (SELECT min(key) FROM answers)", ())])
    with pytest.raises(StoreError, match="1 answer of 50 changed"), Job(Scripted(share), store) as job:
        list(job.run(requests))
    with Store(store) as kept:
        result = maintenance.verify(kept)
    assert result.worst == "segment"
    assert len(result.problems) == 1


@pytest.mark.parametrize("text", ["", "{}", '{"version": 1}', '{"version": 9, "shards": [], "models": {}}'])
def test_a_broken_plan_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises((InputError, StoreError), match=r"plan\.json"):
        ShardPlan.read(tmp_path)


def test_a_plan_may_not_name_files_elsewhere(tmp_path: Path) -> None:
    planned(tmp_path / "plan", questions(5), shards=1)
    path = tmp_path / "plan" / "plan.json"
    facts = json.loads(path.read_text())
    facts["shards"][0]["file"] = "../other.parquet"
    path.write_text(json.dumps(facts))
    with pytest.raises(InputError, match="is no file name"):
        ShardPlan.read(tmp_path / "plan")


def test_a_folder_with_something_in_it_is_no_place_for_a_plan(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        ShardWriter(tmp_path, 4)
