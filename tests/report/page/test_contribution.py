"""What each passage and each search did for the answers, in the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from ragworth.diagnosis.contributions import diagnose_contributions
from ragworth.judging.contribution.hops import hop_profile, stop_sentence
from ragworth.report import page
from ragworth.report.answer_views import AnswerView
from ragworth.report.page.answer_contexts import answer_contexts, count_shown
from ragworth.report.renderers.html import render_block, render_section
from ragworth.report.renderers.markdown import render_markdown
from tests.report.page.conftest import Browser
from tests.report.page.contribution_samples import GROWING, HOSTILE, LABELS, SENTENCES, SYSTEM, contributed


@pytest.fixture(scope="module")
def made() -> page.Page:
    pytest.importorskip("altair")
    return page.build(contributed())


def test_sentences_have_the_passages_behind_them_and_their_marks(made: page.Page) -> None:
    said = made.results.said
    (first,), explored, total = answer_contexts(made, said["graded-contribution"], said["support"], 1)
    assert (explored, total) == (2, 2)
    (view,) = [block for block in first.blocks if isinstance(block, AnswerView)]
    assert [(each.behind, each.against, each.label) for each in view.sentences] == [
        ((1, 2), (3,), "contradicted"),
        ((2,), (3,), "supported"),
        ((), (), "neither"),
    ]
    assert view.passages[0].remarks == "redundant with [2] · cited"
    assert view.sentences_of(2) == [1, 2]
    assert first.blocks[0].text == "2 passages of 3 carry 100 % of the answer; 1 of 3 goes against it."  # type: ignore


@pytest.mark.slow
def test_what_contributes_goes_by_the_setting_of_the_run(made: page.Page) -> None:
    results = contributed()
    said = {name: frame.with_columns(least=pl.lit(2.5)) for name, frame in results.said.items() if "least" in frame}
    strict = page.build(replace(results, said={**results.said, **said}))
    first, *_ = answer_contexts(strict, said["graded-contribution"], None, 1).shown
    (view,) = [block for block in first.blocks if isinstance(block, AnswerView)]
    assert [(each.behind, each.against) for each in view.sentences] == [((1,), ()), ((2,), ()), ((), ())]
    assert "More than 2.5 nats" in render_markdown(strict.document)
    assert "More than 0.1 nats" in render_markdown(made.document)


def marked(
    made: page.Page, sentences: list[str], statements: list[str], labels: list[str], repeat: int = 0
) -> list[str]:
    """The marks of an answer of these sentences, where the answer that was judged has these statements."""
    said, count = made.results.said, len(sentences)
    split = said["graded-contribution"].head(1)
    split = split.with_columns(sentences=pl.lit(sentences), by_sentence=pl.Series([[[1.0, 0.0, 0.0]] * count]))
    support = said["support"].head(1).with_columns(statements=pl.lit(statements), labels=pl.lit(labels))
    support = support.with_columns(
        supporting=pl.lit(None, pl.List(pl.List(pl.String))), repeat=pl.lit(repeat, pl.Int64)
    )
    first, *_ = answer_contexts(made, split, support, 1).shown
    (view,) = [block for block in first.blocks if isinstance(block, AnswerView)]
    return [each.label for each in view.sentences]


def test_a_mark_belongs_to_the_sentence_that_was_judged(made: page.Page) -> None:
    assert marked(made, ["Paris."], ["It is Lyon."], ["contradicted"]) == [""]
    assert marked(made, ["It is  Paris [1]."], ["It is Paris."], ["supported"]) == ["supported"]
    assert marked(made, ["Yes.", "Yes.", "No."], ["No.", "Yes.", "Yes."], ["neither", "supported", "contradicted"]) == [
        "supported",
        "contradicted",
        "neither",
    ]
    assert marked(made, ["Paris."], ["Paris."], ["supported"], repeat=1) == [""]


def test_support_alone_shows_marks_without_bars(made: page.Page) -> None:
    shown = answer_contexts(made, None, made.results.said["support"], 1).shown
    (view,) = [block for block in shown[0].blocks if isinstance(block, AnswerView)]
    assert [each.label for each in view.sentences] == LABELS
    assert [each.name for each in view.passages] == list("whr")
    assert "<svg" not in render_block(view)


def test_answers_with_support_alone_are_shown_too(made: page.Page) -> None:
    split, support = made.results.said["graded-contribution"], made.results.said["support"]
    found = answer_contexts(made, split.head(1), support, 40)
    assert [each.summary for each in found.shown] == [
        "Who built the lighthouse? · one",
        f"Who built {HOSTILE}? · one · support alone",
    ]
    other = support.head(1).with_columns(statements=pl.lit(["It is Lyon.", "It is old.", "It is far."]))
    found = answer_contexts(made, split.head(1), other, 40)  # contributions to another answer
    marks = [[each.label for each in view.sentences] for details in found.shown for view in details.blocks
             if isinstance(view, AnswerView)]  # fmt: skip
    assert marks == [["", "", ""], LABELS]
    second = pl.concat([split.head(1), split.head(1).with_columns(repeat=pl.lit(1, pl.Int64))])
    assert answer_contexts(made, second, None, 40).shown[1].summary == "Who built the lighthouse? · one · answer 2"


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((1, 1, 1), "the only answer"),
        ((12, 12, 12), "all 12 answers"),
        ((40, 60, 60), "the first 40 of 60 answers"),
        ((12, 12, 2000), "12 of 2,000 answers (queries in the explorer)"),
        ((40, 60, 2000), "40 of 2,000 answers (the first in the explorer)"),
    ],
)
def test_the_number_of_answers_is_of_all_queries(numbers: tuple[int, int, int], words: str) -> None:
    assert count_shown(*numbers) == words


def test_queries_beyond_the_explorer_are_counted() -> None:
    pytest.importorskip("altair")
    fewer = page.build(contributed(), queries=1)
    text = render_markdown(
        replace(
            fewer.document, sections=[each for each in fewer.document.sections if each.id in ("contribution", "hops")]
        )
    )
    assert "Sentences and passages: 1 of 2 answers (queries in the explorer)" in text
    assert "Timelines: 1 of 2 answers (queries in the explorer)" in text


def test_the_diagnosis_counts_findings_by_system(made: page.Page) -> None:
    counts = {(row[0], row[1]): row[2:] for row in made.contribution_diagnosis.counts.iter_rows()}
    assert counts[SYSTEM, "unsupported-sentence"] == (2, 2)
    assert counts[SYSTEM, "redundant-with"] == (2, 2)
    assert counts[SYSTEM, "misled-by"] == (0, 2)  # one answer declines, and two passages carry the wrong one
    section = next(each for each in made.document.sections if each.id == "diagnosis")
    text = render_section(section)
    assert 'id="finding-unsupported-sentence"' in text
    assert "2 of 2 answers (100 %)" in text
    assert diagnose_contributions(None, None, {}).counts.is_empty()


def test_hops_say_when_the_agent_could_have_stopped(made: page.Page) -> None:
    early = "the agent could have stopped after 2 of 4 searches: the rest adds −1.0 nats"
    assert stop_sentence(GROWING) == f"{early}; the answer was likeliest after 2 searches"
    late = "the agent couldn't have stopped earlier: the last search adds"
    assert stop_sentence([-9.0, -8.0, -1.0]) == f"{late} 7.0 nats"
    assert stop_sentence([-10.0, -12.0, -1.0]) == f"{late} 11.0 nats"  # the first one made the answer less likely
    never = "the agent could have answered without searching: the search adds"
    assert stop_sentence([-9.0, -9.5]) == f"{never} −0.5 nats; the answer was likeliest without any"
    assert stop_sentence([-9.0, -7.0], 3.0) == f"{never} +2.0 nats"
    profile = hop_profile(made.results.said["hops"])
    assert profile["worth"].to_list() == pytest.approx([0.0, 3.0, 9.0, 9.0, 8.0])
    section = next(each for each in made.document.sections if each.id == "hops")
    assert "would have saved 4 of 8 searches; 2 made the answer less likely by more than 0.1 nats" in render_section(
        section
    )


def test_markdown_has_the_same_as_tables(made: page.Page) -> None:
    document = replace(made.document, sections=[each for each in made.document.sections if each.id != "explorer"])
    text = render_markdown(document)
    assert "| Passages behind it" in text
    assert "| Worth so far, nats" in text
    assert "<script>" not in text


@pytest.mark.browser
def test_pointing_and_clicking_marks_passages(browser: Browser, made: page.Page, tmp_path: Path) -> None:
    made.write(tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    marked = "return [...document.querySelectorAll('#answer-1 .shares .marked')].map((each) => each.dataset.number)"
    browser.run("document.querySelectorAll('#contribution details').forEach((each) => { each.open = true; })")
    browser.run("document.querySelector('#answer-1-s2').dispatchEvent(new PointerEvent('pointerenter'))")
    assert browser.run(marked) == ["2"]
    browser.run("document.querySelector('#answer-1-s2').dispatchEvent(new PointerEvent('pointerleave'))")
    assert browser.run(marked) == []
    browser.click("#answer-1-s1 .phrase")
    assert browser.run(marked) == ["1", "2"]
    assert browser.all("#answer-1 .opposed[data-number]") != []
    browser.choose("#finding", "unsupported-sentence")
    assert browser.all("#count") == ["2 queries of 2"]
    assert browser.complaints() == []
    assert browser.run("return window.hacked") is None
    assert SENTENCES[2].strip() in browser.all("#answer-1-s3 .phrase")[0]
