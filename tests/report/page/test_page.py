"""What the report says and carries, without a browser."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

import ragworth
from ragworth.comparison import summarise
from ragworth.core.errors import InputError, MissingExtraError
from ragworth.data import Judgments, Scores
from ragworth.report import page
from ragworth.report.charts import drawing, drawing_worker
from ragworth.report.charts.base import shorten_names
from ragworth.report.page import explorer
from ragworth.report.page.costs import total_cost
from ragworth.report.page.rankings import MAX_PAIRED, group_systems, rank_systems, read_means
from ragworth.report.page.relations import outcome_predictions
from ragworth.report.page.sections.verdict import unlabelled_note
from ragworth.report.renderers.html import bundle_vega, source_hash, vega_bundle
from tests.report.page import odd_samples, samples
from tests.report.page.small_samples import with_values
from tests.report.unpack import unpack_json

Report = Callable[[str], Path]


def visible(html: str) -> str:
    """The words of a page, without scripts, styles and data."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]*>", "", bare))


def island(html: str, name: str) -> dict[str, object]:
    found = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', html)
    assert found is not None
    made = unpack_json(found[1].encode())
    assert isinstance(made, dict)
    return made


def test_letters_join_what_is_not_significantly_different() -> None:
    # a > c, d; b > d: {a, b}, {b, c}, {c, d}.
    assert group_systems("abcd", {("a", "c"), ("a", "d"), ("b", "d")}).of == {"a": "a", "b": "ab", "c": "bc", "d": "c"}
    assert group_systems("ab", set()).of == {"a": "a", "b": "a"}
    assert group_systems("abc", {("a", "b"), ("a", "c"), ("b", "c")}).of == {"a": "a", "b": "b", "c": "c"}


def test_the_best_stands_where_letters_would_be_too_many() -> None:
    """Twelve systems of which only neighbours are alike have eleven groups of two."""
    order = [f"s{i}" for i in range(12)]
    apart = {(a, b) for i, a in enumerate(order) for b in order[i + 2 :]}
    found = group_systems(order, apart)
    assert found.best == "s0"
    assert [found.of[name] for name in order] == ["≈", "≈", *["≠"] * 10]


def test_many_systems_are_grouped_at_once() -> None:
    """Pairs of which every other system is alike have 2^40 groups."""
    order = [f"s{i}" for i in range(80)]
    found = group_systems(order, {(f"s{i}", f"s{i + 1}") for i in range(0, 80, 2)})
    assert [name for name in order if found.of[name] == "≠"] == ["s1"]


def test_two_systems_share_a_letter_exactly_when_they_do_not_differ() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        names = [f"s{i}" for i in range(7)]
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        different = {pair for pair in pairs if rng.random() < 0.4}
        groups = group_systems(names, different)
        assert not groups.best
        for a, b in pairs:
            assert bool(set(groups.of[a]) & set(groups.of[b])) == ((a, b) not in different)


@pytest.mark.slow
def test_many_systems_are_compared_with_the_best_and_the_baseline() -> None:
    """p is corrected for all pairs, because the best is chosen by the same values: of equal systems, none differs."""
    rng = np.random.default_rng(0)
    names = [f"s{i}" for i in range(MAX_PAIRED + 2)]
    rows = [(name, f"q{q}", "AP", 0.2 * rng.random() + 0.6 * (name == "s7")) for name in names for q in range(40)]
    for given, differing in ((rows, set(names) - {"s7"}), ([row for row in rows if row[0] != "s7"], set())):
        scores = Scores(pl.DataFrame(given, schema=["system", "query", "metric", "value"], orient="row"))
        found = rank_systems(scores, read_means(summarise(scores)), "AP", 0, baseline="s3")
        if differing:
            assert len(found.versus) == 2 * len(names) - 3
            assert found.tested == "121 of all 1,891 pairs, each system with s7 and s3"
            assert found.difference("s9", "s3") is not None and found.difference("s9", "s4") is None
            assert found.groups.of["s7"] == "≈" and "different from s7, the best" in found.groups.words
        assert {name for name, group in found.groups.of.items() if group == "≠"} == differing
    only = pl.when(pl.col("system") == "s3")
    few = Scores(scores.frame.with_columns(only.then("value"), only.then("status").otherwise(pl.lit("unjudged"))))
    assert not rank_systems(few, read_means(summarise(few)), "AP", 0).versus


@pytest.mark.slow
def test_sentences_say_what_each_system_is_worth(realistic: page.Page) -> None:
    view = realistic.overview
    assert view.main == "UDCG@5"
    assert view.standings[0].system == "oracle"
    assert view.standings[-1].system == "adversary"
    assert re.match(
        r"oracle has a mean UDCG@5 of 0\.\d+ over the 35 shared queries, "
        r"95 % interval 0\.\d+ to 0\.\d+; \d+ % of its passages mislead",
        view.standings[0].sentence,
    )
    assert re.match(
        r"adversary trails oracle by 0\.\d+ UDCG@5, 95 % interval 0\.\d+ to 0\.\d+",
        view.standings[-1].sentence,
    )
    best, worst = view.standings[0], view.standings[-1]
    assert best.misleading is not None and worst.misleading is not None and best.misleading < worst.misleading
    means = ragworth.summarise(samples.realistic().scores).filter(
        (pl.col("metric") == "UDCG@5") & (pl.col("system") == "oracle")
    )
    assert best.means["UDCG@5"].mean == means["mean"][0]


@pytest.mark.slow
def test_a_baseline_of_the_settings_is_what_systems_are_held_against() -> None:
    given = samples.realistic()
    made = page.build(replace(given, manifest={"settings": {"baseline": "BM25"}}))
    first = made.overview.standings[0].sentence
    assert re.match(r"oracle beats BM25 by 0\.\d+ UDCG@5, 95 % interval 0\.\d+ to 0\.\d+", first)


def test_systems_that_are_equal_are_not_significantly_different() -> None:
    given = samples.realistic()
    twin = given.scores.frame.filter(pl.col("system") == "BM25")
    scores = pl.concat([twin, twin.with_columns(system=pl.lit("random"))])
    made = page.build(replace(given, scores=ragworth.Scores(scores)), metrics=["nDCG@5"])
    known = {each.system: each for each in made.overview.standings}
    assert known["BM25"].group == known["random"].group == "a"
    assert known["oracle"].group == "–"
    assert "is not significantly different from" in known["BM25"].sentence + known["random"].sentence
    assert "has no value of nDCG@5" in known["oracle"].sentence


def test_metrics_that_were_not_computed_and_no_scores_at_all_are_refused() -> None:
    with pytest.raises(InputError, match=r"AP was not computed\n  expected: UDCG@5, nDCG@5"):
        page.build(samples.realistic(), metrics=["nDCG@5", "AP"])
    given = odd_samples.minimal()
    with pytest.raises(InputError, match="there are no scores to report"):
        page.build(replace(given, scores=ragworth.Scores(given.scores.frame.clear())))


def test_pictures_that_the_tables_do_not_allow_are_named_with_the_reason() -> None:
    made = page.build(odd_samples.minimal())
    assert [each.name for each in made.figure_set.figures] == ["means"]
    assert len(made.figure_set.absent) == 5
    words = visible(made.html)
    for title, reason in made.figure_set.absent.items():
        assert f"{title}: {reason}" in words
    for reason in made.diagnosis.absent.values():
        assert reason in words


@pytest.mark.slow
def test_all_charts_are_there_where_all_tables_are(realistic: page.Page, report: Report) -> None:
    assert realistic.figure_set.absent == {}
    assert {each.name for each in realistic.figure_set.figures} == {
        "means", "grades", "kinds", "ranks", "scatter", "predicted",
    }  # fmt: skip
    folder = report("realistic").parent
    for figure in realistic.figure_set.figures:
        for panel in figure.panels:
            ElementTree.fromstring((folder / "figures" / f"{panel.name}.svg").read_text())
            assert f"figures/{panel.name}.svg" in (folder / "report.md").read_text()


@pytest.mark.slow
def test_shares_add_up(realistic: page.Page) -> None:
    figures = {each.name: each.data for each in realistic.figure_set.figures}
    for name in ("grades", "kinds"):
        assert figures[name].group_by("system").agg(pl.col("share").sum())["share"].to_list() == pytest.approx(
            [1.0] * 5
        )


def test_predictions_have_intervals_over_queries() -> None:
    given = samples.realistic()
    assert given.outcomes is not None
    found = outcome_predictions(given, ["UDCG@5", "Cov@5"], 0)
    assert found["metric"].to_list() == ["UDCG@5"]  # no graded query has sub-questions
    row = found.row(0, named=True)
    assert row["low"] < row["rho"] < row["high"]
    assert row["queries"] <= 40 < row["n"]
    assert row["apart"] is None  # the best, and alone


def test_predictions_say_which_metric_differs_from_the_best() -> None:
    """The same values twice cannot be told apart; noise can."""
    rng = np.random.default_rng(3)
    pairs = [(f"s{i}", f"q{j}") for i in range(5) for j in range(60)]
    truth = rng.uniform(size=len(pairs))
    columns = {"best": truth, "copy": truth, "noise": rng.uniform(size=len(pairs))}
    scores = ragworth.Scores(
        [
            {"system": s, "query": q, "metric": name, "value": float(v)}
            for name, values in columns.items()
            for (s, q), v in zip(pairs, values, strict=True)
        ]
    )
    outcomes = ragworth.Outcomes(
        [{"system": s, "query": q, "aspect": "good", "value": float(v)} for (s, q), v in zip(pairs, truth, strict=True)]
    )
    found = outcome_predictions(with_values(scores, outcomes), list(columns), 0)
    assert dict(found.select("metric", "apart").iter_rows()) == {"best": None, "copy": False, "noise": True}


def test_long_names_lose_what_all_have_in_common() -> None:
    models = ("all-MiniLM-L6-v2", "all-mpnet-base-v2", "msmarco-distilroberta-base-v2")
    names = [f"{model}__top_k={k}__chunk_size={size}" for model in models for k in (1, 2, 3) for size in (64, 256)]
    short = shorten_names(names)
    assert short["all-MiniLM-L6-v2__top_k=3__chunk_size=64"] == "all-MiniLM…k=3 size=64"
    assert short["msmarco-distilroberta-base-v2__top_k=1__chunk_size=256"] == "msmarco-di…k=1 size=256"
    assert len(set(short.values())) == len(names)
    assert shorten_names(["one system alone with a long name"]) == {
        "one system alone with a long name": "one system…a long name"
    }
    assert shorten_names([]) == {}


@pytest.mark.slow
def test_the_policy_allows_the_page_itself_and_nothing_else(report: Report) -> None:
    html = report("realistic").read_text(encoding="utf-8")
    policy = unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)[1])  # type: ignore[index]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    assert len(scripts) == 2
    assert all(source_hash(script) in policy for script in scripts)
    assert source_hash(re.search(r"<style>(.*?)</style>", html, flags=re.DOTALL)[1]) in policy  # type: ignore[index]
    assert not re.search(r"<[^>]+\s(style|on\w+)=", re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))
    assert not re.search(r'(src|href)="(?!#)', re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))


def test_hostile_texts_end_no_element_and_are_shown(report: Report) -> None:
    html = report("hostile").read_text(encoding="utf-8")
    assert html.count("</script>") == html.count("<script") == 2 + 2 + len(re.findall(r'id="piece-\d+"', html))
    assert "<img" not in re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert "<script>window.hacked=1</script><img src=x onerror=" in visible(html)
    assert "\u202e" not in visible(html)
    markdown = (report("hostile").parent / "report.md").read_text(encoding="utf-8")
    assert "<script>" not in markdown
    assert "<img" not in markdown


def test_the_explorer_carries_every_judgment_with_its_source(report: Report) -> None:
    given = samples.realistic()
    html = report("realistic").read_text(encoding="utf-8")
    index, piece = island(html, "index"), island(html, "piece-0")
    assert index["systems"] == ["oracle", "BM25 + rerank", "BM25", "random", "adversary"]
    assert len(index["queries"]) == 46  # type: ignore[arg-type]
    judged = piece["judgments"]
    assert isinstance(judged, dict)
    shown = given.contexts.frame.select("query", "passage").unique()
    assert given.judgments is not None
    assert judged["n"] == given.judgments.frame.join(shown, on=["query", "passage"], how="semi").height
    assert {"q", "passage", "aspect", "value", "status", "source", "reason", "p"} <= set(judged["columns"])
    assert "text" in piece["passages"]["columns"]  # type: ignore[index]


@pytest.mark.slow
def test_texts_are_cut_where_the_page_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "LIMIT", 20_000)
    html = page.build(samples.realistic()).html
    index, piece = island(html, "index"), island(html, "piece-0")
    assert index["cut"] == 120
    texts = piece["passages"]["columns"]["text"]["v"]  # type: ignore[index]
    assert all(len(text) <= 121 for text in texts)
    assert any(text.endswith("…") for text in texts)


@pytest.mark.slow
def test_a_thousand_queries_of_ten_systems_stay_under_twenty_megabytes() -> None:
    # Some of the queries, with all passages of their contexts different: their share of the page grows with them.
    given = odd_samples.large(queries=40, unique=60)
    data = page.build(given)
    pieces = explorer.build_explorer(given, data.facts, data.overview, data.diagnosis)
    assert pieces.cut is None
    assert 25 * (len(pieces.index) + sum(map(len, pieces.pieces))) < 25_000_000
    assert explorer.LIMIT + 3_000_000 < 20_000_000


def test_the_same_results_give_the_same_page() -> None:
    assert page.build(odd_samples.minimal()).html == page.build(odd_samples.minimal()).html


def test_each_id_of_the_page_is_there_once() -> None:
    """The data that scripts unpack have ids of their own, beside those of sections."""
    ids = re.findall(r'\sid="?([^\s">]+)', page.build(odd_samples.minimal()).html)
    assert len(ids) == len(set(ids))
    assert {"figures", "charts"} <= set(ids)


def test_costs_are_added_over_stages() -> None:
    stages = [{"calls": 2, "seconds": 1.5}, {"calls": 3, "cost": 0.25}, {"status": "done"}]
    found = total_cost({"stages": stages})
    assert found is not None
    assert (found.calls, found.cost, found.seconds, found.new_tokens) == (5, 0.25, 1.5, None)
    assert found.words() == "5 calls of the model, 0.25 in the currency of the price given, 1.5 s."
    without = total_cost({"stages": [{"calls": 0, "seconds": 1.5}, {"seconds": 0.5}]})
    assert without is not None
    assert without.words() == "no model was asked, 2.0 s."
    assert total_cost({}) is None
    assert total_cost({"stages": "nothing"}) is None


def test_provenance_has_what_the_manifest_has(report: Report) -> None:
    words = visible(report("realistic").read_text(encoding="utf-8"))
    for piece in ("9f" * 32, "4f1c0ad2b7e9", "reply with exactly NO-RESPONSE", "2026-11-15T12:00:00Z", "first-token"):
        assert piece in words


def test_markdown_says_the_same(realistic: page.Page, report: Report) -> None:
    text = (report("realistic").parent / "report.md").read_text(encoding="utf-8")
    assert text.startswith("# Five ways to find who built what\n")
    for each in realistic.overview.standings:
        assert each.sentence.replace("_", "\\_") in text
    assert "| misled by a distractor |" in text


@pytest.mark.parametrize("name", ["altair", "vl_convert"])
def test_without_its_libraries_the_line_that_installs_them_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    vega_bundle.cache_clear()
    with pytest.raises(MissingExtraError, match=r'pip install "ragworth\[report\]"'):
        _ = page.build(odd_samples.minimal()).html


@pytest.mark.slow
def test_the_report_is_written_where_the_process_that_draws_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    page.write(odd_samples.minimal(), path)
    pictures = list((tmp_path / "figures").iterdir())
    killed = tmp_path / "killed.py"
    killed.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGABRT)\n")
    monkeypatch.setattr(drawing_worker, "__file__", str(killed))
    drawing._PROCESS.close()
    with pytest.warns(UserWarning, match=r"no pictures beside the page.*ended by SIGABRT.*ulimit -v"):
        page.write(odd_samples.minimal(), path)
    assert "window.drawChart" in path.read_text(encoding="utf-8")
    assert pictures and not any(picture.exists() for picture in pictures), "those of the report before are gone"
    monkeypatch.undo()
    page.write(odd_samples.minimal(), path)
    assert all(picture.exists() for picture in pictures)


def test_the_libraries_are_bundled_once_for_each_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGWORTH_CACHE", str(tmp_path / "cache"))
    bundle = Mock(return_value="drawn é")
    for version in ("1.8.0", "1.9.0", "1.9.0"):
        library = SimpleNamespace(__version__=version, javascript_bundle=bundle)
        assert bundle_vega(library, "draw;") == "drawn é"
    assert bundle.call_count == 2
    for file in tmp_path.rglob("vega-*.js"):
        file.write_bytes(b"")
    assert bundle_vega(library, "draw;") == "drawn é", "a damaged file is bundled again"
    monkeypatch.delenv("RAGWORTH_CACHE")
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError("no home")))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert bundle_vega(library, "draw;") == "drawn é", "without a home folder, too"


def test_what_each_system_is_and_what_was_noticed_of_it(report: Report) -> None:
    html = report("realistic").read_text(encoding="utf-8")
    (table,) = re.findall(r'<table class="systems">.*?</table>', html, re.DOTALL)
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in re.findall(r"<tr>.*?</tr>", table)]
    words = {visible(row[0]): [visible(cell) for cell in row[1:]] for row in rows[1:]}
    assert words["BM25"] == [samples.PIPELINES["BM25"], "5 passages a query"]
    assert words["random"][0] == "not recorded"
    note = samples.NOTED["BM25 + rerank"][0]
    assert words["BM25 + rerank"][0] == samples.PIPELINES["BM25 + rerank"] + note
    board = re.findall(r"<tr><th[^>]*>.*?</th>", re.findall(r'<table class="board">.*?</table>', html, re.DOTALL)[1])
    assert [visible(row) for row in board if "see its note" in row] == ["2 BM25 + reranksee its note"]
    markdown = (report("realistic").parent / "report.md").read_text(encoding="utf-8")
    assert "| BM25 | bm25(k1=0.9, b=0.4) % 5 | 5 passages a query |" in markdown
    pipeline = samples.PIPELINES["BM25 + rerank"]
    assert f"| BM25 + rerank | {pipeline} {note} |" in markdown.replace("\\", "").replace("&gt;", ">")
    hostile = report("hostile").read_text(encoding="utf-8")
    (table,) = re.findall(r'<table class="systems">.*?</table>', hostile, re.DOTALL)
    assert "<script>" not in table and "<img" not in table and "\x1b" not in table
    assert visible(table).count("nothing") == 1  # of a system that shows none


def test_what_stages_noticed_is_in_the_page_and_in_the_markdown(tmp_path: Path) -> None:
    results = odd_samples.minimal()
    stages = [{"name": "annotate.abstention", "status": "done", "notes": ["control questions: <b>p</b> = 0.97"]}]
    written = page.write(replace(results, manifest={**results.manifest, "stages": stages}), tmp_path / "report.html")
    assert "annotate.abstention: control questions: &lt;b&gt;p&lt;/b&gt; = 0.97" in written.html
    assert "annotate.abstention: control questions" in (tmp_path / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        (["containment 1"], "No passage has a label: a match with the accepted answers says"),
        (["m · relevance"], "No passage has a label: a model says"),
        (["m · relevance", "containment 1"], "a model or a match with the accepted answers says"),
        (["m · relevance", "qrels.txt"], ""),
        ([], ""),
    ],
)
def test_who_says_what_is_relevant_without_labels(sources: list[str], words: str) -> None:
    rows = [("q", f"d{i}", "relevance", 1.0, "ok", source) for i, source in enumerate(sources)]
    note = unlabelled_note(Judgments(pl.DataFrame(rows, schema=dict(Judgments.schema), orient="row")))
    assert words in note and bool(words) == bool(note)
