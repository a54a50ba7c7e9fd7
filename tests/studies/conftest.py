"""The simulated reader in place of all models."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks import simulated_reader as simulated
from benchmarks.simulated_reader import Reader

from ragworth.llm.contract import Generate, Request
from ragworth.llm.scripted import Scripted, ScriptedReply


class Opened:
    """Stands in for ``ragworth.llm``; counts what is asked of all models that it opened."""

    def __init__(self) -> None:
        self.reader = Reader()
        self.declining: float | None = None
        """The calibration that the models come with."""
        self.models: list[Scripted] = []

    def __call__(self, spec: str = "", **options: object) -> Scripted:
        made = simulated.model(self.reader)(spec, **options)
        made.card = replace(made.card, declining=self.declining)
        self.models.append(made)
        return made

    @property
    def calls(self) -> int:
        return sum(each.calls for each in self.models)


class Listener(Reader):
    """Keeps what it was asked to write."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def __call__(self, request: Request) -> ScriptedReply:
        if isinstance(request, Generate):
            self.asked.append("\n".join(message.content for message in request.prompt.messages))
        return super().__call__(request)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    made = Opened()
    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", made)
    return made
