"""Calls on a Ray cluster of three nodes on this machine: one value for each key, whatever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragworth.calls.budget import NO_TOKENS
from ragworth.calls.executors import QueuedCall, current_executor, use_executor
from ragworth.calls.job import Job
from ragworth.calls.ray import RayExecutor, parse_ray_settings
from ragworth.calls.serialization import call_key, model_digest
from ragworth.calls.store import Store
from ragworth.core.errors import InputError, ModelError
from ragworth.evaluation.run import evaluate
from ragworth.llm import llm
from ragworth.llm.contract import Choose, Chosen, Failure, Model, Prompt, Request
from ragworth.llm.scripted import Scripted
from ragworth.workspace.config import ExecutorConfig
from tests.evaluation.samples import TOML, Models, said, workspace

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CALLS = 120
BATCH = 8
ROOT = Path(__file__).parents[2]
NODE: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 80 * 1024 * 1024}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        found_by = [ROOT / "src", ROOT, os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, found_by)))
        patch.setenv("RAY_health_check_period_ms", "500")
        patch.setenv("RAY_health_check_failure_threshold", "4")
        try:
            found: Any = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
            for _ in range(2):
                found.add_node(**NODE)
        except Exception as error:
            pytest.skip(f"Ray can't start a cluster here: {error}")
        yield found
        ray.shutdown()
        found.shutdown()


@pytest.fixture
def executor(cluster: Any) -> Iterator[RayExecutor]:
    made = RayExecutor(ExecutorConfig("ray", cluster.address, actors=4, patience=300))
    yield made
    made.close()


def script(folder: Path) -> Path:
    """A script whose every answer is different."""
    path = folder / "script.json"
    path.write_text(json.dumps({f"question {n}": {"yes": n / 1000, "no": 0.5} for n in range(CALLS)}))
    return path


def questions() -> list[Request]:
    return [Choose(Prompt.text(f"question {number}"), ("yes", "no")) for number in range(CALLS)]


def scripted(folder: Path, **options: Any) -> Model:
    return llm(f"scripted:{script(folder)}", batch=BATCH, **options)


def probabilities(outcomes: list[Any]) -> list[float]:
    assert all(isinstance(outcome, Chosen) for outcome in outcomes), outcomes
    return [outcome.probabilities[0] for outcome in outcomes]


EXPECTED = [number / 1000 for number in range(CALLS)]


def test_values_are_those_of_a_local_run_and_each_is_asked_once(tmp_path: Path, executor: RayExecutor) -> None:
    with use_executor(executor), Job(scripted(tmp_path), tmp_path / "calls.sqlite") as job:
        assert probabilities(list(job.run(questions()))) == pytest.approx(EXPECTED)
    assert (job.tally.calls, job.notes) == (CALLS, ())
    assert current_executor() is None
    with Job(scripted(tmp_path), tmp_path / "calls.sqlite") as again:
        assert probabilities(list(again.run(questions()))) == pytest.approx(EXPECTED)
    assert again.tally.calls == 0


def test_actors_and_a_node_that_die(tmp_path: Path, cluster: Any, executor: RayExecutor) -> None:
    model = scripted(tmp_path, seconds=0.02)
    with Job(model, tmp_path / "calls.sqlite", executor=executor) as job:
        outcomes, killed = job.run(questions()), False

        class Killer:
            def update(self, tally: Any, waiting: int) -> None:
                nonlocal killed
                if tally.done >= CALLS // 4 and not killed:
                    killed = True
                    (crew,) = executor._crews.values()
                    ray.kill(crew.ready[0])
                    cluster.remove_node(list(cluster.worker_nodes)[-1], allow_graceful=False)

        job.watcher = Killer()
        assert probabilities(list(outcomes)) == pytest.approx(EXPECTED)
    cluster.add_node(**NODE)
    assert killed
    assert "lost" in job.notes[0]
    with Store(tmp_path / "calls.sqlite") as store:
        ((kept,),) = store.query("SELECT count(*) FROM answers")
    assert kept == CALLS


def test_a_batch_that_hangs_fails_and_takes_no_other_with_it(tmp_path: Path, cluster: Any) -> None:
    """Two batches on one actor, of 16 calls and of one, each call of two seconds."""
    settings = ExecutorConfig("ray", cluster.address, deadline=8, patience=300)
    model = llm(f"scripted:{script(tmp_path)}", batch=16, seconds=2.0)
    begun = time.monotonic()
    with use_executor(RayExecutor(settings)), Job(model) as job:
        *hung, last = job.run(questions()[:17])
    assert hung == [Failure("crashed", "its worker was lost 3 times")] * 16
    assert isinstance(last, Chosen)
    assert "3 workers lost" in job.notes[0]
    assert time.monotonic() - begun < 240


def test_an_actor_that_is_given_up_is_killed(executor: RayExecutor, tmp_path: Path) -> None:
    crew = executor.open(scripted(tmp_path))
    crew.submit([QueuedCall(b"", questions()[0], NO_TOKENS)])
    (actor,) = [batch.actor for batch in crew._flying.values()]
    crew._give_up(actor)
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(actor.identity.remote(), timeout=60)


def test_another_model_on_the_nodes_is_refused(tmp_path: Path, executor: RayExecutor) -> None:
    model = scripted(tmp_path)
    assert model.card.revision
    (tmp_path / "script.json").write_text('{"*": {"yes": 0.5}}')
    with use_executor(executor), Job(model) as job, pytest.raises(ModelError, match="opened another model"):
        list(job.run(questions()))


DRIVER = """
import sys
from ragworth.calls.job import Job
from ragworth.calls.executors import use_executor
from ragworth.calls.ray import RayExecutor, parse_ray_settings
from ragworth.llm import llm
from tests.calls.test_ray import questions

class Watcher:
    def update(self, tally, waiting):
        print(tally.done, flush=True)

model = llm(f"scripted:{sys.argv[1]}", batch=8, seconds=0.05)
with use_executor(RayExecutor(parse_ray_settings(sys.argv[3]))), Job(model, sys.argv[2], watcher=Watcher()) as job:
    list(job.run(questions()))
"""


def test_a_driver_that_is_killed_goes_on(tmp_path: Path, cluster: Any, executor: RayExecutor) -> None:
    where = f"ray:{cluster.address},actors=2"
    store = tmp_path / "calls.sqlite"
    command = [sys.executable, "-c", DRIVER, str(script(tmp_path)), str(store), where]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        if line.strip().isdigit() and int(line) >= CALLS // 4:
            os.kill(child.pid, signal.SIGKILL)
            break
    child.wait()
    with Job(scripted(tmp_path), store, executor=executor, wait=30) as job:
        assert probabilities(list(job.run(questions()))) == pytest.approx(EXPECTED)
    assert CALLS // 4 <= job.tally.cached < CALLS
    with Store(store) as kept:
        digest = model_digest(scripted(tmp_path).card)
        keys = [call_key(digest, request) for request in questions()]
        assert len(list(kept.look_up(keys))) == CALLS


def test_an_evaluation_is_the_same_as_in_this_process(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("altair")
    recorded = Models()
    with monkeypatch.context() as patch:
        patch.setattr("ragworth.evaluation.model_pool.llm", recorded)
        evaluate(workspace(tmp_path / "recorded"))
    replies = {request.prompt.messages[-1].content: said(request) for _, request in recorded.asked}
    found = []
    for name, executor in (("local", ""), ("ray", '[executor]\nkind = "ray"\naddress = "auto"\nactors = 3\n')):
        folder = workspace(tmp_path / name, TOML.replace("k = 2", 'k = 2\nmodel = "scripted:said.json"') + executor)
        (folder / "said.json").write_text(json.dumps(replies))
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        found.append(evaluate(folder).results)
    for table in ("scores", "judgments", "outcomes"):
        local, distributed = (getattr(results, table).frame for results in found)
        assert local.height
        assert local.equals(distributed), table


def test_nobody_starts(tmp_path: Path, cluster: Any) -> None:
    settings = ExecutorConfig("ray", cluster.address, resources={"moonstone": 1}, patience=1)
    begun = time.monotonic()
    nobody = pytest.raises(ModelError, match=r"no actor started within 1 seconds[\s\S]*1 moonstone")
    with use_executor(RayExecutor(settings)), Job(scripted(tmp_path)) as job, nobody:
        list(job.run(questions()))
    assert time.monotonic() - begun < 150


def test_a_model_that_others_cannot_open_is_refused(executor: RayExecutor) -> None:
    with pytest.raises(ModelError, match="was not opened by its written form"):
        executor.open(Scripted({"*": "yes"}))


@pytest.mark.parametrize("text", ["dask", "ray,actors=many", "ray,colour=1", "ray,actors=0"])
def test_bad_settings(text: str) -> None:
    with pytest.raises(InputError):
        parse_ray_settings(text)
