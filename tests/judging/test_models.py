"""A model, however it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragworth.core.errors import ModelError
from ragworth.judging.contract import resolve_model
from ragworth.llm.scripted import Scripted


def test_a_model_is_itself() -> None:
    model = Scripted({})
    assert resolve_model(model) is model


def test_a_written_form_is_opened(tmp_path: Path) -> None:
    (tmp_path / "says.json").write_text("{}")
    assert resolve_model(f"scripted:{tmp_path / 'says.json'}").card.backend == "scripted"
    with pytest.raises(ModelError, match="unknown kind of model"):
        resolve_model("nonsense")


def test_none_is_the_embedded_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Scripted({})
    monkeypatch.setattr("ragworth.llm.llm", lambda spec="embedded": model)
    assert resolve_model(None) is model
