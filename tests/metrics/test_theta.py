"""``UDCG(theta=FILE)@k``: its value, its written form, where its file is read, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from random import Random

import polars as pl
import pytest

import ragworth
from ragworth import scoring
from ragworth.core.errors import FormatError, MetricError
from ragworth.data import Contexts, Judgments
from ragworth.metrics import engine
from ragworth.metrics.parsing import parse
from ragworth.metrics.theta import Theta
from tests.metrics.cases import answers, judged, shown
from tests.tiers import slow

THETA = Theta(3, "full", (0.5, 0.3, 0.2), (0.4, 0.1, -0.05))
RELEVANCE = {"a": 1.0, "b": 0.0, "c": 2.0}
ABSTENTION = {"a": 0.1, "b": 0.25, "c": 0.5, "d": 0.9, "e": 1.0}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    THETA.write(tmp_path / "theta.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def by_hand(passages: str, theta: Theta, rel: float = 1.0) -> float:
    """The formula, passage by passage."""
    total = 0.0
    for place, passage in enumerate(passages[: theta.k]):
        utility = 1 - ABSTENTION[passage]
        if RELEVANCE.get(passage, 0.0) >= rel:
            total += theta.alpha[place] * (1.0 if theta.variant == "binary" else utility)
        else:
            total -= theta.beta[place] * utility
    return sigma(total)


def test_a_value_worked_by_hand(folder: Path) -> None:
    # a helps 0.9 at place 1, b misleads 0.75 at place 2, c helps 0.5 at place 3; d is beyond the third place:
    # 0.5·0.9 − 0.1·0.75 + 0.2·0.5 = 0.475
    scores = ragworth.score(shown(A="abcd"), judged(RELEVANCE, ABSTENTION), ["UDCG(theta=theta.json)@3"])
    assert answers(scores) == [pytest.approx(1 / (1 + math.exp(-0.475)), abs=1e-15)]
    raw = ragworth.score(shown(A="abcd"), judged(RELEVANCE, ABSTENTION), ["UDCG(theta=theta.json, raw=true)@3"])
    assert answers(raw) == [pytest.approx(0.475, abs=1e-15)]


@pytest.mark.parametrize(
    "theta",
    [
        THETA,
        Theta(3, "relevance", (0.5, -0.3, 0.2), (0.0, 0.0, 0.0)),
        Theta(3, "binary", (0.5, 0.3, 0.2), (0.0, 0.0, 0.0)),
        replace(THETA, rel=2.0),
        Theta(5, "full", (0.1, 0.2, 0.3, 0.4, 0.5), (0.5, 0.4, 0.3, 0.2, 0.1)),
    ],
)
def test_every_context_as_by_another_implementation(tmp_path: Path, theta: Theta) -> None:
    theta.write(tmp_path / "t.json")
    rng = Random(7)
    contexts = {f"s{n}": "".join(rng.sample("abcde", rng.randint(1, 5))) for n in range(40)}
    written = f"UDCG(theta=t.json, rel={theta.rel})@{theta.k}"
    scores = ragworth.score(shown(**contexts), judged(RELEVANCE, ABSTENTION), [written], folder=tmp_path)
    wanted = [by_hand(passages, theta, theta.rel) for passages in contexts.values()]
    assert answers(scores) == pytest.approx(wanted, abs=1e-14)


@pytest.mark.parametrize("gamma", [1 / 3, 1.0, *slow(0.0, 0.8)])
@pytest.mark.parametrize("k", [1, 5, *slow(3)])
def test_equal_weights_are_udcg(tmp_path: Path, gamma: float, k: int) -> None:
    """α_i = 1/k and β_i = γ/k: UDCG(γ) of contexts of k passages."""
    Theta(k, "full", (1 / k,) * k, (gamma / k,) * k).write(tmp_path / "even.json")
    rng = Random(k)
    contexts = shown(**{f"s{n}": "".join(rng.sample("abcde", k)) for n in range(30)})
    known = judged(RELEVANCE, ABSTENTION)
    learned = ragworth.score(contexts, known, [f"UDCG(theta=even.json)@{k}"], folder=tmp_path)
    plain = ragworth.score(contexts, known, [f"UDCG(gamma={gamma})@{k}"])
    assert answers(learned) == pytest.approx(answers(plain), abs=1e-14)


def test_the_order_matters_to_learned_weights(folder: Path) -> None:
    scores = ragworth.score(shown(A="ab", B="ba"), judged(RELEVANCE, ABSTENTION), ["UDCG(theta=theta.json)@3"])
    first, second = answers(scores)
    assert first != second


def test_nothing_shown_and_what_was_not_judged(folder: Path) -> None:
    contexts = Contexts({"q": {"a": 1.0, "x": 0.5}, "r": {}})
    known = Judgments.concat([judged(RELEVANCE, ABSTENTION), judged({"a": 1}, {"a": 0.5}, query="r")])
    scores = ragworth.score(contexts, known, ["UDCG(theta=theta.json)@3", "UDCG@3"])
    found = {(q, m): s if v is None else v for _, q, m, v, s in scores.frame.iter_rows()}
    assert found["q", "UDCG(theta=theta.json)@3"] == found["q", "UDCG@3"] == "unjudged"
    assert found["r", "UDCG(theta=theta.json)@3"] == found["r", "UDCG@3"] == 0.5


def test_a_failed_label_of_a_place_that_is_weighed_leaves_no_value(folder: Path) -> None:
    known = judged({"a": 1.0, "b": None, "c": 1.0}, ABSTENTION)
    scores = ragworth.score(shown(A="ab", B="ac"), known, ["UDCG(theta=theta.json)@3"])
    assert answers(scores, "A") == ["unjudged"]
    assert isinstance(answers(scores, "B")[0], float)


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("theta.json", "UDCG(theta=theta.json)@3"),
        ("../a-b/θ_1+2.json", "UDCG(theta=../a-b/θ_1+2.json)@3"),
        ("C:\\my\\t.json", "UDCG(theta=C:\\my\\t.json)@3"),
        ("my weights (1), old.json", 'UDCG(theta="my weights (1), old.json")@3'),
        ("it's.json", 'UDCG(theta="it\'s.json")@3'),
        ("a=b@5.json", "UDCG(theta=a=b@5.json)@3"),
    ],
)
def test_any_path_can_be_written_and_parses_back(tmp_path: Path, path: str, written: str) -> None:
    metric = parse("UDCG@3").declaration.bind(3, theta=path)
    assert str(metric) == written
    assert parse(written) == metric
    assert parse(written).files == {"theta": path}
    if "/" not in path and "\\" not in path:
        THETA.write(tmp_path / path)
        scores = ragworth.score(shown(A="a"), judged(RELEVANCE, ABSTENTION), [written], folder=tmp_path)
        assert scores.frame["metric"].to_list() == [written]


@pytest.mark.parametrize("path", ["''", '""', "' '", '"a\tb"'])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(MetricError, match="the path of a file, such as UDCG\\(theta=FILE\\)"):
        parse(f"UDCG(theta={path})@3")


def test_other_metrics_take_no_file() -> None:
    with pytest.raises(MetricError, match="P has no parameter 'theta'"):
        parse("P(theta=x.json)@3")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("UDCG(theta=theta.json)@10", "weights are for the first 3 passages, but the first 10 passages are requested"),
        ("UDCG(theta=theta.json)", "weights are for the first 3 passages, but no cutoff is requested"),
        ("UDCG(theta=theta.json, gamma=0.5)@3", "learned weights don't use gamma"),
        ("UDCG(theta=theta.json, rel=2)@3", "these weights were learned with rel=1"),
    ],
)
def test_weights_for_something_else_are_refused(folder: Path, written: str, said: str) -> None:
    with pytest.raises(MetricError) as caught:
        scoring.split_metrics(written)
    assert said in caught.value.found
    assert "UDCG(theta=theta.json)@3" in caught.value.remedy


def test_all_files_that_cannot_be_used_are_told_together(folder: Path) -> None:
    with pytest.raises(FormatError, match=r"no\.json: no such file"):
        scoring.split_metrics("UDCG(theta=no.json)@3")
    with pytest.raises(MetricError) as caught:
        scoring.split_metrics(["UDCG(theta=no.json)@3", "P@3", "UDCG(theta=theta.json)@4"])
    assert "no.json" in str(caught.value)
    assert "first 3 passages" in str(caught.value)


def test_paths_start_at_the_folder_given_or_else_where_one_is(folder: Path) -> None:
    (folder / "other").mkdir()
    replace(THETA, alpha=(1.0, 1.0, 1.0)).write(folder / "other" / "theta.json")
    tables = shown(A="a"), judged(RELEVANCE, ABSTENTION)
    here = ragworth.score(*tables, ["UDCG(theta=theta.json)@3"])
    there = ragworth.score(*tables, ["UDCG(theta=theta.json)@3"], folder=folder / "other")
    assert answers(here) == [pytest.approx(sigma(0.5 * 0.9))]
    assert answers(there) == [pytest.approx(sigma(0.9))]
    whole = ragworth.score(*tables, [f"UDCG(theta={folder}/theta.json)@3"], folder=folder / "other")
    assert answers(whole) == answers(here)


def test_what_scores_depend_on_has_a_hash_and_what_is_told_about_it_has_none(folder: Path) -> None:
    names = ["UDCG(theta=theta.json)@3", "P@3", "UDCG@3"]
    before = scoring.metric_file_digests(names)
    assert list(before) == ["UDCG(theta=theta.json)@3"]
    replace(THETA, learned_from={"titles": ["other"]}, c=10.0).write(folder / "theta.json")
    assert scoring.metric_file_digests(names) == before
    for other in (replace(THETA, beta=(0.4, 0.1, 0.0)), replace(THETA, alpha=(0.5, 0.3, 0.2000001))):
        other.write(folder / "theta.json")
        assert scoring.metric_file_digests(names) != before
    assert scoring.metric_file_digests(["P@3"]) == {}


def test_the_engine_reads_no_files_and_says_so(folder: Path) -> None:
    with pytest.raises(MetricError, match="use ragworth"):
        engine.score_tables(shown(A="a"), judged(RELEVANCE, ABSTENTION), "UDCG(theta=theta.json)@3")


def test_the_files_content_is_no_part_of_a_metrics_identity(folder: Path) -> None:
    (bound,), _ = scoring.split_metrics("UDCG(theta=theta.json)@3")
    assert bound == parse("UDCG(theta=theta.json)@3")
    assert hash(bound) == hash(parse(str(bound)))
    again = ragworth.score(shown(A="a"), judged(RELEVANCE, ABSTENTION), [bound, "UDCG(theta=theta.json)@3"])
    assert again.frame.height == 1


def test_values_are_between_0_and_1_however_large_weights_are(tmp_path: Path) -> None:
    Theta(2, "full", (1e6, -1e6), (1e6, 1e6)).write(tmp_path / "t.json")
    scores = ragworth.score(
        shown(A="a", B="b", C="ba"), judged(RELEVANCE, ABSTENTION), ["UDCG(theta=t.json)@2"], folder=tmp_path
    )
    assert answers(scores) == [1.0, 0.0, 0.0]
    assert scores.frame["status"].unique().to_list() == ["ok"]
    assert parse("UDCG(theta=t.json)@2").bounds(2) == (0.0, 1.0)
    assert scores.frame.filter(pl.col("value").is_nan()).is_empty()
