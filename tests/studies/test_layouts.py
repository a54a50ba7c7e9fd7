"""``ragworth study layouts``: of two readers that look to different ends, each is surest of what helps it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from benchmarks.simulated_reader import Reader, collection
from scipy import stats

import ragworth
from ragworth.core.errors import InputError, ModelError
from ragworth.llm.scripted import Scripted
from ragworth.studies.layouts import Layouts
from ragworth.studies.run import StudyResult

DOWN = tuple(1.0 - 0.08 * place for place in range(10))


class Two:
    """Stands in for ``ragworth.llm``: ``embedded`` reads from the top, any other model from the end."""

    def __init__(self) -> None:
        self.models: dict[str, Scripted] = {}
        self.calls = 0

    def __call__(self, spec: str = "", **options: object) -> Scripted:
        if spec == "unable":
            return Scripted(Reader(), name=spec, abilities=("generate",))
        weights = DOWN if spec == "embedded" else DOWN[::-1]
        reader = Reader(weights=weights, threshold=0.1, noise=0.02, name=spec)

        def counted(request: object) -> object:
            self.calls += 1
            return reader(request)  # type: ignore[arg-type]

        return Scripted(counted, name=spec)  # type: ignore[arg-type]


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Two:
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    made = Two()
    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", made)
    return made


def own_choices(found: StudyResult) -> pl.DataFrame:
    """A reader's own choice against another model's."""
    frame = found.findings.tables[1].frame
    return frame.filter((pl.col("first") == pl.col("answered by")) & ~pl.col("second").str.starts_with("("))


@pytest.mark.slow
def test_each_reader_does_best_with_its_own_choice(tmp_path: Path, two: Two) -> None:
    # Relevant passages are the surest, so that where they stand decides.
    found = ragworth.study("layouts", collection(tmp_path / "w", queries=60, near=12), keep=False)
    table = found.findings.tables[0].frame.filter(pl.col("measure") == "KeyEntropy")
    accuracy = {(row["chosen by"], row["answered by"]): row["accuracy"] for row in table.to_dicts()}
    for own, other in (("embedded", "embedded:base"), ("embedded:base", "embedded")):
        assert accuracy[own, own] > accuracy["(at random)", own] + 0.1
        assert accuracy[own, own] > accuracy[other, own] + 0.1
        assert accuracy["(best possible)", own] >= accuracy[own, own]
    gaps = found.findings.tables[1].frame.filter(pl.col("measure") == "KeyEntropy")
    at_random = {(row["answered by"], row["first"]): row for row in gaps.filter(second="(at random)").to_dicts()}
    assert at_random["embedded", "embedded"]["p_holm"] < 0.05
    choices = own_choices(found)
    for row in choices.filter(pl.col("measure") == "KeyEntropy").to_dicts():
        assert row["difference"] > 0.1 and row["wins"] > row["losses"] and row["p_holm"] < 0.05
    assert all("more than from a random layout" in sentence for sentence in found.findings.sentences)


def test_the_sign_test_of_the_paper_counts_queries(tmp_path: Path, two: Two) -> None:
    place = collection(tmp_path / "w", queries=12, near=12)
    found = ragworth.study("layouts", place, keep=False, protocol="paper")
    for row in found.findings.tables[1].frame.to_dicts():
        n = row["wins"] + row["losses"]
        assert row["p"] == pytest.approx(stats.binomtest(row["wins"], n).pvalue if n else 1.0)
    assert "a sign test" in found.findings.tables[1].note
    assert found.findings.notes[0].startswith("Protocol paper: the design of Hua et al.")


def test_the_confidence_is_that_of_the_answer_that_is_graded(tmp_path: Path, two: Two) -> None:
    found = ragworth.study("layouts", collection(tmp_path / "w", queries=8), keep=False, size=6)
    results = found.cases[0].results
    said = results.said["answers"]
    assert said.height == 8 * 3 * 2 and results.answers is not None
    texts = {(s, q): text for s, q, text in results.answers.frame.select("system", "query", "text").iter_rows()}
    for row in said.iter_rows(named=True):
        assert "".join(row["answer_tokens"]) == texts[row["system"], row["query"]]


@pytest.mark.slow
def test_numbers_are_those_of_the_tables(tmp_path: Path, two: Two) -> None:
    found = ragworth.study("layouts", collection(tmp_path / "w", queries=20), keep=False, size=6, candidates=4)
    case = found.cases[0]
    assert case.results.outcomes is not None
    values = {
        (s, q, a): v
        for s, q, a, v in case.results.outcomes.frame.select("system", "query", "aspect", "value").iter_rows()
    }
    queries = sorted({query for _, query, _ in values})
    systems: dict[str, list[str]] = {}
    for system, model in case.design.select("system", "model").iter_rows():
        systems.setdefault(model, []).append(system)
    for row in found.findings.tables[0].frame.to_dicts():
        total = 0.0
        for query in queries:
            right = [values[system, query, "grade"] == 1 for system in systems[row["answered by"]]]
            if row["chosen by"] == "(at random)":
                total += sum(right) / 4
            elif row["chosen by"] == "(best possible)":
                total += any(right)
            else:
                how = [values[system, query, row["measure"]] for system in systems[row["chosen by"]]]
                top = [at for at, each in enumerate(how) if each == max(how)]
                total += sum(right[at] for at in top) / len(top)
        assert row["accuracy"] == pytest.approx(total / 20) and row["queries"] == 20
    frame = found.findings.tables[0].frame
    accuracy = {(r["measure"], r["chosen by"], r["answered by"]): r["accuracy"] for r in frame.to_dicts()}
    for row in found.findings.tables[1].frame.filter(second="(at random)").to_dicts():
        there, random = (accuracy[row["measure"], row[side], row["answered by"]] for side in ("first", "second"))
        assert row["difference"] == pytest.approx(there - random)
    own = own_choices(found)
    assert own.height == 8 and set(own["queries"]) == {20}  # four measures, two readers
    for row in own.to_dicts():
        measure, reader, other = row["measure"], row["answered by"], row["second"]
        assert other != reader and row["wins"] + row["ties"] + row["losses"] == 20
        gap = accuracy[measure, reader, reader] - accuracy[measure, other, reader]
        assert row["difference"] == pytest.approx(gap) and row["low"] <= gap <= row["high"]
        assert row["p"] <= row["p_holm"]


def test_layouts_have_the_same_passages_in_another_order(tmp_path: Path, two: Two) -> None:
    case = ragworth.study("layouts", collection(tmp_path / "w", queries=5), keep=False).cases[0]
    frame = case.results.contexts.frame.join(case.design, on="system", maintain_order="left")
    gold = frame.filter(pl.col("passage").str.contains("gold"))
    assert (gold["rank"] == gold["place"]).all() and set(gold["place"]) == {1, 5, 10} and gold.height == 5 * 3 * 2
    assert frame.group_by("query").agg(pl.col("passage").n_unique())["passage"].unique().to_list() == [10]
    rest = frame.filter(~pl.col("passage").str.contains("gold")).sort("query", "system", "rank")
    orders = (
        rest.group_by("query", "system", maintain_order=True)
        .agg("passage")
        .group_by("query")
        .agg(pl.col("passage").n_unique())
    )
    assert set(orders["passage"]) == {1}
    assert Layouts(size=10, candidates=10).places == list(range(1, 11))
    assert Layouts(size=7, candidates=2).places == [1, 7]


def test_what_cannot_be_studied_is_refused(tmp_path: Path, two: Two) -> None:
    place = collection(tmp_path / "w", queries=4)
    with pytest.raises(InputError, match="candidates ≤ size"):
        ragworth.study("layouts", place, size=3, candidates=4)
    for models in ("embedded", "embedded,embedded", "embedded,,x"):
        with pytest.raises(InputError, match="two models or more"):
            ragworth.study("layouts", place, models=models)
    with pytest.raises(InputError, match="no query is left"):
        ragworth.study("layouts", place, keep=False, size=40)
    with pytest.raises(ModelError):
        ragworth.study("layouts", place, keep=False, models="embedded,unable")
    text = (place / "ragworth.toml").read_text(encoding="utf-8")
    (place / "ragworth.toml").write_text(f'model = "embedded:base"\n{text}', encoding="utf-8")
    with pytest.raises(InputError, match="there is only embedded:base"):
        ragworth.study("layouts", place, keep=False)
    assert two.calls == 0
    with pytest.raises(InputError, match="measure is"):
        ragworth.study("layouts", place, measure="Entropie")
