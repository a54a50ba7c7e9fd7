"""Budgets hold where an endpoint doesn't report what its calls took."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("aiohttp")

from ragworth.calls.budget import JobLimits, Price, TokenEstimate, unreported_tokens
from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.cli import main
from ragworth.llm import llm
from ragworth.llm.contract import Choose, Chosen, Failure, Generate, Generated, Output, Prompt, Usage
from ragworth.llm.scripted import Scripted
from tests.llm.openai.endpoint import Endpoint, edited

IMPOSSIBLE = {"prompt_tokens": 10**30, "completion_tokens": -1}
SILENT = [
    lambda value: {name: value[name] for name in value if name != "usage"},
    lambda value: value | {"usage": IMPOSSIBLE},
]
ASKED = [Generate(Prompt.chat(f"hello {i}"), max_tokens=2) for i in range(40)]


@pytest.mark.parametrize("change", SILENT, ids=["no usage", "impossible usage"])
@pytest.mark.parametrize("limits", [JobLimits(tokens=300), JobLimits(cost=300e-6)], ids=["tokens", "cost"])
def test_a_budget_ends_a_job_whose_endpoint_reports_no_usage(change: object, limits: JobLimits, tmp_path: Path) -> None:
    with Endpoint(lambda _: edited(change)) as server:  # type: ignore[arg-type]
        job = Job(llm(f"openai:toy@{server.url}"), tmp_path / "calls.sqlite", limits=limits, price=Price(1.0, 1.0))
        found = list(job.run(ASKED))
        job.close()
    tally = job.tally
    assert 0 < tally.calls == tally.estimated < len(ASKED)
    assert {one.reason for one in found if isinstance(one, Failure)} == {"not-asked"}
    assert 200 < tally.prompt_tokens + tally.new_tokens <= 300
    with Store(tmp_path / "calls.sqlite") as store:  # as the endpoint said: nobody knows
        assert set(store.query("SELECT prompt_tokens, new_tokens FROM answers")) == {(0, 0)}
    shown = CliRunner().invoke(main, ["calls", "show", str(tmp_path / "calls.sqlite"), "-f", "json"])
    assert json.loads(shown.stdout)[0]["unreported"] == tally.calls


def test_estimates_are_upper_ones() -> None:
    request = Generate(Prompt.text("äöü"), max_tokens=50)
    silent = Usage(0, 0, 0.1)
    assert unreported_tokens(request, Generated((Output("äö", "stop"),), silent), _Far()) == TokenEstimate(6 + 16, 4)
    assert unreported_tokens(request, Generated((Output("äö", "length"),), silent), _Far()) == TokenEstimate(6 + 16, 50)
    assert unreported_tokens(request, Generated((Output("x" * 99, "stop"),), silent), _Far()) == TokenEstimate(
        6 + 16, 50
    )
    assert unreported_tokens(request, Generated((Output("äö", "stop"),), Usage(7, 0, 0.1)), _Far()) == TokenEstimate(
        7, 4
    )
    labels = Choose(Prompt.text("abcd"), ("yes", "no"))
    values = (0.5, 0.5)
    chosen = Chosen(values, values, values, "first-token", Usage(0, 1, 0.1))
    assert unreported_tokens(labels, chosen, _Far()) == TokenEstimate(3 * (4 + 16), 1)


class _Far(Scripted):
    """A model somewhere else, which can't count."""

    def __init__(self) -> None:
        super().__init__(lambda request: "text")

    def count(self, prompt: Prompt) -> None:  # type: ignore[override]
        return None
