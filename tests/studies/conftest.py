"""The simulated reader in place of all models."""

from __future__ import annotations

import pytest
from benchmarks import simulated_reader as simulated
from benchmarks.simulated_reader import Reader

from ragworth.llm.scripted import Scripted


class Opened:
    """Stands in for ``ragworth.llm``; counts what is asked of all models that it opened."""

    def __init__(self) -> None:
        self.reader = Reader()
        self.models: list[Scripted] = []

    def __call__(self, spec: str = "", **options: object) -> Scripted:
        self.models.append(simulated.model(self.reader)(spec, **options))
        return self.models[-1]

    @property
    def calls(self) -> int:
        return sum(each.calls for each in self.models)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    made = Opened()
    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", made)
    return made
