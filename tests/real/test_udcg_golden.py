"""UDCG against the reference implementation's own scores (γ = 0.333)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from ragworth import Contexts, Judgments, score

pytestmark = pytest.mark.real

METRIC = "UDCG(gamma=0.333)"


class Golden(NamedTuple):
    """The reference data as tables, and its scores."""

    contexts: Contexts
    judgments: Judgments
    scores: dict[str, float]


@pytest.fixture(scope="module")
def golden(data: Path) -> Golden:
    examples: list[dict[str, Any]] = json.loads((data / "udcg_reference" / "dataset_with_udcg.json").read_text())
    rows = [
        {
            "query_id": example["example_id"],
            "doc_id": passage["doc_id"],
            "rank": rank,
            "is_relevant": passage["is_relevant"],
            "p_abstain": next(iter(passage["models_info"].values()))["no_res_prob"],
        }
        for example in examples
        for rank, passage in enumerate(example["passages"], 1)
    ]
    scores = {example["example_id"]: float(next(iter(example["udcg"].values()))) for example in examples}
    return Golden(Contexts(rows), Judgments(rows), scores)


def test_reference_scores(golden: Golden) -> None:
    result = score(golden.contexts, golden.judgments, METRIC).frame
    assert dict(result.select("query", "value").rows()) == pytest.approx(golden.scores, abs=1e-6)
    assert len(golden.scores) == 3
    assert result["status"].to_list() == ["ok"] * 3


def test_the_exponent_by_hand(golden: Golden) -> None:
    """σ⁻¹ of the score is the raw score: (Σ help − 0.333 · Σ harm) / 5."""
    raw = score(golden.contexts, golden.judgments, "UDCG(gamma=0.333, raw=true)").frame
    for query, value in raw.select("query", "value").rows():
        reference = golden.scores[query]
        assert value == pytest.approx(math.log(reference / (1 - reference)), abs=1e-6)


def test_another_gamma_is_another_number(golden: Golden) -> None:
    """The reference distinguishes 0.333 from 1/3 at this precision, so the weight is really used."""
    third = dict(score(golden.contexts, golden.judgments, "UDCG").frame.select("query", "value").rows())
    assert any(abs(third[query] - reference) > 1e-6 for query, reference in golden.scores.items())


def test_order_and_cutoff(golden: Golden) -> None:
    """All five passages are shown: cutting at five changes nothing, nor does turning the order."""
    assert score(golden.contexts, golden.judgments, f"{METRIC}@5").frame["value"].to_list() == pytest.approx(
        list(golden.scores.values()), abs=1e-6
    )
    turned = golden.contexts.frame.with_columns(6 - pl.col("rank").cast(pl.Int64))
    assert score(Contexts(turned), golden.judgments, METRIC).frame["value"].to_list() == pytest.approx(
        list(golden.scores.values()), abs=1e-6
    )
    first = score(golden.contexts, golden.judgments, f"{METRIC}@1").frame["value"].to_list()
    assert first != pytest.approx(list(golden.scores.values()), abs=1e-3)
