"""With an endpoint: its key is nowhere in what is written, and it is not needed once everything is kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")
pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from ragworth import evaluate
from ragworth.core.errors import ModelError
from ragworth.evaluation.plan import plan_evaluation
from ragworth.workspace import config
from tests.evaluation.samples import TOML, change, statuses, tables, workspace
from tests.llm.openai.endpoint import Endpoint

SECRET = "sk-test-5ecr3t-0123456789abcdef"


@pytest.mark.slow
@pytest.mark.usefixtures("whole_report")
def test_keys_stay_secret_and_an_endpoint_may_go_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGWORTH_API_KEY", SECRET)
    with Endpoint(key=SECRET) as server:
        model = f'k = 2\nlimit = 2\nmodel = {{use = "openai:toy@{server.url}", deadline = 5.0}}'
        folder = workspace(tmp_path / "w", TOML.replace("k = 2", model))
        plan_evaluation(config.read(folder))
        assert server.seen == []  # not even what it can do
        found = evaluate(folder)
        assert server.seen
        assert all(SECRET in seen.headers["authorization"] for seen in server.asked())
    assert found.report is not None
    assert "The mill" in found.report.read_text(encoding="utf-8")
    assert (folder / "results" / "report.md").stat().st_size > 1000
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert {"manifest.json", "report.html", "calls.sqlite", "facts.json"} <= {path.name for path in written}
    for path in written:
        assert SECRET.encode() not in path.read_bytes(), path
    # The endpoint is gone.
    before = tables(folder / "results")
    change(folder, '"nDCG@2"', '"nDCG@2", "P@1"')
    again = statuses(evaluate(folder, until="score").stages)
    assert [name for name, status in again.items() if status == "done"] == ["load", "score"]
    assert before["answers.parquet"].height == 4
    with pytest.raises(ModelError, match=r"127\.0\.0\.1"):
        evaluate(folder, every=True, until="score")


def test_an_endpoint_without_log_probabilities_reads_a_log_without_answers_by_samples(tmp_path: Path) -> None:
    log = [{"question": "Who built the mill?", "contexts": ["Ann built the mill."], "reference": "Ann"}]
    with Endpoint(top=0) as server:
        with pytest.raises(ModelError) as caught:
            evaluate(log, model=f"openai:toy@{server.url}", results=tmp_path, until="answer")
        sampled = re.search(r"sampled:[^ )]+", str(caught.value.remedy))
        assert sampled is not None
        stages = evaluate(log, model=sampled[0], results=tmp_path, until="answer").stages
    assert {"annotate.abstention", "answer"} <= {name for name, status in statuses(stages).items() if status == "done"}
