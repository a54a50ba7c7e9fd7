"""trec_eval's own expected outputs, reproduced at the precision they are printed in."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import polars as pl
import pytest

from ragworth import Contexts, Judgments, Scores, score
from ragworth.core.errors import FormatError
from ragworth.formats import read_contexts, read_judgments

pytestmark = pytest.mark.real

CUT = re.compile(r"(P|recall|success|ndcg_cut|map_cut)_(\d+)")
OURS = {
    "P": "P",
    "recall": "R",
    "success": "Success",
    "ndcg_cut": "nDCG",
    "map_cut": "AP",
    "map": "AP",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "recip_rank": "RR",
    "ndcg": "nDCG",
    "set_P": "P",
    "set_recall": "R",
    "set_F": "F1",
}
"""trec_eval's names without the cutoff, and ours."""


class Case(NamedTuple):
    """One of trec_eval's test runs: its arguments as ours, and what it printed."""

    out: str
    qrels: str
    run: str
    rel: int = 1
    per_query: bool = True


CASES = {
    "-a": Case("out.test.a", "qrels.test", "results.test", per_query=False),
    "-a -q": Case("out.test.aq", "qrels.test", "results.test"),
    "-a -q -c": Case("out.test.aqc", "qrels.test", "results.trunc"),
    "-a -q -l2": Case("out.test.aql", "qrels.rel_level", "results.test", rel=2),
}
QUERIES = ["301", "302", "303"]


def written(name: str, rel: int) -> str | None:
    """Our written form of one of trec_eval's metrics; None where we do not have it."""
    cut = CUT.fullmatch(name)
    ours = OURS.get(cut[1] if cut else name)
    if ours is None:
        return None
    # The level of -l says what is relevant; the gains of nDCG are not about that.
    level = f"(rel={rel})" if rel != 1 and ours != "nDCG" else ""
    return f"{ours}{level}" + (f"@{cut[2]}" if cut else "")


def printed(path: Path, rel: int) -> dict[tuple[str, str], str]:
    """(metric of ours, query or ``all``) → the number as trec_eval printed it."""
    found: dict[tuple[str, str], str] = {}
    for line in path.read_text().splitlines():
        name, query, value = line.split()
        ours = written(name, rel)
        if ours is not None:
            # Some are printed under two names (P without cutoff is set_P only); none twice for us.
            assert (ours, query) not in found
            found[ours, query] = value
    return found


def read(data: Path, case: Case) -> tuple[Contexts, Judgments]:
    """The run without what some lines have after the tag, which trec_eval ignores and we refuse."""
    folder = data / "trec_eval"
    with TemporaryDirectory() as scratch:
        run = Path(scratch) / case.run
        lines = (folder / case.run).read_text().splitlines()
        run.write_text("".join(" ".join(line.split()[:6]) + "\n" for line in lines))
        return read_contexts(run), read_judgments(folder / case.qrels)


def scored(data: Path, case: Case, *, complete: bool = True) -> tuple[Scores, dict[tuple[str, str], str]]:
    expected = printed(data / "trec_eval" / case.out, case.rel)
    metrics = list(dict.fromkeys(metric for metric, _ in expected))
    contexts, judgments = read(data, case)
    return score(contexts, judgments, metrics, complete=complete), expected


@pytest.mark.parametrize("arguments", CASES)
def test_per_query_and_mean(arguments: str, data: Path) -> None:
    case = CASES[arguments]
    scores, expected = scored(data, case)
    means = scores.frame.group_by("metric").agg(pl.col("value").mean()).rows()
    ours = {(metric, query): value for _, query, metric, value, _ in scores.frame.rows()}
    ours |= {(metric, "all"): value for metric, value in means}
    assert scores.frame["status"].unique().to_list() == ["ok"]
    if not case.per_query:
        ours = {key: value for key, value in ours.items() if key[1] == "all"}
    assert {key: f"{value:.4f}" for key, value in ours.items()} == expected


def test_how_much_is_compared(data: Path) -> None:
    """Guards the test above against comparing less than both sides have."""
    metrics = {metric for metric, _ in printed(data / "trec_eval" / "out.test.aq", 1)}
    # Five with cutoffs (9 each but Success, which has 3), and eight without.
    assert len(metrics) == 4 * 9 + 3 + 8
    assert len(printed(data / "trec_eval" / "out.test.aq", 1)) == len(metrics) * 4


def test_missing_queries_count_as_empty_or_are_left_out(data: Path) -> None:
    """results.trunc has nothing for query 302; -c counts it as 0, without -c it is left out."""
    case = CASES["-a -q -c"]
    complete, expected = scored(data, case)
    present, _ = scored(data, case, complete=False)
    assert complete.frame["query"].unique(maintain_order=True).to_list() == QUERIES
    left_out = present.frame.filter(pl.col("status") == "left-out")
    assert left_out["query"].unique().to_list() == ["302"]
    assert present.frame.filter(pl.col("status") == "ok").equals(complete.frame.filter(pl.col("query") != "302"))
    assert complete.frame.filter(pl.col("query") == "302")["value"].unique().to_list() == [0.0]
    assert {value for (_, query), value in expected.items() if query == "302"} == {"0.0000"}
    for metric, (whole, part) in {
        metric: (
            complete.frame.filter(pl.col("metric") == metric)["value"].mean(),
            present.frame.filter(pl.col("metric") == metric)["value"].mean(),
        )
        for metric in complete.frame["metric"].unique()
    }.items():
        assert isinstance(whole, float) and isinstance(part, float)
        assert part == pytest.approx(whole * 3 / 2, abs=1e-12), metric


def test_the_report_says_what_is_missing(data: Path) -> None:
    complete, _ = scored(data, CASES["-a -q -c"])
    present, _ = scored(data, CASES["-a -q -c"], complete=False)
    assert "results.trunc: 1 of 3 judged queries are not in the run and count as empty contexts" in complete.notes
    assert "results.trunc: 1 of 3 judged queries are not in the run and are left out" in present.notes
    assert not scored(data, CASES["-a"])[0].notes


def test_files_as_they_come(data: Path) -> None:
    """Tabs and padding in one run, trailing junk and queries mixed up in the other."""
    whole, judgments = read(data, CASES["-a"])
    assert read_contexts(data / "trec_eval" / "results.test") == whole
    with pytest.raises(FormatError, match="9 fields where 6 belong") as caught:
        read_contexts(data / "trec_eval" / "results.trunc")
    assert caught.value.line == 1
    assert whole.frame.group_by("query", maintain_order=True).len().rows() == [(query, 500) for query in QUERIES]
    assert len(judgments) == 1708 + 1061 + 912
    trunc, _ = read(data, CASES["-a -q -c"])
    assert trunc.frame["query"].unique(maintain_order=True).to_list() == ["301", "303"]
    # The lines of the file are in no order at all; those of the table are.
    for _, context in trunc.frame.group_by("query"):
        assert context["score"].is_sorted(descending=True)


def test_ties_of_single_precision_change_little_here(data: Path) -> None:
    """The scores have seven digits, which single precision holds: no new ties, no other numbers."""
    folder = data / "trec_eval"
    assert read_contexts(folder / "results.test", ties="float32") == read_contexts(folder / "results.test")
